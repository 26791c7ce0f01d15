use super::*;

const ALL: [ProxyError; 9] = [
    ProxyError::DnsTimeout,
    ProxyError::DnsError,
    ProxyError::DestinationIpProhibited,
    ProxyError::DestinationIpUnroutable,
    ProxyError::ConnectionRefused,
    ProxyError::ConnectionLimitReached,
    ProxyError::HttpRequestDenied,
    ProxyError::ProxyLoopDetected,
    ProxyError::ProxyInternalError,
];

#[test]
fn clients_read_the_errors_of_proxies() {
    for error in ALL {
        let refusal = error.refusal("a \"proxy\" \\ b\u{e9}", "not sent");
        assert!(refusal.status.is_client_error() || refusal.status.is_server_error());
        let reported = ReportedError::of(&refusal.headers).expect("reported");
        assert_eq!(reported.error, error.token());
        assert_eq!(reported.details, None);
    }
}

#[test]
fn fields_of_other_proxies_are_read() {
    for (value, expected) in [
        (
            "foo; error=dns_error; details=\"no; such, \\\"name\\\"\"",
            Some("dns_error (no; such, \"name\")"),
        ),
        (
            "a; error=dns_timeout, b;error=connection_refused",
            Some("connection_refused"),
        ),
        ("\"a,b;error=x\";error=y", Some("y")),
        ("a; status=200", None),
        ("", None),
        ("a; error", None),
        ("\"open", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(PROXY_STATUS, value.parse().unwrap());
        let found = ReportedError::of(&headers).map(|error| error.to_string());
        assert_eq!(found.as_deref(), expected, "{value}");
    }
    let mut headers = HeaderMap::new();
    let long = format!("a; error={}", "x".repeat(2000));
    headers.insert(PROXY_STATUS, long.parse().unwrap());
    assert_eq!(ReportedError::of(&headers), None);
    assert_eq!(ReportedError::of(&HeaderMap::new()), None);
}
