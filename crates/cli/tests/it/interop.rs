//! `courser interop`.

use crate::common::{courser, refusal};

#[test]
fn unsupported_test_has_the_exit_code_of_the_runner() {
    for role in ["server", "client"] {
        let output = courser(&["interop", role])
            .env("TESTCASE", "teleport")
            .output()
            .expect("the binary starts");
        assert_eq!(output.status.code(), Some(127), "{role}");
    }
}

#[test]
fn missing_test_is_named() {
    let line = refusal(&["interop", "client"]);
    assert!(line.contains("TESTCASE is not set"), "{line}");
}
