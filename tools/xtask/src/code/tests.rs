use super::*;

#[test]
fn comments_are_blanked() {
    let code = only_code("a // unsafe\n/* unsafe /* nested */ unsafe */ b\n//! unsafe");
    assert_eq!(lines_with(&code, "unsafe"), Vec::<usize>::new());
    assert_eq!(lines_with(&code, "b"), [2]);
}

#[test]
fn strings_are_blanked() {
    let code = only_code(r##"x("unsafe \" unsafe"); y(r#"unsafe " unsafe"#); z(br"unsafe")"##);
    assert_eq!(lines_with(&code, "unsafe"), Vec::<usize>::new());
    assert_eq!(lines_with(&code, "z"), [1]);
}

#[test]
fn a_quote_character_opens_no_string() {
    let code = only_code("f('\"'); unsafe {} g('\\''); h('\\\\');\nunsafe {}");
    assert_eq!(lines_with(&code, "unsafe"), [1, 2]);
    assert_eq!(lines_with(&code, "h"), [1]);
}

#[test]
fn a_lifetime_opens_no_character() {
    let code = only_code("fn f<'a>(x: &'a str) { unsafe {} }");
    assert_eq!(lines_with(&code, "unsafe"), [1]);
}

#[test]
fn a_longer_identifier_is_another_word() {
    assert_eq!(
        lines_with("#![forbid(unsafe_code)]", "unsafe"),
        Vec::<usize>::new()
    );
    assert_eq!(
        lines_with("let with_rustls = 1;", "rustls"),
        Vec::<usize>::new()
    );
    assert_eq!(lines_with("use rustls::quic;", "rustls"), [1]);
}

#[test]
fn lines_keep_their_numbers() {
    let code = only_code("/* one\ntwo */\n\"three\nfour\"\nunsafe");
    assert_eq!(lines_with(&code, "unsafe"), [5]);
}

#[test]
fn test_items_are_blanked() {
    let code = "a\n#[cfg(test)]\nmod tests {\n fn f() { tokio }\n}\nb\n#[cfg(test)]\nmod t;\nc";
    let kept = without_tests(code);
    assert_eq!(lines_with(&kept, "tokio"), Vec::<usize>::new());
    assert_eq!(lines_with(&kept, "b"), [6]);
    assert_eq!(lines_with(&kept, "c"), [9]);
}

#[test]
fn unclosed_literals_end_with_the_text() {
    for source in ["\"open", "r#\"open", "/* open", "'\\", "\"\\", "r", "b"] {
        assert_eq!(
            only_code(source).chars().count(),
            source.chars().count(),
            "{source}"
        );
    }
}

#[test]
fn modules_for_tests_are_found() {
    let code = "#[cfg(test)]\nmod a;\nmod b;\n#[cfg(test)]\nmod c { mod d; }\n\
                #[cfg(test)] pub(crate) mod e;\n#[cfg(test)]\nuse mod_f::g;";
    assert_eq!(test_modules(code), ["a", "e"]);
}

#[test]
fn fields_and_arms_for_tests_end_with_their_comma() {
    let code = "struct A { #[cfg(test)] a: B<C>, d: E, #[cfg(test)] pub(crate) f: G }\n\
                match h { #[cfg(test)] I::J(k) => l(m, n), #[cfg(test)] o => {} p => q }";
    let kept = without_tests(code);
    let words: Vec<&str> = kept.split_whitespace().collect();
    assert_eq!(
        words.join(" "),
        "struct A { d: E, } match h { p => q }",
        "{kept}"
    );
}

#[test]
fn functions_for_tests_end_with_their_braces() {
    let code = "#[cfg(test)]\n#[inline]\npub(crate) fn a<B, C>(d: [u8; 2]) -> E { f; { g } } h";
    assert_eq!(without_tests(code).trim(), "h");
}

#[test]
fn further_conditions_may_limit_tests() {
    let code = "#[cfg(all(test, unix))]\nmod tests { a }\n#[cfg(not(test))]\nb";
    let kept = without_tests(code);
    assert_eq!(lines_with(&kept, "a"), Vec::<usize>::new());
    assert_eq!(lines_with(&kept, "b"), [4]);
}
