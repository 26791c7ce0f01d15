use std::fmt::Write as _;

use super::*;

#[tokio::test]
async fn file_is_served_with_type_length_and_validators() {
    let folder = Folder::new();
    folder.file("index.html", "<h1>home</h1>");
    folder.file("sub/noise", "noise");
    let files = folder.serve();
    for round in ["from disk", "to be kept", "from memory"] {
        let home = get(&files, "/").await;
        assert_eq!(
            (home.status, home.text().as_str()),
            (StatusCode::OK, "<h1>home</h1>"),
            "{round}"
        );
        assert_eq!(home.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(home.header("content-length"), "13");
        assert_eq!(home.header("accept-ranges"), "bytes");
        assert_eq!(home.header("x-content-type-options"), "nosniff");
        assert!(home.header("etag").starts_with('"'), "{home:?}");
        assert!(home.header("last-modified").ends_with("GMT"), "{home:?}");
        let noise = get(&files, "/sub/noise").await;
        assert_eq!(noise.header("content-type"), "application/octet-stream");
    }
    let stats = files.stats();
    assert_eq!((stats.files, stats.hits), (2, 2), "{stats:?}");
    let head = head(&files, "/").await;
    assert_eq!(head.header("content-length"), "13");
    assert_eq!(head.text(), "");
}

#[tokio::test]
async fn folders_need_a_slash_and_an_index() {
    let folder = Folder::new();
    folder.file("with/index.html", "index");
    folder.file("without/other.html", "other");
    let files = folder.serve();
    let redirect = get(&files, "/with?a=b").await;
    assert_eq!(redirect.status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(redirect.header("location"), "/with/?a=b");
    assert_eq!(get(&files, "/with/").await.text(), "index");
    for path in ["/without/", "/with/index.html/", "/nothing/", "/nothing"] {
        assert_eq!(
            get(&files, path).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    let listed = Files::builder().on_folder(|folder, request| async move {
        let name = folder.relative().display().to_string();
        http::Response::new(crate::Body::full(format!("{name} for {}", request.uri())))
    });
    let files = folder.serve_with(listed);
    assert_eq!(
        get(&files, "/without/?x").await.text(),
        "without for /without/?x"
    );
    assert_eq!(get(&files, "/with/").await.text(), "index");
    assert_eq!(get(&files, "/nothing/").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn other_methods_are_refused_by_name() {
    let folder = Folder::new();
    folder.file("a.txt", "a");
    let files = folder.serve();
    for (method, expected) in [
        ("POST", 405),
        ("PUT", 405),
        ("DELETE", 405),
        ("PATCH", 405),
        ("TRACE", 405),
        ("CONNECT", 405),
        ("OPTIONS", 204),
        ("PROPFIND", 501),
        ("BREW", 501),
        ("get", 501),
    ] {
        let request = Request::builder().method(method).uri("/a.txt");
        let refused = send(&files, request.body(()).expect("a request")).await;
        assert_eq!(refused.status.as_u16(), expected, "{method}");
        let allowed = if expected == 501 {
            ""
        } else {
            "GET, HEAD, OPTIONS"
        };
        assert_eq!(refused.header("allow"), allowed, "{method}");
        let caching = if expected == 204 { "" } else { "no-cache" };
        assert_eq!(refused.header("cache-control"), caching, "{method}");
    }
    let request = Request::options("*").body(()).expect("a request");
    assert_eq!(send(&files, request).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn last_modified_of_a_file_from_the_future_is_the_time_of_the_response() {
    let folder = Folder::new();
    folder.file("a.txt", "a".repeat(300));
    let file = std::fs::File::options()
        .append(true)
        .open(folder.path("a.txt"));
    let future = SystemTime::now() + Duration::from_secs(3600);
    file.and_then(|file| file.set_modified(future))
        .expect("write access");
    let files = folder.serve_with(Files::builder().compress(true));
    for _ in 0..3 {
        for coding in ["identity", "gzip"] {
            let before = SystemTime::now() - Duration::from_secs(1);
            let got = get_with(&files, "/a.txt", &[("accept-encoding", coding)]).await;
            assert_eq!(got.status, StatusCode::OK);
            let stated = httpdate::parse_http_date(got.header("last-modified"));
            let stated = stated.expect("a date");
            assert!(
                before <= stated && stated <= SystemTime::now(),
                "{stated:?}"
            );
        }
    }
    assert_eq!(files.stats().files, 0, "the date must not be kept");
}

#[tokio::test]
async fn errors_and_304_state_what_caches_need() {
    let folder = Folder::new();
    folder.file("a.txt", "a".repeat(300));
    let files = folder.serve_with(Files::builder().compress(true).precompressed(true));
    let missing = get(&files, "/nothing").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert_eq!(missing.header("vary"), "accept-encoding");
    assert_eq!(missing.header("cache-control"), "no-cache");
    let tag = get(&files, "/a.txt").await.header("etag").to_owned();
    for (fields, expected) in [
        ([("if-none-match", tag.as_str()), ("te", "trailers")], 304),
        ([("if-match", "\"x\""), ("te", "trailers")], 412),
        ([("range", "bytes=900-"), ("te", "trailers")], 416),
        (
            [("accept-encoding", "identity;q=0"), ("te", "trailers")],
            406,
        ),
    ] {
        let got = get_with(&files, "/a.txt", &fields).await;
        assert_eq!(got.status.as_u16(), expected);
        assert_eq!(got.header("vary"), "accept-encoding", "{expected}");
        let validators = if expected == 406 { "" } else { &tag };
        assert_eq!(got.header("etag"), validators, "{expected}");
    }
}

#[tokio::test]
async fn content_types_of_the_user_are_sent() {
    let folder = Folder::new();
    folder.file("a.ts", "let a = 1;");
    folder.file("a.css", "a {}");
    let kind = http::HeaderValue::from_static("text/plain; charset=utf-8");
    let files = folder.serve_with(Files::builder().content_type("ts", kind));
    let (script, style) = (get(&files, "/a.ts").await, get(&files, "/a.css").await);
    assert_eq!(script.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(style.header("content-type"), "text/css; charset=utf-8");
}

/// Small and large files use different code for ranges.
#[tokio::test]
async fn ranges_return_their_part_of_the_content() {
    let folder = Folder::new();
    let mut text = String::new();
    for line in 0..100_000 {
        writeln!(text, "{line:07}").expect("memory");
    }
    folder.file("large", &text);
    folder.file("small", &text[..1000]);
    let files = folder.serve();
    for (path, text) in [("/small", &text[..1000]), ("/large", &text[..])] {
        let len = text.len();
        for (range, expected) in [
            ("bytes=0-0".to_owned(), 0..1),
            ("bytes=8-15".to_owned(), 8..16),
            (format!("bytes={}-", len - 9), len - 9..len),
            ("bytes=-800".to_owned(), len - 800..len),
            (format!("bytes=10-{}", len * 2), 10..len),
        ] {
            let part = get_with(&files, path, &[("range", &range)]).await;
            assert_eq!(part.status, StatusCode::PARTIAL_CONTENT, "{path} {range}");
            assert_eq!(part.text(), text[expected.clone()], "{path} {range}");
            let stated = format!("bytes {}-{}/{len}", expected.start, expected.end - 1);
            assert_eq!(part.header("content-range"), stated);
            assert_eq!(part.header("content-length"), expected.len().to_string());
        }
        let beyond = get_with(&files, path, &[("range", &format!("bytes={len}-"))]).await;
        assert_eq!(beyond.status, StatusCode::RANGE_NOT_SATISFIABLE, "{path}");
        assert_eq!(beyond.header("content-range"), format!("bytes */{len}"));
        let whole = get(&files, path).await;
        assert_eq!(whole.text(), text);
        let tag = whole.header("etag").to_owned();
        let same = get_with(&files, path, &[("if-none-match", &tag)]).await;
        assert_eq!(
            (same.status, same.text().as_str()),
            (StatusCode::NOT_MODIFIED, "")
        );
        assert_eq!(same.header("etag"), tag);
        assert_eq!(same.header("content-length"), "");
        let other = get_with(&files, path, &[("if-match", "\"x\"")]).await;
        assert_eq!(other.status, StatusCode::PRECONDITION_FAILED);
        let old = [("range", "bytes=6-8"), ("if-range", "\"x\"")];
        assert_eq!(get_with(&files, path, &old).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn compression_is_negotiated_kept_and_weakens_the_tag() {
    let folder = Folder::new();
    let text = "words and words ".repeat(1000);
    folder.file("small.txt", &text);
    folder.file("large.txt", text.repeat(100));
    folder.file("picture.png", &text);
    folder.file("tiny.txt", "tiny");
    let files = folder.serve_with(Files::builder().compress(true));
    for coding in crate::coding::Coding::COMPRESSED_HERE {
        let coding = coding.name();
        for path in ["/small.txt", "/small.txt", "/large.txt"] {
            let packed = get_with(&files, path, &[("accept-encoding", coding)]).await;
            assert_eq!(packed.header("content-encoding"), coding, "{path}");
            assert_eq!(packed.header("vary"), "accept-encoding");
            assert!(packed.header("etag").starts_with("W/"), "{packed:?}");
            let len = packed.content.as_ref().expect("content").len();
            assert!(len < 20_000, "{path} with {coding}: {len}");
        }
    }
    let stats = files.stats();
    assert_eq!(
        stats.files,
        crate::coding::Coding::COMPRESSED_HERE.len(),
        "{stats:?}"
    );
    for path in ["/picture.png", "/tiny.txt"] {
        let plain = get_with(&files, path, &[("accept-encoding", "gzip, br, zstd")]).await;
        assert_eq!(plain.header("content-encoding"), "", "{path}");
        assert!(plain.header("etag").starts_with('"'), "{plain:?}");
    }
    for _ in 0..2 {
        assert_eq!(get(&files, "/picture.png").await.text(), text);
    }
    // Content that is never compressed is kept once.
    let before = files.stats();
    assert_eq!(get(&files, "/picture.png").await.text(), text);
    assert_eq!(
        get_with(&files, "/picture.png", &[("accept-encoding", "gzip")])
            .await
            .text(),
        text
    );
    let after = files.stats();
    assert_eq!(
        (after.files, after.hits),
        (before.files, before.hits + 2),
        "{after:?}"
    );
    let part = [("accept-encoding", "gzip"), ("range", "bytes=0-4")];
    let part = get_with(&files, "/small.txt", &part).await;
    assert_eq!(
        (part.text().as_str(), part.header("content-encoding")),
        ("words", "")
    );
    let none = get_with(&files, "/small.txt", &[("accept-encoding", "identity;q=0")]).await;
    assert_eq!(none.status, StatusCode::NOT_ACCEPTABLE);
}

#[tokio::test]
async fn precompressed_files_are_preferred() {
    let folder = Folder::new();
    folder.file("packed.js", "let plain;");
    folder.file("packed.js.br", "brotli, file");
    folder.file("packed.js.gz", "gzip, file");
    folder.file("only.js.gz", "nothing else");
    let files = folder.serve_with(Files::builder().precompressed(true));
    for _ in 0..2 {
        let both = get_with(&files, "/packed.js", &[("accept-encoding", "gzip, br")]).await;
        assert_eq!(
            (both.header("content-encoding"), both.text().as_str()),
            ("br", "brotli, file")
        );
        assert!(
            both.header("content-type").starts_with("text/javascript"),
            "{both:?}"
        );
        assert_eq!(both.header("vary"), "accept-encoding");
        let gzip = get_with(&files, "/packed.js", &[("accept-encoding", "gzip, zstd")]).await;
        assert_eq!(gzip.text(), "gzip, file");
        let plain = get(&files, "/packed.js").await;
        assert_eq!(
            (plain.text().as_str(), plain.header("vary")),
            ("let plain;", "accept-encoding")
        );
        let identity = get_with(
            &files,
            "/packed.js",
            &[("accept-encoding", "br;q=0.1, identity")],
        )
        .await;
        assert_eq!(identity.text(), "let plain;");
        let only = get_with(&files, "/only.js", &[("accept-encoding", "gzip")]).await;
        assert_eq!(only.text(), "nothing else");
        assert_eq!(get(&files, "/only.js").await.status, StatusCode::NOT_FOUND);
    }
    // A precompressed file that appears later is noticed.
    folder.file("packed.js.zst", "zstd, file");
    tokio::time::sleep(Duration::from_millis(30)).await;
    let gzip = get_with(&files, "/packed.js", &[("accept-encoding", "gzip, zstd")]).await;
    assert_eq!(gzip.text(), "zstd, file");
}

#[tokio::test]
async fn without_memory_every_request_reads_its_file() {
    let folder = Folder::new();
    folder.file("a.txt", "a".repeat(300));
    let files = folder.serve_with(Files::builder().memory(0).compress(true));
    for _ in 0..3 {
        assert_eq!(get(&files, "/a.txt").await.text(), "a".repeat(300));
        let packed = get_with(&files, "/a.txt", &[("accept-encoding", "gzip")]).await;
        assert_eq!(packed.header("content-encoding"), "gzip");
    }
    let stats = files.stats();
    assert_eq!(
        (stats.hits, stats.misses, stats.memory),
        (0, 6, 0),
        "{stats:?}"
    );
}
