//! Invalid arguments and unusable servers.

use std::net::UdpSocket;

use super::servers::{App, Server};
use crate::common::{certificate, refusal};

#[test]
fn malformed_url_is_refused_in_one_line() {
    for (url, expected) in [
        ("localhost", "'https://' is missing"),
        ("ftp://localhost/", "neither http nor https"),
        ("https://no-such-host.invalid/", "cannot resolve"),
        ("https://a:b@localhost/", "--header"),
    ] {
        let line = refusal(&["load", url]);
        assert!(line.contains(expected), "{url}: {line}");
    }
    let line = refusal(&["load", "https://localhost/", "https://example.org/"]);
    assert!(line.contains("different servers"), "{line}");
    let line = refusal(&["load", "--sni", "a b", "https://localhost/"]);
    assert!(
        line.contains("--sni 'a b'") && line.contains("DNS name"),
        "{line}"
    );
    let line = refusal(&["load", "--ca", "/no/such/file", "https://localhost/"]);
    assert!(
        line.contains("cannot read certificate /no/such/file"),
        "{line}"
    );
    let line = refusal(&["load", "--h3", "http://localhost/"]);
    assert!(line.contains("always encrypted"), "{line}");
}

#[test]
fn closed_port() {
    let free = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("bound");
    drop(free);
    let url = format!("https://{address}/");
    for flags in [&["--h3"][..], &["--h2"], &["--style", "oha"]] {
        let line = refusal(&[&["load", "--json", "--insecure", &url], flags].concat());
        assert!(
            line.contains("nothing is listening on"),
            "{flags:?}: {line}"
        );
    }
}

#[test]
fn untrusted_certificates() {
    for (server, flag) in [
        (Server::http3(App::default()), "--h3"),
        (Server::tls(App::default()), "--h2"),
    ] {
        let line = refusal(&["load", "--json", flag, &server.https("/")]);
        assert!(line.contains("--insecure"), "{flag}: {line}");
        let other = certificate(2200);
        let line = refusal(&[
            "load",
            "--json",
            "--ca",
            &other.cert,
            flag,
            &server.https("/"),
        ]);
        assert!(line.contains("not trusted"), "{flag}: {line}");
    }
}

#[test]
fn protocols_that_the_server_does_not_support() {
    let server = Server::http3(App::default());
    // The TCP port with the same number is closed.
    let line = refusal(&["load", "--json", "-k", "--h2", &server.https("/")]);
    assert!(line.contains("nothing is listening on tcp"), "{line}");
    let server = Server::tls(App::default());
    let line = refusal(&["load", "--json", "-k", "--h3", &server.https("/")]);
    assert!(line.contains("nothing is listening on udp"), "{line}");
    let line = refusal(&[
        "load",
        "--json",
        "-k",
        "--alpn-list",
        "hq",
        &server.https("/"),
    ]);
    assert!(line.contains("unknown protocol 'hq'"), "{line}");
}

#[test]
#[cfg(target_os = "linux")]
fn report_that_cannot_be_written_is_a_failure() {
    let server = Server::http3(App::default());
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = crate::common::courser(&["load", "--h3", "-k", "-n", "1", &server.https("/")])
        .stdout(full.expect("a device"))
        .output()
        .expect("the binary starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("cannot write the report"), "{error}");
}
