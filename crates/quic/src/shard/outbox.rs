//! The sockets of a shard, and the batch that waits to be sent.

use std::io;
use std::sync::Arc;

use courser_base::{Ecn, Time, Unreachable};
use courser_transport::{SocketId, Transmit, TransmitBuffer};

use crate::runtime::Socket;
use crate::shard::health::Health;
use crate::shard::socket_event::SocketCall as Call;
use crate::shard::sockets::Sockets;
use crate::shard::timing::{KeptBatch, SendTiming};
use crate::via::Via;

/// The sockets, the buffer in which batches are built, and the timing of sending.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) sockets: Sockets,
    buffer: TransmitBuffer,
    pub(crate) timing: SendTiming,
    /// Datagrams are sent one at a time, even if the socket supports batches.
    is_one_by_one: bool,
    /// The condition of the socket in use.
    pub(crate) health: Health,
    /// The system has left out the ECN marks of a batch.
    are_marks_refused: bool,
    /// The system could not reach the destination of the last batch.
    unreachable: Option<Unreachable>,
    /// The system refused a datagram of the last batch because of its size.
    is_too_large: bool,
}

impl Outbox {
    pub(crate) fn new(socket: Arc<Socket>) -> Self {
        Self {
            buffer: TransmitBuffer::new(socket.gso_segments()),
            sockets: Sockets::new(socket),
            timing: SendTiming::default(),
            is_one_by_one: false,
            health: Health::default(),
            are_marks_refused: false,
            unreachable: None,
            is_too_large: false,
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
        self.health.on_other_socket();
        // A batch that is kept is in the buffer already, and is cut as it was.
        self.buffer.set_max_segments(self.max_segments());
        id
    }

    /// Adds a socket for further paths, unless there are too many.
    pub(crate) fn add_socket_beside(&mut self, via: Via, socket: Arc<Socket>) -> Option<SocketId> {
        let id = self.sockets.add_beside(via, socket);
        self.buffer.set_max_segments(self.max_segments());
        id
    }

    /// Returns the socket that the kept batch waits for.
    pub(crate) fn blocked_socket(&self) -> Option<(SocketId, Arc<Socket>)> {
        let id = self.timing.kept_socket()?;
        Some((id, self.sockets.get(id)?.clone()))
    }

    /// Enables or disables batches, which the socket splits into datagrams.
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

    /// Frees the memory of the buffer, unless it holds a batch that was not sent. The next batch allocates it again.
    pub(crate) fn give_back_buffer(&mut self) {
        if !self.timing.is_blocked() {
            self.buffer.free();
        }
    }

    /// Sends the batch that was just built. Returns false if the socket is full or lost, and keeps the batch. A batch
    /// that the system refuses counts as lost.
    pub(crate) fn send(&mut self, now: Time, transmit: Transmit) -> bool {
        (self.unreachable, self.is_too_large) = (None, false);
        self.send_rest(now, KeptBatch { transmit, sent: 0 })
    }

    /// Tries to send the kept batch again. Returns false if the socket is still full or lost.
    pub(crate) fn resume(&mut self, now: Time) -> bool {
        match self.timing.take_kept() {
            Some(kept) => self.send_rest(now, kept),
            None => true,
        }
    }

    /// Returns the reason why the system could not send the last batch to its destination, once.
    #[inline]
    pub(crate) fn take_unreachable(&mut self) -> Option<Unreachable> {
        self.unreachable.take()
    }

    /// Returns true once if the system refused a datagram of the last batch because of its size.
    #[inline]
    pub(crate) fn take_too_large(&mut self) -> bool {
        std::mem::take(&mut self.is_too_large)
    }

    /// Returns true once if a batch with ECN marks has left without them.
    #[inline]
    pub(crate) fn take_marks_refused(&mut self) -> bool {
        std::mem::take(&mut self.are_marks_refused)
    }

    /// Replaces the socket in use by one on the same address. Returns the one before.
    pub(crate) fn replace_socket(&mut self, socket: Socket) -> Arc<Socket> {
        let before = self.sockets.replace_newest(socket);
        self.buffer.set_max_segments(self.max_segments());
        before
    }

    fn send_rest(&mut self, now: Time, mut kept: KeptBatch) -> bool {
        let id = kept.transmit.socket;
        let Some(socket) = self.sockets.get(id) else {
            // The socket was given up, and the batch is lost.
            return true;
        };
        let is_newest = id == self.sockets.newest_id();
        if is_newest && self.health.is_lost() {
            self.timing = SendTiming::Blocked(kept);
            return false;
        }
        while kept.sent < kept.transmit.len {
            let rest = &self.buffer.bytes()[kept.sent..];
            // A kept batch may be older than the setting for single datagrams.
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
                Ok(taken) => {
                    kept.sent += taken;
                    if is_newest {
                        self.health.on_sent();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.timing = SendTiming::Blocked(kept);
                    return false;
                }
                Err(error) if is_newest => {
                    self.unreachable = courser_udp::unreachable_cause(&error);
                    self.is_too_large = courser_udp::is_too_large(&error);
                    self.health.on_error(now, Call::Send, error);
                    if self.health.is_lost() {
                        self.timing = SendTiming::Blocked(kept);
                        return false;
                    }
                    break;
                }
                Err(error) => {
                    self.unreachable = courser_udp::unreachable_cause(&error);
                    self.is_too_large = courser_udp::is_too_large(&error);
                    self.health.note_error(now, Call::Send, &error);
                    if !courser_udp::is_transient(&error) {
                        // Only connections that need it lose their path.
                        self.sockets.give_up(id);
                        return true;
                    }
                    break;
                }
            }
        }
        self.are_marks_refused |= kept.transmit.ecn != Ecn::NotEct && !socket.can_mark();
        // The socket may have found that offload does not work.
        let max_segments = self.max_segments();
        if max_segments < self.buffer.max_segments() {
            self.buffer.set_max_segments(max_segments);
        }
        true
    }
}
