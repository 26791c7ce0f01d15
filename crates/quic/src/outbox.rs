//! Batches on their way into the socket.

use std::io;

use courser_transport::{Transmit, TransmitBuffer};

use crate::runtime::Socket;

/// The one hot buffer that batches are built in, and the batch that the socket did not take yet.
#[derive(Debug)]
pub(crate) struct Outbox {
    buffer: TransmitBuffer,
    kept: Option<Kept>,
    /// Datagrams leave one at a time, whatever the socket can do.
    is_one_by_one: bool,
}

/// A batch in the buffer of which the first bytes have left.
#[derive(Clone, Copy, Debug)]
struct Kept {
    transmit: Transmit,
    sent: usize,
}

impl Outbox {
    pub(crate) fn new(max_segments: usize) -> Self {
        Self {
            buffer: TransmitBuffer::new(max_segments),
            kept: None,
            is_one_by_one: false,
        }
    }

    /// Decides whether the socket is given batches, of which it makes datagrams, or each datagram
    /// by itself.
    pub(crate) fn set_segmentation_offload(&mut self, socket: &Socket, enabled: bool) {
        self.is_one_by_one = !enabled;
        self.buffer.set_max_segments(self.max_segments(socket));
    }

    fn max_segments(&self, socket: &Socket) -> usize {
        if self.is_one_by_one {
            1
        } else {
            socket.gso_segments()
        }
    }

    /// True while a batch waits for the socket: the buffer is not free for another one.
    pub(crate) fn is_blocked(&self) -> bool {
        self.kept.is_some()
    }

    /// The buffer in which the next batch is built.
    pub(crate) fn buffer(&mut self) -> &mut TransmitBuffer {
        debug_assert!(
            !self.is_blocked(),
            "the buffer holds a batch that has not left"
        );
        &mut self.buffer
    }

    /// Sends what was just built. False when the socket is full: the batch is kept.
    ///
    /// # Errors
    /// Only when the socket is of no use any more; what one destination refuses counts as lost
    /// on the way.
    pub(crate) fn send(&mut self, socket: &Socket, transmit: Transmit) -> io::Result<bool> {
        self.go_on(socket, Kept { transmit, sent: 0 })
    }

    /// Tries the kept batch again. False when the socket is still full.
    ///
    /// # Errors
    /// As [`Outbox::send`].
    pub(crate) fn resume(&mut self, socket: &Socket) -> io::Result<bool> {
        match self.kept.take() {
            Some(kept) => self.go_on(socket, kept),
            None => Ok(true),
        }
    }

    fn go_on(&mut self, socket: &Socket, mut kept: Kept) -> io::Result<bool> {
        while kept.sent < kept.transmit.len {
            let rest = &self.buffer.bytes()[kept.sent..];
            // A batch that was kept may be older than the wish for single datagrams.
            let piece = match kept.transmit.segment_size {
                Some(size) if self.is_one_by_one => size.min(rest.len()),
                _ => rest.len(),
            };
            let batch = courser_udp::Transmit {
                destination: kept.transmit.destination,
                source: kept.transmit.source,
                ecn: kept.transmit.ecn,
                segment_size: kept.transmit.segment_size,
                contents: &rest[..piece],
            };
            match socket.try_send_some(&batch) {
                Ok(taken) => kept.sent += taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.kept = Some(kept);
                    return Ok(false);
                }
                Err(error) if courser_udp::is_transient(&error) => break,
                Err(error) => return Err(error),
            }
        }
        // Offload that turned out to be broken shows here.
        let max_segments = self.max_segments(socket);
        if max_segments < self.buffer.max_segments() {
            self.buffer.set_max_segments(max_segments);
        }
        Ok(true)
    }
}
