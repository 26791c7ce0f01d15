use super::*;
use crate::metadata::Dependency;

fn used(name: &str, kind: Kind, has_version: bool) -> Dependency {
    Dependency {
        name: name.to_owned(),
        kind,
        is_local: true,
        has_version,
    }
}

fn package(name: &str, dependencies: &[Dependency]) -> Package {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Package {
        name: name.to_owned(),
        version: "0.1.0".to_owned(),
        description: "A crate.".to_owned(),
        license: "MIT OR Apache-2.0".to_owned(),
        // Has both licenses.
        folder: root,
        is_published: true,
        is_local: true,
        dependencies: dependencies.to_vec(),
        ..Package::default()
    }
}

#[test]
fn a_crate_follows_what_it_depends_on() {
    let packages = [
        package("a", &[used("c", Kind::Normal, true)]),
        package("b", &[]),
        // Tests of `c` use `a`, without a version: cargo leaves that out of the package.
        package(
            "c",
            &[used("b", Kind::Dev, true), used("a", Kind::Dev, false)],
        ),
    ];
    assert_eq!(check(&packages), Problems::new());
    assert_eq!(order(&packages).unwrap(), ["b", "c", "a"]);
}

#[test]
fn crates_that_need_each_other_cannot_be_published() {
    let packages = [
        package("a", &[used("b", Kind::Normal, true)]),
        package("b", &[used("a", Kind::Dev, true)]),
        package("c", &[]),
    ];
    let found = order(&packages).unwrap_err();
    assert_eq!(found, ["crates depend on each other: a, b"]);
}

#[test]
fn what_a_registry_would_refuse_is_a_problem() {
    let mut private = package("private", &[]);
    private.is_published = false;
    // Not published, so nothing of it matters.
    private.description.clear();
    let mut bare = package(
        "bare",
        &[
            used("private", Kind::Normal, true),
            used("other", Kind::Build, false),
            used("private", Kind::Dev, false),
        ],
    );
    bare.description.clear();
    bare.license.clear();
    bare.folder = PathBuf::from("/nonexistent");
    let found = check(&[private, bare, package("other", &[])]);
    assert_eq!(
        found,
        [
            "bare: it has no description",
            "bare: it has no license",
            "bare: its folder has no LICENSE-APACHE: link it to ../../LICENSE-APACHE",
            "bare: its folder has no LICENSE-MIT: link it to ../../LICENSE-MIT",
            "bare: it depends on private, which is not published",
            "bare: its dependency other has no version",
        ]
    );
}

#[test]
fn this_workspace_can_be_published() {
    let root = crate::tree::root().unwrap();
    let (packages, _) = workspace(&root).unwrap();
    assert_eq!(check(&packages), Problems::new());
    let names = order(&packages).unwrap();
    let place = |name: &str| names.iter().position(|found| *found == name).unwrap();
    assert!(place("courser-base") < place("courser-transport"));
    assert!(place("courser-transport") < place("courser"));
    assert!(place("courser-quic") < place("courser"));
    assert!(!names.contains(&"courser-cli"));
}
