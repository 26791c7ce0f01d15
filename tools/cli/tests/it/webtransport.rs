//! `courser serve --webtransport-echo` and `courser webtransport`, each in its own process.

use std::io::Write as _;
use std::process::{Output, Stdio};

use courser::Identity;
use courser::rustls::pki_types::CertificateDer;
use courser::rustls::pki_types::pem::PemObject as _;
use courser::server::CertificateFacts;
use courser::webtransport::Listener;
use serde_json::Value;

use crate::common::{Certificate, Folder, certificate, courser, refusal};
use crate::serve::serving::Serving;

/// A server with an echo, and the flags that trust it.
struct Echo {
    serving: Serving,
    trust: Vec<String>,
}

impl Echo {
    fn start(flags: &[&str]) -> Self {
        let serving = Serving::start(&[&["--webtransport-echo"], flags].concat());
        let hash = serving.announced["webtransport"]["certificate_sha256"]
            .as_str()
            .expect("a hash")
            .to_owned();
        Self {
            serving,
            trust: vec!["--cert-hash".to_owned(), hash],
        }
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.serving.address.port())
    }

    /// Runs a client at the path of the echo with this input.
    fn client(&self, query: &str, flags: &[&str], input: &[u8]) -> Output {
        let url = self.url(&format!("/.well-known/courser/echo{query}"));
        let trust = self.trust.iter().map(String::as_str);
        let arguments: Vec<_> = ["webtransport", &url]
            .into_iter()
            .chain(trust)
            .chain(flags.iter().copied())
            .collect();
        pipe(&arguments, input)
    }
}

fn pipe(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = courser(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let writing = std::thread::spawn(move || {
        // The program may end before it has read everything.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("a child");
    writing.join().expect("no panic");
    output
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn streams_and_datagrams_are_echoed_to_standard_output() {
    let echo = Echo::start(&[]);
    let megabytes: Vec<u8> = (0..5_000_000_u32).map(|it| (it % 251) as u8).collect();
    let output = echo.client("", &[], &megabytes);
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(errors(&output), "");
    assert!(output.stdout == megabytes, "{} bytes", output.stdout.len());
    let output = echo.client("", &["--uni"], b"one way");
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(output.stdout, b"one way");
    let output = echo.client("", &["--datagrams"], b"one\ntwo\n\nfour");
    assert!(output.status.success(), "{}", errors(&output));
    let mut lines: Vec<_> = output.stdout.split(|it| *it == b'\n').collect();
    // Datagrams may change places.
    lines.sort();
    assert_eq!(lines, [&b""[..], b"", b"four", b"one", b"two"]);
}

#[test]
fn verbose_output_describes_the_session() {
    let echo = Echo::start(&[]);
    let flags = ["-v", "--protocol", "chat.2", "--protocol", "chat.1"];
    let output = echo.client("", &flags, b"hello");
    let text = errors(&output);
    assert_eq!(output.stdout, b"hello", "{text}");
    for part in [
        "* connected to udp 127.0.0.1:",
        "* certificate for localhost, 127.0.0.1, ::1, valid until ",
        "* the server announces draft-16, draft-14 (16 sessions), ",
        "* session 0 in draft-16, protocol \"chat.2\", datagrams of up to ",
        "* this end has closed the session with code 0",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn end_by_the_server_has_its_code_and_reason() {
    let echo = Echo::start(&[]);
    let output = echo.client("?close=7&reason=enough", &["--uni"], b"");
    assert_eq!(output.status.code(), Some(56));
    assert_eq!(
        errors(&output).trim_end(),
        "courser: (56) the peer has closed the session with code 7: enough"
    );
}

#[test]
fn refusals_say_what_was_seen_and_what_to_do() {
    let echo = Echo::start(&["--webtransport-origin", "https://a.test"]);
    let output = echo.client("", &["--origin", "https://a.test"], b"x");
    assert!(output.status.success(), "{}", errors(&output));
    let output = echo.client("", &["--origin", "https://b.test"], b"");
    assert_eq!(output.status.code(), Some(22));
    let text = errors(&output);
    assert!(
        text.contains("403 Forbidden") && text.contains("--origin"),
        "{text}"
    );
    let output = echo.client("?open=x", &[], b"");
    assert_eq!(output.status.code(), Some(22));
    let text = errors(&output);
    assert!(
        text.contains("It says: 400 Bad Request: open=x is not"),
        "{text}"
    );
    let long = "x".repeat(70_000);
    let output = echo.client("", &["--datagrams"], long.as_bytes());
    assert_eq!(output.status.code(), Some(63), "{}", errors(&output));
    assert!(
        errors(&output).contains("line 1 cannot be sent"),
        "{}",
        errors(&output)
    );
    for (url, expected) in [
        (echo.url("/nothing"), "the session with 40"),
        ("http://127.0.0.1/".to_owned(), "(1) scheme 'http'"),
        ("https://u@a.test".to_owned(), "(3) "),
    ] {
        let error = refusal(&["webtransport", "--insecure", &url]);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn server_without_webtransport_is_described() {
    let serving = Serving::start(&[]);
    let url = format!("https://127.0.0.1:{}/", serving.address.port());
    let error = refusal(&["webtransport", "--insecure", &url]);
    for part in [
        "(95) WebTransport is not available",
        "The server announces: not announced",
        "0x2c7cf000 (draft-16)",
        "courser serve --webtransport-echo",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn certificates_are_trusted_by_hash_by_key_and_by_authority() {
    let echo = Echo::start(&[]);
    let url = echo.url("/.well-known/courser/echo");
    let certificate = echo.serving.certificate();
    let facts = CertificateFacts::of_certificate(&certificate).expect("readable");
    let hex = facts.sha256.map(|byte| format!("{byte:02x}")).concat();
    let output = pipe(&["webtransport", &url, "--cert-hash", &hex], b"x");
    assert_eq!(output.stdout, b"x", "{}", errors(&output));
    let wrong = "0".repeat(64);
    let error = refusal(&["webtransport", &url, "--cert-hash", &wrong]);
    assert!(
        error.starts_with("courser: (60) ") && error.contains(&hex),
        "{error}"
    );
    let error = refusal(&["webtransport", &url]);
    assert!(
        error.starts_with("courser: (60) ") && error.contains("--cert-hash"),
        "{error}"
    );
    let spki = echo.serving.announced["certificate"]["spki_sha256"].as_str();
    let pin = format!("sha256//{}", spki.expect("a hash"));
    let output = pipe(&["webtransport", "-k", &url, "--pinnedpubkey", &pin], b"x");
    assert_eq!(output.stdout, b"x", "{}", errors(&output));
    let pin = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let error = refusal(&["webtransport", "-k", &url, "--pinnedpubkey", pin]);
    assert!(error.starts_with("courser: (90) "), "{error}");
    // A certificate from files is trusted through its authority, and browsers get no hash.
    let Certificate { cert, key, .. } = &certificate_of_this_test();
    let folder = Folder::new();
    let root = folder.path().to_str().expect("UTF-8").to_owned();
    let common = ["serve", &root, "--listen", "127.0.0.1:0", "--json"];
    let flags = ["--cert", cert, "--key", key, "--webtransport-echo=/echo"];
    let serving = Serving::run(&[common, flags].concat(), folder);
    let announced = &serving.announced["webtransport"];
    assert_eq!(announced["certificate_sha256"], Value::Null);
    let url = announced["url"].as_str().expect("a URL");
    assert!(url.ends_with("/echo"), "{url}");
    let output = pipe(&["webtransport", url, "--cacert", cert], b"x");
    assert_eq!(output.stdout, b"x", "{}", errors(&output));
    // Browsers refuse the hash of a certificate that is valid for so long, and so does this client.
    let long = CertificateDer::from_pem_file(cert).expect("readable");
    let facts = CertificateFacts::of_certificate(&long).expect("readable");
    let hex = facts.sha256.map(|byte| format!("{byte:02x}")).concat();
    let error = refusal(&["webtransport", url, "--cert-hash", &hex]);
    assert!(
        error.starts_with("courser: (60) ") && error.contains("at most 14 days"),
        "{error}"
    );
}

/// A server that greets and ends its side of the stream, and then reads the rest.
#[test]
fn input_is_sent_after_the_end_of_the_servers_side() {
    let (ports, port) = std::sync::mpsc::channel();
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let identity = Identity::dev().expect("random numbers");
            let mut listener = Listener::bind("127.0.0.1:0", &identity).expect("a port");
            let address = listener.local_addr().expect("an address");
            ports.send(address.port()).expect("a test");
            let request = listener.accept().await.expect("a request");
            let session = request.accept().await.expect("a session");
            let (mut send, mut receive) = session.accept_bi().await.expect("a stream");
            send.write_all(b"greeting").await.expect("written");
            send.finish().expect("open");
            receive
                .read_to_end(10_000_000)
                .await
                .expect("the input")
                .len()
        })
    });
    let url = format!("https://127.0.0.1:{}/", port.recv().expect("a port"));
    let output = pipe(&["webtransport", "-k", &url], &[1; 3_000_000]);
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(output.stdout, b"greeting");
    assert_eq!(serving.join().expect("no panic"), 3_000_000);
}

/// The server of this machine listens on TCP only.
#[test]
fn missing_udp_is_told_from_a_missing_server() {
    let serving = Serving::start(&["--no-quic"]);
    let url = format!("https://127.0.0.1:{}/", serving.address.port());
    let error = refusal(&["webtransport", "-k", "--timeout", "2", &url]);
    assert!(
        error.contains("accepts connections: HTTP/3 may be off"),
        "{error}"
    );
}

#[test]
fn refused_origins_are_reported_at_the_server() {
    let mut echo = Echo::start(&[]);
    for _ in 0..2 {
        let output = echo.client("", &["--origin", "https://b.test"], b"");
        assert_eq!(output.status.code(), Some(22));
    }
    // There may be others, about this machine.
    loop {
        let event = echo.serving.next_of_all_events();
        let text = event["text"].as_str().expect("a warning");
        if text.contains("origin `https://b.test` is not allowed") {
            assert!(text.contains("--webtransport-origin"), "{text}");
            break;
        }
    }
}

fn certificate_of_this_test() -> Certificate {
    certificate(2200)
}

/// The page, the files and the proxy are served beside the sessions.
#[test]
fn page_and_site_are_served_beside_the_echo() {
    let echo = Echo::start(&[]);
    for (path, part) in [
        ("/webtransport", "WebTransport test"),
        ("/webtransport/facts.json", "\"certificate_sha256\":["),
    ] {
        let output = courser(&["get", "-k", &echo.url(path)]).output();
        let output = output.expect("the binary starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(part), "{path}: {text}");
    }
    let backend = echo.url("").replace("https://", "http://");
    let proxy = Echo::start(&["--proxy", &backend]);
    let output = proxy.client("", &[], b"beside");
    assert_eq!(output.stdout, b"beside", "{}", errors(&output));
}

#[cfg(unix)]
#[test]
fn sessions_do_not_delay_the_end_of_the_server() {
    let mut echo = Echo::start(&[]);
    let url = echo.url("/.well-known/courser/echo");
    let mut client = courser(&["webtransport", "-k", "-v", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = client.stdin.take().expect("piped");
    stdin.write_all(b"x").expect("written");
    // The echo shows that the session is open.
    let mut echoed = [0];
    let stdout = client.stdout.as_mut().expect("piped");
    std::io::Read::read_exact(stdout, &mut echoed).expect("an echo");
    echo.serving.signal(rustix::process::Signal::TERM);
    let output = client.wait_with_output().expect("a child");
    let text = errors(&output);
    assert_eq!(output.status.code(), Some(56), "{text}");
    assert!(
        text.contains("* the server asks to end the session soon"),
        "{text}"
    );
    assert!(text.contains("with code 0: the server ends"), "{text}");
    while echo.serving.next_event()["event"] != "drained" {}
    echo.serving.ended();
    drop(stdin);
}

#[test]
fn flags_that_have_no_effect_are_refused() {
    for (flags, part) in [
        (
            &["serve", "--webtransport-origin", "https://a.test"][..],
            "--webtransport-echo",
        ),
        (&["serve", "--webtransport-echo", "--no-quic"], "--no-quic"),
        (&["serve", "--webtransport-echo=echo"], "is not a path"),
        (
            &["webtransport", "https://a.test", "--uni", "--datagrams"],
            "cannot be used",
        ),
        (
            &["webtransport", "https://a.test", "--cert-hash", "x"],
            "is not a SHA-256",
        ),
        (
            &["webtransport", "https://a.test", "--origin", "a.test"],
            "is not an origin",
        ),
        (
            &[
                "serve",
                "--webtransport-echo",
                "--webtransport-origin",
                "https://*.test",
            ],
            "without wildcards",
        ),
        (
            &["webtransport", "https://a.test", "--header", "x"],
            "NAME: VALUE",
        ),
        (
            &["perf", "client", "::1", "--webtransport", "--tcp"],
            "--tcp",
        ),
    ] {
        let error = refusal(flags);
        assert!(error.contains(part), "{flags:?}: {error}");
    }
}

#[test]
fn streams_and_datagrams_of_a_session_are_measured() {
    let server = crate::common::Server::start(&["--webtransport"]);
    for flags in [
        &["-s", "upload", "-n", "1M"][..],
        &["-s", "download", "-n", "1M"],
        &["-s", "download", "-t", "0.2"],
        &["-s", "rr", "-n", "200"],
        &["-s", "rr", "-n", "200", "--uni"],
        &["-s", "datagram", "-n", "100", "--rate", "0"],
        &["-s", "mixed", "-t", "0.3"],
    ] {
        let report = server.report(&[&["--webtransport"], flags].concat());
        assert_eq!(
            report["settings"]["transport"], "webtransport",
            "{report:#}"
        );
        // Other scenarios are measured without sessions at the same server.
        server.report(flags);
    }
    let plain = crate::common::Server::start(&[]);
    let output = plain.client(&["--webtransport", "-n", "1"]);
    let text = errors(&output);
    assert!(
        text.contains("does not support the protocol 'h3'"),
        "{text}"
    );
}

/// Starts a proxy of sessions to a server, whose certificate is trusted by its hash. Returns it with its own hash.
fn proxy_to(upstream: &Serving, hash: &str) -> (Serving, String) {
    let url = format!("https://127.0.0.1:{}", upstream.address.port());
    let flags = [
        "--proxy-webtransport",
        &url,
        "--proxy-webtransport-hash",
        hash,
    ];
    let serving = Serving::start(&flags);
    assert_eq!(serving.announced["webtransport_upstream"], *url);
    let hash = serving.announced["certificate"]["sha256"].as_str();
    let hash = hash.expect("a hash").to_owned();
    (serving, hash)
}

/// Each proxy is a process, as they are in a chain of operators.
#[test]
fn sessions_pass_two_proxies() {
    let echo = Echo::start(&["--webtransport-origin", "https://page.test"]);
    let (first, hash) = proxy_to(&echo.serving, &echo.trust[1]);
    let (second, hash) = proxy_to(&first, &hash);
    let through = Echo {
        serving: second,
        trust: vec!["--cert-hash".to_owned(), hash],
    };
    let megabytes: Vec<u8> = (0..3_000_000_u32).map(|it| (it % 251) as u8).collect();
    let output = through.client("", &["--protocol", "chat"], &megabytes);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(output.stdout == megabytes, "{} bytes", output.stdout.len());
    let output = through.client("", &["--datagrams"], b"one\ntwo");
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(output.stdout.len(), "one\ntwo\n".len());
    let output = through.client("?close=7&reason=enough", &["--uni"], b"");
    assert_eq!(
        errors(&output).trim_end(),
        "courser: (56) the peer has closed the session with code 7: enough"
    );
    // The server behind decides about origins.
    let allowed = through.client("", &["--origin", "https://page.test"], b"x");
    assert_eq!(allowed.stdout, b"x", "{}", errors(&allowed));
    let refused = through.client("", &["--origin", "https://evil.test"], b"x");
    assert!(
        errors(&refused).contains("403 Forbidden"),
        "{}",
        errors(&refused)
    );
}

#[test]
fn mistakes_of_the_proxy_of_sessions_are_explained() {
    for (flags, word) in [
        (&["--proxy-webtransport", "http://a.test"][..], "has no TLS"),
        (&["--proxy-webtransport", "https://a.test/x"], "has a path"),
        (&["--proxy-webtransport-hash", "00"], "--proxy-webtransport"),
        (
            &[
                "--proxy-webtransport",
                "https://a.test",
                "--proxy-webtransport-ca",
                "/nowhere",
            ],
            "/nowhere",
        ),
        (&["--webtransport-sessions", "5"], "webtransport"),
    ] {
        let text = refusal(&[&["serve"], flags].concat());
        assert!(text.contains(word), "{flags:?}: {text}");
    }
}
