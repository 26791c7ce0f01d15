//! The messages of TLS handshakes that checks read. RFC 8446 §4.

use std::collections::BTreeMap;

use courser_wire::{ConnectionId, Reader};

/// The bytes of CRYPTO frames of one level and direction, in any order.
#[derive(Debug, Default)]
pub(crate) struct CryptoBytes(BTreeMap<u64, Vec<u8>>);

impl CryptoBytes {
    pub(crate) fn insert(&mut self, offset: u64, data: &[u8]) {
        let known = self.0.get(&offset).map_or(0, Vec::len);
        if data.len() > known {
            self.0.insert(offset, data.to_vec());
        }
    }

    /// Returns the bytes from the start to the first gap.
    pub(crate) fn prefix(&self) -> Vec<u8> {
        let mut prefix = Vec::new();
        for (offset, data) in &self.0 {
            let len = prefix.len() as u64;
            if *offset > len {
                break;
            }
            let skipped = usize::try_from(len - offset).unwrap_or(usize::MAX);
            prefix.extend_from_slice(data.get(skipped..).unwrap_or_default());
        }
        prefix
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u8,
    pub(crate) body: &'a [u8],
}

/// Returns the complete messages at the start of `bytes`.
pub(crate) fn messages(bytes: &[u8]) -> Vec<Message<'_>> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(|| {
        let kind = reader.u8().ok()?;
        let [a, b, c] = reader.array::<3>().ok()?;
        let len = u32::from_be_bytes([0, a, b, c]);
        let body = reader.bytes(usize::try_from(len).ok()?).ok()?;
        Some(Message { kind, body })
    })
    .collect()
}

/// Returns the random value and the cipher suites of a ClientHello.
pub(crate) fn client_hello(body: &[u8]) -> Option<([u8; 32], Vec<u16>)> {
    let mut reader = Reader::new(body);
    reader.u16().ok()?;
    let random = reader.array().ok()?;
    let session = reader.u8().ok()?;
    reader.bytes(usize::from(session)).ok()?;
    let len = reader.u16().ok()?;
    let suites = reader.bytes(usize::from(len)).ok()?;
    let suites = suites
        .chunks_exact(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    Some((random, suites.collect()))
}

/// Returns the cipher suite of a ServerHello.
pub(crate) fn server_hello(body: &[u8]) -> Option<u16> {
    let mut reader = Reader::new(body);
    reader.bytes(2 + 32).ok()?;
    let session = reader.u8().ok()?;
    reader.bytes(usize::from(session)).ok()?;
    reader.u16().ok()
}

/// Returns `initial_max_streams_bidi` from the transport parameters in EncryptedExtensions; 0 if
/// there are parameters without it. RFC 9000 §18.2.
pub(crate) fn max_streams_bidi(body: &[u8]) -> Option<u64> {
    let parameters = transport_parameters(body)?;
    let value = parameter(parameters, INITIAL_MAX_STREAMS_BIDI);
    Some(
        value
            .and_then(|value| Reader::new(value).varint().ok())
            .unwrap_or(0),
    )
}

/// Returns the connection ID in the server's `preferred_address`, to which the client sends there.
/// RFC 9000 §18.2.
pub(crate) fn preferred_id(body: &[u8]) -> Option<ConnectionId> {
    let value = parameter(transport_parameters(body)?, PREFERRED_ADDRESS)?;
    // Two addresses with their ports come before it.
    let rest = value.get(4 + 2 + 16 + 2..)?;
    let (len, rest) = rest.split_first()?;
    ConnectionId::new(rest.get(..usize::from(*len))?)
}

/// Returns the transport parameters in EncryptedExtensions.
fn transport_parameters(body: &[u8]) -> Option<&[u8]> {
    let mut extensions = Reader::new(body.get(2..)?);
    loop {
        let kind = extensions.u16().ok()?;
        let len = extensions.u16().ok()?;
        let content = extensions.bytes(usize::from(len)).ok()?;
        if kind == QUIC_TRANSPORT_PARAMETERS {
            return Some(content);
        }
    }
}

fn parameter(content: &[u8], id: u64) -> Option<&[u8]> {
    let mut parameters = Reader::new(content);
    loop {
        let next = parameters.varint().ok()?;
        let value = parameters.varint_bytes().ok()?;
        if next == id {
            return Some(value);
        }
    }
}

pub(crate) const CLIENT_HELLO: u8 = 1;
pub(crate) const SERVER_HELLO: u8 = 2;
pub(crate) const ENCRYPTED_EXTENSIONS: u8 = 8;
pub(crate) const CERTIFICATE: u8 = 11;
/// A compressed certificate, RFC 8879.
pub(crate) const COMPRESSED_CERTIFICATE: u8 = 25;

const QUIC_TRANSPORT_PARAMETERS: u16 = 0x39;
const INITIAL_MAX_STREAMS_BIDI: u64 = 8;
const PREFERRED_ADDRESS: u64 = 0x0d;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_out_of_order_make_one_prefix() {
        let mut bytes = CryptoBytes::default();
        bytes.insert(3, b"defg");
        assert!(bytes.prefix().is_empty());
        bytes.insert(0, b"abcd");
        bytes.insert(20, b"later");
        assert_eq!(bytes.prefix(), b"abcdefg");
    }

    #[test]
    fn messages_end_before_an_incomplete_one() {
        let bytes = [8, 0, 0, 2, 1, 2, 11, 0, 0, 9, 1];
        let found = messages(&bytes);
        let body: &[u8] = &[1, 2];
        assert_eq!(found, [Message { kind: 8, body }]);
    }

    #[test]
    fn limit_on_streams_is_found_among_other_parameters() {
        let parameters = [0x04, 0x02, 0x40, 0x64, 0x08, 0x02, 0x43, 0xe8];
        let mut body = vec![0, 0, 0x00, 0x10, 0x00, 0x01, 0xff, 0x00, 0x39, 0x00, 8];
        body.extend(parameters);
        assert_eq!(max_streams_bidi(&body), Some(1000));
    }

    #[test]
    fn id_for_the_preferred_address_is_found() {
        let mut value = vec![7; 24];
        value.extend([4, 1, 2, 3, 4]);
        value.extend([9; 16]);
        let len = value.len() as u8;
        let mut body = vec![0, 0, 0x00, 0x39, 0x00, 2 + len, 0x0d, len];
        body.extend(value);
        assert_eq!(preferred_id(&body), ConnectionId::new(&[1, 2, 3, 4]));
        assert_eq!(max_streams_bidi(&body), Some(0));
    }

    #[test]
    fn suites_of_a_client_hello_follow_its_session_id() {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([2, 0xaa, 0xbb, 0, 4, 0x13, 0x03, 0x13, 0x01]);
        assert_eq!(client_hello(&body), Some(([7; 32], vec![0x1303, 0x1301])));
    }
}
