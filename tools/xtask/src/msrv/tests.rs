use serde_json::json;

use super::*;

fn package(id: &str, rust_version: Option<&str>) -> Package {
    Package {
        id: id.to_owned(),
        name: id.to_owned(),
        version: "2.0.0".to_owned(),
        rust_version: rust_version.map(str::to_owned),
        is_local: id == "own",
        is_published: true,
        ..Package::default()
    }
}

#[test]
fn a_dependency_that_needs_a_newer_rust_is_a_problem_unless_only_tests_use_it() {
    let packages = [
        package("own", Some("1.90")),
        package("same", Some("1.90.0")),
        package("later", Some("1.90.1")),
        package("silent", None),
        package("builds", Some("1.100")),
        package("tests", Some("1.95")),
        package("old", Some("1.9")),
    ];
    let edge = |to: &str, kind: Value| json!({"pkg": to, "dep_kinds": [{"kind": kind}]});
    let metadata = json!({"resolve": {"nodes": [
        {"id": "own", "deps": [
            edge("same", Value::Null), edge("silent", Value::Null),
            edge("tests", json!("dev")), edge("builds", json!("build")),
        ]},
        {"id": "silent", "deps": [edge("later", Value::Null), edge("own", json!("dev"))]},
        {"id": "same", "deps": [edge("old", Value::Null)]},
    ]}});
    let used = used(&metadata, &packages);
    assert_eq!(used.len(), 6);
    assert_eq!(
        check(&packages, &used, "1.90"),
        [
            "later 2.0.0 needs Rust 1.90.1, Cargo.toml promises 1.90",
            "builds 2.0.0 needs Rust 1.100, Cargo.toml promises 1.90",
        ]
    );
    assert_eq!(check(&packages, &used, "1.100"), Problems::new());
}

#[test]
fn a_manifest_without_a_promise_is_refused() {
    let manifest = "[workspace.package]\nrust-version = \"1.90\"\n";
    assert_eq!(promised(manifest).unwrap(), "1.90");
    assert!(promised("[workspace.package]\n").is_err());
    assert!(promised("[").is_err());
}

#[test]
fn a_page_says_the_promised_version_everywhere() {
    assert!(says(
        "It needs Rust 1.90 or newer, and curl 8.1 or newer.",
        "1.90"
    ));
    assert!(says("A toolchain\n(1.90 or newer)", "1.90"));
    assert!(!says("Rust 1.90 or newer. Rust 1.95 or newer.", "1.90"));
    assert!(!says("It needs Rust.", "1.90"));
}
