//! Flags of curl, and the bytes that they put on the wire.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::{code, get, run};
use crate::common::Folder;

/// An HTTP/1.1 server without TLS that records requests and sends given answers, the last one again.
struct Recorder {
    port: u16,
    requests: Receiver<String>,
}

const OK: &str = "HTTP/1.1 200 Fine\r\ncontent-length: 3\r\n\r\nok\n";

impl Recorder {
    fn start(answers: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            let mut number = 0;
            for stream in listener.incoming() {
                let mut stream = stream.expect("accepted");
                let limit = Duration::from_secs(20);
                stream.set_read_timeout(Some(limit)).expect("set");
                while let Some(request) = read(&mut stream) {
                    if sender.send(request).is_err() {
                        return;
                    }
                    let answer = answers[number.min(answers.len() - 1)];
                    number += 1;
                    if stream.write_all(answer.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        });
        Self { port, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns all requests so far.
    fn requests(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }
}

/// Reads a request with its content, or `None` at the end of the connection.
fn read(stream: &mut impl std::io::Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).expect("text");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut content = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
    stream.read_exact(&mut content).ok()?;
    if head.contains("transfer-encoding: chunked") {
        while !content.ends_with(b"0\r\n\r\n") {
            stream.read_exact(&mut byte).ok()?;
            content.push(byte[0]);
        }
    }
    Some(head + &String::from_utf8_lossy(&content))
}

#[test]
fn json_is_sent_as_content_and_old_use_is_explained() {
    let server = Recorder::start(&[OK]);
    get(&["-s", "--json", "{\"a\":1}", &server.url("/")]);
    let request = server.requests().remove(0);
    for part in [
        "POST / HTTP/1.1\r\nhost: ",
        "\r\ncontent-type: application/json\r\n",
        "\r\naccept: application/json\r\n",
        "\r\n\r\n{\"a\":1}",
    ] {
        assert!(request.contains(part), "{part}: {request}");
    }
    let output = run(&["--json", &server.url("/")]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("--timing-json"), "{error}");
}

#[test]
fn command_line_of_installers_is_understood() {
    let server = Recorder::start(&[OK]);
    let flags = ["--proto", "=https", "--tlsv1.2", "-sSf"];
    let output = run(&[&flags[..], &[&server.url("/")]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("--proto does not allow http"), "{error}");
    let text = get(&[
        "--proto",
        "=http,https",
        "--tlsv1.2",
        "-sSf",
        &server.url("/"),
    ]);
    assert_eq!(text, "ok\n");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn values_begin_with_dashes_and_flags_without_effect_are_accepted() {
    let server = Recorder::start(&[OK]);
    let folder = Folder::new();
    let file = folder.path().join("-x").display().to_string();
    get(&[
        "-sSN#q",
        "-r",
        "-500",
        "-d",
        "-x",
        "-H",
        "-a: b",
        "-o",
        &file,
        "--tcp-nodelay",
        "--no-keepalive",
        &server.url("/"),
    ]);
    let request = server.requests().remove(0);
    assert!(request.contains("\r\nrange: bytes=-500\r\n"), "{request}");
    assert!(request.contains("\r\n-a: b\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n-x"), "{request}");
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "ok\n");
}

#[test]
fn version_is_printed_and_a_missing_url_explained() {
    assert!(get(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
    assert!(get(&["-V"]).contains(env!("CARGO_PKG_VERSION")));
    let output = run(&["-s", "-S"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("no URL"), "{error}");
}

#[test]
fn next_begins_another_request() {
    let server = Recorder::start(&[OK]);
    let (first, second) = (server.url("/a"), server.url("/b"));
    get(&[
        "-s", "-d", "x", &first, "--next", "-s", "-H", "x-b: 1", &second,
    ]);
    let requests = server.requests();
    assert!(
        requests[0].starts_with("POST /a ") && !requests[0].contains("x-b"),
        "{requests:?}"
    );
    assert!(
        requests[1].starts_with("GET /b ") && requests[1].contains("x-b: 1"),
        "{requests:?}"
    );
}

#[test]
fn flags_that_are_not_built_are_refused_with_a_reason() {
    for (flag, reason) in [
        ("--ntlm", "NTLM"),
        ("--ftp-pasv", "other than HTTP"),
        ("-P", "other than HTTP"),
        ("--doh-insecure", "--cacert"),
        ("--digest", "Basic"),
    ] {
        let output = run(&[flag, "http://127.0.0.1:1/"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(error.contains(reason), "{flag}: {error}");
    }
}

#[test]
fn conditions_and_entity_tags_are_stored_and_compared() {
    const TAGGED: &str = "HTTP/1.1 200 OK\r\netag: \"v1\"\r\nlast-modified: Sun, 06 Nov 1994 \
                          08:49:37 GMT\r\ncontent-length: 0\r\n\r\n";
    let server = Recorder::start(&[TAGGED]);
    let folder = Folder::new();
    let [tag, body] = ["tag", "body"].map(|name| folder.path().join(name).display().to_string());
    let url = server.url("/");
    get(&["-s", "--etag-save", &tag, "-R", "-o", &body, &url]);
    assert_eq!(std::fs::read_to_string(&tag).expect("a tag"), "\"v1\"\n");
    let modified = std::fs::metadata(&body).and_then(|file| file.modified());
    let since = modified
        .expect("a time")
        .duration_since(std::time::UNIX_EPOCH);
    assert_eq!(since.expect("after 1970").as_secs(), 784_111_777);
    get(&[
        "-s",
        "--etag-compare",
        &tag,
        "-z",
        "1994-11-06 08:49:37",
        &url,
    ]);
    get(&["-s", "-z", &format!("-{}", "6 Nov 1994 08:49:37"), &url]);
    get(&["-s", "-z", &body, &url]);
    let missing = folder.path().join("missing").display().to_string();
    get(&["-s", "-z", &missing, &url]);
    let requests = server.requests();
    assert!(!requests[4].contains("\r\nif-"), "{requests:?}");
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert!(
        requests[1].contains("\r\nif-none-match: \"v1\"\r\n"),
        "{requests:?}"
    );
    assert!(requests[1].contains(&format!("\r\nif-modified-since: {date}\r\n")));
    assert!(requests[2].contains(&format!("\r\nif-unmodified-since: {date}\r\n")));
    assert!(requests[3].contains(&format!("\r\nif-modified-since: {date}\r\n")));
}

#[test]
fn known_hosts_are_requested_over_https() {
    let server = super::Server::start();
    let folder = Folder::new();
    let file = folder.file("hsts", ".localhost \"20991231 00:00:00\"\n");
    let url = format!("http://localhost:{}/hello", server.port());
    let flags = ["-s", "--hsts", &file, "--cacert", &server.cert];
    let text = get(&[&flags[..], &["-w", "%{scheme}", &url]].concat());
    assert!(text.ends_with("https") || text.ends_with("HTTPS"), "{text}");
    let kept = std::fs::read_to_string(&file).expect("written again");
    assert!(kept.contains(".localhost \"20991231 00:00:00\""), "{kept}");
}

#[test]
fn rates_are_limited_and_slow_transfers_fail() {
    const LARGE: &str = concat!(
        "HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n",
        "0123456789012345678901234567890123456789"
    );
    let server = Recorder::start(&[LARGE]);
    let began = Instant::now();
    get(&["-s", "--limit-rate", "80", &server.url("/")]);
    assert!(
        began.elapsed() >= Duration::from_millis(450),
        "{:?}",
        began.elapsed()
    );
    // A server that never completes its response.
    let stalled = Recorder::start(&["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab"]);
    assert_eq!(code(&["-s", "-y", "1", "-Y", "10", &stalled.url("/")]), 28);
}

/// RFC 9110 §15.
#[test]
fn status_above_599_is_an_error_of_the_server() {
    let server = Recorder::start(&["HTTP/1.1 700 ?\r\ncontent-length: 2\r\n\r\nok"]);
    assert_eq!(
        get(&["-s", "-w", " %{http_code}", &server.url("/")]),
        "ok 700"
    );
    assert_eq!(code(&["-sf", &server.url("/")]), 22);
    let invalid = Recorder::start(&["HTTP/1.1 099 ?\r\ncontent-length: 2\r\n\r\nok"]);
    assert_eq!(code(&["-s", &invalid.url("/")]), 1);
}

#[test]
fn existing_files_are_kept_and_failed_ones_removed() {
    let folder = Folder::new();
    let file = folder.file("out", "old");
    let server = Recorder::start(&[OK]);
    get(&["-s", "--no-clobber", "-o", &file, &server.url("/")]);
    assert_eq!(std::fs::read_to_string(&file).expect("kept"), "old");
    let numbered = std::fs::read_to_string(format!("{file}.1"));
    assert_eq!(numbered.expect("written"), "ok\n");
    // Only names of the server must be new.
    let folder_name = folder.path().display().to_string();
    get(&[
        "-s",
        "-OJ",
        "--output-dir",
        &folder_name,
        &server.url("/out"),
    ]);
    assert_eq!(std::fs::read_to_string(&file).expect("replaced"), "ok\n");
    let port = super::server::raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab");
    let url = format!("http://127.0.0.1:{port}/");
    let partial = folder.path().join("partial").display().to_string();
    assert_eq!(code(&["-s", "--remove-on-error", "-o", &partial, &url]), 18);
    assert!(!std::path::Path::new(&partial).exists());
}

#[cfg(unix)]
#[test]
fn unix_sockets_and_messages_in_files_are_supported() {
    use std::os::unix::net::UnixListener;
    let folder = Folder::new();
    let path = folder.path().join("socket").display().to_string();
    let listener = UnixListener::bind(&path).expect("bound");
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let request = read(&mut stream).expect("a request");
        stream.write_all(OK.as_bytes()).expect("open");
        request
    });
    let messages = folder.path().join("messages").display().to_string();
    let flags = ["-sv", "--stderr", &messages, "--unix-socket", &path];
    let text = get(&[&flags[..], &["http://a.test/x"]].concat());
    assert_eq!(text, "ok\n");
    let request = served.join().expect("no panic");
    assert!(
        request.starts_with("GET /x HTTP/1.1\r\nhost: a.test\r\n"),
        "{request}"
    );
    let messages = std::fs::read_to_string(&messages).expect("written");
    assert!(messages.contains("> GET /x HTTP/1.1"), "{messages}");
}

#[test]
fn old_versions_and_headers_of_proxies_are_sent() {
    let server = Recorder::start(&["HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"]);
    get(&["-s", "--http1.0", "-d", "x", &server.url("/")]);
    assert!(server.requests()[0].starts_with("POST / HTTP/1.0\r\nhost: "));
    let server = Recorder::start(&[OK]);
    get(&["-s", "--haproxy-protocol", &server.url("/")]);
    let request = server.requests().remove(0);
    let (header, rest) = request.split_once("\r\n").expect("lines");
    assert!(
        header.starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 "),
        "{header}"
    );
    assert!(header.ends_with(&format!(" {}", server.port)), "{header}");
    assert!(rest.starts_with("GET / HTTP/1.1\r\n"), "{rest}");
}

#[test]
fn text_of_servers_cannot_control_the_terminal() {
    let bytes = "HTTP/1.1 302 Found\r\nlocation: ftp://x/\u{1b}[2J\u{202e}\u{9b}1m\r\n\
                 x: \u{202e}y\u{9b}\r\ncontent-length: 0\r\n\r\n";
    let bytes = Box::leak(bytes.replace('\u{1b}', "").into_bytes().into_boxed_slice());
    let port = super::server::raw(bytes);
    let output = run(&["-sSvL", &format!("http://127.0.0.1:{port}/")]);
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(shown.contains("x: ?y?"), "{shown}");
    assert!(!shown.contains(['\u{202e}', '\u{9b}', '\u{1b}']), "{shown}");
}

#[test]
fn public_keys_can_be_pinned() {
    let server = super::Server::start();
    let other = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    for flag in ["--http2", "--http3-only"] {
        let pinned = [
            "-s",
            "-k",
            flag,
            "--pinnedpubkey",
            other,
            &server.url("/hello"),
        ];
        assert_eq!(code(&pinned), 90, "{flag}");
    }
}

#[test]
fn versions_of_tls_are_chosen() {
    let server = super::Server::start();
    let trusted = ["-sv", "--cacert", &server.cert];
    let url = server.url("/hello");
    for (flags, suite) in [
        (&["--tlsv1.3", "--http2"][..], "TLS_AES_"),
        (&["--tls-max", "1.2", "--http2"], "TLS_ECDHE_"),
    ] {
        let output = run(&[&trusted, flags, &[&url]].concat());
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && shown.contains(suite),
            "{flags:?}: {shown}"
        );
    }
    assert_eq!(code(&["-s", "--tls-max", "1.2", "--http3-only", &url]), 2);
}

#[test]
fn large_content_waits_for_permission() {
    let server = Recorder::start(&[OK]);
    let folder = Folder::new();
    let file = folder.file("large", &"x".repeat((1 << 20) + 1));
    let url = server.url("/");
    let flags = ["-s", "--expect100-timeout", "0.05"];
    get(&[&flags[..], &["-T", &file, &url]].concat());
    get(&[&flags[..], &["-T", &file, "-H", "expect:", &url]].concat());
    get(&[&flags[..], &["-d", "x", &url]].concat());
    let requests = server.requests();
    let expect = requests
        .iter()
        .map(|request| request.contains("\r\nexpect: 100-continue\r\n"));
    assert_eq!(expect.collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn each_file_is_uploaded_to_its_url() {
    let server = Recorder::start(&[OK]);
    let folder = Folder::new();
    let files = ["one", "two"].map(|name| folder.file(name, name));
    let pattern = format!("{{{},{}}}", files[0], files[1]);
    let [a, b] = ["/a/", "/b"].map(|path| server.url(path));
    get(&[
        "-s",
        "-T",
        &pattern,
        "-T",
        &files[1],
        &a,
        &b,
        &server.url("/c"),
    ]);
    let requests = server.requests();
    for (request, (line, content)) in requests.iter().zip([
        ("PUT /a/one ", "one"),
        ("PUT /a/two ", "two"),
        ("PUT /b ", "two"),
        ("GET /c ", ""),
    ]) {
        assert!(request.starts_with(line), "{request}");
        assert!(
            request.ends_with(&format!("\r\n\r\n{content}")),
            "{request}"
        );
    }
    assert_eq!(requests.len(), 4);
}

#[test]
fn traces_show_messages_without_credentials() {
    let server = Recorder::start(&[OK]);
    let folder = Folder::new();
    let file = folder.path().join("trace").display().to_string();
    let url = server.url("/");
    let flags = ["-s", "-u", "me:secret", "-d", "a=1", "--trace-ascii"];
    get(&[&flags[..], &[&file, &url]].concat());
    let trace = std::fs::read_to_string(&file).expect("a trace");
    for part in [
        "=> Send header, ",
        "\n0000: POST /",
        "=> Send data, 3 bytes (0x3)\n0000: a=1\n",
        "<= Recv header, 14 bytes (0xe)\n0000: HTTP/1.1 200\n",
        "<= Recv data, 3 bytes (0x3)\n0000: ok.\n",
        "== Info: ",
    ] {
        assert!(trace.contains(part), "{part}: {trace}");
    }
    assert!(!trace.contains("bWU6c2VjcmV0"), "{trace}");
    let order = [
        "=> Send header",
        "=> Send data",
        "<= Recv header",
        "<= Recv data",
    ];
    let order = order.map(|what| trace.find(what).expect("shown"));
    assert!(order.is_sorted(), "{trace}");
    let output = run(&["-s", "--trace", "%", "-o", &file, &url]);
    let trace = String::from_utf8_lossy(&output.stderr);
    assert!(trace.contains("\n0000: 6f 6b 0a "), "{trace}");
}

#[test]
fn failures_have_the_codes_of_curl() {
    for (answer, expected) in [
        ("no HTTP\r\n\r\n", 1),
        ("HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", 8),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", 8),
        (
            "HTTP/1.1 302 F\r\nlocation: http://[x/\r\ncontent-length: 0\r\n\r\n",
            3,
        ),
        (
            "HTTP/1.1 302 F\r\nlocation:\r\ncontent-length: 0\r\n\r\n",
            0,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-encoding: x\r\ncontent-length: 1\r\n\r\nx",
            61,
        ),
    ] {
        let answers = Box::leak(Box::new([answer]));
        let server = Recorder::start(answers);
        let output = run(&["-sL", "--compressed", &server.url("/")]);
        assert_eq!(output.status.code(), Some(expected), "{answer}");
    }
    for (flags, expected) in [
        (&["--interface", "192.0.2.1"][..], 45),
        (&["--resolve", "x"], 49),
        (&["--netrc-file", "/nonexistent"], 26),
        (&["--tlsv1.3", "--tls-max", "1.2"], 35),
        (&["-m", "0"], 7),
    ] {
        let output = run(&[flags, &["http://127.0.0.1:1/"]].concat());
        assert_eq!(output.status.code(), Some(expected), "{flags:?}");
    }
    assert_eq!(run(&["file:///etc/hostname"]).status.code(), Some(1));
}

#[test]
fn condition_holds_if_the_server_ignores_it() {
    const DATED: &str = "HTTP/1.1 200 OK\r\nlast-modified: Sun, 06 Nov 1994 08:49:37 \
                         GMT\r\ncontent-length: 3\r\n\r\nok\n";
    let server = Recorder::start(&[DATED]);
    for (condition, text) in [
        ("6 Nov 1994 08:49:37", "304"),
        ("6 Nov 1994 08:49:36", "ok\n200"),
        ("-6 Nov 1994 08:49:37", "304"),
        ("-6 Nov 1994 08:49:38", "ok\n200"),
    ] {
        let shown = get(&[
            "-s",
            "-z",
            condition,
            "-w",
            "%{http_code}",
            &server.url("/"),
        ]);
        assert_eq!(shown, text, "{condition}");
    }
}
