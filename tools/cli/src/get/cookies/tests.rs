use courser::client::cookie_parts::{
    MAX_COOKIE, MAX_COOKIES, MAX_FIELD, MAX_LIFETIME, MAX_OF_DOMAIN, MAX_SENT,
};

use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

/// Returns the Cookie field for a URL after a response with these fields.
fn sent(from: &str, fields: &[&str], to: &str) -> String {
    let mut known = Jar::default();
    for field in fields {
        let _ = known.set(field.as_bytes(), &url(from), now());
    }
    shown(&known, to)
}

fn shown(known: &Jar, to: &str) -> String {
    let field = known.field(&url(to), now());
    String::from_utf8(field).expect("text")
}

fn refusal(from: &str, field: &str) -> String {
    Jar::default()
        .set(field.as_bytes(), &url(from), now())
        .expect_err(field)
}

const VERBOSITY: Verbosity = Verbosity {
    shows_details: false,
    shows_errors: false,
    shows_notes: false,
    shows_progress: false,
};

#[test]
fn domains_match_themselves_and_their_subdomains() {
    let table = [
        ("https://a.b.test/", "x=1", "https://a.b.test/", true),
        ("https://a.b.test/", "x=1", "https://b.test/", false),
        ("https://b.test/", "x=1", "https://a.b.test/", false),
        (
            "https://b.test/",
            "x=1; Domain=b.test",
            "https://a.b.test/",
            true,
        ),
        (
            "https://b.test/",
            "x=1; Domain=.B.test",
            "https://a.b.test/",
            true,
        ),
        (
            "https://a.b.test/",
            "x=1; Domain=b.test",
            "https://c.b.test/",
            true,
        ),
        (
            "https://a.b.test/",
            "x=1; Domain=b.test",
            "https://cb.test/",
            false,
        ),
        ("https://a.test/", "x=1", "https://a.test:8443/", true),
        (
            "https://127.0.0.1/",
            "x=1; Domain=127.0.0.1",
            "https://127.0.0.1/",
            true,
        ),
        (
            "https://127.0.0.1/",
            "x=1; Domain=0.0.1",
            "https://127.0.0.1/",
            false,
        ),
        ("https://[::1]/", "x=1", "https://[::1]/", true),
        (
            "https://localhost/",
            "x=1; Domain=localhost",
            "https://localhost/",
            true,
        ),
    ];
    for (from, field, to, is_sent) in table {
        let expected = if is_sent { "x=1" } else { "" };
        assert_eq!(
            sent(from, &[field], to),
            expected,
            "{field} of {from} to {to}"
        );
    }
}

#[test]
fn cookies_for_public_suffixes_are_refused() {
    for (from, domain) in [
        ("https://a.test/", "test"),
        ("https://a.co.uk/", "co.uk"),
        ("https://me.github.io/", "github.io"),
        ("https://a.test/", "b.test"),
        ("https://a.test/", "x.a.test"),
    ] {
        refusal(from, &format!("x=1; Domain={domain}"));
    }
    // A host that is a public suffix may have cookies for itself only.
    let field = ["x=1; Domain=github.io"];
    assert_eq!(
        sent("https://github.io/", &field, "https://github.io/"),
        "x=1"
    );
    assert_eq!(
        sent("https://github.io/", &field, "https://me.github.io/"),
        ""
    );
}

#[test]
fn paths_match_whole_segments() {
    let table = [
        ("/a/b", "x=1", "/a/c", true),
        ("/a/b", "x=1", "/a", true),
        ("/a/b", "x=1", "/", false),
        ("/", "x=1; Path=/a", "/a", true),
        ("/", "x=1; Path=/a", "/a/b", true),
        ("/", "x=1; Path=/a", "/ab", false),
        ("/", "x=1; Path=/a/", "/a", false),
        ("/q/r", "x=1; Path=nonsense", "/q/s", true),
    ];
    for (from, field, to, is_sent) in table {
        let expected = if is_sent { "x=1" } else { "" };
        let (from, to) = (format!("http://a.test{from}"), format!("http://a.test{to}"));
        assert_eq!(
            sent(&from, &[field], &to),
            expected,
            "{field} of {from} to {to}"
        );
    }
}

#[test]
fn longer_paths_come_first() {
    let fields = [
        "a=1; Path=/",
        "b=2; Path=/x/y",
        "c=3; Path=/x",
        "d=4; Path=/",
    ];
    let sent = sent("http://a.test/x/y", &fields, "http://a.test/x/y");
    assert_eq!(sent, "b=2; c=3; a=1; d=4");
}

#[test]
fn secure_cookies_stay_on_secure_connections() {
    let field = ["x=1; Secure"];
    assert_eq!(sent("https://a.test/", &field, "https://a.test/"), "x=1");
    assert_eq!(sent("https://a.test/", &field, "http://a.test/"), "");
    assert!(refusal("http://a.test/", field[0]).contains("secure"));
    // Attackers cannot be on the path to this machine.
    assert_eq!(
        sent("http://localhost/", &field, "http://localhost/"),
        "x=1"
    );
}

#[test]
fn insecure_cookies_do_not_hide_secure_ones() {
    for (field, is_kept) in [
        ("x=2", false),
        ("x=2; Path=/a/b", false),
        ("x=2; Domain=b.test", false),
        ("y=2", true),
    ] {
        let mut known = Jar::default();
        let secure = url("https://a.b.test/a");
        known
            .set(b"x=1; Secure; Path=/a", &secure, now())
            .expect("it is secure");
        let result = known.set(field.as_bytes(), &url("http://a.b.test/a/b"), now());
        assert_eq!(result.is_ok(), is_kept, "{field}: {result:?}");
        known
            .set(field.as_bytes(), &url("https://a.b.test/a/b"), now())
            .expect("secure as well");
    }
}

#[test]
fn prefixes_of_names_are_enforced() {
    let secure = "https://a.test/";
    for wrong in [
        "__Secure-x=1",
        "__secure-x=1",
        "__Host-x=1; Secure",
        "__Host-x=1; Path=/",
        "__Host-x=1; Secure; Path=/; Domain=a.test",
        "__Host-x=1; Secure; Path=/y",
    ] {
        refusal(secure, wrong);
    }
    for right in ["__Secure-x=1; Secure", "__Host-x=1; Secure; Path=/"] {
        assert!(!sent(secure, &[right], secure).is_empty(), "{right}");
    }
}

#[test]
fn cookies_expire() {
    let from = "http://a.test/";
    for (fields, expected) in [
        (["x=1", "x=; Max-Age=0"], ""),
        (["x=1", "x=2; Max-Age=-1"], ""),
        (["x=1", "x=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], ""),
        (
            [
                "x=1",
                "x=2; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            ],
            "x=2",
        ),
        (["x=1", "x=2; Expires=Fri, 31 Dec 2100 23:59:59 GMT"], "x=2"),
        (
            ["x=1; Max-Age=99999999999999999999", "y=2; Max-Age=0"],
            "x=1",
        ),
    ] {
        assert_eq!(sent(from, &fields, from), expected, "{fields:?}");
    }
}

#[test]
fn malformed_cookies_are_refused() {
    let from = "http://a.test/";
    let limit = format!("x={}", "v".repeat(MAX_COOKIE - 1));
    assert_eq!(sent(from, &[&limit], from), limit);
    assert!(refusal(from, &format!("{limit}v")).contains("4096"));
    for wrong in [
        "",
        "=",
        " ; Path=/",
        "x\u{1}=1",
        "x=a\u{7f}",
        "x=1; Path=/\n",
    ] {
        refusal(from, wrong);
    }
}

#[test]
fn nameless_cookies_tabs_and_any_bytes_are_kept() {
    let from = "http://a.test/";
    for (field, expected) in [
        ("x", "x"),
        ("=1", "1"),
        ("=a=b", "a=b"),
        (" a \t= \tb ; Path=/", "a=b"),
        ("x=a\tb", "x=a\tb"),
        ("x=a,b=c", "x=a,b=c"),
        ("x=\"q;r\"", "x=\"q"),
        ("x=1;;;Secure=no", ""),
    ] {
        assert_eq!(sent(from, &[field], from), expected, "{field}");
    }
    let mut known = Jar::default();
    known.set(b"x=\xff\xfe", &url(from), now()).expect("bytes");
    assert_eq!(known.field(&url(from), now()), b"x=\xff\xfe");
    let text = file::write(known.current(now()));
    let again: Vec<_> = file::read(&text, now()).collect();
    assert_eq!(again, known.current(now()).cloned().collect::<Vec<_>>());
}

#[test]
fn values_without_names_do_not_imitate_protected_names() {
    for wrong in ["__Secure-x", "=__host-x=1", "__HOST-x=1; Secure"] {
        refusal("https://a.test/", wrong);
    }
}

#[test]
fn long_attributes_are_ignored_and_lifetimes_are_capped() {
    let from = "https://a.test/x/y";
    let long = format!("v=1; Path=/{}", "p".repeat(1024));
    assert_eq!(sent(from, &[&long], "https://a.test/x/z"), "v=1");
    for attribute in [
        "Max-Age=99999999999999999999",
        "Expires=Fri, 31 Dec 2100 23:59:59 GMT",
    ] {
        let mut known = Jar::default();
        let field = format!("x=1; {attribute}");
        known
            .set(field.as_bytes(), &url(from), 1000)
            .expect("a cookie");
        let expires = known.current(1000).next().expect("kept").expires;
        assert_eq!(expires, Some(1000 + MAX_LIFETIME), "{attribute}");
    }
    for ignored in [
        "Max-Age=x",
        "Max-Age=1x",
        "Max-Age=",
        "Max-Age=-",
        "Expires=never",
    ] {
        let field = format!("x=1; {ignored}");
        assert_eq!(sent(from, &[&field], from), "x=1", "{ignored}");
    }
}

#[test]
fn last_attribute_counts() {
    let from = "http://b.a.test/x/y";
    for (field, to, is_sent) in [
        (
            "x=1; Domain=b.a.test; Domain=a.test",
            "http://a.test/x",
            true,
        ),
        ("x=1; Domain=a.test; Domain=", "http://a.test/x", true),
        ("x=1; Path=/z; Path=/x", "http://b.a.test/x", true),
        ("x=1; Path=/; Path=z", "http://b.a.test/", false),
        ("x=1; Max-Age=0; Max-Age=10", "http://b.a.test/x", true),
    ] {
        let expected = if is_sent { "x=1" } else { "" };
        assert_eq!(sent(from, &[field], to), expected, "{field}");
    }
}

/// Checks which cookies a request to each URL has after a response of `http://shop.a.test/cart/view`.
fn check(table: &[(&[&str], &str, &str)]) {
    for (fields, to, expected) in table {
        let to = match to.strip_prefix('/') {
            Some(path) => format!("http://shop.a.test/{path}"),
            None => (*to).to_owned(),
        };
        let sent = sent("http://shop.a.test/cart/view", fields, &to);
        assert_eq!(sent, *expected, "{fields:?} to {to}");
    }
}

/// draft-ietf-httpbis-rfc6265bis §5.6: names of attributes are compared without case, and whitespace around them counts for nothing.
/// Quotes have no meaning.
#[test]
fn attributes_are_found_by_their_names_alone() {
    check(&[
        // These are secure, and the connection is not.
        (&["n=v; sEcUrE"], "/cart/x", ""),
        (&["n=v; Secure="], "/cart/x", ""),
        (&["n=v; Secure=false"], "/cart/x", ""),
        (&["n=v; Secure = x"], "/cart/x", ""),
        (&["n=v;\tSecure\t;"], "/cart/x", ""),
        (&["n=v;Secure;other"], "/cart/x", ""),
        (&["n=v; other; Secure"], "/cart/x", ""),
        (&["n=v; other=\"a;b\"; Secure"], "/cart/x", ""),
        // These have attributes of other names.
        (&["n=v; \"Secure\""], "/cart/x", "n=v"),
        (&["n=v; Secure other"], "/cart/x", "n=v"),
        (&["n=v; Version=1"], "/cart/x", "n=v"),
        (&["n=v; other=\"a b"], "/cart/x", "n=v"),
        (&["n=v; x, m=w"], "/cart/x", "n=v"),
        (&["n=v; path x=/y"], "/cart/x", "n=v"),
        (&["n=v; ; ;=; ===,x,=; ,,,"], "/cart/x", "n=v"),
        // A comma ends no cookie, so that the lifetime is no number here.
        (&["n=v; Max-Age=0, m=w"], "/cart/x", "n=v"),
        (&["n=v; Max-Age=2.5"], "/cart/x", "n=v"),
        (&["n=v; MAX-AGE = 0"], "/cart/x", ""),
        (&["n=v; max-age=-20"], "/cart/x", ""),
        (&["n=v", "n=w; max-age=0", "m=w; max-age=0"], "/cart/x", ""),
        (&["$Version=1; n=v"], "/cart/x", "$Version=1"),
    ]);
}

/// draft-ietf-httpbis-rfc6265bis §5.6: the name ends at the first equals sign, and the pair at the first semicolon.
#[test]
fn names_and_values_are_any_bytes_between_delimiters() {
    for name in "$ ! @ # % ^ & * ( ) - _ + 1 \" $n !n \"n n\" {n} <n> n? ü".split(' ') {
        let field = format!("{name}=v");
        check(&[(&[&field], "/cart/x", &field)]);
    }
    check(&[
        (&["n m=v"], "/cart/x", "n m=v"),
        (&["n= v \t"], "/cart/x", "n=v"),
        (&["\t n\t=v"], "/cart/x", "n=v"),
        (&["n=\" v \" ;"], "/cart/x", "n=\" v \""),
        (&["n=\"a\"  \"b\" ;"], "/cart/x", "n=\"a\"  \"b\""),
        (&["n=\"a;b\""], "/cart/x", "n=\"a"),
        (&["n=a\"b"], "/cart/x", "n=a\"b"),
        (&["n=a\\\"b;c"], "/cart/x", "n=a\\\"b"),
        (&["n=== v"], "/cart/x", "n=== v"),
        (&["\"n=a\"=v"], "/cart/x", "\"n=a\"=v"),
        // The same name, with the first equals sign in mind.
        (&["\"n=a\"=v", "\"n=w"], "/cart/x", "\"n=w"),
        (&["n=ä; é"], "/cart/x", "n=ä"),
        (&["n="], "/cart/x", "n="),
        (&["n=v", "N=w"], "/cart/x", "n=v; N=w"),
        (&["z=v", "a=w"], "/cart/x", "z=v; a=w"),
        // Without a name there is one cookie for each domain and path.
        (&["n;m=v"], "/cart/x", "n"),
        (&["n", "m"], "/cart/x", "m"),
        (&["n", "=m"], "/cart/x", "m"),
        (&["n", "=m", "n=v"], "/cart/x", "m; n=v"),
        // These have neither a name nor a value, and change nothing.
        (&["n=v", "=", "m=w"], "/cart/x", "n=v; m=w"),
        (&["n", ""], "/cart/x", "n"),
        (&["n", "; m=v"], "/cart/x", "n"),
        (&["n", " \t"], "/cart/x", "n"),
    ]);
}

/// draft-ietf-httpbis-rfc6265bis §5.1.3, §5.6.3, §5.7.
#[test]
fn domains_are_names_above_the_host() {
    const SHOP: &str = "http://shop.a.test/cart/x";
    const SIBLING: &str = "http://other.a.test/cart/x";
    const CHILD: &str = "http://x.shop.a.test/cart/x";
    check(&[
        (&["n=v; domain=.shop.a.test"], CHILD, "n=v"),
        (&["n=v; domain=shop.A.test"], SHOP, "n=v"),
        (
            &["n=v; domain=shop.a.test"],
            "http://SHOP.a.TEST/cart/x",
            "n=v",
        ),
        (&["n=v; domain= \t.shop.a.test "], SHOP, "n=v"),
        (&["n=v; domain=shop.a.test"], SIBLING, ""),
        (&["n=v; domain=.a.test"], SIBLING, "n=v"),
        (&["n=v"], CHILD, ""),
        (&["n=v; domain=other.a.test"], SIBLING, ""),
        (&["n=v; domain=x.shop.a.test"], CHILD, ""),
        (&["n=v; domain=hop.a.test"], SHOP, ""),
        // No names.
        (&["n=v; domain=..shop.a.test"], SHOP, ""),
        (&["n=v; domain=shop..a.test"], SHOP, ""),
        (&["n=v; domain=. shop.a.test"], SHOP, ""),
        (&["n=v; domain=shop.a.test."], SHOP, ""),
        (&["n=v; domain=shop.a.test .x"], SHOP, ""),
        (&["n=v; domain=\"shop.a.test\""], SHOP, ""),
        (&["n=v; domain=shop.a.test:80"], SHOP, ""),
        (&["n=v; domain=.test"], SHOP, ""),
        (&["n=v; domain=.test."], SHOP, ""),
        // The last one counts, and an empty one is none.
        (&["n=v; domain=.a.test; domain=shop.a.test"], SIBLING, ""),
        (&["n=v; domain=shop.a.test; domain=.a.test"], SIBLING, "n=v"),
        (&["n=v; domain=shop.a.test; domain=b.test"], SHOP, ""),
        (&["n=v; domain=b.test; domain=shop.a.test"], SHOP, "n=v"),
        (&["n=v; domain="], SHOP, "n=v"),
        (&["n=v; domain=b.test; domain="], SHOP, ""),
        // Cookies of the domain and of the host are different ones.
        (
            &["n=v; domain=a.test", "n=w", "m=x; domain=shop.a.test"],
            "/cart/x",
            "n=v; n=w; m=x",
        ),
    ]);
}

/// draft-ietf-httpbis-rfc6265bis §5.1.4, §5.6.4.
#[test]
fn paths_are_compared_byte_by_byte() {
    check(&[
        (&["n=v; path=/q"], "/q?a", "n=v"),
        (&["n=v; path=/q/r"], "/q/r", "n=v"),
        (&["n=v; path=/q/r"], "/q", ""),
        (&["n=v; path=/q/r"], "/p/r", ""),
        (&["n=v; path=/q/r/"], "/q/r", ""),
        (&["n=v; path=/q/r/"], "/q/r/", "n=v"),
        (&["n=v; path=/q/"], "/q//r", "n=v"),
        (&["n=v; path=/q/"], "/qr", ""),
        (&["n=v; path=/Q"], "/q", ""),
        (&["n=v; path=/q?"], "/q?", ""),
        (&["n=v; path=/q#"], "/q", ""),
        (&["n=v; path=/%71"], "/q", ""),
        (&["n=v; path=/q;"], "/q", "n=v"),
        (&["n=v; path\t=\t/q\t"], "/q", "n=v"),
        // What does not begin with a slash stands for the folder of the URL.
        (&["n=v; path"], "/cart", "n=v"),
        (&["n=v; path="], "/", ""),
        (&["n=v; path=\"/q\""], "/cart/x", "n=v"),
        (&["n=v; path=/q; path="], "/cart/x", "n=v"),
        (&["n=v; path=; path=/q"], "/cart/x", ""),
        // The same name at different paths, the longest path first.
        (
            &[
                "n=1",
                "n=2; path=/cart/x",
                "n=3; path=/",
                "n=4; path=/y",
                "n=5; path=/cart/",
            ],
            "/cart/x",
            "n=2; n=5; n=1; n=3",
        ),
    ]);
}

/// draft-ietf-httpbis-rfc6265bis §5.1.1.
#[test]
fn dates_in_any_order_of_their_parts_expire() {
    for past in [
        "Tue, 6-Nov-01 08:49:37 GMT",
        "Tuesday, 06-Nov-2001 08:49:37 GMT",
        "Tue Nov  6 08:49:37 2001 GMT",
        "Tue, 6 Nov 8:49:7 2001",
        ", 6/Nov\\2001 08:49:37",
        "2001 november 6 08:49:37 GMT-0500 (EST)",
    ] {
        let field = format!("n=v; Expires={past}");
        check(&[(&[&field], "/cart/x", "")]);
    }
    for none in [
        "Tue, 06-Nov-2001 08: 49:37 GMT",
        "Tue, 06-Nov-2001",
        "Tue, 32-Nov-2001 08:49:37 GMT",
        "Tue, 06-Nov-1600 08:49:37 GMT",
        "Tue, 06-Nov-2001 24:00:00 GMT",
        "Tue, 06-Nxv-2001 08:49:37 GMT",
    ] {
        let field = format!("n=v; Expires={none}");
        check(&[(&[&field], "/cart/x", "n=v")]);
    }
}

#[test]
fn replaced_cookies_keep_their_place() {
    let from = "http://a.test/";
    assert_eq!(sent(from, &["a=1", "b=2", "a=3"], from), "a=3; b=2");
}

#[test]
fn oldest_cookies_make_room() {
    let mut known = Jar::default();
    let from = url("http://a.test/");
    for number in 0..=MAX_OF_DOMAIN {
        let field = format!("c{number}=1");
        known.set(field.as_bytes(), &from, now()).expect("a cookie");
    }
    let names =
        |known: &Jar| -> Vec<String> { known.current(now()).map(|it| it.shown_name()).collect() };
    let kept = names(&known);
    assert_eq!(kept.len(), MAX_OF_DOMAIN);
    assert!(!kept.contains(&"c0".to_owned()) && kept.contains(&"c1".to_owned()));
    known
        .set(b"c9=; Max-Age=0", &from, now())
        .expect("a cookie");
    known.set(b"new=1", &from, now()).expect("a cookie");
    let kept = names(&known);
    assert!(
        kept.contains(&"c1".to_owned()),
        "an expired cookie is removed first"
    );
    assert!(!kept.contains(&"c9".to_owned()));
    for host in 0..MAX_COOKIES {
        let other = url(&format!("http://h{host}.test/"));
        known.set(b"x=1", &other, now()).expect("a cookie");
    }
    assert_eq!(names(&known).len(), MAX_COOKIES);
}

#[test]
fn cookie_field_of_a_request_is_bounded() {
    let mut known = Jar::default();
    let from = url("http://a.test/");
    for number in 0..MAX_OF_DOMAIN {
        let field = format!("c{number}=1");
        known.set(field.as_bytes(), &from, now()).expect("a cookie");
    }
    assert_eq!(
        shown(&known, "http://a.test/").split("; ").count(),
        MAX_SENT
    );
    let large = url("http://b.test/");
    for number in 0..4 {
        let field = format!("c{number}={}", "v".repeat(3000));
        known
            .set(field.as_bytes(), &large, now())
            .expect("a cookie");
    }
    let field = shown(&known, "http://b.test/");
    assert_eq!(field.split("; ").count(), 2);
    assert!(field.len() <= MAX_FIELD);
}

#[test]
fn host_field_determines_the_host_of_cookies() {
    let mut headers = HeaderMap::new();
    let uri = Uri::from_static("http://127.0.0.1:8080/x");
    let host = |headers: &HeaderMap| url_of(&uri, headers).expect("a URL").to_string();
    assert_eq!(host(&headers), "http://127.0.0.1:8080/x");
    headers.insert(header::HOST, HeaderValue::from_static("a.test:99"));
    assert_eq!(host(&headers), "http://a.test:8080/x");
}

#[test]
fn files_are_read_line_by_line() {
    let text = "\
# Netscape HTTP Cookie File
.a.test\tTRUE\t/p\tFALSE\t4102444799\tsub\t1
#HttpOnly_b.test\tFALSE\t/\tTRUE\t0\tsession\ta b\"c=
c.test\tFALSE\t/\tFALSE\t4102444799\tempty
::1\tFALSE\t/\tFALSE\t0\tsix\t6
d.test\tFALSE\t/\tFALSE\t4102444799\ttoo\tmany\tparts
d.test\tFALSE\t/\tFALSE\tlater\twrong\ttime
d.test\tFALSE\t/\tFALSE\t1\told\t1
u@d.test\tFALSE\t/\tFALSE\t0\tuser\t1
d.test:443\tFALSE\t/\tFALSE\t0\tport\t1
d.test/x\tFALSE\t/\tFALSE\t0\tpath\t1
HTTP/1.1 200 OK\r
Set-Cookie: head=1; domain=e.test; path=/; Max-Age=100\r
set-cookie: nowhere=1\r
";
    let mut known = Jar::default();
    for cookie in file::read(text.as_bytes(), now()) {
        known.insert(cookie, now());
    }
    for (to, expected) in [
        ("http://x.a.test/p", "sub=1"),
        ("http://a.test/", ""),
        ("https://b.test/", "session=a b\"c="),
        ("http://b.test/", ""),
        ("https://x.b.test/", ""),
        ("http://c.test/", "empty="),
        ("http://[::1]/", "six=6"),
        ("http://d.test/", ""),
        ("http://x.e.test/", "head=1"),
    ] {
        assert_eq!(shown(&known, to), expected, "{to}");
    }
    let written = file::write(known.current(now()));
    let written = String::from_utf8(written).expect("text");
    for line in text.lines().skip(1).take(2) {
        assert!(written.lines().any(|it| it == line), "{line}: {written}");
    }
    assert!(written.contains("\n::1\tFALSE\t"), "{written}");
    assert_eq!(written.lines().count(), 4 + 5, "{written}");
}

#[test]
fn malformed_files_contain_no_cookies() {
    let mut known = Jar::default();
    for text in [
        "\t\t\t\t\t\t",
        "\u{e9}\t\u{e9}",
        "set-cooki\u{e9}:",
        "#HttpOnly_",
        "set-cookie:",
    ] {
        assert_eq!(file::read(text.as_bytes(), now()).count(), 0, "{text}");
    }
    let far = "a.test\tFALSE\t/\tFALSE\t9223372036854775807\tx\t1";
    for cookie in file::read(far.as_bytes(), now()) {
        known.insert(cookie, now());
    }
    let written = String::from_utf8(file::write(known.current(now()))).expect("text");
    assert!(written.contains("\t253402300799\tx\t1"), "{written}");
}

/// The limit is 50 of the 51 cookies.
#[test]
fn cookies_of_a_response_are_limited() {
    let cookies = Cookies {
        known: Some(Mutex::default()),
        jar: None,
        verbosity: VERBOSITY,
        details: Details::Hidden,
    };
    let mut response = HeaderMap::new();
    for number in 0..=MAX_SET_AT_ONCE {
        let field = format!("c{number}=v").parse().expect("a field");
        response.append(header::SET_COOKIE, field);
    }
    let uri = Uri::from_static("https://b.test/");
    cookies.on_response(&uri, &HeaderMap::new(), &response);
    let known = cookies
        .lock()
        .expect("the cookie engine is on")
        .current(now())
        .count();
    assert_eq!(known, MAX_SET_AT_ONCE);
}

#[test]
fn cookies_are_sensitive() {
    let plan = CookiePlan {
        files: vec![String::new()],
        ..CookiePlan::default()
    };
    let cookies = Cookies::load(&plan, VERBOSITY, Details::Hidden);
    let uri = Uri::from_static("https://a.test/");
    let mut response = HeaderMap::new();
    response.insert(header::SET_COOKIE, HeaderValue::from_static("kept=1"));
    let mut request = HeaderMap::new();
    cookies.on_response(&uri, &request, &response);
    let mut traced = HeaderMap::new();
    cookies.apply(&Method::TRACE, &uri, &mut traced);
    assert!(traced.is_empty());
    cookies.apply(&Method::GET, &uri, &mut request);
    assert_eq!(request[header::COOKIE], "kept=1");
    assert!(request[header::COOKIE].is_sensitive());
}
