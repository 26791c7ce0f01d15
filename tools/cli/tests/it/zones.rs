//! Link-local addresses with zones in flags and URLs (RFC 4007 §11, RFC 6874).

use std::io::{Read as _, Write as _};
use std::process::Command;

use crate::common::{Folder, Server, refusal, run};
use crate::namespace::{ADDRESS, INTERFACE, is_inside, skipped, zone};
use crate::serve::serving::Serving;

fn succeeds(arguments: &[&str]) -> String {
    let output = run(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn servers_and_clients_use_zones() {
    if !is_inside() {
        return;
    }
    let folder = Folder::new();
    folder.file("hello", "here");
    let zone = zone();
    // The name of the interface, or its index. With the index, the server has one shard.
    for (listen, shards) in [
        (format!("[{ADDRESS}%{INTERFACE}]:0"), "2"),
        (format!("[{ADDRESS}%{zone}]:0"), "1"),
    ] {
        let folder = folder.path().to_str().expect("UTF-8");
        let state = Folder::new();
        let dev = state.path().join("dev");
        let dev = dev.to_str().expect("UTF-8");
        let arguments = [
            "serve",
            "--listen",
            &listen,
            "--shards",
            shards,
            "--json",
            "--tls-dev-dir",
            dev,
            folder,
        ];
        let server = Serving::run(&arguments, state);
        let port = server.address.port();
        assert_eq!(
            server.address.to_string(),
            format!("[{ADDRESS}%{zone}]:{port}")
        );
        let url = |zone: &str| format!("https://[{ADDRESS}%25{zone}]:{port}/hello");
        let by_name = url(INTERFACE);
        for flag in ["--http3-only", "--http2", "--http1.1"] {
            assert_eq!(succeeds(&["get", "-k", flag, &by_name]), "here", "{flag}");
        }
        let by_index = url(&zone.to_string());
        assert_eq!(succeeds(&["get", "-k", "--http3-only", &by_index]), "here");
        // A bare percent sign, which curl accepts too.
        let bare = by_name.replace("%25", "%");
        assert_eq!(succeeds(&["get", "-k", &bare]), "here");
        let report = succeeds(&["load", "--insecure", "--h3", "-n", "3", &by_name]);
        assert!(report.contains("3 succeeded"), "{report}");
        let report = succeeds(&["probe", &format!("[{ADDRESS}%{INTERFACE}]:{port}")]);
        assert!(report.contains("h3 (ALPN)"), "{report}");
        compare_with_curl(&by_name);
    }
}

/// The same URL with curl, over TCP.
fn compare_with_curl(url: &str) {
    let output = Command::new("curl").args(["-sSk", url]).output();
    let Ok(output) = output else {
        return skipped("curl is missing");
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.stdout, b"here", "{url}: {error}");
}

/// The Host field for the upstream server has no zone.
#[test]
fn proxies_forward_to_link_local_servers() {
    if !is_inside() {
        return;
    }
    let upstream = std::net::TcpListener::bind(format!("[{ADDRESS}%{}]:0", zone()).as_str());
    let upstream = upstream.expect("an address of the namespace");
    let port = upstream.local_addr().expect("bound").port();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = upstream.accept().expect("the proxy");
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a request");
            request.push(byte[0]);
        }
        let response = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere";
        stream.write_all(response).expect("open");
        String::from_utf8(request).expect("text").to_lowercase()
    });
    let url = format!("http://[{ADDRESS}%25{INTERFACE}]:{port}");
    let state = Folder::new();
    let dev = state.path().join("dev");
    let dev = dev.to_str().expect("UTF-8");
    let listen = format!("[{ADDRESS}%{INTERFACE}]:0");
    let arguments = [
        "serve",
        "--listen",
        &listen,
        "--json",
        "--tls-dev-dir",
        dev,
        "--proxy",
        &url,
    ];
    let proxy = Serving::run(&arguments, state);
    // A request that names its host is forwarded with that name.
    let from = format!(
        "https://[{ADDRESS}%25{INTERFACE}]:{}/",
        proxy.address.port()
    );
    assert_eq!(succeeds(&["get", "-k", "--http3-only", &from]), "here");
    let request = serving.join().expect("no panic");
    assert!(
        request.contains("\r\nhost: [") && !request.contains('%'),
        "{request}"
    );
}

#[test]
fn perf_measures_link_local_servers() {
    if !is_inside() {
        return;
    }
    let listen = format!("[{ADDRESS}%{INTERFACE}]:0");
    for more in [&[][..], &["--tcp"]] {
        let server = Server::start_on(&listen, more);
        let port = server.address.port();
        let address = format!("[{ADDRESS}%{}]:{port}", zone());
        assert_eq!(server.address.to_string(), address);
        let report = server.report(&[more, &["-n", "100000"]].concat());
        assert!(report.is_object(), "{report}");
    }
}

#[test]
fn unusable_zones_are_reported() {
    for arguments in [
        &["serve", "--listen", "[fe80::1%nowhere]:0"][..],
        &["serve", "--proxy", "http://[fe80::1%25nowhere]:1"],
        &["get", "https://[fe80::1%25nowhere]/"],
        &["load", "https://[fe80::1%25nowhere]/"],
        &["perf", "client", "[fe80::1%nowhere]:1"],
        &["probe", "[fe80::1%nowhere]:1"],
    ] {
        let output = run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(
            error.contains("no interface 'nowhere'"),
            "{arguments:?}: {error}"
        );
    }
    let error = refusal(&["get", "-sS", "https://[fe80::1]:1/"]);
    assert!(error.contains("name its interface"), "{error}");
}
