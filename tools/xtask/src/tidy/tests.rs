use super::*;

fn file(path: &str, text: &str) -> File {
    File::new(path.to_owned(), text.to_owned())
}

fn crate_file(folder: &str, package: &str, dependencies: &str) -> File {
    let text = format!("[package]\nname = \"{package}\"\n{dependencies}");
    file(&format!("crates/{folder}/Cargo.toml"), &text)
}

fn manifests(files: &[File]) -> BTreeMap<String, Manifest> {
    let (manifests, problems) = read_manifests(files);
    assert_eq!(problems, Problems::new());
    manifests
}

#[test]
fn a_dependency_up_the_layers_is_refused() {
    let manifests = manifests(&[
        crate_file("base", "courser-base", ""),
        crate_file(
            "wire",
            "courser-wire",
            "[dependencies]\ncourser-transport.workspace = true",
        ),
        crate_file(
            "transport",
            "courser-transport",
            "[dependencies]\ncourser-base = \"1\"",
        ),
    ]);
    assert_eq!(
        check_layers(&manifests),
        [
            "wire/Cargo.toml: courser-wire in layer 1 may not depend on courser-transport in \
          layer 3"
        ]
    );
}

#[test]
fn a_test_dependency_up_the_layers_is_refused() {
    let manifests = manifests(&[
        crate_file(
            "crypto",
            "courser-crypto",
            "[dev-dependencies]\ncourser-tls = \"1\"",
        ),
        crate_file(
            "tls",
            "courser-tls",
            "[dependencies]\ncourser-crypto = \"1\"",
        ),
    ]);
    assert_eq!(check_layers(&manifests).len(), 1);
}

#[test]
fn a_crate_without_a_layer_is_refused() {
    let problems = check_layers(&manifests(&[crate_file("attic", "courser-attic", "")]));
    assert!(problems[0].contains("has no layer"), "{problems:?}");
}

#[test]
fn rustls_belongs_to_tls() {
    let uses = "[dependencies]\nrustls = \"0.23\"";
    let problems = check_named_dependencies(&manifests(&[
        crate_file("tls", "courser-tls", uses),
        crate_file("cli", "courser-cli", uses),
        crate_file("transport", "courser-transport", uses),
        crate_file(
            "udp",
            "courser-udp",
            "[dev-dependencies]\nrustls = \"0.23\"",
        ),
    ]));
    assert_eq!(
        problems,
        [
            "transport/Cargo.toml: depends on rustls; below quic, tls is the only crate that depends on rustls"
        ]
    );
}

#[test]
fn tokio_belongs_to_quic_and_above() {
    let problems = check_named_dependencies(&manifests(&[
        crate_file("courser", "courser", "[dependencies]\ntokio = \"1\""),
        crate_file("udp", "courser-udp", "[dependencies]\ntokio-util = \"0.7\""),
        crate_file("sim", "courser-sim", "[dev-dependencies]\ntokio = \"1\""),
    ]));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("udp/"), "{problems:?}");
}

#[test]
fn guarded_names_in_code_are_found() {
    let source = "use tokio::net;\n// tokio in words\n#[cfg(test)]\nmod tests { use tokio; }";
    assert_eq!(
        check_code(&file("crates/udp/src/lib.rs", source)),
        ["crates/udp/src/lib.rs:1: below quic, files is the only library that names tokio"]
    );
    assert_eq!(
        check_code(&file("crates/udp/src/lib/tests.rs", source)),
        Problems::new()
    );
    assert_eq!(
        check_code(&file("crates/udp/tests/echo.rs", source)),
        Problems::new()
    );
    assert_eq!(
        check_code(&file("crates/courser/src/lib.rs", source)),
        Problems::new()
    );
}

#[test]
fn unsafe_belongs_to_udp_and_fused() {
    let source = "fn f() {}\nunsafe fn g() {}";
    for path in [
        "crates/udp/src/gso.rs",
        "crates/fused/src/x86/block.rs",
        COUNTING_ALLOCATOR,
        "peers/msquic/src/server.rs",
    ] {
        assert_eq!(check_code(&file(path, source)), Problems::new(), "{path}");
    }
    for path in [
        "crates/crypto/src/lib.rs",
        "crates/fused/tests/it/main.rs",
        "crates/fused/examples/packets.rs",
        "crates/wire/src/lib.rs",
        "crates/wire/src/lib/tests.rs",
        "crates/courser/tests/memory/main.rs",
        "examples/echo.rs",
        "peers/tquic/src/socket.rs",
    ] {
        assert_eq!(
            check_code(&file(path, source)),
            [format!("{path}:2: {UNSAFE_RULE}")],
            "{path}"
        );
    }
}

#[test]
fn paths_of_a_machine_are_refused() {
    let root = concat!("/", "srv/courser");
    let home = concat!("/", "home/");
    for (line, count) in [
        (format!("see {home}me/notes"), 1),
        (format!("\"{root}/docs\""), 1),
        (format!("file://{home}me"), 1),
        (format!("https://example.org{home}page"), 0),
        (format!("$PREFIX{home}x"), 0),
        ("a plain / slash".to_owned(), 0),
    ] {
        let problems = check_machine_paths(&file("README.md", &line), root);
        assert_eq!(problems.len(), count, "{line}");
    }
}

#[test]
fn other_registries_are_refused() {
    let crates_io = format!("source = \"{CRATES_IO}\"");
    assert_eq!(
        check_registries(&file("Cargo.lock", &crates_io)),
        Problems::new()
    );
    let mirror = "source = \"registry+https://mirror.example/index\"";
    assert_eq!(check_registries(&file("peers/Cargo.lock", mirror)).len(), 1);
    assert_eq!(
        check_registries(&file(".cargo/config.toml", "[source.crates-io]")).len(),
        1
    );
    assert_eq!(
        check_registries(&file("README.md", mirror)),
        Problems::new()
    );
}

#[test]
fn a_doc_comment_without_a_space_is_refused() {
    let text = "//! Right.\n///\n/// Right.\n//////\nfn one() {}\n    ///Wrong.\n//!Wrong.\n";
    assert_eq!(
        check_comments(&file("crates/base/src/one.rs", text)),
        [
            "crates/base/src/one.rs:6: a doc comment begins without a space",
            "crates/base/src/one.rs:7: a doc comment begins without a space"
        ]
    );
}
