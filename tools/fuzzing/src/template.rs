//! Templates of UDP and IP proxies, and structured fields.

use courser_http3::structured_fields::Parser;
use courser_masque::ip::{self, Scope};
use courser_masque::{Target, Template};

/// Reads the first line as a template and the second one as a path. What a path names must survive another expansion, and
/// the same text as a field must end.
pub fn template(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    if let Ok(template) = Template::path(first)
        && let Ok(target) = template.find(second)
    {
        assert_eq!(template.find(&template.expand(&target)), Ok(target));
    }
    if let Ok(template) = ip::Template::path(first)
        && let Ok(scope) = template.find(second)
    {
        assert_eq!(template.find(&template.expand(&scope)), Ok(scope));
    }
    for absolute in [
        Template::new(first).map(|it| it.expand(&a_target())),
        ip::Template::new(first).map(|it| it.expand(&Scope::default())),
    ]
    .into_iter()
    .flatten()
    {
        assert!(absolute.starts_with("https://"), "{absolute}");
        assert!(absolute.is_ascii() || !first.is_ascii(), "{absolute}");
    }
    field(bytes);
}

fn a_target() -> Target {
    "[2001:db8::1]:443".parse().expect("a target")
}

/// A field has at most a member for each two bytes, and its strings are shorter than it.
fn field(bytes: &[u8]) {
    let mut parser = Parser::new(bytes);
    let mut members = 0;
    while let Some(Some((key, _))) = parser.member() {
        assert!(!key.is_empty());
        members += 1;
    }
    assert!(2 * members <= bytes.len() + 1);
    if let Some(strings) = Parser::new(bytes).list_of_strings() {
        let len: usize = strings.iter().map(|it| it.len() + 2).sum();
        assert!(len <= bytes.len());
    }
    // It need not be one.
    let _ = Parser::new(bytes).item_string();
}
