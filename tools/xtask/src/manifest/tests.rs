use super::*;

fn dependency(package: &str, purpose: Purpose) -> Dependency {
    Dependency {
        package: package.to_owned(),
        purpose,
    }
}

#[test]
fn every_section_is_read() {
    let text = r#"
        [package]
        name = "courser-wire"
        [dependencies]
        courser-base.workspace = true
        [build-dependencies]
        cc = "1"
        [dev-dependencies]
        proptest = { version = "1" }
        [target.'cfg(unix)'.dependencies]
        libc = "0.2"
    "#;
    let manifest = parse(text, &Renames::new()).unwrap();
    assert_eq!(manifest.package, "courser-wire");
    assert_eq!(
        manifest.dependencies,
        [
            dependency("cc", Purpose::Build),
            dependency("courser-base", Purpose::Normal),
            dependency("libc", Purpose::Normal),
            dependency("proptest", Purpose::Dev),
        ]
    );
}

#[test]
fn a_renamed_dependency_counts_by_its_package() {
    let text = r#"
        [package]
        name = "a"
        [dependencies]
        runtime = { package = "tokio", version = "1" }
    "#;
    let manifest = parse(text, &Renames::new()).unwrap();
    assert_eq!(
        manifest.dependencies,
        [dependency("tokio", Purpose::Normal)]
    );
}

#[test]
fn a_rename_in_the_workspace_is_followed() {
    let root = "[workspace.dependencies]\nruntime = { package = \"tokio\", version = \"1\" }";
    let renames = parse_renames(root).unwrap();
    let text = "[package]\nname = \"a\"\n[dependencies]\nruntime.workspace = true";
    let manifest = parse(text, &renames).unwrap();
    assert_eq!(
        manifest.dependencies,
        [dependency("tokio", Purpose::Normal)]
    );
}

#[test]
fn features_are_read_apart_from_the_default_ones() {
    let text = "[package]\nname = \"a\"\n[features]\ndefault = [\"b\"]\nb = []\nc = [\"b\"]\nd = [\"dep:e\"]\nf = [\"g/h\"]";
    let manifest = parse(text, &Renames::new()).unwrap();
    assert_eq!(manifest.features, ["b", "c", "d", "f"]);
    assert_eq!(manifest.aliases, ["b", "c"]);
    assert_eq!(manifest.defaults, ["b"]);
}

#[test]
fn a_manifest_without_a_package_is_refused() {
    assert_eq!(
        parse("[workspace]", &Renames::new()),
        Err("no package name".to_owned())
    );
    assert!(parse("[package", &Renames::new()).is_err());
}

#[test]
fn crates_are_published_unless_they_refuse() {
    for (publish, is_published) in [
        ("", true),
        ("publish.workspace = true", true),
        ("publish = false", false),
    ] {
        let text = format!("[package]\nname = \"a\"\n{publish}");
        let manifest = parse(&text, &Renames::new()).unwrap();
        assert_eq!(manifest.is_published, is_published, "{publish:?}");
    }
}
