//! The lines of JSON on the stream of a measurement.
//!
//! The client sends [`DATAGRAM_REQUEST`] and [`Start`], and the server answers with [`Accepted`]. Each end
//! that sends datagrams sends [`Ended`] after the last one. The server sends [`Counted`] when it has
//! counted those of the client.

use std::time::Duration;

use bytes::{Buf, BytesMut};
use courser_measure::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::carrier::Receiving;
use crate::plan::Direction;

/// Requests a measurement of datagrams, in place of the length of a response.
///
/// No client requests 7 * 10^18 bytes.
pub(crate) const DATAGRAM_REQUEST: u64 = u64::from_be_bytes(*b"courser!");

/// The version of these lines and of the header of datagrams. Both ends must use the same version.
pub(crate) const VERSION: u32 = 1;

/// The request of a client.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Start {
    /// The version that the client uses.
    pub(crate) version: u32,
    pub(crate) direction: Direction,
    /// Bytes of a datagram.
    pub(crate) size: u16,
    /// Bits of content per second; `None` sends as fast as congestion control allows.
    pub(crate) rate: Option<u64>,
    /// Milliseconds for which datagrams are sent, if time is the limit.
    pub(crate) millis: Option<u64>,
    /// Number of datagrams in each direction, if it is the limit.
    pub(crate) number: Option<u64>,
}

/// The answer of the server.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Accepted {
    /// The version that the server uses.
    pub(crate) version: u32,
    /// The reason, if the server refuses the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
}

/// The counts of the sending end, after its last datagram.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ended {
    /// Datagrams that were sent.
    pub(crate) sent: u64,
    /// Payload bytes of these datagrams.
    pub(crate) bytes: u64,
    /// Datagrams that were dropped before they were sent.
    pub(crate) unsent: u64,
    /// The time from the first to the last datagram sent, in microseconds.
    pub(crate) micros: u64,
}

/// The counts of the receiving end.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) received: u64,
    /// Payload bytes of these datagrams.
    pub(crate) bytes: u64,
    pub(crate) reordered: u64,
    pub(crate) duplicated: u64,
    pub(crate) jitter_ns: u64,
    /// The time from the first to the last datagram received, in microseconds.
    pub(crate) micros: u64,
}

impl Start {
    /// Returns the reason why this server cannot run the measurement, or `None` if it can.
    pub(crate) fn refusal(&self) -> Option<String> {
        if self.version != VERSION {
            let theirs = self.version;
            return Some(format!(
                "version {theirs} of datagram measurements is not supported, only version {VERSION}"
            ));
        }
        if self.millis.is_none() == self.number.is_none() {
            return Some("datagrams need a time or a number as their limit".to_owned());
        }
        None
    }

    pub(crate) fn time(&self) -> Option<Duration> {
        self.millis.map(Duration::from_millis)
    }

    pub(crate) fn uploads(&self) -> bool {
        self.direction != Direction::Download
    }

    pub(crate) fn downloads(&self) -> bool {
        self.direction != Direction::Upload
    }
}

/// Encodes a message as a line of JSON.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    // Writing plain numbers and text cannot fail.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads lines from a stream.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    stream: R,
    buffer: BytesMut,
}

impl<R: Receiving> Lines<R> {
    /// Reads lines from `start` and then from `stream`.
    pub(crate) fn new(start: &[u8], stream: R) -> Self {
        Self {
            stream,
            buffer: BytesMut::from(start),
        }
    }

    /// Reads the next message.
    ///
    /// # Errors
    /// Returns an error if the stream ends or fails, or if the line is too long or not a `T`.
    ///
    /// # Cancel safety
    /// No bytes are lost if the future is dropped before it completes.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let too_long = || Failure::new("the peer sent a message that is too long");
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                if end >= MAX_LINE {
                    return Err(too_long());
                }
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                let message = serde_json::from_slice(&line);
                return message.map_err(|_| Failure::new("the peer sent an unknown message"));
            }
            if self.buffer.len() >= MAX_LINE {
                return Err(too_long());
            }
            match self.stream.read_chunk(MAX_LINE).await? {
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
                None => return Err(Failure::new("the peer ended the measurement early")),
            }
        }
    }
}

/// Largest size of a line with its end: K197.
const MAX_LINE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    const START: Start = Start {
        version: VERSION,
        direction: Direction::Both,
        size: 1000,
        rate: Some(1_000_000),
        millis: Some(500),
        number: None,
    };

    #[test]
    fn requests_are_read_as_written_and_unknown_fields_are_ignored() {
        let text = line(&START);
        assert_eq!(serde_json::from_slice::<Start>(&text).ok(), Some(START));
        let newer = br#"{"version":1,"refused":"no","color":[1]}"#;
        let accepted: Accepted = serde_json::from_slice(newer).expect("readable");
        assert_eq!(accepted.refused.as_deref(), Some("no"));
    }

    #[test]
    fn other_versions_and_unlimited_measurements_are_refused() {
        assert_eq!(START.refusal(), None);
        let newer = Start {
            version: 2,
            ..START
        };
        assert_eq!(
            newer.refusal().as_deref(),
            Some("version 2 of datagram measurements is not supported, only version 1")
        );
        let endless = Start {
            millis: None,
            ..START
        };
        assert!(endless.refusal().is_some());
        let both = Start {
            number: Some(3),
            ..START
        };
        assert!(both.refusal().is_some());
    }
}
