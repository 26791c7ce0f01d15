use courser::server::Protocol;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::client::request;
use super::serving::Serving;
use super::within;
use crate::common::Folder;

/// A name that needs escapes in links and pages. Windows does not allow brackets.
#[cfg(not(windows))]
const ODD: &str = "odd name & <b>.txt";
#[cfg(not(windows))]
const ODD_LINK: &str = "href=\"./odd%20name%20%26%20%3Cb%3E.txt\"";
#[cfg(not(windows))]
const ODD_TEXT: &str = "odd name &amp; &lt;b&gt;.txt";
#[cfg(windows)]
const ODD: &str = "odd name & b.txt";
#[cfg(windows)]
const ODD_LINK: &str = "href=\"./odd%20name%20%26%20b.txt\"";
#[cfg(windows)]
const ODD_TEXT: &str = "odd name &amp; b.txt";

/// Creates a folder with links, hidden, compressed and oddly named files.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("index.html", "<h1>home</h1>");
    folder.file("text.txt", &"words and words ".repeat(1000));
    folder.file(ODD, "odd");
    folder.file(".secret", "hidden");
    folder.file("packed.js", "let plain;");
    folder.file("packed.js.br", "brotli, honestly");
    folder.file("packed.js.gz", "gzip, honestly");
    for name in ["sub", "empty", ".well-known", ".git"] {
        std::fs::create_dir(folder.path().join(name)).expect("our file");
    }
    folder.file("sub/inner.txt", "inner");
    folder.file(".well-known/security.txt", "contact");
    folder.file(".git/config", "hidden");
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink("/etc/passwd", folder.path().join("out.txt")).expect("our file");
        symlink("sub/inner.txt", folder.path().join("in.txt")).expect("our file");
        symlink("/", folder.path().join("everything")).expect("our file");
    }
    folder
}

fn start(folder: &Folder, arguments: &[&str]) -> Serving {
    let path = folder.path().to_str().expect("UTF-8");
    Serving::start(&[&[path], arguments].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_served_over_all_protocols() {
    let folder = folder();
    let serving = start(&folder, &[]);
    for protocol in Protocol::ALL {
        let mut client = serving.client(protocol).await;
        let home = client.get("/", &[]).await;
        assert_eq!(home.text(), "<h1>home</h1>", "{protocol}");
        assert_eq!(home.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(home.header("x-content-type-options"), "nosniff");
        assert_eq!(
            home.headers.contains_key("alt-svc"),
            protocol != Protocol::Http3
        );
        assert_eq!(client.get("/sub/inner.txt", &[]).await.text(), "inner");
        assert_eq!(client.get("/sub", &[]).await.header("location"), "/sub/");
        assert_eq!(client.get("/nothing", &[]).await.status, 404);
        let head = request(Method::HEAD, "/text.txt", &[], "");
        let head = within(client.send(head)).await.expect("an answer");
        assert_eq!(
            (head.header("content-length"), head.content.len()),
            ("16000", 0)
        );
        let post = request(Method::POST, "/", &[], "x");
        let post = within(client.send(post)).await.expect("an answer");
        assert_eq!(
            (post.status.as_u16(), post.header("allow")),
            (405, "GET, HEAD, OPTIONS")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_and_conditions_are_supported() {
    let folder = folder();
    let serving = start(&folder, &[]);
    let mut client = serving.client(Protocol::Http3).await;
    let part = client.get("/text.txt", &[("range", "bytes=6-8")]).await;
    assert_eq!((part.status.as_u16(), part.text().as_str()), (206, "and"));
    assert_eq!(part.header("content-range"), "bytes 6-8/16000");
    let beyond = client.get("/text.txt", &[("range", "bytes=16000-")]).await;
    assert_eq!(beyond.status, 416);
    let tag = client.get("/text.txt", &[]).await.header("etag").to_owned();
    assert!(tag.starts_with('"'), "{tag:?} is not strong");
    let same = client.get("/text.txt", &[("if-none-match", &tag)]).await;
    assert_eq!((same.status.as_u16(), same.content.len()), (304, 0));
    let old = [("range", "bytes=6-8"), ("if-range", "\"another\"")];
    assert_eq!(client.get("/text.txt", &old).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compression_is_negotiated_and_can_be_disabled() {
    let folder = folder();
    let serving = start(&folder, &[]);
    let mut client = serving.client(Protocol::Http3).await;
    for coding in ["zstd", "br", "gzip"] {
        let packed = client
            .get("/text.txt", &[("accept-encoding", coding)])
            .await;
        assert_eq!(packed.header("content-encoding"), coding);
        assert!(
            packed.content.len() < 1000,
            "{coding}: {}",
            packed.content.len()
        );
        assert!(packed.header("vary").contains("accept-encoding"));
        assert!(packed.header("etag").starts_with("W/"), "{coding}");
    }
    let plain = client.get("/text.txt", &[]).await;
    assert_eq!(
        (plain.header("content-encoding"), plain.content.len()),
        ("", 16_000)
    );
    let serving = start(&folder, &["--no-compress"]);
    let mut client = serving.client(Protocol::Http3).await;
    let plain = client
        .get("/text.txt", &[("accept-encoding", "gzip")])
        .await;
    assert_eq!(
        (plain.header("content-encoding"), plain.content.len()),
        ("", 16_000)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_files_are_served_unchanged() {
    let folder = folder();
    let serving = start(&folder, &["--precompressed"]);
    let mut client = serving.client(Protocol::Http3).await;
    let brotli = client
        .get("/packed.js", &[("accept-encoding", "gzip, br")])
        .await;
    assert_eq!(
        (brotli.header("content-encoding"), brotli.text().as_str()),
        ("br", "brotli, honestly")
    );
    let gzip = client
        .get("/packed.js", &[("accept-encoding", "gzip")])
        .await;
    assert_eq!(gzip.text(), "gzip, honestly");
    assert!(gzip.header("content-type").contains("javascript"));
    assert_eq!(client.get("/packed.js", &[]).await.text(), "let plain;");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_outside_the_folder_is_served() {
    let folder = folder();
    let serving = start(&folder, &["--browse", "--precompressed"]);
    let paths = [
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
        "/out.txt",
        "/everything/etc/passwd",
        "/everything/",
        "//etc/passwd",
        "/%",
        "/text.txt/",
        "/sub/./../../etc/passwd",
    ];
    for protocol in Protocol::ALL {
        let mut client = serving.client(protocol).await;
        for path in paths {
            let answer = client.get(path, &[]).await;
            assert_eq!(answer.status, 404, "{protocol} {path}: {answer:?}");
        }
        #[cfg(unix)]
        assert_eq!(client.get("/in.txt", &[]).await.text(), "inner");
        assert_eq!(
            client.get("/.well-known/security.txt", &[]).await.text(),
            "contact"
        );
    }
    let serving = start(&folder, &["--dotfiles", "--follow-symlinks"]);
    let mut client = serving.client(Protocol::Http3).await;
    assert_eq!(client.get("/.secret", &[]).await.text(), "hidden");
    #[cfg(unix)]
    assert!(client.get("/out.txt", &[]).await.text().contains("root:"));
    assert_eq!(client.get("/../etc/passwd", &[]).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folders_are_listed_with_browse() {
    let folder = folder();
    std::fs::remove_file(folder.path().join("index.html")).expect("our file");
    let serving = start(&folder, &["--browse"]);
    let mut client = serving.client(Protocol::Http3).await;
    let page = client.get("/", &[]).await.text();
    assert!(page.contains(ODD_LINK), "{page}");
    assert!(page.contains(ODD_TEXT), "{page}");
    assert!(!page.contains(".secret") && !page.contains("<b>"), "{page}");
    assert!(page.contains("prefers-color-scheme: dark"));
    let answer = client
        .get("/?sort=size&order=desc", &[("accept", "application/json")])
        .await;
    assert_eq!(answer.header("content-type"), "application/json");
    let listing: Value = serde_json::from_slice(&answer.content).expect("JSON");
    let entries = listing["entries"].as_array().expect("entries");
    let files: Vec<_> = entries
        .iter()
        .filter(|entry| entry["is_folder"] == false)
        .collect();
    assert_eq!(
        (&files[0]["name"], &files[0]["size"]),
        (&"text.txt".into(), &16_000.into())
    );
    let url = files
        .iter()
        .find(|file| file["name"] == ODD)
        .expect("an entry");
    let url = url["url"].as_str().expect("text").trim_start_matches('.');
    assert_eq!(client.get(url, &[]).await.text(), "odd");
    let serving = start(&folder, &[]);
    assert_eq!(
        serving
            .client(Protocol::Http3)
            .await
            .get("/", &[])
            .await
            .status,
        404
    );
}

/// Limit K105: these clients pause before they read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_slow_readers_are_closed() {
    let folder = Folder::new();
    folder.file("large.txt", &"x".repeat(30_000_000));
    for (grace, is_closed) in [("0.5", true), ("50", false)] {
        let serving = start(&folder, &["--read-rate", "1000000", "--read-grace", grace]);
        let all = Protocol::ALL.map(|protocol| {
            let serving = &serving;
            async move {
                let mut client = serving.client(protocol).await;
                let request = request(Method::GET, "/large.txt", &[], "");
                let answer = within(client.begin(request)).await.expect("an answer");
                tokio::time::sleep(std::time::Duration::from_secs(2)).await;
                let read = within(answer.into_body().collect()).await;
                assert_eq!(read.is_err(), is_closed, "{protocol} {grace}");
            }
        });
        futures_util::future::join_all(all).await;
    }
}
