//! Reads the content of requests that the flags specify.

use std::path::Path;

use super::args::RequestArguments;
use super::content::{Content, read, unreadable};
use super::exit::Failed;
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
        if !request.get {
            let content = content(request)?;
            return Ok(Self {
                content,
                query: None,
            });
        }
        let query = data(request)?.map(|data| String::from_utf8_lossy(&data).into_owned());
        Ok(Self {
            content: Content::None,
            query,
        })
    }
}

fn content(request: &RequestArguments) -> Result<Content, Failed> {
    if let Some(path) = &request.upload_file {
        return file(path);
    }
    if !request.form.is_empty() || !request.form_string.is_empty() {
        return form::content(request);
    }
    let Some(data) = data(request)? else {
        return Ok(Content::None);
    };
    Ok(Content::Bytes {
        bytes: data.into(),
        kind: Some("application/x-www-form-urlencoded".to_owned()),
    })
}

fn file(path: &str) -> Result<Content, Failed> {
    if path == "-" || path == "." {
        return Ok(Content::Stdin);
    }
    let metadata = std::fs::metadata(Path::new(path)).map_err(|error| unreadable(path, &error))?;
    Ok(Content::File {
        path: path.to_owned(),
        len: metadata.len(),
    })
}

/// Returns the data of all flags, joined with `&`.
fn data(request: &RequestArguments) -> Result<Option<Vec<u8>>, Failed> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for data in &request.data {
        let mut bytes = at_file(data)?;
        if data.starts_with('@') {
            bytes.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
        }
        parts.push(bytes);
    }
    parts.extend(
        request
            .data_raw
            .iter()
            .map(|data| data.clone().into_bytes()),
    );
    for data in &request.data_binary {
        parts.push(at_file(data)?);
    }
    for data in &request.data_urlencode {
        parts.push(url_encoded(data)?.into_bytes());
    }
    Ok((!parts.is_empty()).then(|| parts.join(&b'&')))
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
    let encoded = percent_encode(&content);
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

    #[test]
    fn data_is_joined_with_ampersands() {
        let request = RequestArguments {
            data: vec!["a=1".to_owned()],
            data_raw: vec!["@b".to_owned()],
            data_urlencode: vec!["c=x y".to_owned(), "=&".to_owned(), "plain text".to_owned()],
            ..RequestArguments::default()
        };
        let data = data(&request).expect("no files").expect("data");
        assert_eq!(
            String::from_utf8(data).expect("text"),
            "a=1&@b&c=x%20y&%26&plain%20text"
        );
        assert_eq!(content(&RequestArguments::default()), Ok(Content::None));
    }

    #[test]
    fn missing_file_is_a_read_error() {
        let failed = at_file("@/no/such/file").expect_err("not there");
        assert_eq!(failed.code, READ_ERROR);
        assert!(failed.text.contains("/no/such/file"), "{failed}");
    }
}
