//! Checks of a ClientHello that rustls does not perform, and its transport parameters before rustls
//! reads it.

use courser_crypto::TlsError;
use courser_wire::Reader;

/// Checks that a ClientHello does not use the compatibility mode of TLS, which QUIC forbids.
///
/// A QUIC client leaves legacy_session_id empty. A server should treat any other value as
/// PROTOCOL_VIOLATION (RFC 9001 §8.4).
#[derive(Debug, Default)]
pub(crate) struct ClientHelloCheck {
    /// Number of bytes checked so far. Stays unchanged once the length of legacy_session_id was
    /// checked.
    seen: usize,
}

impl ClientHelloCheck {
    /// Checks the next bytes of the Initial CRYPTO stream.
    pub(crate) fn on_bytes(&mut self, data: &[u8]) -> Result<(), TlsError> {
        let Some(ahead) = SESSION_ID_LEN_OFFSET.checked_sub(self.seen) else {
            return Ok(());
        };
        self.seen += data.len().min(ahead + 1);
        match data.get(ahead) {
            None | Some(0) => Ok(()),
            Some(_) => Err(TlsError::protocol_violation(
                "legacy_session_id is not empty",
            )),
        }
    }
}

/// Offset of the length of legacy_session_id. The message type and length, the version and the
/// client's random come first. RFC 8446 §4.1.2.
const SESSION_ID_LEN_OFFSET: usize = 1 + 3 + 2 + 32;

/// Returns true if `bytes` is the beginning of an incomplete ClientHello. Returns false for other
/// messages.
pub(crate) fn is_incomplete(bytes: &[u8]) -> bool {
    let Some((&kind, rest)) = bytes.split_first() else {
        return true;
    };
    let Some(&[high, middle, low]) = rest.first_chunk() else {
        return kind == CLIENT_HELLO;
    };
    let len = u32::from_be_bytes([0, high, middle, low]);
    kind == CLIENT_HELLO && rest.len() - 3 < len as usize
}

/// Returns the encoded transport parameters in a ClientHello, or `None` if it has none or is
/// malformed, which TLS detects too. RFC 8446 §4.1.2, RFC 9001 §8.2.
pub(crate) fn transport_parameters(hello: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(hello);
    // Message type and length, version and random.
    reader.bytes(1 + 3 + 2 + 32).ok()?;
    let session_id = reader.u8().ok()?;
    reader.bytes(session_id.into()).ok()?;
    let suites = reader.u16().ok()?;
    reader.bytes(suites.into()).ok()?;
    let compression = reader.u8().ok()?;
    reader.bytes(compression.into()).ok()?;
    let extensions = reader.u16().ok()?;
    let mut extensions = Reader::new(reader.bytes(extensions.into()).ok()?);
    while !extensions.is_empty() {
        let kind = extensions.u16().ok()?;
        let len = extensions.u16().ok()?;
        let content = extensions.bytes(len.into()).ok()?;
        if kind == QUIC_TRANSPORT_PARAMETERS {
            return Some(content);
        }
    }
    None
}

/// Returns true if the first records of a client over TCP hold a ClientHello with QUIC transport
/// parameters, which a server must refuse there (RFC 9001 §8.2). Returns false while the message is
/// incomplete.
pub fn offers_quic(records: &[u8]) -> bool {
    let mut hello = Vec::with_capacity(records.len());
    let mut reader = Reader::new(records);
    while let Ok(HANDSHAKE_RECORD) = reader.u8() {
        // The version of the record.
        let Some(content) = reader
            .u16()
            .and_then(|_| reader.u16())
            .ok()
            .and_then(|len| reader.bytes(len.into()).ok())
        else {
            break;
        };
        hello.extend_from_slice(content);
    }
    !is_incomplete(&hello) && transport_parameters(&hello).is_some()
}

/// The type of records with handshake messages. RFC 8446 §5.1.
const HANDSHAKE_RECORD: u8 = 22;

/// The type of a ClientHello. RFC 8446 §4.
const CLIENT_HELLO: u8 = 1;

/// The type of the extension quic_transport_parameters. RFC 9001 §8.2.
const QUIC_TRANSPORT_PARAMETERS: u16 = 0x39;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CLIENT_PARAMETERS, SERVER_NAME, options, tls};
    use courser_crypto::ClientTls as _;

    /// Splits a message into records of at most `max` bytes.
    fn records(message: &[u8], max: usize) -> Vec<u8> {
        let record = |content: &[u8]| {
            let len = u16::try_from(content.len())
                .expect("a record has at most 16 KiB")
                .to_be_bytes();
            [&[HANDSHAKE_RECORD, 3, 1][..], &len, content].concat()
        };
        message.chunks(max).flat_map(record).collect()
    }

    fn hello_of_quic() -> Vec<u8> {
        let (client, _) = tls(options());
        let session = client.start(SERVER_NAME, CLIENT_PARAMETERS.to_vec());
        let mut end = crate::testing::End::new(session.expect("the client starts a session"));
        end.flight()
            .into_iter()
            .flat_map(|(_, bytes)| bytes)
            .collect()
    }

    #[test]
    fn transport_parameters_are_found_in_records() {
        let hello = hello_of_quic();
        for max in [hello.len(), 700, 1] {
            let whole = records(&hello, max);
            assert!(offers_quic(&whole), "records of {max} bytes");
            assert!(
                !offers_quic(&whole[..whole.len() - 1]),
                "the last byte is missing"
            );
        }
        // The same message with another extension instead of the parameters.
        let parameters =
            transport_parameters(&hello).expect("a QUIC client sends transport parameters");
        let at = parameters.as_ptr() as usize - hello.as_ptr() as usize - 4;
        let mut other = hello.clone();
        other[at..at + 2].copy_from_slice(&[0xfe, 0xfe]);
        assert!(!offers_quic(&records(&other, 16_384)));
    }

    #[test]
    fn other_bytes_offer_nothing() {
        let hello = hello_of_quic();
        assert!(!offers_quic(&[]));
        assert!(!offers_quic(&hello), "a message without records");
        assert!(!offers_quic(b"GET / HTTP/1.1\r\n\r\n"));
        let mut alert = records(&hello, 16_384);
        alert[0] = 21;
        assert!(!offers_quic(&alert));
    }
}
