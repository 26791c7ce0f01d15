use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn target(text: &str) -> Target {
    text.parse().expect(text)
}

/// RFC 9298 §2 and §3.
#[test]
fn templates_expand_to_the_examples_of_the_rfc() {
    let v6 = target("[2001:db8::42]:443");
    for (template, host, expected) in [
        (
            "https://example.org/.well-known/masque/udp/{target_host}/{target_port}/",
            target("192.0.2.6:443"),
            "https://example.org/.well-known/masque/udp/192.0.2.6/443/",
        ),
        (
            "https://proxy.example.org:4443/masque?h={target_host}&p={target_port}",
            v6.clone(),
            "https://proxy.example.org:4443/masque?h=2001%3Adb8%3A%3A42&p=443",
        ),
        (
            "https://proxy.example.org:4443/masque{?target_host,target_port}",
            v6.clone(),
            "https://proxy.example.org:4443/masque?target_host=2001%3Adb8%3A%3A42&target_port=443",
        ),
        (
            "https://example.org/a?b=c{&target_port,other,target_host}",
            v6.clone(),
            "https://example.org/a?b=c&target_port=443&target_host=2001%3Adb8%3A%3A42",
        ),
        (
            "https://example.org/{target_host,other,target_port}{other2}",
            v6,
            "https://example.org/2001%3Adb8%3A%3A42,443",
        ),
    ] {
        let expanded = Template::new(template).expect(template).expand(&host);
        assert_eq!(expanded, expected);
    }
    let default = Template::of_proxy("[2001:db8::1]:4433").unwrap();
    let expanded = default.expand(&target("example.org:53"));
    assert_eq!(
        expanded,
        "https://[2001:db8::1]:4433/.well-known/masque/udp/example.org/53/"
    );
}

/// MQ-udp-001, MQ-udp-002.
#[test]
fn other_templates_are_refused() {
    for template in [
        "",
        "/udp/{target_host}/{target_port}/",
        "https:///{target_host}/{target_port}/",
        "http://example.org/{target_host}/{target_port}/",
        "https://example.org{target_host}/{target_port}/",
        "https://example.org{?target_host,target_port}",
        "https://example.org?h={target_host}&p={target_port}",
        "https://{target_host}.example.org/{target_port}",
        "https://user@example.org/{target_host}/{target_port}",
        "https://example.org:65536/{target_host}/{target_port}",
        "https://example.org:70000/{target_host}/{target_port}",
        "https://example.org:0/{target_host}/{target_port}",
        "https://example.org:+443/{target_host}/{target_port}",
        "https://[2001:db8::1]:99999/{target_host}/{target_port}",
        "https://example.org/{target_host}/",
        "https://example.org/{target_port}/",
        "https://example.org/{target_host}/{target_port}/{target_port}",
        "https://example.org/{+target_host}/{target_port}",
        "https://example.org/{#target_host,target_port}",
        "https://example.org/{.target_host,target_port}",
        "https://example.org{/target_host,target_port}",
        "https://example.org/{;target_host,target_port}",
        "https://example.org/{target_host:3}/{target_port}",
        "https://example.org/{target_host*}/{target_port}",
        "https://example.org/{target_host}/{target_port}{}",
        "https://example.org/{target_host}/{target_port",
        "https://example.org/target_host}/{target_port}",
        "https://example.org/{target_host}/{target_port}#a",
        "https://example.org/ü/{target_host}/{target_port}",
        "https://example.org/ /{target_host}/{target_port}",
        "https://exa mple.org/{target_host}/{target_port}",
        "https://exam[ple.org/{target_host}/{target_port}",
    ] {
        assert!(Template::new(template).is_err(), "{template}");
    }
    let long = format!(
        "https://example.org/{}/{{target_host}}/{{target_port}}",
        "a".repeat(5000)
    );
    assert!(matches!(
        Template::new(&long),
        Err(InvalidTemplate::TooLong(_))
    ));
}

#[test]
fn paths_whose_values_cannot_be_told_apart_are_refused() {
    for path in [
        "/{target_host}{target_port}",
        "/{target_host}-{target_port}",
        "/{target_host}a/{target_port}",
        "/{target_host}%2F{target_port}",
        "/{target_host}/{target_port}/{other}",
    ] {
        assert!(Template::path(path).is_err(), "{path}");
    }
}

/// Attack A360: one spelling of a path is served, and values are decoded once and judged as a whole.
#[test]
fn percent_encoding_hides_neither_paths_nor_targets() {
    let template = Template::path(Template::WELL_KNOWN).unwrap();
    let base = "/.well-known/masque/udp";
    for path in [
        "",
        "/",
        "/.well-known/masque/udp/",
        "/.well-known/masque/udp/a.example/443",
        "/.well-known/masque/udp/a.example/443/x",
        "/.well-known/masque/udp/a.example/443/?q",
        "/.well-known/masque/udp/a.example/443//",
        "/.well-known/masque/udp//a.example/443/",
        "/.well-known/masque/../masque/udp/a.example/443/",
        "/.well-known/masque/./udp/a.example/443/",
        "/%2Ewell-known/masque/udp/a.example/443/",
        "/.well-known%2Fmasque/udp/a.example/443/",
        "/.WELL-KNOWN/masque/udp/a.example/443/",
        "/.well-known/masque/udp/a/b.example/443/",
    ] {
        assert_eq!(template.find(path), Err(Mismatch::NotThis), "{path}");
    }
    for values in [
        "a.example%2F443/443",
        "a.example%2f..%2f/443",
        "a.example%00/443",
        "a.example%0d%0a/443",
        "a.example%/443",
        "a.example%4/443",
        "a.example%zz/443",
        "a.example%2",
        "%61%2e%2561/443",
        "..%2F..%2F/443",
        "../443",
        "./443",
        "%2e%2e/443",
        "/443",
        "a.example/",
        "a.example/%34%34%33%30%30%30",
        "a.example/0",
        "a.example/65536",
        "a.example/-1",
        "2001:db8::1/443",
        "[2001%3Adb8%3A%3A1]/443",
        "%5B2001%3Adb8%3A%3A1%5D/443",
        "fe80%3A%3A1%25eth0/443",
        "127.1/443",
        "%32130706433/443",
        "user%40a.example/443",
        "a.example%3A80/443",
        "%EF%BC%91.example/443",
        "%ff%fe/443",
        "a b/443",
        "a+b/443",
    ] {
        let path = format!("{base}/{values}/");
        let found = template.find(&path);
        assert!(found.is_err(), "{path}: {found:?}");
    }
    // The same characters, encoded without need (RFC 3986 §2.3).
    let found = template.find("/.well-known/masque/udp/%61.example/%34%34%33/");
    assert_eq!(found, Ok(target("a.example:443")));
    assert_eq!(
        template.find("/.well-known/masque/udp/2001%3adb8%3A%3A1/443/"),
        Ok(target("[2001:db8::1]:443"))
    );
}

#[test]
fn queries_need_their_parameters_once_and_in_order() {
    let template = Template::path("/masque{?target_host,target_port}").unwrap();
    assert!(
        template
            .find("/masque?target_host=a.example&target_port=443")
            .is_ok()
    );
    for path in [
        "/masque",
        "/masque?target_port=443&target_host=a.example",
        "/masque?target_host=a.example",
        "/masque?target_host=a.example&target_port=443&target_port=80",
        "/masque?target_host=a.example&target_host=b.example&target_port=443",
        "/masque?target_host=a.example;target_port=443",
        "/masque?target_hos%74=a.example&target_port=443",
    ] {
        assert_eq!(template.find(path), Err(Mismatch::NotThis), "{path}");
    }
}

fn targets() -> impl Strategy<Value = Target> {
    let host = prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from(bits).to_string()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from(bits).to_string()),
        "[a-zA-Z_-][a-zA-Z0-9_-]{0,20}(\\.[a-zA-Z_-][a-zA-Z0-9_-]{0,20}){0,4}\\.?",
    ];
    (host, 1..=65_535_u16)
        .prop_map(|(host, port)| Target::new(&host, &port.to_string()).expect("valid"))
}

fn paths() -> impl Strategy<Value = Template> {
    let texts = [
        Template::WELL_KNOWN,
        "/masque{?target_host,target_port}",
        "/a?b=c{&target_port,target_host}",
        "/{target_host,target_port}/",
        "/x?h={target_host}&p={target_port}",
        "/{target_port}/{target_host}",
    ];
    proptest::sample::select(texts.to_vec()).prop_map(|text| Template::path(text).expect("valid"))
}

proptest! {
    /// A proxy finds the target that a client has expanded, and the URI is one.
    #[test]
    fn targets_survive_expansion(target in targets(), template in paths()) {
        let path = template.expand(&target);
        prop_assert!(path.parse::<http::Uri>().is_ok());
        prop_assert_eq!(template.find(&path), Ok(target));
    }

    /// Whatever a path has, its target expands to a path with the same target.
    #[test]
    fn found_targets_are_valid(
        host in "[a-z0-9.%/?&=:;,\\[\\]-]{0,30}",
        port in "[0-9%+-]{0,6}",
        template in paths(),
    ) {
        let path = template.expand(&"HOST:1".parse().expect("valid")).replace("HOST", &host).replace('1', &port);
        if let Ok(target) = template.find(&path) {
            prop_assert_eq!(template.find(&template.expand(&target)), Ok(target));
        }
    }

    /// No text makes a template panic.
    #[test]
    fn any_text_is_a_template_or_an_error(text in "https://a/[{}a-z_,?&/+#*:.]{0,60}") {
        if let Ok(template) = Template::new(&text) {
            prop_assert!(template.expand(&"192.0.2.1:1".parse().expect("valid")).contains("192.0.2.1"));
        }
    }
}
