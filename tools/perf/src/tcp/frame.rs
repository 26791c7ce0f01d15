//! Requests over TCP, and filler bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::meter::Meter;
use crate::wire::filler_slice;

/// The header of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    /// Requested length of the response.
    pub(super) response: u64,
    /// Length of the request; [`UNTIL_END`] if it ends with the connection.
    pub(super) request: u64,
}

pub(super) const FRAME: usize = 16;
pub(super) const UNTIL_END: u64 = u64::MAX;

impl Frame {
    pub(super) fn to_bytes(self) -> [u8; FRAME] {
        let mut bytes = [0; FRAME];
        bytes[..8].copy_from_slice(&self.response.to_be_bytes());
        bytes[8..].copy_from_slice(&self.request.to_be_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; FRAME]) -> Self {
        let both = u128::from_be_bytes(bytes);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the two halves, one after the other"
        )]
        let (response, request) = ((both >> 64) as u64, both as u64);
        Self { response, request }
    }
}

/// Writes filler bytes. The caller flushes the stream.
pub(super) async fn write_filler(
    stream: &mut (impl AsyncWrite + Unpin),
    mut bytes: u64,
    meter: Option<&Meter>,
) -> io::Result<()> {
    while bytes > 0 {
        let chunk = filler_slice(bytes);
        stream.write_all(chunk).await?;
        bytes -= chunk.len() as u64;
        if let Some(meter) = meter {
            meter.on_sent(chunk.len());
        }
    }
    Ok(())
}

/// Reads and drops up to `bytes` bytes, fewer if the stream ends. Returns their number.
pub(super) async fn read_filler(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut [u8],
    bytes: u64,
    meter: Option<&Meter>,
) -> io::Result<u64> {
    let mut received = 0;
    while received < bytes {
        let len = usize::try_from(bytes - received)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = match stream.read(&mut buffer[..len]).await {
            Ok(0) => break,
            Ok(read) => read,
            // The peer closed the connection without a TLS close_notify.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        };
        received += read as u64;
        if let Some(meter) = meter {
            meter.on_received(read);
        }
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_is_read_as_written() {
        let frame = Frame {
            response: 0x0102,
            request: UNTIL_END,
        };
        assert_eq!(frame.to_bytes()[..8], 0x0102_u64.to_be_bytes());
        assert_eq!(Frame::from_bytes(frame.to_bytes()), frame);
    }
}
