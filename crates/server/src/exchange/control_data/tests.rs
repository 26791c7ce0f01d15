use super::*;

fn request(version: Version, method: &str, uri: &str, hosts: &[&str]) -> Request<()> {
    let mut request = Request::builder().version(version).method(method).uri(uri);
    for host in hosts {
        request = request.header(HOST, *host);
    }
    request.body(()).expect("a request")
}

/// Returns the target and the host field after normalization, or the status of the refusal.
fn normalized(
    version: Version,
    method: &str,
    uri: &str,
    hosts: &[&str],
) -> Result<(String, Option<String>), u16> {
    let mut request = request(version, method, uri, hosts);
    normalize(&mut request).map_err(|status| status.as_u16())?;
    let host = request.headers().get(HOST);
    let host = host.map(|host| host.to_str().expect("text").to_owned());
    Ok((request.uri().to_string(), host))
}

fn kept(target: &str, host: &str) -> Result<(String, Option<String>), u16> {
    let host = (!host.is_empty()).then(|| host.to_owned());
    Ok((target.to_owned(), host))
}

#[test]
fn http1_requests_have_one_host_field_and_an_origin_form() {
    let over = |method, uri, hosts: &[&str]| normalized(Version::HTTP_11, method, uri, hosts);
    assert_eq!(over("GET", "/x?y", &["a.test"]), kept("/x?y", "a.test"));
    assert_eq!(over("GET", "/", &["[::1]:8443"]), kept("/", "[::1]:8443"));
    assert_eq!(over("OPTIONS", "*", &["a.test"]), kept("*", "a.test"));
    let absolute = "https://a.test/x?y";
    assert_eq!(over("GET", absolute, &["A.test"]), kept("/x?y", "a.test"));
    assert_eq!(
        over("GET", absolute, &["a.test:443"]),
        kept("/x?y", "a.test")
    );
    let query = "https://a.test?y";
    assert_eq!(over("GET", query, &["a.test"]), kept("/?y", "a.test"));
    let empty = "https://a.test";
    assert_eq!(over("GET", empty, &["a.test"]), kept("/", "a.test"));
    for (uri, hosts) in [
        ("/", &[][..]),
        ("/", &["a.test", "a.test"]),
        (absolute, &[]),
        (absolute, &["b.test"]),
        (absolute, &["a.test:444"]),
        ("*", &["a.test"]),
        ("a.test", &["a.test"]),
    ] {
        assert_eq!(over("GET", uri, hosts), Err(400), "{uri} {hosts:?}");
    }
    assert_eq!(over("GET", "ftp://a.test/", &["a.test"]), Err(421));
    let plain = over("GET", "http://a.test/x", &["a.test"]);
    assert_eq!(plain, kept("/x", "a.test"));
}

#[test]
fn http10_requests_may_have_no_host() {
    let over = |hosts: &[&str]| normalized(Version::HTTP_10, "GET", "/", hosts);
    assert_eq!(over(&[]), kept("/", ""));
    assert_eq!(over(&["a.test"]), kept("/", "a.test"));
    assert_eq!(over(&["a b"]), Err(400));
    assert_eq!(over(&["a.test", "b.test"]), Err(400));
}

#[test]
fn later_versions_have_the_host_in_the_uri() {
    let absolute = "https://a.test/x";
    for version in [Version::HTTP_2, Version::HTTP_3] {
        let over = |method, uri, hosts: &[&str]| normalized(version, method, uri, hosts);
        assert_eq!(over("GET", absolute, &[]), kept(absolute, ""));
        assert_eq!(over("GET", absolute, &["A.test:443"]), kept(absolute, ""));
        assert_eq!(over("GET", "/x", &["a.test"]), kept(absolute, ""));
        for (uri, hosts) in [
            ("/x", &[][..]),
            ("/x", &["a.test", "a.test"]),
            ("/x", &["a/b"]),
            (absolute, &["b.test"]),
            (absolute, &["a.test", "a.test"]),
            ("*", &["a.test"]),
            ("https://user@a.test/", &[]),
            ("https://a.test:99999/", &[]),
        ] {
            assert_eq!(over("GET", uri, hosts), Err(400), "{uri} {hosts:?}");
        }
        assert_eq!(over("GET", "ftp://a.test/", &[]), Err(421));
        let plain = over("GET", "http://a.test/x", &[]);
        assert_eq!(plain, Ok(("https://a.test/x".to_owned(), None)));
    }
}

#[test]
fn tunnels_need_a_port() {
    for version in [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3] {
        let hosts: &[_] = if version == Version::HTTP_11 {
            &["a.test"]
        } else {
            &[]
        };
        let over = |uri| normalized(version, "CONNECT", uri, hosts).map(|(target, _)| target);
        assert_eq!(over("a.test:443"), Ok("a.test:443".to_owned()));
        assert_eq!(over("a.test"), Err(400));
        assert_eq!(over("a.test:"), Err(400));
        assert_eq!(over("/x"), Err(400));
    }
    let extended = "https://a.test/chat";
    let over = normalized(Version::HTTP_2, "CONNECT", extended, &[]);
    assert_eq!(over, kept(extended, ""));
}

#[test]
fn hosts_are_parsed_by_their_grammar() {
    for valid in [
        "a",
        "a.test.",
        "a_b",
        "127.0.0.1",
        "[::1]",
        "a:",
        "a:0",
        "a:65535",
        "%41",
        "a,b",
    ] {
        assert!(parse(valid.as_bytes()).is_some(), "{valid}");
    }
    for invalid in [
        "", ":", ":80", "a b", "a/b", "a@b", "a?b", "a#b", "a:65536", "a:x", "a:1:2", "a:+1",
        "[::1", "[::1]x", "[a]", "::1", "%4", "%zz", "a\\b", "\u{e4}", "a\t", "a,b:c,d",
    ] {
        assert!(parse(invalid.as_bytes()).is_none(), "{invalid}");
    }
}

#[test]
fn split_cookies_are_joined_and_equal_lengths_are_one() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut request = request(version, "POST", "/", &["a.test"]);
        let fields = [
            ("cookie", "a=1"),
            ("cookie", "b=2; c"),
            ("cookie", "d"),
            ("content-length", "5"),
        ];
        for (name, value) in fields
            .into_iter()
            .chain([("content-length", "5"), ("accept", "a")])
        {
            let value = HeaderValue::from_static(value);
            request.headers_mut().append(name, value);
        }
        assert_eq!(normalize(&mut request), Ok(()));
        let all = |name| request.headers().get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(all("cookie"), ["a=1; b=2; c; d"]);
        assert_eq!(all("content-length"), ["5"]);
        assert_eq!(all("accept"), ["a"]);
    }
}
