//! Reads content types in the format of `mime.types`.

use std::path::Path;

use courser::files::Builder;
use http::HeaderValue;

use crate::error::Failure;

/// Adds the types in this file to the settings.
pub(super) fn add(builder: Builder, path: &Path) -> Result<Builder, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::new(format!("cannot use --mime {}: {why}", path.display()))
    };
    let text = std::fs::read(path).map_err(|error| wrong(&error))?;
    let text = std::str::from_utf8(&text).map_err(|_| wrong(&"it is not UTF-8 text"))?;
    let types = parse(text).map_err(|error| wrong(&error))?;
    let add = |builder: Builder, one: SuffixType<'_>| builder.content_type(one.suffix, one.kind);
    Ok(types.into_iter().fold(builder, add))
}

/// The content type of a suffix.
#[derive(Clone, PartialEq, Eq, Debug)]
struct SuffixType<'a> {
    suffix: &'a str,
    kind: HeaderValue,
}

/// Parses lines with a type and the suffixes of its files. `#` begins a comment, and lines with a type
/// alone are skipped, of which the file of Debian has many.
fn parse(text: &str) -> Result<Vec<SuffixType<'_>>, String> {
    let mut types = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let kind = content_type(name).ok_or_else(|| {
            format!(
                "line {number}: {name:?} is not a media type; a line is TYPE/SUBTYPE SUFFIX..., \
                 as in: video/mp2t ts m2ts"
            )
        })?;
        for suffix in words {
            if !is_suffix(suffix) {
                return Err(format!(
                    "line {number}: {suffix:?} is not a suffix of file names; write it without a dot \
                     before it, and with spaces between suffixes, as in: video/mp2t ts m2ts"
                ));
            }
            let kind = kind.clone();
            types.push(SuffixType { suffix, kind });
        }
    }
    Ok(types)
}

/// Returns the value of `Content-Type` for a media type with optional parameters. Text is declared as
/// UTF-8 unless it has parameters, like the types that are built in.
fn content_type(name: &str) -> Option<HeaderValue> {
    let (essence, parameters) = match name.split_once(';') {
        Some((essence, parameters)) => (essence, Some(parameters)),
        None => (name, None),
    };
    let (kind, subtype) = essence.split_once('/')?;
    let is_parameter = |text: &str| {
        text.split_once('=')
            .is_some_and(|(name, value)| is_token(name) && is_token(value.trim_matches('"')))
    };
    let are_parameters = |text: &str| text.split(';').all(is_parameter);
    if !is_token(kind) || !is_token(subtype) || !parameters.is_none_or(are_parameters) {
        return None;
    }
    let is_text = kind.eq_ignore_ascii_case("text") && parameters.is_none();
    let charset = if is_text { "; charset=utf-8" } else { "" };
    HeaderValue::try_from(format!("{name}{charset}")).ok()
}

/// Returns true for a token (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token)
}

fn is_suffix(text: &str) -> bool {
    // The file of Debian has suffixes such as cwl.json.
    !text.starts_with('.') && !text.contains(['/', '\\', ';', ',', '{', '}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(&str, String)> {
        let types = parse(text).expect("valid");
        let pairs = types.iter().map(|one| {
            let kind = one.kind.to_str().expect("text").to_owned();
            (one.suffix, kind)
        });
        pairs.collect()
    }

    #[test]
    fn types_are_read_as_in_mime_types() {
        let text = "# comment\n\nvideo/mp2t\tts m2ts # segments\r\ntext/x-typescript mts\n\
                    application/activemessage\ntext/plain;charset=iso-8859-1 old\n";
        let expected = [
            ("ts", "video/mp2t"),
            ("m2ts", "video/mp2t"),
            ("mts", "text/x-typescript; charset=utf-8"),
            ("old", "text/plain;charset=iso-8859-1"),
        ];
        assert_eq!(
            read(text),
            expected.map(|(suffix, kind)| (suffix, kind.to_owned()))
        );
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        for (text, expected) in [
            (
                "a/b c\nhtml text/html\n",
                "line 2: \"html\" is not a media type",
            ),
            ("types {\n", "line 1: \"types\" is not a media type"),
            ("text/html html;\n", "line 1: \"html;\" is not a suffix"),
            ("text/html .html\n", "line 1: \".html\" is not a suffix"),
            (
                "text/html;charset html\n",
                "line 1: \"text/html;charset\" is not a media type",
            ),
            ("text/ html\n", "line 1: \"text/\" is not a media type"),
            ("a/b/c html\n", "line 1: \"a/b/c\" is not a media type"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(expected), "{error}");
        }
    }

    /// The file of Debian's package media-types, where it is installed.
    #[test]
    fn file_of_the_system_is_read() {
        let Ok(text) = std::fs::read_to_string("/etc/mime.types") else {
            return;
        };
        let types = read(&text);
        assert!(types.len() > 500, "{}", types.len());
        assert!(types.contains(&("png", "image/png".to_owned())));
    }
}
