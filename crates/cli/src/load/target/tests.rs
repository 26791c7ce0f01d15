use super::*;

#[test]
fn what_is_no_url_says_why() {
    for (text, wanted) in [
        ("localhost:4433", "https://"),
        ("/path", "'https://' is missing"),
        ("ftp://x/", "neither http nor https"),
        ("https://a@x/", "--header"),
        ("https://", ""),
        ("not a url", ""),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(wanted), "{text}: {error}");
        assert!(error.contains("is not a valid URL"), "{text}: {error}");
    }
}

#[test]
fn fragments_stay_here() {
    assert_eq!(
        parse("https://x/a?b#c").expect("a URL").to_string(),
        "https://x/a?b"
    );
}

#[test]
fn connect_to_is_read_as_both_tools_write_it() {
    let read = |text: &str| connect_to(text, "example.org", 443).expect(text);
    assert_eq!(read("127.0.0.1:8443"), ("127.0.0.1".to_owned(), 8443));
    assert_eq!(read("127.0.0.1"), ("127.0.0.1".to_owned(), 443));
    assert_eq!(read("[::1]"), ("::1".to_owned(), 443));
    assert_eq!(read("[::1]:1"), ("::1".to_owned(), 1));
    assert_eq!(read("::1"), ("::1".to_owned(), 443));
    assert_eq!(
        read("example.org:443:localhost:5000"),
        ("localhost".to_owned(), 5000)
    );
    assert!(connect_to("x:y", "example.org", 443).is_err());
}
