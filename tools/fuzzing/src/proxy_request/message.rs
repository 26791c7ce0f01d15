//! A strict parser of HTTP/1.1 requests. It accepts what the proxy must send, not all that HTTP
//! permits.

#[derive(Debug)]
pub(super) struct Message {
    /// Field names in lower case, and values.
    pub(super) fields: Vec<(String, String)>,
    /// The content and the trailers, or `None` if the message is truncated or an upgrade.
    pub(super) rest: Option<Rest>,
}

/// What follows the header section of a message.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub(super) content: Vec<u8>,
    /// Names in lower case, and values.
    pub(super) trailers: Vec<(String, String)>,
    /// Its length on the wire.
    len: usize,
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
        let mut message = parse_head(&rest[..end]);
        rest = &rest[end + 4..];
        // What follows an upgrade belongs to another protocol.
        if message.all("upgrade").next().is_none() {
            message.rest = parse_rest(&message, rest);
        }
        let len = message.rest.as_ref().map(|rest| rest.len);
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
    Message {
        fields: lines.map(parse_field).collect(),
        rest: None,
    }
}

fn parse_field(line: &str) -> (String, String) {
    let (name, value) = line
        .split_once(':')
        .unwrap_or_else(|| panic!("invalid field line: {line:?}"));
    assert!(!name.is_empty() && name.chars().all(is_token), "{line:?}");
    let is_control = |letter: char| letter.is_ascii_control() && letter != '\t';
    assert!(!value.contains(is_control), "{line:?}");
    (name.to_ascii_lowercase(), value.trim().to_owned())
}

/// Returns true for characters of a token (RFC 9110 §5.6.2).
fn is_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter)
}

/// Parses the content and the trailers, or returns `None` if they are truncated.
fn parse_rest(message: &Message, rest: &[u8]) -> Option<Rest> {
    let codings: Vec<_> = message.all("transfer-encoding").collect();
    let lengths: Vec<_> = message.all("content-length").collect();
    match (&codings[..], &lengths[..]) {
        ([], []) => Some(Rest::default()),
        ([], [length]) => {
            let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
            assert!(is_number, "{message:?}");
            let len: usize = length.parse().unwrap_or(usize::MAX);
            let content = rest.get(..len)?.to_vec();
            Some(Rest {
                content,
                trailers: Vec::new(),
                len,
            })
        }
        (["chunked"], []) => parse_chunks(rest),
        _ => panic!("ambiguous content length: {message:?}"),
    }
}

/// Parses chunked content, or returns `None` if it is truncated.
fn parse_chunks(bytes: &[u8]) -> Option<Rest> {
    let mut rest = Rest::default();
    let line_end = |at: usize| bytes[at..].windows(2).position(|bytes| bytes == b"\r\n");
    loop {
        let at = rest.len;
        let line = line_end(at)?;
        let size = std::str::from_utf8(&bytes[at..at + line]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.unwrap_or_else(|| panic!("invalid chunk size at {at}"));
        let at = at + line + 2;
        rest.len = at;
        if size == 0 {
            break;
        }
        if bytes.len() < at + size + 2 {
            return None;
        }
        let (chunk, end) = bytes[at..].split_at(size);
        assert!(end.starts_with(b"\r\n"), "the end of a chunk");
        rest.content.extend(chunk);
        rest.len = at + size + 2;
    }
    // The trailers, and the empty line after them.
    loop {
        let at = rest.len;
        let line = line_end(at)?;
        rest.len = at + line + 2;
        if line == 0 {
            return Some(rest);
        }
        let text: String = bytes[at..at + line]
            .iter()
            .map(|&byte| char::from(byte))
            .collect();
        rest.trailers.push(parse_field(&text));
    }
}
