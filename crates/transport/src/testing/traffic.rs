//! Streams of known bytes between the ends of a pair.

use std::time::Duration;

use courser_wire::{Direction, StreamId};

use super::{End, Pair};
use crate::stream::{ReadError, WriteError};

/// One transfer on a unidirectional stream.
pub(crate) struct Transfer {
    to_client: bool,
    id: StreamId,
    len: usize,
    written: usize,
    received: usize,
    accepted: Option<StreamId>,
    is_finished: bool,
}

fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

impl Transfer {
    /// Starts a transfer of `len` bytes from the client to the server.
    pub(crate) fn up(pair: &mut Pair, len: usize) -> Self {
        Self::new(pair, false, len)
    }

    /// Starts a transfer of `len` bytes from the server to the client.
    pub(crate) fn down(pair: &mut Pair, len: usize) -> Self {
        Self::new(pair, true, len)
    }

    fn new(pair: &mut Pair, to_client: bool, len: usize) -> Self {
        let sender = if to_client {
            &mut pair.server
        } else {
            &mut pair.client
        };
        let id = sender
            .connection()
            .streams()
            .open(Direction::Unidirectional)
            .expect("a stream is allowed");
        let mut transfer = Self {
            to_client,
            id,
            len,
            written: 0,
            received: 0,
            accepted: None,
            is_finished: false,
        };
        transfer.step(pair);
        transfer
    }

    /// Writes and reads as much as is possible now. Returns true when all bytes have arrived.
    pub(crate) fn step(&mut self, pair: &mut Pair) -> bool {
        let (sender, receiver) = match self.to_client {
            true => (&mut pair.server, &mut pair.client),
            false => (&mut pair.client, &mut pair.server),
        };
        self.write(sender);
        self.read(receiver);
        self.is_finished
    }

    fn write(&mut self, end: &mut End) {
        while self.written < self.len {
            let next: Vec<u8> = (self.written..self.len.min(self.written + 10_000))
                .map(byte)
                .collect();
            let streams = end.connection().streams();
            match streams.write(self.id, &next) {
                Ok(n) => self.written += n,
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
            if self.written == self.len {
                streams.finish(self.id).expect("open");
            }
        }
        end.touch();
    }

    fn read(&mut self, end: &mut End) {
        if self.is_finished {
            return;
        }
        let streams = end.connection().streams();
        self.accepted = self
            .accepted
            .or_else(|| streams.accept(Direction::Unidirectional));
        let Some(id) = self.accepted else { return };
        let mut buffer = [0; 65_536];
        loop {
            match streams.read(id, &mut buffer) {
                Ok(Some(n)) => {
                    let is_correct = buffer[..n]
                        .iter()
                        .zip(self.received..)
                        .all(|(b, at)| *b == byte(at));
                    assert!(is_correct, "wrong bytes behind {}", self.received);
                    self.received += n;
                }
                Ok(None) => {
                    assert_eq!(self.received, self.len);
                    self.is_finished = true;
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
        }
        end.touch();
    }

    /// Runs until all bytes have arrived and returns the duration; `None` after `limit`.
    pub(crate) fn finish(mut self, pair: &mut Pair, limit: Duration) -> Option<Duration> {
        let begun = pair.now;
        while !self.step(pair) {
            if pair.now - begun > limit {
                return None;
            }
            pair.step();
        }
        Some(pair.now - begun)
    }

    /// Returns the number of bytes that have arrived.
    pub(crate) fn received(&self) -> usize {
        self.received
    }
}

impl Pair {
    /// Runs until the next event, but for a second at most.
    pub(crate) fn step(&mut self) {
        let before = self.now;
        self.run_until(Duration::from_secs(1), |pair| pair.now > before);
    }

    /// Transfers `len` bytes from the client to the server and returns the duration.
    pub(crate) fn upload(&mut self, len: usize) -> Duration {
        Transfer::up(self, len)
            .finish(self, LIMIT)
            .expect("the upload ends")
    }

    /// Transfers `len` bytes from the server to the client and returns the duration.
    pub(crate) fn download(&mut self, len: usize) -> Duration {
        Transfer::down(self, len)
            .finish(self, LIMIT)
            .expect("the download ends")
    }
}

const LIMIT: Duration = Duration::from_secs(300);
