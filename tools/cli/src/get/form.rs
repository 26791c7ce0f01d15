//! Forms with files (multipart/form-data, RFC 7578).

use std::path::Path;

use super::args::RequestArguments;
use super::content::{Content, read};
use super::exit::{FAILED_INIT, Failed};

/// Returns the parts of a form as content.
pub(crate) fn content(request: &RequestArguments) -> Result<Content, Failed> {
    let mut parts = Vec::new();
    for part in &request.form {
        parts.push(Part::parse(part)?);
    }
    for part in &request.form_string {
        let (name, content) = split(part)?;
        parts.push(Part::plain(name, content.as_bytes()));
    }
    let boundary = boundary(&parts);
    let mut bytes = Vec::new();
    for part in &parts {
        part.write(&boundary, &mut bytes);
    }
    bytes.extend(format!("--{boundary}--\r\n").into_bytes());
    Ok(Content::Bytes {
        bytes: bytes.into(),
        kind: Some(format!("multipart/form-data; boundary={boundary}")),
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Part {
    name: String,
    file_name: Option<String>,
    kind: Option<String>,
    content: Vec<u8>,
}

impl Part {
    fn plain(name: &str, content: &[u8]) -> Self {
        Self {
            name: name.to_owned(),
            file_name: None,
            kind: None,
            content: content.to_vec(),
        }
    }

    /// Parses `name=content`, `name=@file` or `name=<file`, followed by `;type=` and `;filename=`.
    fn parse(text: &str) -> Result<Self, Failed> {
        let (name, value) = split(text)?;
        let mut pieces = value.split(';');
        let source = pieces.next().unwrap_or_default();
        let mut part = Self::plain(name, b"");
        match source.chars().next() {
            Some('@') => {
                part.content = read(&source[1..])?;
                let file_name = Path::new(&source[1..]).file_name();
                part.file_name = file_name.map(|name| name.to_string_lossy().into_owned());
                part.kind = Some("application/octet-stream".to_owned());
            }
            Some('<') => part.content = read(&source[1..])?,
            _ => part.content = source.as_bytes().to_vec(),
        }
        for piece in pieces {
            match piece.trim_start().split_once('=') {
                Some(("type", kind)) => part.kind = Some(kind.to_owned()),
                Some(("filename", name)) => {
                    part.file_name = Some(name.trim_matches('"').to_owned())
                }
                // Other text after a semicolon belongs to the content.
                _ => {
                    part.content.push(b';');
                    part.content.extend(piece.as_bytes());
                }
            }
        }
        Ok(part)
    }

    fn write(&self, boundary: &str, out: &mut Vec<u8>) {
        // Percent-encodes characters that would end the name, as browsers do.
        let quoted = |text: &str| {
            text.replace('"', "%22")
                .replace('\r', "%0D")
                .replace('\n', "%0A")
        };
        let mut head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"",
            quoted(&self.name)
        );
        if let Some(file_name) = &self.file_name {
            head.push_str(&format!("; filename=\"{}\"", quoted(file_name)));
        }
        if let Some(kind) = &self.kind {
            head.push_str(&format!(
                "\r\nContent-Type: {}",
                kind.replace(['\r', '\n'], " ")
            ));
        }
        head.push_str("\r\n\r\n");
        out.extend(head.into_bytes());
        out.extend(&self.content);
        out.extend(b"\r\n");
    }
}

fn split(part: &str) -> Result<(&str, &str), Failed> {
    part.split_once('=').ok_or_else(|| {
        let text = format!("'{part}' is not a form part: use name=content or name=@FILE");
        Failed::new(FAILED_INIT, text)
    })
}

/// Returns a boundary that does not occur in any part.
fn boundary(parts: &[Part]) -> String {
    let mut number = 0_u64;
    loop {
        let boundary = format!("------------------------{number:016x}");
        let bytes = boundary.as_bytes();
        let occurs = |part: &Part| {
            part.content
                .windows(bytes.len())
                .any(|window| window == bytes)
        };
        if !parts.iter().any(occurs) {
            return boundary;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_with_their_names_and_types() {
        let request = RequestArguments {
            form: vec![
                "a=1".to_owned(),
                "b=x;type=text/plain;filename=\"n\"".to_owned(),
            ],
            form_string: vec!["c=@no file; really".to_owned()],
            ..RequestArguments::default()
        };
        let Content::Bytes { bytes, kind } = content(&request).expect("a form") else {
            panic!("bytes");
        };
        let boundary = "------------------------0000000000000000";
        assert_eq!(
            kind,
            Some(format!("multipart/form-data; boundary={boundary}"))
        );
        let expected = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"b\"; filename=\"n\"\r\n\
             Content-Type: text/plain\r\n\r\nx\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"c\"\r\n\r\n@no file; really\r\n\
             --{boundary}--\r\n"
        );
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
    }

    #[test]
    fn boundary_does_not_occur_in_a_part() {
        let part = Part::plain("a", b"------------------------0000000000000000");
        assert_eq!(
            boundary(&[part]),
            "------------------------0000000000000001"
        );
        assert!(Part::parse("nothing").is_err());
    }
}
