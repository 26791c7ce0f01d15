//! Files that cannot be served.

use super::*;

#[tokio::test]
async fn invalid_and_hidden_names_are_not_found() {
    let folder = Folder::new();
    folder.file(".secret", "secret");
    folder.file(".git/config", "secret");
    folder.file(".well-known/security.txt", "contact");
    folder.file("sub/inner.txt", "inner");
    let files = folder.serve();
    for path in [
        "/../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/sub/../../etc/passwd",
        "/%2e%2e%5cetc",
        "/.secret",
        "/%2esecret",
        "/.git/config",
        "/.git/",
        "/sub/%00",
        "/%",
        "/sub/inner.txt/",
        "/sub//inner.txt/",
    ] {
        let got = get(&files, path).await;
        assert_eq!(got.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(
        get(&files, "/.well-known/security.txt").await.text(),
        "contact"
    );
    let files = folder.serve_with(Files::builder().dotfiles(true));
    assert_eq!(get(&files, "/.secret").await.text(), "secret");
}

/// Opening a pipe without a writer would block, and a socket cannot be opened.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn pipes_and_sockets_are_not_found() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("socket")).expect("a socket");
    let files = folder.serve();
    for path in ["/pipe", "/socket", "/pipe/"] {
        let status = get(&files, path).await.status;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
}

/// A superuser may read every file, and then the response is 200.
#[cfg(unix)]
#[tokio::test]
async fn files_that_the_system_denies_are_forbidden() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.file("a.txt", "a");
    let path = folder.path("a.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000))
        .expect("write access to the test folder");
    let files = folder.serve();
    let expected = match std::fs::File::open(&path) {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::FORBIDDEN,
    };
    assert_eq!(get(&files, "/a.txt").await.status, expected);
    assert_eq!(
        crate::respond::error_response(
            &std::io::Error::from(std::io::ErrorKind::PermissionDenied).into()
        )
        .status(),
        StatusCode::FORBIDDEN
    );
}

#[test]
fn root_that_is_no_folder_is_an_error() {
    let folder = Folder::new();
    folder.file("a.txt", "a");
    assert!(Files::builder().open(folder.path("nothing")).is_err());
    let error = Files::builder()
        .open(folder.path("a.txt"))
        .expect_err("no folder");
    assert_eq!(error.to_string(), "it is not a folder");
}

#[test]
fn system_out_of_descriptors_is_answered_with_503() {
    for number in [23, 24] {
        let error = std::io::Error::from_raw_os_error(number);
        let response = crate::respond::error_response(&error.into());
        let expected = if cfg!(unix) { 503 } else { 500 };
        assert_eq!(response.status(), expected, "{number}");
    }
}
