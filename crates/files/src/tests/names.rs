//! Unusual names, and the entries of folders.

use super::*;

#[tokio::test]
async fn dot_segments_and_empty_segments_are_removed() {
    let folder = Folder::new();
    folder.file("index.html", "home");
    folder.file("sub/inner.txt", "inner");
    folder.file("sub/index.html", "index");
    let files = folder.serve();
    for round in 0..2 {
        for (path, expected) in [
            ("/sub//inner.txt", "inner"),
            ("//sub/inner.txt", "inner"),
            ("/./sub/inner.txt", "inner"),
            ("/sub/./inner.txt", "inner"),
            ("/nothing/../sub/inner.txt", "inner"),
            ("/sub/%2e%2e/sub/inner.txt", "inner"),
            ("/sub/.", "index"),
            ("/sub//", "index"),
            ("/sub/..", "home"),
            ("//", "home"),
        ] {
            let got = get(&files, path).await;
            assert_eq!(got.text(), expected, "{path}, round {round}");
        }
    }
    assert_eq!(files.stats().files, 0, "other paths of a file are not kept");
    assert_eq!(
        get(&files, "/sub//inner.txt/").await.status,
        StatusCode::NOT_FOUND
    );
}

/// A target that begins with two slashes, or with a slash and a backslash, would lead to another host.
#[tokio::test]
async fn redirects_to_folders_stay_on_the_host() {
    let folder = Folder::new();
    folder.file("example.org/a.txt", "a");
    folder.file("a b/a.txt", "a");
    let files = folder.serve();
    for (path, expected) in [
        ("//example.org", "/example.org/"),
        ("///example.org?a", "/example.org/?a"),
        ("/.//example.org", "/example.org/"),
        ("/x/..//example.org", "/example.org/"),
        ("/a%20b", "/a%20b/"),
    ] {
        let got = get(&files, path).await;
        assert_eq!(got.status, StatusCode::TEMPORARY_REDIRECT, "{path}");
        assert_eq!(got.header("location"), expected, "{path}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn names_of_any_bytes_are_served() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Folder::new();
    for name in [
        &b"latin-\xe9.txt"[..],
        b"back\\slash",
        b"new\nline",
        b"a?b#c%",
        b"a:b",
    ] {
        let path = folder.0.join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(&path, name).expect("a file can be written");
    }
    tokio::time::sleep(crate::version::SETTLED_AFTER).await;
    let files = folder.serve_with(listing());
    for path in [
        "/latin-%e9.txt",
        "/latin-%E9.txt",
        "/back%5cslash",
        "/back\\slash",
        "/new%0aline",
        "/a%3fb%23c%25",
        "/a:b",
    ] {
        assert_eq!(get(&files, path).await.status, StatusCode::OK, "{path}");
    }
    assert_eq!(
        get(&files, "/latin-é.txt").await.status,
        StatusCode::NOT_FOUND
    );
    // Each listed URL leads to its file.
    let listed = get(&files, "/").await.text();
    assert_eq!(listed.lines().count(), 5, "{listed}");
    for url in listed.lines() {
        let got = get(&files, &format!("/{url}")).await;
        assert_eq!(got.status, StatusCode::OK, "{url}");
    }
}

/// Returns settings with a handler that lists the URLs of entries.
fn listing() -> Builder {
    Files::builder().on_folder(|folder, _| async move {
        let mut urls: Vec<_> = folder.entries(100).expect("a folder").listed;
        urls.sort_by(|a, b| a.name.cmp(&b.name));
        let lines = urls.iter().map(|entry| {
            let mark = if entry.is_folder { "/" } else { "" };
            format!("{}{mark}\n", entry.url())
        });
        http::Response::new(crate::Body::full(lines.collect::<String>()))
    })
}

/// Whatever would be answered with 404 is not listed.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn entries_are_what_would_be_served() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let (outside, folder) = (Folder::new(), Folder::new());
    outside.file("secret.txt", "a secret of 21 bytes");
    folder.file("list/a.txt", "a");
    folder.file("list/.hidden", "a");
    folder.file("list/sub/a.txt", "a");
    symlink(outside.path("secret.txt"), folder.path("list/out"));
    symlink("a.txt", folder.path("list/link"));
    symlink("sub", folder.path("list/folder-link"));
    symlink("nothing", folder.path("list/dangling"));
    let pipe = folder.path("list/pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    symlink("pipe", folder.path("list/pipe-link"));
    let _socket =
        std::os::unix::net::UnixListener::bind(folder.path("list/socket")).expect("a socket");
    let got = get(&folder.serve_with(listing()), "/list/").await;
    assert_eq!(got.text(), "a.txt\nfolder-link/\nlink\nsub/\n");
    let files = folder.serve_with(listing().dotfiles(true).follow_symlinks(true));
    let got = get(&files, "/list/").await;
    assert_eq!(
        got.text(),
        ".hidden\na.txt\nfolder-link/\nlink\nout\nsub/\n"
    );
}

/// The handler gets the folder that was found, even if a link replaces it before it is read.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn folder_that_is_replaced_is_still_the_one_that_was_found() {
    let (outside, folder) = (Folder::new(), Folder::new());
    outside.file("secret.txt", "secret");
    folder.file("list/a.txt", "a");
    let (list, moved, target) = (folder.path("list"), folder.path("moved"), outside.0.clone());
    let files = folder.serve_with(Files::builder().on_folder(move |found, _| {
        std::fs::rename(&list, &moved).expect("write access");
        symlink(&target, &list);
        let names = found.entries(100).expect("a folder").listed;
        let names = names.iter().map(|entry| entry.url()).collect::<String>();
        async move { http::Response::new(crate::Body::full(names)) }
    }));
    assert_eq!(get(&files, "/list/").await.text(), "a.txt");
}

#[tokio::test]
async fn entries_beyond_the_limit_are_counted() {
    let folder = Folder::new();
    for number in 0..5 {
        folder.file(&format!("list/{number}"), "a");
    }
    let files = folder.serve_with(Files::builder().on_folder(|folder, _| async move {
        let entries = folder.entries(2).expect("a folder");
        let text = format!("{} and {} more", entries.listed.len(), entries.omitted);
        http::Response::new(crate::Body::full(text))
    }));
    assert_eq!(get(&files, "/list/").await.text(), "2 and 3 more");
}
