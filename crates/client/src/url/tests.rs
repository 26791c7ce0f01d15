use super::sealed::Sealed as _;
use super::*;

#[test]
fn text_is_parsed_as_by_browsers() {
    for (text, uri) in [
        ("https://h.test/a b", "https://h.test/a%20b"),
        (
            "https://h.test/\u{fc}?\u{fc}=a b",
            "https://h.test/%C3%BC?%C3%BC=a%20b",
        ),
        ("https://B\u{fc}cher.test", "https://xn--bcher-kva.test/"),
        ("https://h.test/a/../b/./c#part", "https://h.test/b/c"),
        ("https://h.test:443/", "https://h.test/"),
        ("  https://h.test/x\n", "https://h.test/x"),
        ("https://[::1]:8443/?", "https://[::1]:8443/?"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("https:\\\\h.test\\x", "https://h.test/x"),
    ] {
        assert_eq!(text.into_uri().expect(text), uri, "{text}");
    }
}

#[test]
fn uris_are_used_as_they_are() {
    let uri: Uri = "https://H.test/a/../b?%zz".parse().expect("a URI");
    assert_eq!((&uri).into_uri().expect("a URI"), uri);
    let url = Url::parse("https://h.test/x#y").expect("a URL");
    assert_eq!(url.into_uri().expect("a URL"), "https://h.test/x");
}

#[test]
fn error_says_what_is_missing() {
    for (text, kind, hint) in [
        ("h.test/x", ErrorKind::Url, "https://"),
        ("/x", ErrorKind::Url, "https://"),
        ("localhost:8080/x", ErrorKind::Url, "https://"),
        ("h.test:80", ErrorKind::Url, "https://"),
        ("https://", ErrorKind::Url, "empty host"),
        ("https://a b/", ErrorKind::Url, "domain"),
        ("https://h:99999/", ErrorKind::Url, "port"),
        ("ftp://h.test/", ErrorKind::Unsupported, "'ftp'"),
        ("file:///etc/passwd", ErrorKind::Unsupported, "'file'"),
        ("data:text/plain,x", ErrorKind::Unsupported, "'data'"),
    ] {
        let error = text.into_uri().expect_err(text);
        assert_eq!(error.kind(), kind, "{text}");
        assert!(error.to_string().contains(hint), "{text}: {error}");
    }
}

#[test]
fn errors_do_not_repeat_credentials() {
    for text in [
        "https://user:pw@h:99999/",
        "//user:pw@h/",
        "https://user:p/w@:1/",
    ] {
        let error = text.into_uri().expect_err(text);
        assert!(!error.to_string().contains("pw"), "{error}");
    }
    assert_eq!(without_credentials("//u:p@q@h/@x"), "//h/@x");
    assert_eq!(without_credentials("https://h/u:p@x"), "https://h/u:p@x");
}

#[test]
fn credentials_become_a_sensitive_field() {
    for (text, uri, field) in [
        (
            "https://user:pw@h.test/x?y",
            "https://h.test/x?y",
            Some("Basic dXNlcjpwdw=="),
        ),
        (
            "https://us%40er:p%3Aw@h.test/",
            "https://h.test/",
            Some("Basic dXNAZXI6cDp3"),
        ),
        (
            "https://user@h.test/",
            "https://h.test/",
            Some("Basic dXNlcjo="),
        ),
        ("https://:@h.test/", "https://h.test/", None),
        ("https://h.test/@", "https://h.test/@", None),
    ] {
        let mut found: Uri = text.parse().expect(text);
        let value = take_credentials(&mut found).expect(text);
        assert_eq!(found, uri, "{text}");
        let expected = field.map(HeaderValue::from_static);
        assert_eq!(value, expected, "{text}");
        assert!(value.is_none_or(|value| value.is_sensitive()), "{text}");
    }
    let error = basic(b"a:b", b"").expect_err("a colon");
    assert!(error.to_string().contains("colon"), "{error}");
}
