use http::HeaderValue;

use super::*;

fn fields(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, HeaderValue::from_static(value));
    }
    headers
}

#[test]
fn referer_loses_its_fragment_and_user_information() {
    for (given, sent) in [
        ("https://a.test/x?y", "https://a.test/x?y"),
        ("https://a.test/x#part", "https://a.test/x"),
        ("https://user:pass@a.test/x", "https://a.test/x"),
        ("https://user@x@a.test?y#z", "https://a.test?y"),
        ("https://a.test/@me", "https://a.test/@me"),
        ("/path@x#y", "/path@x"),
    ] {
        let mut headers = fields(&[(header::REFERER, given)]);
        clean_referer(&mut headers);
        assert_eq!(headers[header::REFERER], sent, "{given}");
    }
}

#[test]
fn te_is_limited_to_what_the_version_allows() {
    for (given, over_http1, beyond) in [
        (&["trailers"][..], Some("trailers"), Some("trailers")),
        (&["chunked"], None, None),
        (&["Chunked;q=0.5, gzip;q=0.3"], Some("gzip;q=0.3"), None),
        (
            &["gzip", "trailers"],
            Some("gzip, trailers"),
            Some("trailers"),
        ),
        (&[""], None, None),
    ] {
        let given: Vec<_> = given.iter().map(|value| (header::TE, *value)).collect();
        let mut headers = fields(&given);
        limit_te(&mut headers);
        let sent = headers.get(header::TE).map(HeaderValue::as_bytes);
        assert_eq!(sent, over_http1.map(str::as_bytes), "{given:?}");
        assert_eq!(
            headers.contains_key(header::CONNECTION),
            over_http1.is_some()
        );
        let mut headers = fields(&given);
        keep_trailers_only(&mut headers);
        let sent = headers.get(header::TE).map(HeaderValue::as_bytes);
        assert_eq!(sent, beyond.map(str::as_bytes), "{given:?}");
    }
}

#[test]
fn te_is_listed_in_connection_once() {
    let mut headers = fields(&[(header::TE, "trailers"), (header::CONNECTION, "close, Te")]);
    limit_te(&mut headers);
    assert_eq!(headers.get_all(header::CONNECTION).iter().count(), 1);
}
