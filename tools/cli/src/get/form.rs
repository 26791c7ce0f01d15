//! Forms with files (multipart/form-data, RFC 7578).

use std::path::Path;

use super::content::{Content, read};
use super::content_flags::{ContentFlags, ContentKind};
use super::exit::{FAILED_INIT, Failed};

/// Returns the parts of a form as content.
pub(crate) fn content(flags: &ContentFlags, escapes: bool) -> Result<Content, Failed> {
    let mut parts = Vec::new();
    for flag in &flags.0 {
        parts.push(match flag.kind {
            ContentKind::Form => Part::parse(&flag.value)?,
            _ => {
                let (name, content) = split(&flag.value)?;
                Part::plain(name, content.as_bytes())
            }
        });
    }
    let boundaries = boundaries(&parts);
    let mut bytes = Vec::new();
    for part in &parts {
        part.write(&boundaries, escapes, &mut bytes);
    }
    let [boundary, _] = boundaries;
    bytes.extend(format!("--{boundary}--\r\n").into_bytes());
    Ok(Content::Bytes {
        bytes: bytes.into(),
        kind: Some(format!("multipart/form-data; boundary={boundary}")),
    })
}

/// A field of a form: content, or several files.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    name: String,
    files: Vec<Piece>,
}

/// Content with its properties.
#[derive(Debug, Default, PartialEq, Eq)]
struct Piece {
    file_name: Option<String>,
    kind: Option<String>,
    fields: Vec<String>,
    encoding: Option<Encoding>,
    content: Vec<u8>,
}

/// A content transfer encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Identity(&'static str),
    Base64,
}

impl Part {
    fn plain(name: &str, content: &[u8]) -> Self {
        let piece = Piece {
            content: content.to_vec(),
            ..Piece::default()
        };
        Self {
            name: name.to_owned(),
            files: vec![piece],
        }
    }

    /// Parses `name=content`, `name=@file[,file]` or `name=<file`, each followed by parameters.
    fn parse(text: &str) -> Result<Self, Failed> {
        let (name, value) = split(text)?;
        let mut files = Vec::new();
        match value.chars().next() {
            Some('@') => {
                let mut rest = &value[1..];
                loop {
                    let (path, after) = word(rest, ",;");
                    let mut piece = Piece {
                        content: read(&path)?,
                        file_name: Some(last_of(&path)),
                        kind: (path != "-").then(|| kind_of(&path).to_owned()),
                        ..Piece::default()
                    };
                    let after = piece.set_parameters(after, true)?;
                    files.push(piece);
                    match after.strip_prefix(',') {
                        Some(more) => rest = more,
                        None => break,
                    }
                }
            }
            Some('<') => {
                let (path, after) = word(&value[1..], ";");
                let mut piece = Piece {
                    content: read(&path)?,
                    ..Piece::default()
                };
                piece.set_parameters(after, false)?;
                files.push(piece);
            }
            Some('(') if name.is_empty() => {
                let text = format!("--form '{text}': nested parts are not supported");
                return Err(Failed::new(FAILED_INIT, text));
            }
            _ => {
                let (content, after) = word(value, ";");
                let mut piece = Piece {
                    content: content.into_bytes(),
                    ..Piece::default()
                };
                piece.set_parameters(after, false)?;
                files.push(piece);
            }
        }
        Ok(Self {
            name: name.to_owned(),
            files,
        })
    }

    fn write(&self, [outer, inner]: &[String; 2], escapes: bool, out: &mut Vec<u8>) {
        let name = quoted(&self.name, escapes);
        out.extend(format!("--{outer}\r\nContent-Disposition: form-data").into_bytes());
        if !self.name.is_empty() {
            out.extend(format!("; name=\"{name}\"").into_bytes());
        }
        if let [piece] = &*self.files {
            piece.write(escapes, out);
            return;
        }
        let kind = format!("\r\nContent-Type: multipart/mixed; boundary={inner}\r\n\r\n");
        out.extend(kind.into_bytes());
        for piece in &self.files {
            out.extend(format!("--{inner}\r\nContent-Disposition: attachment").into_bytes());
            piece.write(escapes, out);
        }
        out.extend(format!("--{inner}--\r\n\r\n").into_bytes());
    }
}

impl Piece {
    /// Sets the parameters that follow the content. Returns the text from the comma before the next file on.
    fn set_parameters<'a>(&mut self, text: &'a str, has_more: bool) -> Result<&'a str, Failed> {
        let ends = if has_more { ",;" } else { ";" };
        let mut rest = text;
        while let Some(parameter) = rest.strip_prefix(';') {
            let parameter = parameter.trim_start();
            let lower = parameter.to_ascii_lowercase();
            let value_of = |name: &str| lower.starts_with(name).then(|| &parameter[name.len()..]);
            if let Some(value) = value_of("type=") {
                // A media type may have parameters of its own.
                let mut end = value.find([',', ';']).unwrap_or(value.len());
                while value[end..].starts_with(';') && !is_own(&value[end + 1..]) {
                    let more = &value[end + 1..];
                    end += 1 + more.find([',', ';']).unwrap_or(more.len());
                }
                self.kind = Some(value[..end].trim_end().to_owned());
                rest = &value[end..];
            } else if let Some(value) = value_of("filename=") {
                let (name, after) = word(value, ends);
                self.file_name = Some(name);
                rest = after;
            } else if let Some(value) = value_of("headers=") {
                let (field, after) = word(value, ends);
                match field.strip_prefix('@').or(field.strip_prefix('<')) {
                    Some(path) => {
                        let text = read(path)?;
                        let text = String::from_utf8_lossy(&text).into_owned();
                        let lines = text.lines().filter(|line| !line.is_empty());
                        self.fields.extend(lines.map(str::to_owned));
                    }
                    None => self.fields.push(field),
                }
                rest = after;
            } else if let Some(value) = value_of("encoder=") {
                let (name, after) = word(value, ends);
                self.encoding = Some(match name.as_str() {
                    "base64" => Encoding::Base64,
                    "binary" => Encoding::Identity("binary"),
                    "8bit" => Encoding::Identity("8bit"),
                    "7bit" if self.content.is_ascii() => Encoding::Identity("7bit"),
                    _ => {
                        let text = format!(
                            "--form: the encoder '{name}' cannot be used: use base64, binary, 8bit, \
                             or 7bit for ASCII"
                        );
                        return Err(Failed::new(FAILED_INIT, text));
                    }
                });
                rest = after;
            } else {
                let (unknown, after) = word(parameter, ends);
                crate::output::note(format!("--form: ignored the parameter '{unknown}'"));
                rest = after;
            }
        }
        Ok(rest)
    }

    fn write(&self, escapes: bool, out: &mut Vec<u8>) {
        let mut head = String::new();
        if let Some(name) = &self.file_name {
            head.push_str(&format!("; filename=\"{}\"", quoted(name, escapes)));
        }
        let line = |text: &str| format!("\r\n{}", text.replace(['\r', '\n'], " "));
        if let Some(kind) = &self.kind {
            head.push_str(&line(&format!("Content-Type: {kind}")));
        }
        if let Some(encoding) = self.encoding {
            let name = match encoding {
                Encoding::Identity(name) => name,
                Encoding::Base64 => "base64",
            };
            head.push_str(&line(&format!("Content-Transfer-Encoding: {name}")));
        }
        for field in &self.fields {
            head.push_str(&line(field));
        }
        head.push_str("\r\n\r\n");
        out.extend(head.into_bytes());
        match self.encoding {
            Some(Encoding::Base64) => out.extend(base64_lines(&self.content).into_bytes()),
            _ => out.extend(&self.content),
        }
        out.extend(b"\r\n");
    }
}

/// Returns base64 in lines of 76 characters (RFC 2045 §6.8).
fn base64_lines(content: &[u8]) -> String {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    let lines = content.chunks(57);
    let lines: Vec<_> = lines.map(|line| BASE64_STANDARD.encode(line)).collect();
    lines.join("\r\n")
}

/// Returns true if a parameter belongs to the part and not to its media type.
fn is_own(parameter: &str) -> bool {
    let parameter = parameter.trim_start().to_ascii_lowercase();
    ["filename=", "headers=", "encoder=", "type="]
        .iter()
        .any(|name| parameter.starts_with(name))
}

/// Returns a word that may be in double quotes, and the text from the first of `ends` after it on.
fn word<'a>(text: &'a str, ends: &str) -> (String, &'a str) {
    let trimmed = text.trim_start();
    if let Some(quoted) = trimmed.strip_prefix('"')
        && let Some((word, after)) = unquoted(quoted)
    {
        let after_space = after.trim_start();
        // Text after the quotes makes them part of the word.
        if after_space.is_empty() || after_space.starts_with(|letter| ends.contains(letter)) {
            return (word, after_space);
        }
    }
    let end = text.find(|letter| ends.contains(letter));
    let (word, after) = text.split_at(end.unwrap_or(text.len()));
    (word.to_owned(), after)
}

/// Returns the text before the closing quote without its backslashes, and the text after it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((word, &text[at + 1..])),
            '\\' => match letters.next() {
                Some((_, escaped @ ('"' | '\\'))) => word.push(escaped),
                Some((_, other)) => word.extend(['\\', other]),
                None => return None,
            },
            _ => word.push(letter),
        }
    }
    None
}

/// Escapes characters that would end a name: with percent signs as browsers do, or with backslashes.
fn quoted(text: &str, escapes: bool) -> String {
    if escapes {
        return text.replace('\\', "\\\\").replace('"', "\\\"");
    }
    text.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn last_of(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(
        || path.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Returns the media type of a file. curl knows these suffixes.
fn kind_of(path: &str) -> &'static str {
    let suffix = path.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    match suffix.to_ascii_lowercase().as_str() {
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "htm" | "html" => "text/html",
        "pdf" => "application/pdf",
        "xml" => "application/xml",
        _ => "application/octet-stream",
    }
}

fn split(part: &str) -> Result<(&str, &str), Failed> {
    part.split_once('=').ok_or_else(|| {
        let text = format!("'{part}' is not a form part: use name=content or name=@FILE");
        Failed::new(FAILED_INIT, text)
    })
}

/// Returns boundaries that do not occur in any part: that of the form, and that of several files in a field.
fn boundaries(parts: &[Part]) -> [String; 2] {
    let mut number = 0_u64;
    let mut next = || loop {
        let boundary = format!("------------------------{number:016x}");
        number += 1;
        let bytes = boundary.as_bytes();
        let occurs = |piece: &Piece| {
            piece
                .content
                .windows(bytes.len())
                .any(|window| window == bytes)
        };
        if !parts.iter().flat_map(|part| &part.files).any(occurs) {
            return boundary;
        }
    };
    [next(), next()]
}

#[cfg(test)]
mod tests {
    use super::super::content_flags::ContentFlag;
    use super::*;

    fn body(parts: &[&str]) -> Result<String, Failed> {
        let flag = |part: &&str| ContentFlag {
            kind: match part.strip_prefix('!') {
                Some(_) => ContentKind::FormString,
                None => ContentKind::Form,
            },
            value: part.trim_start_matches('!').to_owned(),
        };
        let flags = ContentFlags(parts.iter().map(flag).collect());
        match content(&flags, false)? {
            Content::Bytes { bytes, .. } => Ok(String::from_utf8(bytes.to_vec()).expect("text")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parts_are_written_with_their_names_and_types() {
        let boundary = "------------------------0000000000000000";
        let text = body(&[
            "a=1",
            "b=x;type=text/plain;filename=\"n\"",
            "!c=@no file; really",
        ]);
        assert_eq!(
            text.expect("a form"),
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
                 --{boundary}\r\nContent-Disposition: form-data; name=\"b\"; filename=\"n\"\r\n\
                 Content-Type: text/plain\r\n\r\nx\r\n\
                 --{boundary}\r\nContent-Disposition: form-data; name=\"c\"\r\n\r\n@no file; really\r\n\
                 --{boundary}--\r\n"
            )
        );
    }

    #[test]
    fn quotes_protect_separators_and_disappear() {
        let text = body(&[
            "a=\"b;c\"",
            "q=\"say \\\"x\\\\\"",
            "d=plain \"quotes\" stay",
            "t=x;type=text/x; charset=utf-8;filename=n",
        ])
        .expect("a form");
        for expected in [
            "name=\"a\"\r\n\r\nb;c\r\n",
            "name=\"q\"\r\n\r\nsay \"x\\\r\n",
            "name=\"d\"\r\n\r\nplain \"quotes\" stay\r\n",
            "filename=\"n\"\r\nContent-Type: text/x; charset=utf-8\r\n\r\nx\r\n",
        ] {
            assert!(text.contains(expected), "{expected:?} in {text}");
        }
    }

    #[test]
    fn several_files_are_a_part_of_parts() {
        let folder = std::env::temp_dir().join(format!("courser-form-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = |name: &str, content: &str| {
            let path = folder.join(name);
            std::fs::write(&path, content).expect("written");
            path.display().to_string()
        };
        let (a, b) = (file("a.txt", "A"), file("b.bin", "B"));
        let text = body(&[&format!("f=@{a},\"{b}\";type=x/y")]).expect("a form");
        std::fs::remove_dir_all(&folder).expect("removed");
        let [outer, inner] = [0, 1].map(|number| format!("------------------------{number:016x}"));
        assert_eq!(
            text,
            format!(
                "--{outer}\r\nContent-Disposition: form-data; name=\"f\"\r\n\
                 Content-Type: multipart/mixed; boundary={inner}\r\n\r\n\
                 --{inner}\r\nContent-Disposition: attachment; filename=\"a.txt\"\r\n\
                 Content-Type: text/plain\r\n\r\nA\r\n\
                 --{inner}\r\nContent-Disposition: attachment; filename=\"b.bin\"\r\n\
                 Content-Type: x/y\r\n\r\nB\r\n--{inner}--\r\n\r\n--{outer}--\r\n"
            )
        );
    }

    #[test]
    fn fields_and_encodings_of_parts_are_written() {
        let text = body(&["a=xyz;encoder=base64;headers=\"X-A: 1\""]).expect("a form");
        assert!(
            text.contains("\r\nContent-Transfer-Encoding: base64\r\nX-A: 1\r\n\r\neHl6\r\n"),
            "{text}"
        );
        for wrong in [
            "a",
            "=(;type=multipart/mixed",
            "a=é;encoder=7bit",
            "a=@/no/such",
        ] {
            assert!(body(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn boundary_does_not_occur_in_the_content() {
        let first = "------------------------0000000000000000";
        let text = body(&[&format!("a={first}")]).expect("a form");
        assert!(
            text.starts_with("--------------------------0000000000000001\r\n"),
            "{text}"
        );
    }
}
