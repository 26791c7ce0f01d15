use clap::Parser as _;

use super::*;
use crate::args::{Arguments as All, Command};

#[test]
fn malformed_url_is_refused_with_a_reason() {
    for (text, expected) in [
        ("localhost:4433", "https://"),
        ("/path", "'https://' is missing"),
        ("ftp://x/", "neither http nor https"),
        ("https://a@x/", "--header"),
        ("https://", ""),
        ("not a url", ""),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(error.contains("is not a valid URL"), "{text}: {error}");
    }
}

#[test]
fn zones_of_urls_are_used_to_connect_but_not_requested() {
    let flags = |urls: &[&str]| {
        let all = [&["courser", "load"], urls].concat();
        match All::try_parse_from(all).expect("URLs").command {
            Some(Command::Load(arguments)) => arguments.flags,
            _ => unreachable!("the command is load"),
        }
    };
    let urls = ["https://[fe80::1%257]:1/a", "https://[fe80::1%257]:1/b"];
    let (target, urls) = read(&flags(&urls), None).expect("a server");
    assert_eq!(
        target.addresses,
        ["[fe80::1%7]:1".parse().expect("an address")]
    );
    assert_eq!(target.server_name, "fe80::1");
    assert_eq!(urls, ["https://[fe80::1]:1/a", "https://[fe80::1]:1/b"]);
    for other in ["https://[fe80::1%258]:1/", "https://[fe80::1]:1/"] {
        let error = read(&flags(&["https://[fe80::1%257]:1/", other]), None);
        let error = error.expect_err("two zones").to_string();
        assert!(error.contains("different zones"), "{error}");
    }
}

#[test]
fn fragments_are_not_sent() {
    assert_eq!(
        parse("https://x/a?b#c").expect("a URL").to_string(),
        "https://x/a?b"
    );
}
