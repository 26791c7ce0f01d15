use super::*;

#[test]
fn markup_becomes_entities() {
    assert_eq!(
        escape("<script>alert(\"a\" & 'b')</script>"),
        "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;"
    );
}

#[test]
fn characters_that_xml_forbids_are_replaced() {
    assert_eq!(
        escape("a\0b\u{1b}[31m\u{ffff}"),
        "a\u{fffd}b\u{fffd}[31m\u{fffd}"
    );
    assert_eq!(escape("a\nb\tc"), "a b c");
}

#[test]
fn direction_marks_are_replaced() {
    assert_eq!(escape("evil\u{202e}gnp"), "evil\u{fffd}gnp");
    assert_eq!(escape("مرحبا"), "مرحبا");
}

#[test]
fn long_text_is_cut_at_characters() {
    assert_eq!(shorten("äöü", 3), "äöü");
    assert_eq!(shorten("äöüß", 3), "äö…");
}

#[test]
fn fitted_text_is_no_wider_than_its_limit() {
    let long = "congestion window of the first of many flows";
    let cut = fit(long, 12.0, 100.0);
    assert!(text_width(&cut, 12.0) <= 100.0, "{cut}");
    assert!(cut.ends_with('…') && cut.chars().count() > 8, "{cut}");
    assert_eq!(fit("short", 12.0, 100.0), "short");
}
