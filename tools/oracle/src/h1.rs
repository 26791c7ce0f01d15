//! HTTP/1.1 with messages that are written byte by byte and parsed strictly (RFC 9112).

use crate::message::{Content, Ending, Field, Message, Request, Response, field};
use crate::seen::{End, Framing, Seen};
use crate::wire::Wire;

/// Returns the bytes of a request.
pub fn request(request: &Request) -> Vec<u8> {
    let control = &request.control;
    let mut bytes = control.method.clone();
    bytes.push(b' ');
    bytes.extend_from_slice(&control.path);
    bytes.extend_from_slice(b" HTTP/1.1\r\n");
    if let Some(authority) = &control.authority {
        write_field(&field("host", authority), &mut bytes);
    }
    write_rest(request, &mut bytes);
    bytes
}

/// Returns the bytes of a response.
pub fn response(response: &Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (status, fields) in &response.control.interim {
        bytes.extend_from_slice(format!("HTTP/1.1 {status:03} \r\n").as_bytes());
        fields
            .iter()
            .for_each(|field| write_field(field, &mut bytes));
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("HTTP/1.1 {:03} \r\n", response.control.status).as_bytes());
    // Without it the content would end with the connection.
    let has_length = !matches!(response.control.status, 100..200 | 204 | 304);
    if has_length && response.content == Content::None && response.trailers.is_empty() {
        write_field(&field("content-length", "0"), &mut bytes);
    }
    write_rest(response, &mut bytes);
    bytes
}

fn write_field((name, value): &Field, to: &mut Vec<u8>) {
    to.extend_from_slice(name);
    to.extend_from_slice(b": ");
    to.extend_from_slice(value);
    to.extend_from_slice(b"\r\n");
}

/// Writes the fields, the content and the trailers of a message.
fn write_rest<C>(message: &Message<C>, to: &mut Vec<u8>) {
    let trailers = &message.trailers;
    let is_chunked = matches!(message.content, Content::Unknown(_)) || !trailers.is_empty();
    if is_chunked {
        write_field(&field("transfer-encoding", "chunked"), to);
    } else if let Some(length) = message.length_field() {
        write_field(&length, to);
    }
    let fields = &message.fields;
    fields.iter().for_each(|field| write_field(field, to));
    to.extend_from_slice(b"\r\n");
    for piece in message.content.pieces() {
        if is_chunked && !piece.is_empty() {
            to.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            to.extend_from_slice(piece);
            to.extend_from_slice(b"\r\n");
        } else {
            to.extend_from_slice(piece);
        }
    }
    if is_chunked && message.ending == Ending::Complete {
        to.extend_from_slice(b"0\r\n");
        trailers.iter().for_each(|field| write_field(field, to));
        to.extend_from_slice(b"\r\n");
    }
}

/// A message whose header section has arrived.
#[derive(Debug)]
pub struct Head {
    /// The message so far.
    pub seen: Seen,
    is_without_content: bool,
    is_until_close: bool,
}

/// Reads the header section of a request. Returns `None` if the connection ends before its first byte.
pub async fn read_request_head(wire: &mut Wire) -> Option<Head> {
    while wire.unread.is_empty() {
        if !wire.fill().await && wire.end.is_some() {
            return None;
        }
    }
    Some(read_head(wire, false).await)
}

/// Reads a whole response, with the interim responses before it.
pub async fn read_response(wire: &mut Wire, is_head: bool) -> Seen {
    let mut interim = Vec::new();
    loop {
        let mut head = read_head(wire, true).await;
        let status = head.seen.status();
        if (100..200).contains(&status) && status != 101 {
            interim.push((head.seen.start, head.seen.fields));
            continue;
        }
        head.is_without_content |= is_head;
        head.seen.interim = interim;
        return read_content(wire, head).await;
    }
}

async fn read_head(wire: &mut Wire, is_response: bool) -> Head {
    let head = |seen| Head {
        seen,
        is_without_content: true,
        is_until_close: false,
    };
    let Some(bytes) = wire.take_until(b"\r\n\r\n").await else {
        let mut seen = Seen::nothing(wire.ended());
        if !wire.unread.is_empty() && wire.end.is_some() {
            seen.start = format!("partial {}", crate::seen::printable(&wire.unread));
        }
        return head(seen);
    };
    match parse_head(&bytes, is_response) {
        Some(parsed) => parsed,
        None => head(Seen {
            start: crate::seen::printable(&bytes),
            ..Seen::nothing(End::Malformed)
        }),
    }
}

/// Parses a header section. Returns `None` if RFC 9112 does not permit to send it.
fn parse_head(bytes: &[u8], is_response: bool) -> Option<Head> {
    let text = bytes.strip_suffix(b"\r\n\r\n")?;
    let mut lines = split_lines(text).into_iter();
    let start = lines.next()?;
    let start = String::from_utf8(start.to_vec()).ok()?;
    let start = if is_response {
        let rest = start.strip_prefix("HTTP/1.1 ")?;
        // The space stays without a reason phrase (RFC 9112 §4).
        let (status, _reason) = rest.split_once(' ')?;
        (status.len() == 3).then(|| status.to_owned())?
    } else {
        start.strip_suffix(" HTTP/1.1")?.to_owned()
    };
    let fields = lines.map(parse_field).collect::<Option<Vec<_>>>()?;
    let mut seen = Seen {
        start,
        fields,
        ..Seen::nothing(End::Complete)
    };
    let status = seen.status();
    let codings: Vec<_> = seen.all("transfer-encoding").collect();
    let lengths: Vec<_> = seen.all("content-length").collect();
    seen.framing = match (&codings[..], &lengths[..]) {
        ([], []) if is_response => Framing::Close,
        ([], []) => Framing::None,
        ([], [length]) => Framing::Length(std::str::from_utf8(length).ok()?.parse().ok()?),
        ([coding], []) if coding.eq_ignore_ascii_case(b"chunked") => Framing::Chunked,
        _ => return None,
    };
    seen.fields.retain(|(name, _)| {
        !name.eq_ignore_ascii_case(b"transfer-encoding")
            && !name.eq_ignore_ascii_case(b"content-length")
    });
    Some(Head {
        is_without_content: is_response
            && ((100..200).contains(&status) || [204, 304].contains(&status)),
        is_until_close: seen.framing == Framing::Close,
        seen,
    })
}

/// Splits text at CR LF. A bare CR or LF remains in its line, where no field may have one.
fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
        lines.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    lines.push(rest);
    lines
}

fn parse_field(line: &[u8]) -> Option<Field> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let is_value = |byte: &u8| !matches!(byte, b'\r' | b'\n' | 0);
    (!name.is_empty() && name.iter().all(is_token) && value.iter().all(is_value))
        .then(|| (name.to_vec(), value.to_vec()))
}

/// Reads the content and the trailers behind a header section.
pub async fn read_content(wire: &mut Wire, head: Head) -> Seen {
    let mut seen = head.seen;
    if seen.end != End::Complete || head.is_without_content {
        return seen;
    }
    let is_complete = match seen.framing {
        Framing::None => true,
        Framing::Length(length) => read_length(wire, length, &mut seen).await,
        Framing::Chunked => read_chunks(wire, &mut seen).await,
        Framing::Close => {
            while wire.fill().await {}
            seen.content.append(&mut wire.unread);
            head.is_until_close && wire.end == Some(End::Cut)
        }
    };
    if !is_complete && seen.end == End::Complete {
        seen.end = wire.ended();
    }
    seen
}

async fn read_length(wire: &mut Wire, length: u64, seen: &mut Seen) -> bool {
    loop {
        let missing = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .saturating_sub(seen.content.len());
        let here = missing.min(wire.unread.len());
        seen.content.extend(wire.unread.drain(..here));
        if here == missing {
            return true;
        }
        if !wire.fill().await {
            return false;
        }
    }
}

async fn read_chunks(wire: &mut Wire, seen: &mut Seen) -> bool {
    loop {
        let Some(line) = wire.take_until(b"\r\n").await else {
            return false;
        };
        let size = std::str::from_utf8(line.trim_ascii_end())
            .ok()
            .and_then(|text| usize::from_str_radix(text, 16).ok());
        match size {
            None => {
                seen.end = End::Malformed;
                return false;
            }
            Some(0) => break,
            Some(size) => {
                while wire.unread.len() < size + 2 {
                    if !wire.fill().await {
                        let here = size.min(wire.unread.len());
                        seen.content.extend(wire.unread.drain(..here));
                        return false;
                    }
                }
                seen.content.extend(wire.unread.drain(..size));
                if wire.take(2).await.as_deref() != Some(b"\r\n") {
                    seen.end = End::Malformed;
                    return false;
                }
            }
        }
    }
    loop {
        let Some(line) = wire.take_until(b"\r\n").await else {
            return false;
        };
        match &line[..line.len() - 2] {
            b"" => return true,
            line => match parse_field(line) {
                Some(field) => seen.trailers.push(field),
                None => {
                    seen.end = End::Malformed;
                    return false;
                }
            },
        }
    }
}
