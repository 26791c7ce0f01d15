//! Responses with several ranges.

use super::*;

/// The text with which all files of these tests begin.
fn text(len: usize) -> String {
    let mut text = String::new();
    while text.len() < len {
        text.push_str(&format!("{:07}\n", text.len()));
    }
    text.truncate(len);
    text
}

/// A part of a `multipart/byteranges` body.
#[derive(PartialEq, Eq, Debug)]
struct Part {
    content_type: String,
    content_range: String,
    content: Vec<u8>,
}

/// Parses a body as RFC 2046 §5.1 defines it, by the delimiters alone.
fn parts(got: &Collected) -> Vec<Part> {
    let content_type = got.header("content-type");
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=");
    let boundary = boundary.expect("a boundary");
    let body = got.content.as_ref().expect("content").to_vec();
    assert_eq!(got.header("content-length"), body.len().to_string());
    assert_eq!(got.header("content-range"), "", "none outside of the parts");
    let body = String::from_utf8(body).expect("text");
    let body = format!("\r\n{body}");
    let delimiter = format!("\r\n--{boundary}");
    let mut pieces = body.split(&delimiter);
    assert_eq!(pieces.next(), Some(""), "no preamble");
    let mut parts = Vec::new();
    for piece in pieces.by_ref() {
        if piece == "--\r\n" {
            assert_eq!(pieces.next(), None, "no epilogue");
            return parts;
        }
        let piece = piece.strip_prefix("\r\n").expect("a line end");
        let (section, content) = piece.split_once("\r\n\r\n").expect("a header section");
        let field = |name: &str| {
            let mut lines = section.split("\r\n");
            let line = lines.find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.strip_prefix(": "))
                .expect(name)
                .to_owned()
        };
        parts.push(Part {
            content_type: field("Content-Type"),
            content_range: field("Content-Range"),
            content: content.as_bytes().to_vec(),
        });
    }
    panic!("no final delimiter in {body}");
}

/// Small files are sent from memory, and large ones are read while they are sent.
#[tokio::test]
async fn several_ranges_are_parts_of_one_response() {
    let folder = Folder::new();
    let files = folder.serve();
    for len in [1000, 1_000_000] {
        let text = text(len);
        folder.file("a.txt", &text);
        for set in [
            vec![0..1, 5..10],
            vec![len - 8..len, 0..500],
            vec![0..300, 300..301, 302..600, 700..len - 1],
            vec![100..101, 3..90, 99..110],
        ] {
            let list = set
                .iter()
                .map(|range| format!("{}-{}", range.start, range.end - 1));
            let list = list.collect::<Vec<_>>().join(", ");
            let range = format!("bytes={list}");
            for round in 0..3 {
                let got = get_with(&files, "/a.txt", &[("range", &range)]).await;
                assert_eq!(got.status, StatusCode::PARTIAL_CONTENT, "{range} {round}");
                let expected = set.iter().map(|range| Part {
                    content_type: "text/plain; charset=utf-8".to_owned(),
                    content_range: format!("bytes {}-{}/{len}", range.start, range.end - 1),
                    content: text.as_bytes()[range.clone()].to_vec(),
                });
                assert_eq!(parts(&got), expected.collect::<Vec<_>>(), "{range} {round}");
                assert!(got.header("etag").starts_with('"'), "{got:?}");
                assert!(got.header("last-modified").ends_with("GMT"), "{got:?}");
            }
        }
    }
}

#[tokio::test]
async fn boundaries_differ() {
    let folder = Folder::new();
    folder.file("a.txt", text(1000));
    let files = folder.serve();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..10 {
        let got = get_with(&files, "/a.txt", &[("range", "bytes=0-1,4-5")]).await;
        assert!(seen.insert(got.header("content-type").to_owned()));
    }
}

/// The largest number of ranges is read from a file that is not in memory.
#[tokio::test]
async fn as_many_ranges_as_allowed_are_served() {
    let folder = Folder::new();
    let text = text(1_000_000);
    folder.file("a.txt", &text);
    let files = folder.serve();
    let ranges = |count: usize| {
        let starts = (0..count).map(|at| at * 4000);
        let all: Vec<_> = starts.map(|at| format!("{at}-{}", at + 999)).collect();
        format!("bytes={}", all.join(","))
    };
    let most = crate::range::MAX_RANGES;
    let got = get_with(&files, "/a.txt", &[("range", &ranges(most))]).await;
    let parts = parts(&got);
    assert_eq!(parts.len(), most);
    for (at, part) in parts.iter().enumerate() {
        let start = at * 4000;
        assert_eq!(part.content, &text.as_bytes()[start..start + 1000]);
    }
    let got = get_with(&files, "/a.txt", &[("range", &ranges(most + 1))]).await;
    assert_eq!(got.status, StatusCode::OK);
    assert_eq!(got.text(), text);
}

#[tokio::test]
async fn several_ranges_of_coded_files_are_ignored() {
    let folder = Folder::new();
    folder.file("a.txt", text(1000));
    folder.file("a.txt.gz", "not really gzip");
    let files = folder.serve_with(Files::builder().precompressed(true));
    let fields = |range| [("accept-encoding", "gzip"), ("range", range)];
    let one = get_with(&files, "/a.txt", &fields("bytes=0-2")).await;
    assert_eq!((one.status.as_u16(), one.text().as_str()), (206, "not"));
    assert_eq!(one.header("content-encoding"), "gzip");
    let several = get_with(&files, "/a.txt", &fields("bytes=0-2,4-6")).await;
    assert_eq!(several.status, StatusCode::OK);
    assert_eq!(several.text(), "not really gzip");
}

/// A field that is ignored does not turn compression off either.
#[tokio::test]
async fn ignored_ranges_change_nothing() {
    let folder = Folder::new();
    folder.file("a.txt", text(1000));
    let files = folder.serve_with(Files::builder().compress(true));
    for range in ["items=0-5", "bytes=5-4", "bytes=x"] {
        let got = get_with(
            &files,
            "/a.txt",
            &[("accept-encoding", "gzip"), ("range", range)],
        )
        .await;
        assert_eq!(got.status, StatusCode::OK, "{range}");
        assert_eq!(got.header("content-encoding"), "gzip", "{range}");
    }
}

#[tokio::test]
async fn head_ignores_ranges() {
    let folder = Folder::new();
    folder.file("a.txt", text(1000));
    let files = folder.serve();
    for range in ["bytes=0-4", "bytes=0-4,6-7", "bytes=1000-"] {
        let request = Request::head("/a.txt").header("range", range);
        let got = send(&files, request.body(()).expect("a request")).await;
        assert_eq!(got.status, StatusCode::OK, "{range}");
        assert_eq!(got.header("content-length"), "1000", "{range}");
        assert_eq!(got.header("content-range"), "", "{range}");
    }
}

/// A file that changes between two parts ends the response with an error.
#[tokio::test]
async fn change_between_parts_is_noticed() {
    let folder = Folder::new();
    let text = text(1_000_000);
    folder.file("a.txt", &text);
    let files = folder.serve();
    let request = Request::get("/a.txt").header("range", "bytes=0-9,900000-900009");
    let answer = files.clone().call(request.body(()).expect("a request"));
    let Ok(response) = answer.await;
    let mut body = response.into_body();
    let mut received = Vec::new();
    while !received.ends_with(&text.as_bytes()[..10]) {
        let frame = body.frame().await.expect("a frame").expect("no error");
        received.extend_from_slice(&frame.into_data().expect("data"));
    }
    folder.file("a.txt", &text[..950_000]);
    let rest = body.collect().await;
    assert!(rest.is_err(), "the file was changed");
}
