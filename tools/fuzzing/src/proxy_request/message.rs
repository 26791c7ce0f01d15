//! A strict parser of HTTP/1.1 requests. It accepts what the proxy must send, not all that HTTP
//! permits.

#[derive(Debug)]
pub(super) struct Message {
    /// Field names in lower case, and values.
    pub(super) fields: Vec<(String, String)>,
}

impl Message {
    /// Returns the values of all field lines with a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let fields = self.fields.iter().filter(move |(known, _)| known == name);
        fields.map(|(_, value)| value.as_str())
    }
}

/// Parses all requests on a connection. The last one may be truncated.
///
/// # Panics
/// Panics if the bytes are anything else.
pub(super) fn requests(bytes: &[u8]) -> Vec<Message> {
    let mut all = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some(end) = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            break;
        };
        let message = parse_head(&rest[..end]);
        rest = &rest[end + 4..];
        if message.all("upgrade").next().is_some() {
            // The rest belongs to another protocol.
            all.push(message);
            break;
        }
        let len = content_len(&message, rest);
        all.push(message);
        match len {
            Some(len) => rest = &rest[len..],
            None => break,
        }
    }
    all
}

/// Parses a request line and field lines.
fn parse_head(bytes: &[u8]) -> Message {
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    let mut lines = text.split("\r\n");
    let request = lines.next().unwrap_or_default();
    let parts: Vec<_> = request.split(' ').collect();
    let [method, target, "HTTP/1.1"] = parts[..] else {
        panic!("invalid request line: {request:?}");
    };
    assert!(
        !method.is_empty() && method.chars().all(is_token),
        "{request:?}"
    );
    // The text is Latin-1, so that bytes from 0x80 to 0x9f look like control characters here. Clients send
    // them as part of UTF-8, and the proxy passes them on.
    assert!(
        !target.is_empty() && !target.contains(|letter: char| letter.is_ascii_control()),
        "{request:?}"
    );
    let fields = lines.map(|line| {
        let (name, value) = line
            .split_once(':')
            .unwrap_or_else(|| panic!("invalid field line: {line:?}"));
        assert!(!name.is_empty() && name.chars().all(is_token), "{line:?}");
        let is_control = |letter: char| letter.is_ascii_control() && letter != '\t';
        assert!(!value.contains(is_control), "{line:?}");
        (name.to_ascii_lowercase(), value.trim().to_owned())
    });
    Message {
        fields: fields.collect(),
    }
}

/// Returns true for characters of a token (RFC 9110 §5.6.2).
fn is_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter)
}

/// Returns the length of the content including its transfer coding, or `None` if it is truncated.
fn content_len(message: &Message, rest: &[u8]) -> Option<usize> {
    let codings: Vec<_> = message.all("transfer-encoding").collect();
    let lengths: Vec<_> = message.all("content-length").collect();
    match (&codings[..], &lengths[..]) {
        ([], []) => Some(0),
        ([], [length]) => {
            let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
            assert!(is_number, "{message:?}");
            let length: usize = length.parse().unwrap_or(usize::MAX);
            (length <= rest.len()).then_some(length)
        }
        (["chunked"], []) => chunked_len(rest),
        _ => panic!("ambiguous content length: {message:?}"),
    }
}

/// Returns the length of chunked content, or `None` if it is truncated.
fn chunked_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = bytes[at..].windows(2).position(|bytes| bytes == b"\r\n")?;
        let size = std::str::from_utf8(&bytes[at..at + line]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.unwrap_or_else(|| panic!("invalid chunk size at {at}"));
        at += line + 2;
        if size == 0 {
            // Trailers, and the empty line after them.
            loop {
                let line = bytes[at..].windows(2).position(|bytes| bytes == b"\r\n")?;
                at += line + 2;
                if line == 0 {
                    return Some(at);
                }
            }
        }
        if bytes.len() < at + size + 2 {
            return None;
        }
        assert_eq!(
            &bytes[at + size..at + size + 2],
            b"\r\n",
            "the end of a chunk"
        );
        at += size + 2;
    }
}
