//! Capsules and datagrams as they are sent.

use bytes::Bytes;
use courser_http3::Capsule;

use super::super::datagrams::{DatagramError, Datagrams};
use super::super::error::Error;

/// Encodes a capsule.
pub(super) fn encode(kind: u64, value: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(value.len() + 16);
    Capsule::encode(&mut bytes, kind, value);
    bytes.into()
}

/// Sends a datagram in a DATAGRAM frame. Returns `None` if it must be sent in a capsule.
pub(super) fn in_frame(datagrams: Option<&Datagrams>, payload: &[u8]) -> Option<Result<(), Error>> {
    match datagrams?.send(payload) {
        Ok(()) => Some(Ok(())),
        Err(DatagramError::ConnectionLost(error)) => Some(Err(error.into())),
        Err(DatagramError::StreamOver) => Some(Err(Error::closed())),
        Err(_) => None,
    }
}
