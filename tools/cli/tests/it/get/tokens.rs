//! `courser get --token-file`.

use std::fs;

use super::server::Server;
use super::{get, run};
use crate::common::Folder;

const HEADER: &str = "courser-tokens 1\n";

#[test]
fn tokens_are_kept_between_commands() {
    let server = Server::start();
    let folder = Folder::new();
    let path = folder.path().join("tokens");
    let name = path.to_str().expect("UTF-8");
    let (url, cert) = (server.url("/hello"), &server.cert);
    let flags = ["--http3-only", "--cacert", cert, "--token-file", name, &url];
    let mut seen = Vec::new();
    for validated in 0..2 {
        get(&flags);
        // The second connection begins with a token of the first one.
        assert_eq!(server.validated(), validated);
        let text = fs::read_to_string(&path).expect("written");
        assert!(
            text.starts_with(HEADER) && text.lines().count() > 1,
            "{text}"
        );
        seen.push(text);
    }
    assert_ne!(seen[0], seen[1], "the tokens have not changed");
    // Without the file there is no token.
    get(&["--http3-only", "--cacert", cert, &url]);
    assert_eq!(server.validated(), 1);
}

#[test]
fn file_of_another_format_is_reported_and_unchanged() {
    let server = Server::start();
    let folder = Folder::new();
    let path = folder.path().join("notes");
    fs::write(&path, "my notes\n").expect("a file");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("own file");
    }
    let name = path.to_str().expect("UTF-8");
    let (url, cert) = (server.url("/hello"), &server.cert);
    let flags = [
        "-s",
        "--http3-only",
        "--cacert",
        cert,
        "--token-file",
        name,
        &url,
    ];
    let output = run(&flags);
    assert!(output.status.success(), "{output:?}");
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    let expected = format!("courser: cannot use {name} for tokens: ");
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    let text = fs::read_to_string(&path).expect("a file");
    assert_eq!(text, "my notes\n");
}

#[test]
fn unwritable_file_is_reported_and_the_transfer_succeeds() {
    let server = Server::start();
    let folder = Folder::new();
    let path = folder.path().join("missing").join("tokens");
    let name = path.to_str().expect("UTF-8");
    let (url, cert) = (server.url("/hello"), &server.cert);
    let flags = ["--http3-only", "--cacert", cert, "--token-file", name, &url];
    let output = run(&[&["-s"], &flags[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    let expected = format!("courser: cannot write the tokens to {name}: ");
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}
