//! `courser probe` against servers in their own processes.

use std::net::UdpSocket;

use serde_json::Value;

use crate::common::{Certificate, Folder, certificate, courser, refusal, run};
use crate::serve::serving::Serving;

/// A file server, and its certificate for `--ca`.
struct Site {
    serving: Serving,
    certificate: Certificate,
}

impl Site {
    fn start(flags: &[&str]) -> Self {
        let (files, certificate) = (Folder::new(), certificate(2200));
        files.file("index.html", "<p>hello</p>");
        files.file("large", &"x".repeat(400_000));
        files.file("huge", &"x".repeat(3_000_000));
        let root = files.path().to_str().expect("UTF-8").to_owned();
        let common = ["serve", &root, "--listen", "127.0.0.1:0", "--json"];
        let tls = ["--cert", &certificate.cert, "--key", &certificate.key];
        let serving = Serving::run(&[&common[..], &tls, flags].concat(), files);
        Self {
            serving,
            certificate,
        }
    }

    fn probe(&self, flags: &[&str]) -> Value {
        let host = format!("localhost:{}", self.serving.address.port());
        let common = ["probe", &host, "--ca", &self.certificate.cert, "--json"];
        let output = courser(&[&common[..], flags].concat())
            .output()
            .expect("the binary starts");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
    }
}

fn aspect<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut aspects = report["aspects"].as_array().expect("a list").iter();
    aspects
        .find(|it| it["name"] == name)
        .unwrap_or_else(|| panic!("{name} in {report}"))
}

#[test]
fn announcement_of_webtransport_is_reported() {
    for (flags, verdict, text) in [
        (
            &["--webtransport-echo"][..],
            "good",
            "draft-16, draft-14 (16 sessions)",
        ),
        (&[], "fact", "not announced"),
    ] {
        let report = Site::start(flags).probe(&[]);
        let found = aspect(&report, "WebTransport");
        assert_eq!(found["verdict"], verdict, "{report}");
        let saw = found["saw"].as_str().expect("text");
        assert!(saw.starts_with(text), "{saw}");
    }
}

#[test]
fn good_server_gets_grade_a_with_few_handshakes() {
    let site = Site::start(&["--early-data"]);
    let report = site.probe(&["--path", "/large"]);
    assert_eq!(report["grade"], "A", "{report}");
    assert!(
        report["facts"]["handshakes"].as_u64().expect("a number") <= 6,
        "{report}"
    );
    for name in [
        "version negotiation",
        "unknown protocol",
        "key exchange",
        "certificate",
        "three times",
        "resumption",
        "0-RTT",
        "key update",
        "rebinding",
        "migration",
        "request",
        "QPACK",
        "alt-svc",
    ] {
        assert_eq!(aspect(&report, name)["verdict"], "good", "{report}");
    }
    // Their order depends on the scheduling of both processes.
    assert_ne!(
        aspect(&report, "priorities")["verdict"],
        "unknown",
        "{report}"
    );
}

#[test]
fn content_is_read_up_to_the_limit() {
    let report = Site::start(&[]).probe(&["--no-tcp", "--path", "/huge"]);
    let content = report["facts"]["first"]["Ok"]["exchange"]["Ok"]["content"]
        .as_u64()
        .expect("a number");
    assert!((1 << 20..3_000_000).contains(&content), "{content}");
    assert_eq!(aspect(&report, "priorities")["verdict"], "unknown");
}

#[test]
fn untrusted_certificate_does_not_end_the_probe() {
    let site = Site::start(&[]);
    let other = certificate(2200);
    let host = site.serving.address.to_string();
    let folder = Folder::new();
    let page = folder.path().join("report.html");
    let page = page.to_str().expect("UTF-8");
    let output = run(&[
        "probe",
        &host,
        "--ca",
        &other.cert,
        "--no-tcp",
        "--html",
        page,
    ]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        text.contains("BAD   certificate") && text.contains("good  rebinding"),
        "{text}"
    );
    let html = std::fs::read_to_string(page).expect("a page");
    assert!(
        html.contains("grade C") && html.contains("not trusted"),
        "{html}"
    );
}

#[test]
fn server_that_does_not_respond_is_reported() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let host = silent.local_addr().expect("bound").to_string();
    let line = refusal(&["probe", &host, "--timeout", "0.5"]);
    assert!(
        line.contains("no answer from udp") && line.contains("within 0.5 s"),
        "{line}"
    );
    drop(silent);
    let line = refusal(&["probe", &host]);
    assert!(line.contains("nothing is listening on udp"), "{line}");
    let output = run(&["probe", &host, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&report["grade"], output.status.code()),
        (&Value::from("F"), Some(4))
    );
}

#[test]
fn server_without_the_protocol_is_reported() {
    let site = Site::start(&[]);
    let host = site.serving.address.to_string();
    let line = refusal(&["probe", &host, "--alpn", "smtp"]);
    assert!(
        line.contains("none of the offered protocols: pass --alpn NAME"),
        "{line}"
    );
}

#[test]
fn invalid_arguments_are_reported() {
    for (arguments, expected) in [
        (&["probe"][..], "HOST[:PORT]"),
        (&["probe", "host:0"], "a port is a number from 1 to 65535"),
        (&["probe", "localhost", "--path", "x"], "begins with /"),
        (&["probe", "localhost", "--timeout", "1h"], "is not a time"),
        (&["probe", "localhost", "--timout", "1"], "'--timeout'"),
        (
            &["probe", "localhost", "--ca", "/absent.pem"],
            "cannot read certificate /absent.pem",
        ),
    ] {
        let line = refusal(arguments);
        assert!(line.contains(expected), "{line}");
    }
}
