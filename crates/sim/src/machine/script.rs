//! Sockets with scripted failures, delays, truncations and losses, to test the behaviour with
//! unusual kernels.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use courser::Capabilities;
use courser::runtime::{Ecn, PacketTooBig, Received, Transmit, UdpSocket};
use courser_base::Mutex;

/// A rule for calls of the sockets of a machine; see
/// [`Machine::with_socket_script`](super::Machine::with_socket_script). Of several rules for one call, the first
/// that applies decides.
///
/// ```
/// use courser_sim::machine::{Call, Effect, Machine, Rule, When};
///
/// // The second send of the first socket fails with ENODEV.
/// let rule = Rule::new(Call::Send, When::Window(1, 1), Effect::Code(19)).of_first_socket();
/// let machine = Machine::new(["10.0.0.1".parse().unwrap()], 1).with_socket_script([rule]);
/// # drop(machine);
/// ```
#[derive(Clone, Debug)]
pub struct Rule {
    call: Call,
    when: When,
    effect: Effect,
    is_of_first: bool,
}

impl Rule {
    /// Creates a rule for all sockets.
    pub fn new(call: Call, when: When, effect: Effect) -> Self {
        Self {
            call,
            when,
            effect,
            is_of_first: false,
        }
    }

    /// Limits the rule to the first socket of the machine. A socket that replaces it is not
    /// affected.
    #[must_use]
    pub fn of_first_socket(self) -> Self {
        Self {
            is_of_first: true,
            ..self
        }
    }
}

/// The calls to which a rule applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Binds a socket. Only [`Effect::Code`] applies.
    Bind,
    /// Sends one datagram or more.
    Send,
    /// Sends several datagrams in one call.
    SendBatch,
    /// Sends exactly one datagram in one call.
    SendOne,
    /// Sends datagrams with an ECN mark.
    SendMarked,
    /// Waits until the socket is writable. Only errors apply.
    Writable,
    /// Receives one datagram or more, or nothing.
    Receive,
}

/// The condition of a rule, by the number of a call among those of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Applies to every call.
    Always,
    /// Applies to the given number of first calls.
    First(u64),
    /// Applies to the first call, and to each that follows at this interval, counted in calls.
    Every(u64),
    /// Applies to every call after the given number of calls.
    After(u64),
    /// After the first number of calls, applies to the second number of calls.
    Window(u64, u64),
}

impl When {
    fn includes(self, number: u64) -> bool {
        match self {
            Self::Always => true,
            Self::First(count) => number < count,
            Self::Every(count) => number.is_multiple_of(count.max(1)),
            Self::After(count) => number >= count,
            Self::Window(begin, count) => (begin..begin.saturating_add(count)).contains(&number),
        }
    }
}

/// The effect of a rule on a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The call fails with an error code of the system.
    Code(i32),
    /// The call fails with an error that has a kind and no code.
    Kind(io::ErrorKind),
    /// The call fails with `io::Error::other`.
    Other,
    /// The call succeeds, and the datagrams are lost. Received ones count as dropped by a full buffer.
    Lose,
    /// The datagrams are sent or received after this number of further calls with datagrams, or
    /// when there are no others.
    Hold(u64),
    /// The call sends at most this number of datagrams of a batch.
    Take(usize),
    /// A received batch is truncated after this number of bytes, without a report.
    Cut(usize),
    /// A received batch is truncated after this number of bytes, and reported as truncated.
    Truncate(usize),
    /// The call receives an empty datagram before any other.
    Empty,
    /// The call sends the datagrams without their ECN marks, and the socket reports that it cannot set them.
    RefuseMarks,
}

impl Effect {
    fn error(self) -> Option<io::Error> {
        match self {
            Self::Code(code) => Some(io::Error::from_raw_os_error(code)),
            Self::Kind(kind) => Some(kind.into()),
            Self::Other => Some(io::Error::other("error set by the script")),
            _ => None,
        }
    }
}

/// The rules of a machine, with counts of the calls to which they apply.
#[derive(Debug, Default)]
pub(super) struct Script {
    rules: Vec<(Rule, AtomicU64)>,
    sockets: AtomicU64,
    /// The number of calls that a rule has changed.
    applied: AtomicU64,
}

impl Script {
    pub(super) fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self {
            rules: rules
                .into_iter()
                .map(|rule| (rule, AtomicU64::new(0)))
                .collect(),
            ..Self::default()
        }
    }

    /// Returns the number of calls that rules have changed.
    pub(super) fn applied(&self) -> u64 {
        self.applied.load(Relaxed)
    }

    /// Returns the error of a call that binds a socket, if there is one.
    pub(super) fn on_bind(&self) -> io::Result<()> {
        let number = self.sockets.load(Relaxed);
        match self.effect(number, |call| call == Call::Bind) {
            Some(effect) => Err(effect
                .error()
                .unwrap_or_else(|| io::Error::other("bind refused by the script"))),
            None => Ok(()),
        }
    }

    /// Counts a call, and returns the effect of the first rule that applies.
    fn effect(&self, socket: u64, matches_call: impl Fn(Call) -> bool) -> Option<Effect> {
        let mut found = None;
        for (rule, count) in &self.rules {
            if !matches_call(rule.call) || rule.is_of_first && socket > 0 {
                continue;
            }
            let number = count.fetch_add(1, Relaxed);
            if found.is_none() && rule.when.includes(number) {
                found = Some(rule.effect);
            }
        }
        self.applied.fetch_add(u64::from(found.is_some()), Relaxed);
        found
    }
}

/// A socket whose calls a script changes.
#[derive(Debug)]
pub(super) struct Scripted {
    socket: Box<dyn UdpSocket>,
    script: Arc<Script>,
    /// Its number among the sockets of the machine.
    number: u64,
    outgoing: Mutex<VecDeque<(u64, HeldBatch)>>,
    incoming: Mutex<VecDeque<(u64, Received, Vec<u8>)>>,
    dropped: AtomicU64,
    cannot_mark: AtomicBool,
}

/// A batch that a rule delays.
#[derive(Debug)]
struct HeldBatch {
    destination: SocketAddr,
    source: Option<std::net::IpAddr>,
    ecn: Ecn,
    segment_size: Option<usize>,
    contents: Vec<u8>,
}

impl HeldBatch {
    fn new(transmit: &Transmit<'_>) -> Self {
        Self {
            destination: transmit.destination,
            source: transmit.source,
            ecn: transmit.ecn,
            segment_size: transmit.segment_size,
            contents: transmit.contents.to_vec(),
        }
    }

    fn transmit(&self) -> Transmit<'_> {
        Transmit {
            destination: self.destination,
            source: self.source,
            ecn: self.ecn,
            segment_size: self.segment_size,
            contents: &self.contents,
        }
    }
}

impl Scripted {
    pub(super) fn new(socket: Box<dyn UdpSocket>, script: Arc<Script>) -> Self {
        Self {
            number: script.sockets.fetch_add(1, Relaxed),
            socket,
            script,
            outgoing: Mutex::default(),
            incoming: Mutex::default(),
            dropped: AtomicU64::new(0),
            cannot_mark: AtomicBool::new(false),
        }
    }

    fn send_effect(&self, transmit: &Transmit<'_>) -> Option<Effect> {
        let is_batch = transmit
            .segment_size
            .is_some_and(|size| size < transmit.contents.len());
        let is_marked = transmit.ecn != Ecn::NotEct;
        self.script.effect(self.number, |call| match call {
            Call::Send => true,
            Call::SendBatch => is_batch,
            Call::SendOne => !is_batch,
            Call::SendMarked => is_marked,
            Call::Bind | Call::Writable | Call::Receive => false,
        })
    }

    /// Sends the batches that have waited long enough. Errors are ignored, because the calls that
    /// sent them have succeeded.
    fn send_held(&self) {
        let mut outgoing = self.outgoing.lock();
        outgoing
            .iter_mut()
            .for_each(|(left, _)| *left = left.saturating_sub(1));
        let (due, later): (Vec<_>, Vec<_>) = outgoing.drain(..).partition(|(left, _)| *left == 0);
        outgoing.extend(later);
        drop(outgoing);
        for (_, held) in due {
            let _ = self.socket.try_send(&held.transmit());
        }
    }

    /// Removes and returns a received batch that has waited long enough, or any if nothing else
    /// arrives.
    fn take_held(&self, is_idle: bool, buffer: &mut [u8]) -> Option<Received> {
        let mut incoming = self.incoming.lock();
        let due = incoming
            .iter()
            .position(|(left, ..)| *left == 0 || is_idle)?;
        let (_, received, bytes) = incoming.remove(due)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Some(received)
    }
}

impl UdpSocket for Scripted {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        loop {
            if let Some(received) = self.take_held(false, buffer) {
                return Poll::Ready(Ok(received));
            }
            let effect = self
                .script
                .effect(self.number, |call| call == Call::Receive);
            if let Some(error) = effect.and_then(Effect::error) {
                return Poll::Ready(Err(error));
            }
            let received = match self.socket.poll_receive(cx, buffer) {
                Poll::Ready(Ok(received)) => received,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    return match self.take_held(true, buffer) {
                        Some(received) => Poll::Ready(Ok(received)),
                        None => Poll::Pending,
                    };
                }
            };
            for (left, ..) in self.incoming.lock().iter_mut() {
                *left = left.saturating_sub(1);
            }
            let cut = |len: usize, truncated: bool| Received {
                len: received.len.min(len),
                segment_size: received.segment_size.min(len.max(1)),
                truncated,
                ..received
            };
            match effect {
                Some(Effect::Lose) => {
                    self.dropped.fetch_add(1, Relaxed);
                }
                Some(Effect::Hold(calls)) => {
                    let bytes = buffer[..received.len].to_vec();
                    self.incoming.lock().push_back((calls, received, bytes));
                }
                Some(Effect::Cut(len)) => return Poll::Ready(Ok(cut(len, false))),
                Some(Effect::Truncate(len)) => {
                    return Poll::Ready(Ok(cut(len, received.len > len)));
                }
                Some(Effect::Empty) => {
                    let bytes = buffer[..received.len].to_vec();
                    self.incoming.lock().push_back((0, received, bytes));
                    return Poll::Ready(Ok(cut(0, false)));
                }
                _ => return Poll::Ready(Ok(received)),
            }
        }
    }

    fn is_readable(&self, cx: &mut Context<'_>) -> bool {
        self.socket.is_readable(cx) || !self.incoming.lock().is_empty()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        let effect = self.send_effect(transmit);
        if let Some(error) = effect.and_then(Effect::error) {
            return Err(error);
        }
        let len = transmit.contents.len();
        let mut changed = *transmit;
        match effect {
            Some(Effect::Lose) => return Ok(len),
            Some(Effect::Hold(calls)) => {
                let held = HeldBatch::new(transmit);
                self.outgoing.lock().push_back((calls.max(1), held));
                return Ok(len);
            }
            Some(Effect::Take(datagrams)) => {
                let size = transmit.segment_size.unwrap_or(len);
                changed.contents = &transmit.contents[..len.min(size * datagrams.max(1))];
            }
            Some(Effect::RefuseMarks) => {
                changed.ecn = Ecn::NotEct;
                self.cannot_mark.store(true, Relaxed);
            }
            _ => {}
        }
        let taken = self.socket.try_send(&changed)?;
        self.send_held();
        Ok(taken)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let effect = self
            .script
            .effect(self.number, |call| call == Call::Writable);
        match effect.and_then(Effect::error) {
            Some(error) => Poll::Ready(Err(error)),
            None => self.socket.poll_writable(cx),
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn interface_mtu(&self, peer: SocketAddr) -> Option<u32> {
        self.socket.interface_mtu(peer)
    }

    fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        self.socket.take_packet_too_big()
    }

    fn capabilities(&self) -> Capabilities {
        self.socket.capabilities()
    }

    fn can_mark(&self) -> bool {
        !self.cannot_mark.load(Relaxed)
    }

    fn counters(&self) -> courser::Counters {
        self.socket.counters()
    }

    fn receive_overflow(&self) -> Option<u64> {
        Some(self.dropped.load(Relaxed))
    }
}
