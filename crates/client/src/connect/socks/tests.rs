use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

type Credentials<'a> = Option<(&'a str, &'a str)>;

/// Expected messages of the client, each with the reply to it.
type Script<'a> = &'a [(&'a [u8], &'a [u8])];

/// Runs a proxy that expects these messages and sends their replies.
async fn connect_with_script(
    socks: Socks,
    target: &Target,
    credentials: Credentials<'_>,
    script: Script<'_>,
) -> Result<Vec<u8>, Error> {
    let (mut ours, mut theirs) = tokio::io::duplex(1024);
    let proxy = async move {
        for (expected, answer) in script {
            let mut seen = vec![0; expected.len()];
            theirs.read_exact(&mut seen).await.expect("a message");
            assert_eq!(&seen, expected);
            // Sends the bytes one at a time, as a network may deliver them.
            for byte in *answer {
                theirs.write_all(&[*byte]).await.expect("the pipe is open");
                tokio::task::yield_now().await;
            }
        }
        theirs.write_all(b"first").await.expect("the pipe is open");
    };
    let (result, ()) = tokio::join!(socks.connect(&mut ours, target, credentials), proxy);
    result?;
    let mut rest = Vec::new();
    ours.read_to_end(&mut rest).await.expect("it ended");
    Ok(rest)
}

fn address(text: &str) -> Target {
    Target::Address(text.parse().expect("an address"))
}

fn name(name: &str) -> Target {
    Target::Name(name.to_owned(), 443)
}

/// The greeting without credentials, and its reply.
const GREETING: (&[u8], &[u8]) = (&[5, 1, 0], &[5, 0]);

#[tokio::test]
async fn socks5_requests_addresses_and_names() {
    let table: [(Target, &[u8]); 3] = [
        (
            address("192.0.2.1:443"),
            &[5, 1, 0, 1, 192, 0, 2, 1, 1, 187],
        ),
        (
            address("[2001:db8::1]:80"),
            &[
                5, 1, 0, 4, 32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80,
            ],
        ),
        (name("a.test"), b"\x05\x01\x00\x03\x06a.test\x01\xbb"),
    ];
    let answers: [&[u8]; 3] = [
        &[5, 0, 0, 1, 127, 0, 0, 1, 0, 80],
        b"\x05\x00\x00\x03\x05proxy\x00\x50",
        &[
            5, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80,
        ],
    ];
    for (target, request) in &table {
        for answer in answers {
            let script = [GREETING, (request, answer)];
            let rest = connect_with_script(Socks::V5h, target, None, &script).await;
            assert_eq!(rest.expect("connected"), b"first", "{target} {answer:?}");
        }
    }
}

#[tokio::test]
async fn socks5_authenticates_if_the_proxy_requires_it() {
    let request: (&[u8], &[u8]) = (
        b"\x05\x01\x00\x03\x06a.test\x01\xbb",
        &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    );
    let greeting: &[u8] = &[5, 2, 0, 2];
    let login: &[u8] = b"\x01\x04user\x02pw";
    let credentials = Some(("user", "pw"));
    let script: [(&[u8], &[u8]); 3] = [(greeting, &[5, 2]), (login, &[1, 0]), request];
    let rest = connect_with_script(Socks::V5h, &name("a.test"), credentials, &script).await;
    assert_eq!(rest.expect("connected"), b"first");
    // A proxy that requires no authentication, like `ssh -D`.
    let script: [(&[u8], &[u8]); 2] = [(greeting, &[5, 0]), request];
    let rest = connect_with_script(Socks::V5h, &name("a.test"), credentials, &script).await;
    assert_eq!(rest.expect("connected"), b"first");
}

#[tokio::test]
async fn socks4_requests_addresses_and_4a_names() {
    let granted: &[u8] = &[0, 0x5a, 0, 0, 0, 0, 0, 0];
    type Case<'a> = (Target, Credentials<'a>, &'a [u8]);
    let table: [Case<'_>; 3] = [
        (
            address("192.0.2.1:443"),
            None,
            &[4, 1, 1, 187, 192, 0, 2, 1, 0],
        ),
        (
            address("192.0.2.1:443"),
            Some(("me", "unused")),
            b"\x04\x01\x01\xbb\xc0\x00\x02\x01me\x00",
        ),
        (
            name("a.test"),
            Some(("me", "")),
            b"\x04\x01\x01\xbb\x00\x00\x00\x01me\x00a.test\x00",
        ),
    ];
    for (target, credentials, request) in &table {
        let script = [(*request, granted)];
        let rest = connect_with_script(Socks::V4a, target, *credentials, &script).await;
        assert_eq!(rest.expect("connected"), b"first", "{target}");
    }
}

#[tokio::test]
async fn refusals_report_the_reply_of_the_proxy() {
    let greeting: &[u8] = &[5, 2, 0, 2];
    let login: &[u8] = b"\x01\x01u\x01p";
    let request: &[u8] = b"\x05\x01\x00\x03\x06a.test\x01\xbb";
    let credentials = Some(("u", "p"));
    type Case<'a> = (Credentials<'a>, Script<'a>, &'a str);
    let table: [Case<'_>; 9] = [
        (
            None,
            &[(GREETING.0, &[5, 0xff])],
            "add user name and password to its URL",
        ),
        (
            credentials,
            &[(greeting, &[5, 0xff])],
            "requires an authentication method other",
        ),
        (None, &[(GREETING.0, &[5, 2])], "which was not offered"),
        (
            None,
            &[(GREETING.0, b"HT")],
            "does not speak SOCKS5, its response begins with byte 72",
        ),
        (
            credentials,
            &[(greeting, &[5, 2]), (login, &[1, 1])],
            "rejected the user name and password",
        ),
        (
            None,
            &[GREETING, (request, &[5, 5, 0, 1])],
            "a.test:443: connection refused (reply 5)",
        ),
        (None, &[GREETING, (request, &[5, 99, 0, 1])], "reply 99"),
        (
            None,
            &[GREETING, (request, &[5, 0, 0, 2])],
            "an address of unknown type 2",
        ),
        (
            None,
            &[GREETING, (request, &[4, 0, 0, 1])],
            "does not speak SOCKS5",
        ),
    ];
    for (credentials, script, text) in table {
        let error = connect_with_script(Socks::V5h, &name("a.test"), credentials, script).await;
        let error = error.expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Socks, "{text}");
        assert!(error.to_string().contains(text), "{text}: {error}");
    }
    let request: &[u8] = b"\x04\x01\x01\xbb\x00\x00\x00\x01\x00a.test\x00";
    for (answer, text) in [
        ([0, 0x5b, 0, 0, 0, 0, 0, 0], "rejected or failed"),
        ([0, 0x5d, 0, 0, 0, 0, 0, 0], "another user"),
        ([5, 0xff, 0, 0, 0, 0, 0, 0], "does not speak SOCKS4"),
    ] {
        let script = [(request, &answer[..])];
        let error = connect_with_script(Socks::V4a, &name("a.test"), None, &script).await;
        let error = error.expect_err(text).to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[tokio::test]
async fn proxy_that_closes_the_connection_is_reported() {
    for cut in 0..10 {
        let (mut ours, mut theirs) = tokio::io::duplex(1024);
        let answers = [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        theirs
            .write_all(&answers[..cut])
            .await
            .expect("the pipe is open");
        theirs.shutdown().await.expect("open");
        let result = Socks::V5
            .connect(&mut ours, &address("192.0.2.1:1"), None)
            .await;
        let error = result.expect_err("cut off").to_string();
        assert!(error.contains("closed the connection"), "{cut}: {error}");
    }
}

#[test]
fn requests_that_the_version_cannot_express_are_refused() {
    let long = "x".repeat(256);
    assert!(request_5(&name(&long[1..])).is_ok());
    let error = request_5(&name(&long)).expect_err("too long").to_string();
    assert!(error.contains("256 bytes, SOCKS5 allows 255"), "{error}");
    assert!(request_4(&name(&long), "").is_err());
    assert!(request_4(&name("a.test"), "a\0b").is_err());
    let error = request_4(&address("[::1]:1"), "").expect_err("no IPv6");
    assert!(error.to_string().contains("use socks5"), "{error}");
}
