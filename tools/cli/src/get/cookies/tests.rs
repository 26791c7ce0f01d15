use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

/// Returns the Cookie field for a URL after a response with these fields.
fn sent(from: &str, fields: &[&str], to: &str) -> String {
    let mut known = Known::default();
    for field in fields {
        let _ = known.set(field.as_bytes(), &url(from));
    }
    known.field(&url(to))
}

fn refusal(from: &str, field: &str) -> String {
    Known::default()
        .set(field.as_bytes(), &url(from))
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
        let mut known = Known::default();
        let secure = url("https://a.b.test/a");
        known
            .set(b"x=1; Secure; Path=/a", &secure)
            .expect("it is secure");
        let result = known.set(field.as_bytes(), &url("http://a.b.test/a/b"));
        assert_eq!(result.is_ok(), is_kept, "{field}: {result:?}");
        known
            .set(field.as_bytes(), &url("https://a.b.test/a/b"))
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
    for wrong in ["", "x", "=1", "x=a\tb", "x\u{1}=1", "x=1; Path=/\t/y"] {
        refusal(from, wrong);
    }
    let not_text = Known::default().set(b"x=\xff", &url(from));
    assert!(not_text.is_err());
}

#[test]
fn oldest_cookies_make_room() {
    let mut known = Known::default();
    let from = url("http://a.test/");
    for number in 0..=MAX_OF_DOMAIN {
        let field = format!("c{number}=1");
        known.set(field.as_bytes(), &from).expect("a cookie");
    }
    assert_eq!(known.0.iter_any().count(), MAX_OF_DOMAIN);
    assert!(!known.0.contains("a.test", "/", "c0"));
    assert!(known.0.contains("a.test", "/", "c1"));
    known.set(b"c9=; Max-Age=0", &from).expect("a cookie");
    known.set(b"new=1", &from).expect("a cookie");
    assert!(
        known.0.contains("a.test", "/", "c1"),
        "an expired cookie is removed first"
    );
    assert!(!known.0.contains_any("a.test", "/", "c9"));
    for host in 0..MAX_COOKIES {
        let other = url(&format!("http://h{host}.test/"));
        known.set(b"x=1", &other).expect("a cookie");
    }
    assert_eq!(known.0.iter_any().count(), MAX_COOKIES);
}

#[test]
fn cookie_field_of_a_request_is_bounded() {
    let mut known = Known::default();
    let from = url("http://a.test/");
    for number in 0..MAX_OF_DOMAIN {
        let field = format!("c{number}=1");
        known.set(field.as_bytes(), &from).expect("a cookie");
    }
    assert_eq!(known.field(&from).split("; ").count(), MAX_SENT);
    let large = url("http://b.test/");
    for number in 0..4 {
        let field = format!("c{number}={}", "v".repeat(3000));
        known.set(field.as_bytes(), &large).expect("a cookie");
    }
    let field = known.field(&large);
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
    let mut known = Known::default();
    for (cookie, url) in file::read(text) {
        let _ = known.insert(&cookie, &url);
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
        assert_eq!(known.field(&url(to)), expected, "{to}");
    }
    let written = file::write(known.0.iter_unexpired());
    for line in text.lines().skip(1).take(2) {
        assert!(written.lines().any(|it| it == line), "{line}: {written}");
    }
    assert!(written.contains("\n::1\tFALSE\t"), "{written}");
    assert_eq!(written.lines().count(), 4 + 5, "{written}");
}

#[test]
fn malformed_files_contain_no_cookies() {
    let mut known = Known::default();
    for text in [
        "\t\t\t\t\t\t",
        "\u{e9}\t\u{e9}",
        "set-cooki\u{e9}:",
        "#HttpOnly_",
        "set-cookie:",
    ] {
        assert_eq!(file::read(text).count(), 0, "{text}");
    }
    let far = "a.test\tFALSE\t/\tFALSE\t9223372036854775807\tx\t1";
    for (cookie, url) in file::read(far) {
        known.insert(&cookie, &url).expect("a distant date");
    }
    assert!(file::write(known.0.iter_unexpired()).contains("\t253402300799\tx\t1"));
}

/// The limit is 50 of the 51 cookies.
#[test]
fn cookies_of_a_response_are_limited() {
    let cookies = Cookies {
        known: Some(Mutex::default()),
        jar: None,
        verbosity: VERBOSITY,
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
        .0
        .iter_unexpired()
        .count();
    assert_eq!(known, MAX_SET_AT_ONCE);
}

#[test]
fn cookies_are_sensitive() {
    let plan = CookiePlan {
        files: vec![String::new()],
        ..CookiePlan::default()
    };
    let cookies = Cookies::load(&plan, VERBOSITY);
    let uri = Uri::from_static("https://a.test/");
    let mut response = HeaderMap::new();
    response.insert(header::SET_COOKIE, HeaderValue::from_static("kept=1"));
    let mut request = HeaderMap::new();
    cookies.on_response(&uri, &request, &response);
    cookies.apply(&uri, &mut request);
    assert_eq!(request[header::COOKIE], "kept=1");
    assert!(request[header::COOKIE].is_sensitive());
}
