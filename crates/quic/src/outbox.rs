//! Batches on their way into the socket.

use std::io;
use std::sync::Arc;

use courser_transport::{SocketId, Transmit, TransmitBuffer};

use crate::runtime::Socket;
use crate::sockets::Sockets;
use crate::timing::{Kept, SendTiming};

/// The sockets, the one hot buffer that batches are built in, and the timing of what is sent.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) sockets: Sockets,
    buffer: TransmitBuffer,
    pub(crate) timing: SendTiming,
    /// Datagrams leave one at a time, whatever the socket can do.
    is_one_by_one: bool,
}

impl Outbox {
    pub(crate) fn new(socket: Arc<Socket>) -> Self {
        Self {
            buffer: TransmitBuffer::new(socket.gso_segments()),
            sockets: Sockets::new(socket),
            timing: SendTiming::default(),
            is_one_by_one: false,
        }
    }

    pub(crate) fn socket(&self) -> &Socket {
        self.sockets.newest()
    }

    /// Adds a socket, from which later connections send. `is_needed` returns whether a connection needs an
    /// earlier one.
    pub(crate) fn add_socket(
        &mut self,
        socket: Arc<Socket>,
        is_needed: impl FnMut(SocketId) -> bool,
    ) -> SocketId {
        let id = self.sockets.add(socket, is_needed);
        // A batch that is kept is in the buffer already, and is cut as it was.
        self.buffer.set_max_segments(self.max_segments());
        id
    }

    /// Returns the socket that the kept batch waits for.
    pub(crate) fn blocked_socket(&self) -> Option<(SocketId, Arc<Socket>)> {
        let id = self.timing.kept_socket()?;
        Some((id, self.sockets.get(id)?.clone()))
    }

    /// Decides whether the socket is given batches, of which it makes datagrams, or one datagram at
    /// a time.
    pub(crate) fn set_segmentation_offload(&mut self, enabled: bool) {
        self.is_one_by_one = !enabled;
        self.buffer.set_max_segments(self.max_segments());
    }

    fn max_segments(&self) -> usize {
        if self.is_one_by_one {
            1
        } else {
            self.sockets.gso_segments()
        }
    }

    /// Returns the buffer in which the next batch is built.
    pub(crate) fn buffer(&mut self) -> &mut TransmitBuffer {
        debug_assert!(
            !self.timing.is_blocked(),
            "the buffer holds a batch that has not left"
        );
        &mut self.buffer
    }

    /// Sends what was just built. False when the socket is full: the batch is kept.
    ///
    /// # Errors
    /// Only when the socket is of no use any more; what one destination refuses counts as lost
    /// on the way.
    pub(crate) fn send(&mut self, transmit: Transmit) -> io::Result<bool> {
        self.send_rest(Kept { transmit, sent: 0 })
    }

    /// Tries the kept batch again. False when the socket is still full.
    ///
    /// # Errors
    /// As [`Outbox::send`].
    pub(crate) fn resume(&mut self) -> io::Result<bool> {
        match self.timing.take_kept() {
            Some(kept) => self.send_rest(kept),
            None => Ok(true),
        }
    }

    fn send_rest(&mut self, mut kept: Kept) -> io::Result<bool> {
        let Some(socket) = self.sockets.get(kept.transmit.socket) else {
            // It was given up: the batch is lost on the way.
            return Ok(true);
        };
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
                    self.timing = SendTiming::Blocked(kept);
                    return Ok(false);
                }
                Err(error) if courser_udp::is_transient(&error) => break,
                Err(error) if kept.transmit.socket == self.sockets.newest_id() => {
                    return Err(error);
                }
                // An earlier socket: those that need it lose their way, and no others.
                Err(_) => {
                    self.sockets.give_up(kept.transmit.socket);
                    return Ok(true);
                }
            }
        }
        // Offload that turned out to be broken shows here.
        let max_segments = self.max_segments();
        if max_segments < self.buffer.max_segments() {
            self.buffer.set_max_segments(max_segments);
        }
        Ok(true)
    }
}
