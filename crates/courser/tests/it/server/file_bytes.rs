//! The responses of a file service, byte by byte: requests written by hand over HTTP/1.1 and HTTP/2.

use axum::Router;
use courser::files::Files;
use courser::server::Protocol;
use http::HeaderValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::{Client, empty, request, text, tls};
use super::http2::{ACK, END_STREAM_AND_HEADERS, HEADERS, SETTINGS, frame};
use super::{Running, start, within};

/// A server with a folder of its own.
struct Served {
    running: Running,
    folder: std::path::PathBuf,
}

impl Served {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("courser-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sub")).expect("created");
        let written = std::fs::write(folder.join("a.txt"), CONTENT);
        written
            .and_then(|()| std::fs::write(folder.join("back\\slash.ts"), "a"))
            .expect("written");
        let files = Files::builder().open(&folder).expect("exists");
        Self {
            running: start(Router::new().fallback_service(files)),
            folder,
        }
    }

    /// Sends these bytes over TLS, and returns all that is received.
    async fn exchange(&self, request: &str) -> String {
        let (handle, identity) = (&self.running.handle, &self.running.identity);
        let stream = tls(handle.local_addr(), identity.certificate(), &[b"http/1.1"]).await;
        let mut stream = stream.expect("a server");
        within(stream.write_all(request.as_bytes()))
            .await
            .expect("open");
        let mut received = Vec::new();
        within(stream.read_to_end(&mut received))
            .await
            .expect("an end");
        String::from_utf8(received).expect("text")
    }

    /// Sends a request with these field lines, and returns the response.
    async fn response(&self, method: &str, target: &str, fields: &str) -> Response {
        let head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
        let text = self
            .exchange(&format!("{head}{fields}Connection: close\r\n\r\n"))
            .await;
        let (head, body) = text.split_once("\r\n\r\n").expect("a header section");
        Response {
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Response {
    head: String,
    body: String,
}

impl Response {
    fn status(&self) -> &str {
        self.head.get(9..12).expect("a status line")
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.split("\r\n");
        lines.find_map(|line| {
            let (field, value) = line.split_once(": ")?;
            field.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

const CONTENT: &str = "0123456789";

/// A method and field lines, and the status, `Content-Range` and content of the response.
type RangeCase = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
    &'static str,
);

const RANGES: &[RangeCase] = &[
    ("GET", "", "200", None, CONTENT),
    (
        "GET",
        "Range: bytes=2-4\r\n",
        "206",
        Some("bytes 2-4/10"),
        "234",
    ),
    (
        "GET",
        "Range: BYTES=2-4\r\n",
        "206",
        Some("bytes 2-4/10"),
        "234",
    ),
    (
        "GET",
        "Range: bytes=,2-4 ,\r\n",
        "206",
        Some("bytes 2-4/10"),
        "234",
    ),
    (
        "GET",
        "Range: bytes=-100\r\n",
        "206",
        Some("bytes 0-9/10"),
        CONTENT,
    ),
    (
        "GET",
        "Range: bytes=8-99999999999999999999999\r\n",
        "206",
        Some("bytes 8-9/10"),
        "89",
    ),
    ("GET", "Range: bytes=10-\r\n", "416", Some("bytes */10"), ""),
    ("GET", "Range: bytes=-0\r\n", "416", Some("bytes */10"), ""),
    ("GET", "Range: items=0-4\r\n", "200", None, CONTENT),
    ("GET", "Range: bytes=4-2\r\n", "200", None, CONTENT),
    ("GET", "Range: bytes=0-,0-\r\n", "200", None, CONTENT),
    (
        "GET",
        "Range: bytes=0-1\r\nRange: bytes=3-4\r\n",
        "200",
        None,
        CONTENT,
    ),
    (
        "GET",
        "Range: bytes=2-4\r\nIf-Range: \"x\"\r\n",
        "200",
        None,
        CONTENT,
    ),
    ("GET", "If-Range: \"x\"\r\n", "200", None, CONTENT),
    ("HEAD", "Range: bytes=2-4\r\n", "200", None, ""),
    ("HEAD", "Range: bytes=10-\r\n", "200", None, ""),
];

/// RFC 9110 §14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn range_fields_select_bytes() {
    let served = Served::new("ranges");
    for (method, fields, status, range, body) in RANGES {
        let got = served.response(method, "/a.txt", fields).await;
        let seen = (got.status(), got.field("content-range"), got.body.as_str());
        assert_eq!(
            seen,
            (*status, *range, *body),
            "{method} {fields:?}: {}",
            got.head
        );
        assert!(got.field("etag").is_some(), "{}", got.head);
        assert!(got.field("date").is_some(), "{}", got.head);
    }
}

/// RFC 9110 §14.6. The body is that of HTTP/1.1, and the same over the other protocols but for the
/// boundary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_ranges_are_a_multipart_body_over_all_protocols() {
    let served = Served::new("multipart");
    let part = |range: &str, content: &str| {
        format!(
            "--B\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes {range}/10\r\n\r\n{content}\r\n"
        )
    };
    let expected = format!("{}{}--B--\r\n", part("0-0", "0"), part("5-9", "56789"));
    let with_boundary = |body: &str| {
        let boundary = body.get(2..34).expect("a boundary").to_owned();
        body.replace(&boundary, "B")
    };
    let got = served
        .response("GET", "/a.txt", "Range: bytes=0-0,5-9\r\n")
        .await;
    let kind = got.field("content-type").expect("a type");
    let boundary = kind
        .strip_prefix("multipart/byteranges; boundary=")
        .expect("multipart");
    assert_eq!(got.status(), "206", "{}", got.head);
    assert_eq!(got.field("content-range"), None);
    assert_eq!(
        got.field("content-length"),
        Some(&*got.body.len().to_string())
    );
    assert!(
        got.body.starts_with(&format!("--{boundary}\r\n")),
        "{}",
        got.body
    );
    assert_eq!(with_boundary(&got.body), expected);

    let body = http2_body(&served, "bytes=0-0,5-9").await;
    assert_eq!(with_boundary(&body), expected);

    let (address, identity) = (served.running.handle.local_addr(), &served.running.identity);
    let client = Client::connect(Protocol::Http3, address, identity).await;
    let mut request = request("GET", "/a.txt", empty());
    let range = HeaderValue::from_static("bytes=0-0,5-9");
    request.headers_mut().insert("range", range);
    let response = within(client.expect("a connection").send(request)).await;
    let response = response.expect("a response");
    assert_eq!(response.status(), 206);
    let length = response.headers()["content-length"].clone();
    let body = text(response).await;
    assert_eq!(length, body.len().to_string());
    assert_eq!(with_boundary(&body), expected);
}

/// Requests `/a.txt` with a `Range` field in frames written by hand, and returns the body of the response,
/// whose status is 206.
async fn http2_body(served: &Served, range: &str) -> String {
    const DATA: u8 = 0;
    /// The static entry `:status: 206`.
    const PARTIAL_CONTENT: u8 = 0x8a;
    let (handle, identity) = (&served.running.handle, &served.running.identity);
    let stream = tls(handle.local_addr(), identity.certificate(), &[b"h2"]).await;
    let mut stream = stream.expect("a server");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes.extend(frame(SETTINGS, ACK, 0, &[]));
    // GET and https, then a path, an authority and the range, as literals with names of the static table.
    let mut section = b"\x82\x87\x04\x06/a.txt\x01\x09localhost".to_vec();
    section.extend([0x0f, 50 - 15, u8::try_from(range.len()).expect("short")]);
    section.extend(range.as_bytes());
    bytes.extend(frame(HEADERS, END_STREAM_AND_HEADERS, 1, &section));
    within(stream.write_all(&bytes)).await.expect("open");
    within(stream.flush()).await.expect("open");
    let mut body = Vec::new();
    loop {
        let mut head = [0; 9];
        within(stream.read_exact(&mut head)).await.expect("open");
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; len as usize];
        within(stream.read_exact(&mut payload)).await.expect("open");
        let has_ended = head[4] & 1 == 1;
        match head[3] {
            HEADERS => assert_eq!(payload.first(), Some(&PARTIAL_CONTENT)),
            DATA => body.extend(payload),
            _ => continue,
        }
        if has_ended {
            return String::from_utf8(body).expect("text");
        }
    }
}

/// RFC 9110 §9.1, §9.3.7 and §10.2.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn methods_are_refused_by_name() {
    let served = Served::new("methods");
    for (method, status, allow) in [
        ("POST", "405", Some("GET, HEAD, OPTIONS")),
        ("DELETE", "405", Some("GET, HEAD, OPTIONS")),
        ("OPTIONS", "204", Some("GET, HEAD, OPTIONS")),
        ("BREW", "501", None),
        ("get", "501", None),
    ] {
        let got = served.response(method, "/a.txt", "").await;
        let seen = (got.status(), got.field("allow"));
        assert_eq!(seen, (status, allow), "{method}: {}", got.head);
    }
    let got = served.response("GET", "/nothing", "If-Match: *\r\n").await;
    assert_eq!(got.status(), "404", "conditions of an error are ignored");
    assert_eq!(got.field("cache-control"), Some("no-cache"));
}

/// RFC 9110 §13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_are_compared_with_the_validators() {
    let served = Served::new("conditions");
    let got = served.response("GET", "/a.txt", "").await;
    let tag = got.field("etag").expect("a tag").to_owned();
    let modified = got.field("last-modified").expect("a date").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    let date = got.field("date").expect("a date");
    let parse = |text| httpdate::parse_http_date(text).expect("a date");
    assert!(parse(&modified) <= parse(date), "{modified} and {date}");
    let never = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (fields, status) in [
        (format!("If-None-Match: {tag}\r\n"), "304"),
        (format!("If-None-Match: W/{tag}\r\n"), "304"),
        (format!("If-None-Match: \"x\", {tag}\r\n"), "304"),
        (format!("If-Match: {tag}\r\n"), "200"),
        (format!("If-Match: W/{tag}\r\n"), "412"),
        ("If-Match: *\r\n".to_owned(), "200"),
        (format!("If-Modified-Since: {modified}\r\n"), "304"),
        // An RFC 850 date and a date of asctime (§5.6.7).
        (
            "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n".to_owned(),
            "200",
        ),
        (
            "If-Unmodified-Since: Sun Nov  6 08:49:37 1994\r\n".to_owned(),
            "412",
        ),
        (format!("If-Unmodified-Since: {never}\r\n"), "412"),
        (
            format!("If-Unmodified-Since: {never}\r\nIf-Match: {tag}\r\n"),
            "200",
        ),
        (
            format!("If-Modified-Since: {modified}\r\nIf-None-Match: \"x\"\r\n"),
            "200",
        ),
        (
            format!("If-Modified-Since: {modified}\r\n").repeat(2),
            "200",
        ),
        (format!("If-Unmodified-Since: {never}\r\n").repeat(2), "200"),
        (
            format!("If-None-Match: {tag}\r\nIf-Match: \"x\"\r\n"),
            "412",
        ),
        (
            format!("If-None-Match: {tag}\r\nRange: bytes=0-1\r\n"),
            "304",
        ),
        (format!("If-Range: {tag}\r\nRange: bytes=0-1\r\n"), "206"),
        (format!("If-Range: W/{tag}\r\nRange: bytes=0-1\r\n"), "200"),
        (format!("If-Range: {never}\r\nRange: bytes=0-1\r\n"), "200"),
    ] {
        let got = served.response("GET", "/a.txt", &fields).await;
        assert_eq!(got.status(), status, "{fields:?}: {}", got.head);
        assert_eq!(got.field("etag"), Some(tag.as_str()), "{fields:?}");
    }
}

/// Paths with dots and empty segments, and names of any bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusual_targets_lead_to_files_of_the_folder_only() {
    let served = Served::new("targets");
    for (target, status) in [
        ("//a.txt", "200"),
        ("/./a.txt", "200"),
        ("/sub/../a.txt", "200"),
        ("/sub/%2e%2e/a.txt", "200"),
        ("/../a.txt", "404"),
        ("/%2e%2e/a.txt", "404"),
        ("/..%2fa.txt", "404"),
    ] {
        let got = served.response("GET", target, "").await;
        assert_eq!(got.status(), status, "{target}: {}", got.head);
    }
    let got = served.response("GET", "//sub", "").await;
    assert_eq!(got.field("location"), Some("/sub/"), "{}", got.head);
    if cfg!(unix) {
        let got = served.response("GET", "/back%5cslash.ts", "").await;
        assert_eq!(got.status(), "200", "{}", got.head);
        assert_eq!(got.field("content-type"), Some("video/mp2t"));
    }
}
