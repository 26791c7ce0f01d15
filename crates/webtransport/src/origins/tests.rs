use super::*;

fn check(origins: &Origins, fields: &[&[u8]]) -> Result<bool, OriginError> {
    let mut headers = HeaderMap::new();
    for field in fields {
        let value = HeaderValue::from_bytes(field).expect("a field value");
        headers.append(ORIGIN, value);
    }
    let authority = Authority::from_static("Example.org:4433");
    origins
        .check(&headers, &authority)
        .map(|origin| origin.is_some())
}

fn allows(origins: &Origins, origin: &str) -> bool {
    check(origins, &[origin.as_bytes()]).is_ok()
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-h3-004, WT-h3-031, A259.
#[test]
fn pages_of_the_same_host_and_port_are_allowed_by_default() {
    let origins = Origins::default();
    assert!(allows(&origins, "https://example.org:4433"));
    assert!(allows(&origins, "HTTPS://EXAMPLE.ORG:4433"));
    for other in [
        "https://example.org",
        "https://example.org:443",
        "http://example.org:4433",
        "https://evil.example:4433",
        "https://example.org.evil.example:4433",
        "https://sub.example.org:4433",
        "chrome-extension://example.org:4433",
    ] {
        let error = check(&origins, &[other.as_bytes()]);
        assert_eq!(error, Err(OriginError::NotAllowed(other.to_owned())));
    }
    assert_eq!(check(&origins, &[]), Ok(false));
}

#[test]
fn default_ports_are_equal_to_absent_ones() {
    let mut headers = HeaderMap::new();
    headers.insert(ORIGIN, HeaderValue::from_static("https://example.org:443"));
    let authority = Authority::from_static("example.org");
    assert!(Origins::same_host().check(&headers, &authority).is_ok());
    let origins = Origins::listed()
        .and("http://a.example:80")
        .expect("an origin");
    assert!(allows(&origins, "http://a.example"));
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-h3-032, A259.
#[test]
fn null_several_and_invalid_origins_are_refused_unless_named() {
    let long = format!("https://{}.example", "a".repeat(65_536));
    for origins in [Origins::same_host(), Origins::listed(), Origins::any()] {
        let same: &[u8] = b"https://example.org:4433";
        assert_eq!(check(&origins, &[same, same]), Err(OriginError::Several));
        for invalid in [
            "",
            "example.org",
            "https://",
            "https:///",
            "https://a/",
            "https://a/path",
            "https://a b",
            "https://u@a",
            "https://a:99999",
            "https://a:",
            "https://a https://b",
            "nullnull",
            "://a",
            &long,
        ] {
            let error = check(&origins, &[invalid.as_bytes()]);
            assert_eq!(error, Err(OriginError::Invalid), "{invalid:.40}");
        }
        assert_eq!(
            check(&origins, &[b"https://\xff"]),
            Err(OriginError::Invalid)
        );
    }
    assert!(!allows(&Origins::same_host(), "null"));
    assert!(!allows(&Origins::listed(), "null"));
    let named = Origins::same_host().and("null").expect("an origin");
    assert!(allows(&named, "null") && allows(&Origins::any(), "null"));
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-h3-004.
#[test]
fn listed_origins_are_allowed() {
    let origins = Origins::same_host()
        .and("https://App.example:8443")
        .and_then(|origins| origins.and("http://[::1]:8080"))
        .expect("origins");
    for allowed in [
        "https://app.example:8443",
        "http://[::1]:8080",
        "https://example.org:4433",
    ] {
        assert!(allows(&origins, allowed), "{allowed}");
    }
    assert!(!allows(&origins, "https://app.example"));
    assert!(allows(&Origins::any(), "http://evil.example"));
    assert!(!allows(&Origins::listed(), "https://example.org:4433"));
}

#[test]
fn origin_can_be_required() {
    let origins = Origins::any().required();
    assert_eq!(check(&origins, &[]), Err(OriginError::Absent));
    assert!(allows(&origins, "https://a.example"));
}

#[test]
fn policies_take_origins_only() {
    for text in [
        "app.example",
        "https://app.example/",
        "*",
        "https://*/x",
        "https://*.example",
    ] {
        let error = Origins::listed().and(text).expect_err("no origin");
        assert!(
            error
                .to_string()
                .starts_with(&format!("`{text}` is not an origin"))
        );
    }
}
