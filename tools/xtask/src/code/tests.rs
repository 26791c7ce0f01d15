use quote::ToTokens;

use super::*;

fn parse(source: &str) -> syn::File {
    syn::parse_file(source).unwrap()
}

fn lines(source: &str, sequence: &[&str]) -> Vec<usize> {
    lines_with(&words(parse(source).into_token_stream()), sequence)
}

/// Returns the code that is left without tests, with one space between tokens.
fn production(source: &str) -> String {
    let kept = without_tests(&parse(source));
    let texts: Vec<String> = words(kept.into_token_stream())
        .into_iter()
        .map(|word| word.text)
        .collect();
    texts.join(" ")
}

#[test]
fn comments_and_literals_are_no_words() {
    let source = "//! unsafe\n// unsafe\n/// unsafe\nfn f() { g(\"unsafe\", r#\"unsafe\"#) }\n\
                  /* unsafe */ unsafe fn h() {}";
    assert_eq!(lines(source, &["unsafe"]), [5]);
    assert_eq!(lines(source, &["#"]), Vec::<usize>::new());
}

#[test]
fn a_longer_identifier_is_another_word() {
    assert_eq!(
        lines("#![forbid(unsafe_code)]", &["unsafe"]),
        Vec::<usize>::new()
    );
    assert_eq!(
        lines("fn with_rustls() {}", &["rustls"]),
        Vec::<usize>::new()
    );
    assert_eq!(lines("use rustls::quic;", &["rustls", "::", "quic"]), [1]);
}

#[test]
fn words_inside_macros_are_found() {
    let source = "fn f() {\n    assert!(\n        a::b(),\n    );\n}";
    assert_eq!(lines(source, &["a", "::", "b", "("]), [3]);
}

#[test]
fn items_for_tests_are_left_out() {
    let source = "use a;\n#[cfg(test)] mod tests { fn f() { tokio() } }\n#[cfg(test)] mod t;\n\
                  #[cfg(test)] #[inline] fn g<B, C>(d: [u8; 2]) -> E { h }\n\
                  #[cfg(all(test, unix))] use u;\n#[cfg(not(test))] use v;";
    assert_eq!(
        production(source),
        "use a ; # [ cfg ( not ( test ) ) ] use v ;"
    );
}

#[test]
fn fields_variants_arms_and_statements_for_tests_are_left_out() {
    let source = "struct A { #[cfg(test)] a: B<C>, d: E, #[cfg(test)] pub(crate) f: G }\n\
                  enum V { A, #[cfg(test)] B }\n\
                  impl A { #[cfg(test)] fn t() {} fn u() {\n\
                  #[cfg(test)] let x = 1;\n#[cfg(test)] { y(); }\n#[cfg(test)] z();\n\
                  match h { #[cfg(test)] I::J(k) => l(m, n), p => A { #[cfg(test)] a: b, d: c } } } }";
    let kept = production(source);
    let expected = "struct A { d : E , } enum V { A , } impl A { fn u ( ) { match h { p => A { d \
                    : c } } } }";
    assert_eq!(
        kept.replace(", }", "}").replace("= >", "=>"),
        expected.replace(", }", "}")
    );
}

#[test]
fn modules_for_tests_are_found() {
    let source = "#[cfg(test)]\nmod a;\nmod b;\n#[cfg(test)]\nmod c { mod d; }\n\
                  #[cfg(test)] pub(crate) mod e;\n#[cfg(test)]\nuse mod_f::g;";
    assert_eq!(test_modules(&parse(source)), ["a", "e"]);
}
