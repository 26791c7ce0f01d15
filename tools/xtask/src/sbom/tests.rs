use super::*;

const TREE: &str = "\
courser-cli v0.1.0 (/somewhere/tools/cli)
bytes v1.12.0
old v0.1.0+build.2
bytes v1.12.0 (*)
";

fn metadata() -> Value {
    let package = |name: &str, version: &str, license: &str| {
        json!({"id": name, "name": name, "version": version, "license": license,
            "description": null, "source": "registry"})
    };
    let edge = |to: &str| json!({"pkg": to, "dep_kinds": [{"kind": null}]});
    json!({
        "packages": [
            package("old", "0.1.0+build.2", "MIT/Apache-2.0"),
            package("courser-cli", "0.1.0", "MIT OR Apache-2.0"),
            package("bytes", "1.12.0", "MIT"),
            package("unlinked", "1.0.0", "MIT"),
        ],
        "resolve": {"nodes": [
            {"id": "courser-cli", "deps": [edge("bytes"), edge("unlinked"), edge("old")]},
            {"id": "old", "deps": [edge("bytes")]},
            {"id": "bytes", "deps": []},
        ]},
    })
}

#[test]
fn the_list_has_what_is_linked_with_licenses_and_hashes() {
    let lock = "[[package]]\nname = \"bytes\"\nversion = \"1.12.0\"\nchecksum = \"abc\"\n";
    let list = document(&metadata(), &tree(TREE), &checksums(lock).unwrap()).unwrap();
    assert_eq!(
        list["metadata"]["component"]["purl"],
        "pkg:cargo/courser-cli@0.1.0"
    );
    let names: Vec<&Value> = metadata::list(&list, "components")
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["bytes", "old"]);
    let [bytes, old] = [&list["components"][0], &list["components"][1]];
    assert_eq!(bytes["hashes"][0]["content"], "abc");
    assert_eq!(old["licenses"][0]["expression"], "MIT OR Apache-2.0");
    assert_eq!(old["purl"], "pkg:cargo/old@0.1.0%2Bbuild.2");
    assert!(old.get("hashes").is_none());
    let of_binary = metadata::list(&list, "dependencies")
        .find(|it| it["ref"] == "pkg:cargo/courser-cli@0.1.0")
        .unwrap();
    assert_eq!(
        of_binary["dependsOn"],
        json!(["pkg:cargo/bytes@1.12.0", "pkg:cargo/old@0.1.0%2Bbuild.2"])
    );
}

#[test]
fn a_list_without_the_binary_is_refused() {
    let others = tree("bytes v1.12.0\n");
    assert!(document(&metadata(), &others, &BTreeMap::new()).is_err());
}

/// The rules of the schema that a list can break here: unique references, and each one leads to a component.
#[test]
fn the_list_of_this_repository_has_the_form_of_the_schema() {
    let root = crate::tree::root().unwrap();
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
    let metadata = metadata::read(&root, &["--features", "courser-cli/full"]).unwrap();
    let linked = linked(&root).unwrap();
    let list = document(&metadata, &linked, &checksums(&lock).unwrap()).unwrap();
    let mut references =
        BTreeSet::from([metadata::text(&list["metadata"]["component"], "bom-ref")]);
    for component in metadata::list(&list, "components") {
        let name = metadata::text(component, "name");
        assert!(
            references.insert(metadata::text(component, "bom-ref")),
            "{name} twice"
        );
        assert!(component.get("licenses").is_some(), "{name} has no license");
        let hash = component["hashes"][0]["content"].as_str();
        let is_own = name == "courser" || name.starts_with("courser-");
        assert_eq!(hash.is_none(), is_own, "{name}");
        assert!(hash.is_none_or(|hash| hash.len() == 64), "{name}");
    }
    assert_eq!(references.len(), linked.len());
    let mut described = 0;
    for dependency in metadata::list(&list, "dependencies") {
        described += 1;
        assert!(references.contains(&metadata::text(dependency, "ref")));
        for used in metadata::list(dependency, "dependsOn") {
            assert!(references.contains(used.as_str().unwrap()), "{used}");
        }
    }
    assert_eq!(described, references.len());
    assert!(
        references
            .iter()
            .any(|it| it.starts_with("pkg:cargo/aws-lc-rs@"))
    );
    // Only tests use it.
    assert!(
        !references
            .iter()
            .any(|it| it.starts_with("pkg:cargo/proptest@"))
    );
}
