//! Reads the content of requests that the flags specify.

use std::path::Path;

use super::args::RequestArguments;
use super::content::{Content, read, unreadable};
use super::content_flags::{ContentFlag, ContentFlags, ContentKind};
use super::exit::{FAILED_INIT, Failed};
use super::form;
use crate::transfer::percent_encode;

/// The content of all requests, which is read once, because standard input cannot be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) content: Content,
    /// The query that --get appends to URLs.
    pub(crate) query: Option<String>,
}

impl Prepared {
    /// Reads the content that the flags specify.
    pub(crate) fn of(request: &RequestArguments) -> Result<Self, Failed> {
        let mut query = Vec::new();
        for data in &request.url_query {
            query.push(match data.strip_prefix('+') {
                Some(encoded) => encoded.to_owned(),
                None => url_encoded(data)?,
            });
        }
        let content = match request.get {
            false => content(request)?,
            true => {
                let data = data(&request.content)?;
                query.extend(data.map(|data| String::from_utf8_lossy(&data).into_owned()));
                Content::None
            }
        };
        Ok(Self {
            content,
            query: (!query.is_empty()).then(|| query.join("&")),
        })
    }
}

fn content(request: &RequestArguments) -> Result<Content, Failed> {
    let flags = &request.content;
    let has_data = flags.data().next().is_some();
    let kinds = [
        ("--upload-file (PUT)", !request.upload_file.is_empty()),
        ("--form (POST)", flags.has_form()),
        ("--data (POST)", has_data),
        ("--head (HEAD)", request.head),
    ];
    let kinds: Vec<_> = kinds.iter().filter(|(_, is_set)| *is_set).collect();
    if let [(first, _), (second, _), ..] = *kinds {
        let text = format!(
            "{first} and {second} are different requests: use one of them, or --get to send the data \
             in the query"
        );
        return Err(Failed::new(FAILED_INIT, text));
    }
    if flags.has_form() {
        return form::content(flags, request.form_escape);
    }
    let Some(data) = data(flags)? else {
        return Ok(Content::None);
    };
    let kind = match flags.has_json() {
        true => "application/json",
        false => "application/x-www-form-urlencoded",
    };
    Ok(Content::Bytes {
        bytes: data.into(),
        kind: Some(kind.to_owned()),
    })
}

/// Returns the content of a file of --upload-file.
pub(super) fn file(path: &str) -> Result<Content, Failed> {
    if path == "-" || path == "." {
        return Ok(Content::Stdin);
    }
    let metadata = std::fs::metadata(Path::new(path)).map_err(|error| unreadable(path, &error))?;
    Ok(Content::File {
        path: path.to_owned(),
        len: metadata.len(),
    })
}

/// Returns the data of all flags in their order, joined with `&`, except for JSON.
fn data(flags: &ContentFlags) -> Result<Option<Vec<u8>>, Failed> {
    let mut all: Option<Vec<u8>> = None;
    for ContentFlag { kind, value } in flags.data() {
        let mut bytes = match kind {
            ContentKind::Raw => value.clone().into_bytes(),
            ContentKind::UrlEncoded => url_encoded(value)?.into_bytes(),
            _ => at_file(value)?,
        };
        if *kind == ContentKind::Data && value.starts_with('@') {
            bytes.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
        }
        match &mut all {
            None => all = Some(bytes),
            Some(all) => {
                if *kind != ContentKind::Json {
                    all.push(b'&');
                }
                all.extend(bytes);
            }
        }
    }
    Ok(all)
}

fn at_file(data: &str) -> Result<Vec<u8>, Failed> {
    match data.strip_prefix('@') {
        Some(path) => read(path),
        None => Ok(data.as_bytes().to_vec()),
    }
}

/// Encodes `content`, `=content`, `name=content`, `@file` or `name@file`.
fn url_encoded(data: &str) -> Result<String, Failed> {
    let (name, content) = match data.find(['=', '@']) {
        None => ("", data.as_bytes().to_vec()),
        Some(at) => {
            let (name, rest) = data.split_at(at);
            let content = match rest.strip_prefix('@') {
                Some(path) => read(path)?,
                None => rest.as_bytes()[1..].to_vec(),
            };
            (name, content)
        }
    };
    // As in curl, a space in the content becomes a plus.
    let encoded = percent_encode(&content).replace("%20", "+");
    Ok(if name.is_empty() {
        encoded
    } else {
        format!("{name}={encoded}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::get::exit::READ_ERROR;

    fn request(flags: &[(ContentKind, &str)]) -> RequestArguments {
        let flags = flags.iter().map(|(kind, value)| ContentFlag {
            kind: *kind,
            value: (*value).to_owned(),
        });
        RequestArguments {
            content: ContentFlags(flags.collect()),
            ..RequestArguments::default()
        }
    }

    #[test]
    fn data_is_joined_in_the_order_of_the_flags() {
        use ContentKind::{Binary, Data, Json, Raw, UrlEncoded};
        for (flags, expected) in [
            (
                &[
                    (Raw, "@b"),
                    (Data, "a=1"),
                    (UrlEncoded, "c=x y"),
                    (UrlEncoded, "=&"),
                    (UrlEncoded, "plain text"),
                    (Binary, "-x"),
                ][..],
                "@b&a=1&c=x+y&%26&plain+text&-x",
            ),
            (&[(Json, "{\"a\":"), (Json, "1}")], "{\"a\":1}"),
            (&[(Json, "1"), (Data, "2")], "1&2"),
        ] {
            let data = data(&request(flags).content).expect("no files");
            let data = String::from_utf8(data.expect("data"));
            assert_eq!(data.expect("text"), expected);
        }
        assert_eq!(content(&RequestArguments::default()), Ok(Content::None));
    }

    #[test]
    fn contradicting_requests_are_refused() {
        let both = [(ContentKind::Data, "a"), (ContentKind::Form, "b=c")];
        let failed = content(&request(&both)).expect_err("two kinds of content");
        assert!(
            failed.text.contains("--form") && failed.text.contains("--data"),
            "{failed}"
        );
        let head = RequestArguments {
            head: true,
            ..request(&both[..1])
        };
        assert!(content(&head).is_err());
        let get = RequestArguments { get: true, ..head };
        let prepared = Prepared::of(&get).expect("a query");
        assert_eq!(prepared.query.as_deref(), Some("a"));
    }

    #[test]
    fn query_is_encoded_unless_it_has_a_plus() {
        let request = RequestArguments {
            url_query: ["a=b c", "+d e"].map(str::to_owned).to_vec(),
            ..RequestArguments::default()
        };
        let prepared = Prepared::of(&request).expect("a query");
        assert_eq!(prepared.query.as_deref(), Some("a=b+c&d e"));
    }

    #[test]
    fn missing_file_is_a_read_error() {
        let failed = at_file("@/no/such/file").expect_err("not there");
        assert_eq!(failed.code, READ_ERROR);
        assert!(failed.text.contains("/no/such/file"), "{failed}");
    }
}
