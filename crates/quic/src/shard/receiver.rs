//! The receiving half of the driver: the sockets of a shard, and what it takes from them in a turn.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_base::{FourTuple, Time};
use courser_transport::{MisroutedBatch, PacketTooBig, ReceiveMeta, SocketId, UnreachableReport};
use courser_udp::Received;

use crate::runtime::Socket;
use crate::shard::lock::Shard;
use crate::shard::pause::Pause;
use crate::shard::receive_buffer::ReceiveBuffer;
use crate::shard::socket_event::SocketCall;
use crate::shard::sockets::Sockets;

/// Receives the datagrams and ICMP messages of a shard.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The sockets to receive from: earlier ones, and last the one in use.
    sockets: Vec<(SocketId, Arc<Socket>)>,
    /// The version of the copied list of sockets.
    generation: u32,
    /// A socket may have more than one turn takes.
    has_more: bool,
    pause: Pause,
    /// Datagrams that other shards have received for this one. Kept for its memory.
    misrouted: VecDeque<MisroutedBatch>,
    /// The socket in use receives nothing any more and waits to be replaced.
    cannot_receive: bool,
    /// Another process receives from the socket in use.
    is_given_away: bool,
    /// Receive calls of the socket in use have failed since the last one that succeeded.
    has_receive_errors: bool,
}

/// The effect of one received batch on the rest of the turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Taken {
    /// The readers should run before more is received.
    Crowded,
    /// The batch belongs to a storm of clients: its bytes were kept for a client without a connection, it was
    /// answered with a Retry, or clients wait for the application. Or it was dropped unread.
    Arrival,
    /// The batch counts as one receive call of the turn.
    Rest,
}

/// Datagrams per turn that do not count as receive calls while clients wait for the application (limit
/// K31). A storm of clients comes in single datagrams, and so do the answers of those that were
/// accepted. While they stay in the socket, others are lost, and peers repeat theirs.
const ARRIVALS_PER_TURN: usize = 256;
/// Time after which a turn ends regardless of [`ARRIVALS_PER_TURN`] (limit K31). A first flight costs ten
/// times what a datagram of a flood costs, and peers with a connection are answered once a turn.
const LONGEST_ARRIVALS: Duration = Duration::from_millis(1);
/// Receive calls per turn (limit K31). Empty and refused ones count, since they cost as much.
const RECEIVES_PER_TURN: usize = 8;
/// ICMP messages processed per turn, of each kind. Matches the number that a socket keeps.
const ICMP_MESSAGES_PER_TURN: usize = 64;
impl Receiver {
    pub(crate) fn new(socket: Arc<Socket>) -> Self {
        Self {
            sockets: vec![(SocketId::default(), socket)],
            generation: 0,
            has_more: false,
            pause: Pause::default(),
            misrouted: VecDeque::new(),
            cannot_receive: false,
            is_given_away: false,
            has_receive_errors: false,
        }
    }

    /// Processes the datagrams that other shards have received for this one, and receives until the sockets are
    /// empty or the turn has received enough.
    pub(crate) fn run_turn(&mut self, shard: &Shard, cx: &mut Context<'_>) {
        self.handle_misrouted(shard, cx);
        self.receive(shard, cx);
        self.handle_icmp_messages(shard);
        if self
            .sockets
            .iter()
            .any(|(_, socket)| socket.take_interface_change())
        {
            shard.lock().refresh_interface_mtus();
        }
    }

    /// Checks for datagrams that have arrived since the turn began. They woke the driver while it was awake, so that
    /// no second wakeup follows.
    pub(crate) fn check_readable(&mut self, now: Time, cx: &mut Context<'_>) {
        let is_paused = self.pause.is_on(now);
        let sockets = self.sockets.iter().rev();
        let sockets = sockets.skip(usize::from(self.skips_newest()));
        let is_readable = sockets.fold(false, |any, (_, it)| it.is_readable(cx) || any);
        self.has_more |= !is_paused && is_readable;
    }

    /// Returns true if a socket may have more than the turn has taken.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns true like [`has_more`](Self::has_more), once.
    pub(crate) fn take_has_more(&mut self) -> bool {
        std::mem::take(&mut self.has_more)
    }

    /// Receives from the present sockets from now on. Returns true if they have changed.
    pub(crate) fn follow(&mut self, sockets: &Sockets) -> bool {
        let Some(changed) = sockets.changed_since(&mut self.generation) else {
            return false;
        };
        self.sockets = changed;
        self.cannot_receive = false;
        self.is_given_away = sockets.is_given_away();
        // The next turn receives there, and is woken by it from then on.
        self.has_more = true;
        true
    }

    /// Drops the socket that was in use until it was replaced.
    pub(crate) fn drop_replaced(&mut self) {
        self.sockets.pop();
    }

    /// Returns the time at which a pause of receiving ends.
    pub(crate) fn paused_until(&self) -> Option<Time> {
        self.pause.until()
    }

    /// Returns true if nothing is received from the socket in use.
    fn skips_newest(&self) -> bool {
        self.cannot_receive || self.is_given_away
    }

    /// Processes the datagrams that other shards have received for this one.
    fn handle_misrouted(&mut self, shard: &Shard, cx: &Context<'_>) {
        let Some(place) = &shard.place else {
            return;
        };
        place.take(cx.waker(), &mut self.misrouted);
        if self.misrouted.is_empty() {
            return;
        }
        let now = shard.now();
        let mut locked = shard.lock();
        for batch in self.misrouted.drain(..) {
            locked.endpoint.handle_misrouted(now, batch);
        }
    }

    /// Receives from all sockets, from the one in use first.
    fn receive(&mut self, shard: &Shard, cx: &mut Context<'_>) {
        let now = shard.now();
        if self.pause.is_on(now) {
            return;
        }
        let newest = self.sockets.len() - 1;
        let buffer = &mut ReceiveBuffer::take();
        if !self.skips_newest() {
            self.receive_from(shard, newest, now, cx, buffer);
        }
        for index in (0..newest).rev() {
            self.receive_from(shard, index, now, cx, buffer);
        }
    }

    /// Receives from one socket until it is empty or the turn has received enough.
    fn receive_from(
        &mut self,
        shard: &Shard,
        index: usize,
        now: Time,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) {
        let (id, socket) = self.sockets[index].clone();
        let (mut errors, mut left, mut arrivals) = (0, RECEIVES_PER_TURN, ARRIVALS_PER_TURN);
        while left > 0 {
            left -= 1;
            match socket.poll_receive(cx, buffer) {
                Poll::Pending => {
                    self.pause.end();
                    self.forget_receive_errors(shard);
                    return;
                }
                Poll::Ready(Ok(received)) => {
                    self.forget_receive_errors(shard);
                    match on_received(shard, id, &received, buffer) {
                        Taken::Crowded => break,
                        Taken::Arrival if arrivals > 0 && shard.now() - now < LONGEST_ARRIVALS => {
                            let segment = received.segment_size.max(1);
                            arrivals = arrivals.saturating_sub(received.len.div_ceil(segment));
                            left += 1;
                        }
                        Taken::Arrival | Taken::Rest => {}
                    }
                }
                // An asynchronous error from an earlier send. Loss detection recovers.
                Poll::Ready(Err(error)) => {
                    errors += 1;
                    if self.on_receive_error(shard, index, now, error) {
                        return;
                    }
                }
            }
        }
        self.has_more = true;
        if errors < RECEIVES_PER_TURN {
            self.pause.end();
        } else if self.pause.begin(now) {
            self.has_more = false;
            shard.lock().endpoint.on_receive_pause();
        }
    }

    /// Notes a receive call that has not failed.
    #[inline]
    fn forget_receive_errors(&mut self, shard: &Shard) {
        if std::mem::take(&mut self.has_receive_errors) {
            shard.lock().outbox.health.on_received();
        }
    }

    /// Notes a failed receive call. Returns true if the socket receives nothing any more.
    fn on_receive_error(
        &mut self,
        shard: &Shard,
        index: usize,
        now: Time,
        error: io::Error,
    ) -> bool {
        let is_over = !courser_udp::is_transient(&error);
        let mut locked = shard.lock();
        if index == self.sockets.len() - 1 {
            self.has_receive_errors = true;
            self.cannot_receive |= is_over;
            let health = &mut locked.outbox.health;
            health.on_error(now, SocketCall::Receive, error);
        } else {
            let (id, _) = self.sockets[index];
            let health = &mut locked.outbox.health;
            health.note_error(now, SocketCall::Receive, &error);
            if is_over {
                // Connections that need it run into their timeouts.
                locked.outbox.sockets.give_up(id);
            }
        }
        locked.after_errors();
        is_over
    }

    /// Passes ICMP messages to the endpoint: Packet Too Big, and reports of unreachable destinations.
    fn handle_icmp_messages(&self, shard: &Shard) {
        let sockets = self.sockets.iter().rev();
        let messages = sockets.flat_map(|(_, socket)| {
            let mut each = std::iter::repeat_with(|| socket.take_packet_too_big());
            std::iter::from_fn(move || each.next().flatten())
        });
        for message in messages.take(ICMP_MESSAGES_PER_TURN) {
            let now = shard.now();
            let message = PacketTooBig {
                peer: message.destination,
                mtu: message.mtu,
                quote: message.quote(),
            };
            shard.lock().endpoint.on_packet_too_big(now, &message);
        }
        let sockets = self.sockets.iter().rev();
        let reports = sockets.flat_map(|(_, socket)| {
            let mut each = std::iter::repeat_with(|| socket.take_unreachable());
            std::iter::from_fn(move || each.next().flatten())
        });
        for report in reports.take(ICMP_MESSAGES_PER_TURN) {
            let report = UnreachableReport {
                peer: report.destination,
                cause: report.cause,
                quote: report.quote(),
            };
            shard.lock().endpoint.on_unreachable(&report);
        }
    }
}

/// Passes one received buffer to the endpoint.
fn on_received(shard: &Shard, socket: SocketId, received: &Received, buffer: &mut [u8]) -> Taken {
    if received.len == 0 || received.truncated {
        return Taken::Rest;
    }
    let meta = ReceiveMeta {
        path: FourTuple {
            peer: received.peer,
            local: received.local,
        },
        ecn: received.ecn,
        segment_size: received.segment_size,
    };
    let now = shard.now();
    let mut locked = shard.lock();
    let arrivals = locked.endpoint.arrivals();
    locked
        .endpoint
        .handle_datagrams_at(now, socket, &mut buffer[..received.len], &meta);
    if let Some(place) = &shard.place {
        place.forward(now, &mut locked.endpoint);
    }
    if locked.endpoint.take_crowded() {
        Taken::Crowded
    } else if locked.endpoint.arrivals() > arrivals || locked.endpoint.has_incoming() {
        Taken::Arrival
    } else {
        Taken::Rest
    }
}
