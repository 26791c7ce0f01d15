//! What sockets of a machine do wrong: errors, short sends, no room, an address that is gone.

use std::io::{self, ErrorKind};
use std::time::Duration;

use courser_base::Time;
use courser_crypto::Rng;

use crate::link::Probability;

/// What all sockets of a machine do wrong for a while, each time by chance; the machine's seed
/// decides.
///
/// ```
/// use std::time::Duration;
/// use courser_sim::link::Probability;
/// use courser_sim::machine::{Machine, SocketError, SocketFaults};
///
/// let faults = SocketFaults {
///     failing_sends: Probability::from_percent(10),
///     send_errors: vec![SocketError::NotPermitted, SocketError::NoBuffers],
///     ends: Some(Duration::from_secs(5)),
///     ..SocketFaults::default()
/// };
/// let machine = Machine::new(["10.0.0.1".parse().unwrap()], 1).with_socket_faults(faults);
/// # drop(machine);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SocketFaults {
    /// When they begin, from the beginning of the world.
    pub begins: Duration,
    /// When they are over; `None`: never.
    pub ends: Option<Duration>,
    /// Send calls that fail with one of `send_errors`: the datagrams are lost.
    pub failing_sends: Probability,
    /// What those say, one as often as the other; nothing fails without any.
    pub send_errors: Vec<SocketError>,
    /// Send calls that find no room (`WouldBlock`) ...
    pub full_sends: Probability,
    /// ... which stays so for this time.
    pub full_for: Duration,
    /// Send calls with several datagrams that take only some of them.
    pub short_sends: Probability,
    /// Largest datagram that leaves; calls with larger ones fail with [`SocketError::TooLarge`].
    pub largest: Option<usize>,
    /// Receive calls that fail with one of `receive_errors` before they give what is there.
    pub failing_receives: Probability,
    /// What those say: news of earlier sends, as ICMP messages bring them.
    pub receive_errors: Vec<SocketError>,
    /// The machine's addresses are gone: nothing leaves, with
    /// [`SocketError::AddressNotAvailable`], and nothing arrives.
    pub address_is_gone: bool,
}

/// An error that systems report about datagrams, not about the socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketError {
    /// `EPERM`: a firewall.
    NotPermitted,
    /// `ENOBUFS`: the device's queue is full.
    NoBuffers,
    /// `EMSGSIZE`: larger than the path or the device takes.
    TooLarge,
    /// `EIO`: a device that cannot do what it was asked for.
    Device,
    /// `EADDRNOTAVAIL`: the source address went away.
    AddressNotAvailable,
    /// `ECONNREFUSED`: an ICMP message "port unreachable".
    Refused,
    /// `EHOSTUNREACH`: an ICMP message "host unreachable".
    HostUnreachable,
    /// `ENETUNREACH`: no route.
    NetworkUnreachable,
    /// `EINTR`: a signal came first.
    Interrupted,
}

impl SocketError {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NotPermitted,
        Self::NoBuffers,
        Self::TooLarge,
        Self::Device,
        Self::AddressNotAvailable,
        Self::Refused,
        Self::HostUnreachable,
        Self::NetworkUnreachable,
        Self::Interrupted,
    ];

    /// As the system that this runs on reports it.
    pub fn to_io(self) -> io::Error {
        match self {
            Self::NotPermitted => ErrorKind::PermissionDenied.into(),
            Self::NoBuffers => io::Error::from_raw_os_error(NO_BUFFERS),
            Self::TooLarge => io::Error::from_raw_os_error(TOO_LARGE),
            Self::Device => io::Error::from_raw_os_error(DEVICE),
            Self::AddressNotAvailable => ErrorKind::AddrNotAvailable.into(),
            Self::Refused => ErrorKind::ConnectionRefused.into(),
            Self::HostUnreachable => ErrorKind::HostUnreachable.into(),
            Self::NetworkUnreachable => ErrorKind::NetworkUnreachable.into(),
            Self::Interrupted => ErrorKind::Interrupted.into(),
        }
    }
}

/// Codes for which the standard library has no name: `ENOBUFS`, `EMSGSIZE` and `EIO`.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CODES: [i32; 3] = [105, 90, 5];
#[cfg(windows)]
const CODES: [i32; 3] = [10_055, 10_040, 10_052];
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
const CODES: [i32; 3] = [55, 40, 5];

const NO_BUFFERS: i32 = CODES[0];
const TOO_LARGE: i32 = CODES[1];
const DEVICE: i32 = CODES[2];

/// What a send call comes to.
#[derive(Debug)]
pub(super) enum Sending {
    /// So many datagrams go at the most.
    Up(usize),
    Fails(io::Error),
}

/// The faults of a machine, and what they have drawn so far.
#[derive(Debug)]
pub(super) struct Trouble {
    faults: SocketFaults,
    rng: Rng,
    /// There is no room until then.
    full_until: Option<Time>,
    /// A receive call has failed: the next one gives what is there, or a driver that reads until
    /// there is nothing would never see the end.
    has_failed: bool,
}

impl Trouble {
    pub(super) fn new(faults: SocketFaults, rng: Rng) -> Self {
        Self {
            faults,
            rng,
            full_until: None,
            has_failed: false,
        }
    }

    pub(super) fn set_faults(&mut self, faults: SocketFaults) {
        self.faults = faults;
    }

    fn is_on(&self, now: Time) -> bool {
        let elapsed = now - Time::ZERO;
        elapsed >= self.faults.begins && self.faults.ends.is_none_or(|ends| elapsed < ends)
    }

    fn happens(&mut self, chance: Probability) -> bool {
        chance > Probability::NEVER
            && self.rng.below(WHOLE) < u64::from(chance.as_parts_per_billion())
    }

    /// `datagrams` of up to `size` bytes are to leave.
    pub(super) fn on_send(&mut self, now: Time, datagrams: usize, size: usize) -> Sending {
        if self.is_full(now) {
            return Sending::Fails(ErrorKind::WouldBlock.into());
        }
        if !self.is_on(now) {
            return Sending::Up(usize::MAX);
        }
        if self.faults.address_is_gone {
            return Sending::Fails(SocketError::AddressNotAvailable.to_io());
        }
        if self.faults.largest.is_some_and(|largest| size > largest) {
            return Sending::Fails(SocketError::TooLarge.to_io());
        }
        if self.happens(self.faults.full_sends) {
            self.full_until = Some(now + self.faults.full_for);
            return Sending::Fails(ErrorKind::WouldBlock.into());
        }
        if self.happens(self.faults.failing_sends)
            && let Some(error) = pick(&mut self.rng, &self.faults.send_errors)
        {
            return Sending::Fails(error.to_io());
        }
        if datagrams > 1 && self.happens(self.faults.short_sends) {
            let most = self.rng.below(datagrams as u64 - 1) + 1;
            return Sending::Up(usize::try_from(most).unwrap_or(1));
        }
        Sending::Up(usize::MAX)
    }

    /// The error that a receive call returns in place of what has arrived.
    pub(super) fn on_receive(&mut self, now: Time) -> Option<io::Error> {
        if std::mem::take(&mut self.has_failed) || !self.is_on(now) {
            return None;
        }
        let fails = self.happens(self.faults.failing_receives);
        let error = fails.then(|| pick(&mut self.rng, &self.faults.receive_errors));
        self.has_failed = matches!(error, Some(Some(_)));
        error.flatten().map(SocketError::to_io)
    }

    /// Nothing reaches the machine.
    pub(super) fn is_deaf(&self, now: Time) -> bool {
        self.faults.address_is_gone && self.is_on(now)
    }

    pub(super) fn is_full(&self, now: Time) -> bool {
        self.full_until.is_some_and(|until| now < until)
    }

    /// When there is room again, if there is none.
    pub(super) fn next_room(&self) -> Option<Time> {
        self.full_until
    }

    /// True once, when there is room again.
    pub(super) fn take_room(&mut self, now: Time) -> bool {
        let is_over = self.full_until.is_some_and(|until| now >= until);
        if is_over {
            self.full_until = None;
        }
        is_over
    }
}

fn pick(rng: &mut Rng, errors: &[SocketError]) -> Option<SocketError> {
    let at = rng.below(errors.len().max(1) as u64);
    errors.get(usize::try_from(at).ok()?).copied()
}

/// Parts of a [`Probability`].
const WHOLE: u64 = 1_000_000_000;
