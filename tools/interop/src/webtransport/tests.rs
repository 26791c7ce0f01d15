use super::files;
use super::*;

#[test]
fn names_depend_on_the_role_and_on_protocols() {
    let request = |way| Some(SessionTest::Request(way));
    for (name, is_server, has_protocols, expected) in [
        ("handshake", false, true, Some(SessionTest::Handshake)),
        ("handshake", true, true, Some(SessionTest::Handshake)),
        // A case of QUIC.
        ("handshake", false, false, None),
        ("transfer", false, true, Some(SessionTest::Transfer)),
        ("transfer", true, false, None),
        (
            "transfer-unidirectional-receive",
            false,
            true,
            request(Way::Unidirectional),
        ),
        (
            "transfer-bidirectional-receive",
            false,
            false,
            request(Way::Bidirectional),
        ),
        (
            "transfer-datagram-send",
            true,
            true,
            request(Way::Datagrams),
        ),
        // The other role's.
        ("transfer-datagram-send", false, true, None),
        ("transfer-bidirectional-receive", true, true, None),
        ("transfer-other-receive", false, true, None),
        ("transferloss", false, true, None),
    ] {
        let test = SessionTest::from_name(name, is_server, has_protocols);
        assert_eq!(test, expected, "{name} {is_server} {has_protocols}");
    }
}

#[test]
fn requests_and_files_are_framed() {
    assert_eq!(files::request("a/b"), b"GET a/b");
    assert_eq!(files::requested(b"GET  name\n").expect("a name"), "name");
    for wrong in [&b""[..], b"GET ", b"PUT x", b"GET \xff"] {
        assert!(files::requested(wrong).is_err(), "{wrong:?}");
    }
    let pushed = files::push("a/b", b"con\ntent");
    assert_eq!(pushed, b"PUSH b\ncon\ntent");
    let (name, content) = files::pushed(&pushed).expect("a file");
    assert_eq!((name, content), ("b", &b"con\ntent"[..]));
    for wrong in [&b""[..], b"PUSH b", b"x\n", b"PUSH \xff\n"] {
        assert!(files::pushed(wrong).is_err(), "{wrong:?}");
    }
}

#[tokio::test]
async fn names_do_not_leave_their_folder() {
    let root = std::env::temp_dir();
    for (endpoint, name) in [("..", "x"), ("a", "../../etc/passwd"), ("a/../..", "x")] {
        let read = files::read(&root, endpoint, name).await.expect_err(name);
        assert!(read.to_string().contains("leaves its folder"), "{read}");
    }
    let written = files::write(&root, "..", "x", b"").await;
    assert!(written.is_err());
    let written = files::write(&root, "a", "..", b"").await;
    assert!(written.is_err());
}
