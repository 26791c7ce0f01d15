//! The stream IDs of requests, which hyper does not report.
//!
//! Interim responses need them. A connection whose services can send interim responses appends a field with the stream
//! ID to the field block of each request before hyper receives it, and removes it before the service does.

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use http::{HeaderMap, HeaderName};

/// Recognizes the tags of one connection.
///
/// A tag contains random digits. Otherwise clients could name the stream of another request, which a gateway may send
/// for another user.
#[derive(Clone, Debug)]
pub(crate) struct Tags(String);

impl Tags {
    /// Creates tags with new random digits. Returns `None` if the system has no random numbers.
    pub(crate) fn new() -> Option<Self> {
        let mut secret = [0; 8];
        SystemRandom::new().fill(&mut secret).ok()?;
        Some(Self(format!("{:016x}", u64::from_ne_bytes(secret))))
    }

    /// Returns the field line of a stream, encoded as a literal without indexing (RFC 7541 §6.2.2).
    fn encode(&self, stream: u32) -> [u8; TAG_LEN] {
        let mut line = [0; TAG_LEN];
        line[1] = NAME.len() as u8;
        let (name, value) = line[2..].split_at_mut(NAME.len());
        name.copy_from_slice(NAME.as_bytes());
        value[0] = 24;
        value[1..17].copy_from_slice(self.0.as_bytes());
        for (index, digit) in value[17..].iter_mut().enumerate() {
            let nibble = stream >> (28 - 4 * index) & 0xf;
            *digit = b"0123456789abcdef"[nibble as usize];
        }
        line
    }

    /// Removes the tag from the fields of a request and returns its stream ID. Field blocks that are padded or longer
    /// than a frame have none.
    pub(crate) fn take(&self, headers: &mut HeaderMap) -> Option<u32> {
        const TAG: HeaderName = HeaderName::from_static(NAME);
        let values = headers.get_all(TAG).iter();
        let mut streams = values.filter_map(|value| {
            let digits = value.to_str().ok()?.strip_prefix(&*self.0)?;
            u32::from_str_radix(digits, 16).ok()
        });
        let stream = streams.next_back();
        headers.remove(TAG);
        stream
    }
}

const NAME: &str = "courser-stream";
/// Length of an encoded tag.
const TAG_LEN: usize = 1 + 1 + NAME.len() + 1 + 24;

/// Appends tags to the field blocks of requests in the bytes that a client sends.
#[derive(Debug)]
pub(crate) struct Tagger {
    tags: Tags,
    /// The first bytes of an incomplete frame header. Keeps its memory.
    header: Vec<u8>,
    /// Number of bytes to pass on unchanged: the preface, or the rest of a frame.
    left: usize,
    /// The stream whose tag follows them.
    tagged: Option<u32>,
    /// The stream ID of the newest request. Later field blocks on the same stream are trailers.
    newest: u32,
}

impl Tagger {
    pub(crate) fn new(tags: Tags) -> Self {
        Self {
            tags,
            header: Vec::with_capacity(HEADER_LEN),
            left: PREFACE_LEN,
            tagged: None,
            newest: 0,
        }
    }

    /// Appends received bytes with their tags to `out`, except the first bytes of a frame header.
    pub(super) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        // Once instead of part by part.
        out.reserve(bytes.len() + TAG_LEN);
        loop {
            let passed = self.left.min(bytes.len());
            out.extend_from_slice(&bytes[..passed]);
            bytes = &bytes[passed..];
            self.left -= passed;
            if self.left > 0 {
                return;
            }
            if let Some(stream) = self.tagged.take() {
                let tag = self.tags.encode(stream);
                out.extend_from_slice(&tag);
            }
            let more = (HEADER_LEN - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..more]);
            bytes = &bytes[more..];
            if self.header.len() < HEADER_LEN {
                return;
            }
            self.on_header(out);
        }
    }

    fn on_header(&mut self, out: &mut Vec<u8>) {
        let header = &mut self.header;
        let len =
            usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2]);
        let (kind, flags) = (header[3], header[4]);
        let stream = u32::from_be_bytes([header[5] & 0x7f, header[6], header[7], header[8]]);
        self.left = len;
        if kind == HEADERS && stream > self.newest {
            self.newest = stream;
            let is_whole = flags & (END_HEADERS | PADDED) == END_HEADERS;
            if is_whole && len + TAG_LEN <= MAX_FRAME {
                let len = (len + TAG_LEN) as u32;
                header[..3].copy_from_slice(&len.to_be_bytes()[1..]);
                self.tagged = Some(stream);
            }
        }
        out.append(header);
    }
}

const PREFACE_LEN: usize = 24;
const HEADER_LEN: usize = 9;
/// Largest frame that the server accepts (RFC 9113 §4.2).
const MAX_FRAME: usize = 16_384;

const HEADERS: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let len = (payload.len() as u32).to_be_bytes();
        [&len[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
    }

    #[test]
    fn requests_are_tagged_wherever_their_bytes_are_split() {
        let tags = Tags::new().expect("random numbers");
        let tag = |stream| tags.encode(stream);
        assert_eq!(tag(1).len(), TAG_LEN);
        let trailers = frame(HEADERS, END_HEADERS | 1, 1, b"trailers");
        let sent = [
            PREFACE,
            &frame(4, 0, 0, &[]),
            &frame(HEADERS, END_HEADERS, 1, b"block"),
            &frame(0, 0, 1, b"content"),
            &trailers,
            &frame(HEADERS, END_HEADERS | PADDED, 3, b"\x01padded\0"),
            &frame(HEADERS, 0, 5, b"continued"),
            &frame(9, END_HEADERS, 5, b"end"),
            &frame(HEADERS, END_HEADERS, 7, b""),
        ]
        .concat();
        let expected = [
            PREFACE,
            &frame(4, 0, 0, &[]),
            &frame(HEADERS, END_HEADERS, 1, &[b"block", &tag(1)[..]].concat()),
            &frame(0, 0, 1, b"content"),
            &trailers,
            &frame(HEADERS, END_HEADERS | PADDED, 3, b"\x01padded\0"),
            &frame(HEADERS, 0, 5, b"continued"),
            &frame(9, END_HEADERS, 5, b"end"),
            &frame(HEADERS, END_HEADERS, 7, &tag(7)),
        ]
        .concat();
        for piece in 1..=sent.len() {
            let mut tagger = Tagger::new(tags.clone());
            let mut out = Vec::new();
            let pieces = sent.chunks(piece);
            pieces.for_each(|bytes| tagger.push(bytes, &mut out));
            assert_eq!(out, expected, "pieces of {piece}");
        }
    }

    #[test]
    fn only_own_tags_count() {
        let (tags, others) = (Tags::new().expect("random"), Tags::new().expect("random"));
        let mut headers = HeaderMap::new();
        let mut add = |tags: &Tags, stream: u32| {
            let value = format!("{}{stream:08x}", tags.0).parse().expect("a value");
            headers.append(NAME, value);
        };
        add(&others, 1);
        add(&tags, 3);
        headers.append(NAME, "5".parse().expect("a value"));
        headers.append("accept", "a".parse().expect("a value"));
        assert_eq!(tags.take(&mut headers), Some(3));
        assert_eq!(headers.len(), 1);
        assert_eq!(tags.take(&mut headers), None);
    }
}
