use super::parse::{Announcement, parse};
use super::*;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000 + seconds)
}

fn origin() -> Origin {
    Origin::https("example.org", 443)
}

fn announced(value: &str) -> AltSvcCache {
    let mut cache = AltSvcCache::default();
    cache.on_announced(at(0), &origin(), [value].into_iter());
    cache
}

fn services(value: &str) -> Vec<(String, String, u16, u64, bool)> {
    match parse(value) {
        Some(Announcement::Services(services)) => services
            .into_iter()
            .map(|service| {
                let seconds = service.max_age.as_secs();
                let host = service.host.to_string();
                let (port, persists) = (service.port, service.persists);
                (service.protocol, host, port, seconds, persists)
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn examples_of_the_rfc_are_read() {
    let h2 =
        |host: &str, port, age, persists| ("h2".to_owned(), host.to_owned(), port, age, persists);
    assert_eq!(services(r#"h2=":8000""#), [h2("", 8000, 86_400, false)]);
    assert_eq!(
        services(r#"h2="new.example.org:80""#),
        [h2("new.example.org", 80, 86_400, false)]
    );
    assert_eq!(
        services(r#"h2="alt.example.com:8000", h2=":443""#),
        [
            h2("alt.example.com", 8000, 86_400, false),
            h2("", 443, 86_400, false)
        ]
    );
    assert_eq!(
        services(r#"h2=":443"; ma=3600"#),
        [h2("", 443, 3600, false)]
    );
    assert_eq!(
        services(r#"h2=":443"; ma=2592000; persist=1"#),
        [h2("", 443, 2_592_000, true)]
    );
    assert_eq!(
        services(r#"w%3Dx%3Ay%23z=":443""#),
        [("w=x:y#z".to_owned(), String::new(), 443, 86_400, false)]
    );
    assert_eq!(parse("clear"), Some(Announcement::Clear));
}

/// RFC 9110 §5.6.6, §5.6.4.
#[test]
fn names_of_parameters_have_no_case_and_values_may_be_quoted() {
    for value in [
        r#"h3=":443"; ma=60; persist=1"#,
        r#"h3=":443"; MA=60; Persist=1"#,
        r#"h3=":443";ma="60";persist="1""#,
        r#"h3=":443" ; x="; ma=1, \"" ; ma="\60" ; persist=1"#,
    ] {
        let cache = announced(value);
        assert_eq!(cache.alternatives(at(59), &origin()).len(), 1, "{value}");
        assert!(cache.alternatives(at(59), &origin())[0].persists, "{value}");
        assert!(cache.alternatives(at(60), &origin()).is_empty(), "{value}");
    }
}

#[test]
fn malformed_values_change_nothing() {
    for value in [
        "",
        "h3",
        "h3=",
        r#"h3=":443"#,
        "=:443",
        r#"h3=":443" x"#,
        r#"h3=":443"; ma"#,
        r#"h3=":443"; ma=x"#,
        r#"h3=":443"; ma="1"#,
        "%",
        r#"%zz=":1""#,
        "Clear",
    ] {
        let mut cache = announced(r#"h3=":443""#);
        cache.on_announced(at(0), &origin(), [value].into_iter());
        assert_eq!(cache.alternatives(at(1), &origin()).len(), 1, "{value:?}");
    }
}

#[test]
fn services_without_a_usable_address_are_skipped() {
    for value in [
        r#"h3="443""#,
        r#"h3=":99999""#,
        r#"h3="a b:443""#,
        r#"h3="::1:443""#,
        r#"h3=":0""#,
    ] {
        let cache = announced(&format!("{value}, h3=\":8001\""));
        let known = cache.alternatives(at(1), &origin());
        assert_eq!(known.len(), 1, "{value}: {known:?}");
        assert_eq!(known[0].port, 8001, "{value}");
    }
}

#[test]
fn only_unexpired_http3_alternatives_are_returned() {
    let cache = announced(r#"h2=":1", h3=":8443"; ma=60, h3-29=":2""#);
    let known = cache.alternatives(at(59), &origin());
    assert_eq!(known.len(), 1);
    assert_eq!(
        (known[0].host(&origin()), known[0].port),
        ("example.org", 8443)
    );
    assert!(!known[0].is_same_authority(&origin()));
    assert!(cache.alternatives(at(60), &origin()).is_empty());
}

#[test]
fn each_response_replaces_earlier_alternatives() {
    let mut cache = announced(r#"h3=":8001", h3=":2""#);
    cache.on_announced(at(0), &origin(), [r#"h3=":3""#, r#"h3=":4""#].into_iter());
    let ports = |cache: &AltSvcCache| -> Vec<u16> {
        let known = cache.alternatives(at(1), &origin());
        known.into_iter().map(|known| known.port).collect()
    };
    assert_eq!(ports(&cache), [3, 4], "several fields are one list");
    cache.on_announced(at(0), &origin(), [r#"h2=":3""#].into_iter());
    assert!(ports(&cache).is_empty(), "HTTP/3 is no longer announced");
    let mut cache = announced(r#"h3=":8001""#);
    cache.on_announced(at(0), &origin(), ["clear"].into_iter());
    assert!(ports(&cache).is_empty());
}

#[test]
fn origins_without_tls_announce_nothing() {
    let plain = Origin::of(&http::Uri::from_static("http://example.org")).expect("an origin");
    let mut cache = AltSvcCache::default();
    cache.on_announced(at(0), &plain, [r#"h3=":443""#].into_iter());
    assert!(cache.alternatives(at(1), &plain).is_empty());
}

#[test]
fn change_of_network_keeps_persistent_alternatives() {
    let mut cache = announced(r#"h3=":8001", h3=":2"; persist=1"#);
    cache.on_network_changed();
    let known = cache.alternatives(at(1), &origin());
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].port, 2);
}

#[test]
fn origins_and_alternatives_are_bounded() {
    let mut cache = AltSvcCache::default();
    for port in 1..=u16::try_from(MAX_ORIGINS + 10).expect("small") {
        let origin = Origin::https("many.example", port);
        let age = format!(r#"h3=":8001"; ma={}"#, 1000 + u32::from(port));
        cache.on_announced(at(0), &origin, [age.as_str()].into_iter());
    }
    assert_eq!(cache.origins.len(), MAX_ORIGINS);
    let first = Origin::https("many.example", 1);
    assert!(
        cache.alternatives(at(1), &first).is_empty(),
        "it expires first"
    );
    let many = vec![r#"h3=":8001""#; 20].join(",");
    assert_eq!(
        announced(&many).alternatives(at(1), &origin()).len(),
        MAX_ALTERNATIVES
    );
    assert!(parse(&vec![r#"h3=":8001""#; 100].join(",")).is_none());
}

#[test]
fn lines_of_curl_are_read() {
    let line = r#"h2 example.org 443 h3 shiny.example.org 8443 "20300317 17:46:45" 1 0"#;
    let (origin, alternative) = file::read(line).next().expect("a line");
    assert_eq!(origin, Origin::https("example.org", 443));
    assert_eq!(&*alternative.host, "shiny.example.org");
    assert_eq!(alternative.expires, at(5));
    assert!(alternative.persists);
    let comment = format!("# {line}\n\nh2 broken\n{}", line.replace("h3", "h2"));
    assert_eq!(file::read(&comment).count(), 0);
}

#[test]
fn written_alternatives_are_read_back() {
    let mut cache = announced(r#"h3=":443", h3="[2001:db8::1]:8443"; persist=1; ma=951868800"#);
    cache.on_announced(
        at(0),
        &Origin::https("::1", 4433),
        [r#"h3=":4433"; ma=7"#].into_iter(),
    );
    let text = file::write(at(0), &cache.origins);
    let mut read: HashMap<Origin, Vec<Alternative>> = HashMap::new();
    for (origin, alternative) in file::read(&text) {
        read.entry(origin).or_default().push(alternative);
    }
    assert_eq!(read, cache.origins, "{text}");
}

#[test]
fn ports_of_other_protocols_are_refused() {
    let cache = announced(r#"h3=":53", h3=":8443", h3="other.example:5060""#);
    let known = cache.alternatives(at(0), &origin());
    let ports: Vec<_> = known.iter().map(|known| known.port).collect();
    assert_eq!(ports, [8443]);
    // The origin itself uses this port, so the user has chosen it.
    let origin = Origin::https("example.org", 6000);
    let mut cache = AltSvcCache::default();
    cache.on_announced(at(0), &origin, [r#"h3=":6000""#].into_iter());
    assert_eq!(cache.alternatives(at(0), &origin).len(), 1);
}

#[test]
fn repeated_announcements_are_parsed_once_a_second() {
    let mut cache = announced(r#"h3=":443"; ma=60"#);
    let mut announce = |milliseconds, value: &str| {
        let now = at(0) + Duration::from_millis(milliseconds);
        let change = cache.on_announced(now, &origin(), [value].into_iter());
        let known = cache.alternatives(now, &origin());
        (change, known.first().map(|known| known.expires))
    };
    let value = r#"h3=":443"; ma=60"#;
    assert_eq!(announce(999, value), (Change::Renewed, Some(at(60))));
    assert_eq!(announce(1000, value), (Change::Renewed, Some(at(61))));
    // Another value counts at once.
    let other = r#"h3=":443"; ma=90"#;
    assert_eq!(announce(1000, other), (Change::Renewed, Some(at(91))));
    assert_eq!(announce(1000, "clear"), (Change::Withdrawn, None));
    assert_eq!(announce(1000, other), (Change::Announced, Some(at(91))));
}

#[test]
fn a_forgotten_alternative_may_be_announced_again_at_once() {
    let value = r#"h3=":443""#;
    let mut cache = announced(value);
    cache.forget(&origin());
    let change = cache.on_announced(at(0), &origin(), [value].into_iter());
    assert_eq!(change, Change::Announced);
}
