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
