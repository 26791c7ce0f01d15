//! Faults of the sockets of a machine: errors, partial sends, full buffers, a lost address.

use std::io::{self, ErrorKind};
use std::time::Duration;

use courser_base::Time;
use courser_crypto::Rng;

use crate::link::Probability;

/// Faults of all sockets of a machine during a period. Each occurs at random, as determined by the
/// seed of the machine.
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
    /// The start of the faults, counted from the start of the world.
    pub begins: Duration,
    /// The end of the faults, counted from the start of the world; `None` if they never end.
    pub ends: Option<Duration>,
    /// The share of send calls that fail with one of `send_errors`. Their datagrams are lost.
    pub failing_sends: Probability,
    /// The errors of send calls, which are equally likely. If empty, no call fails.
    pub send_errors: Vec<SocketError>,
    /// The share of send calls that find the buffer full (`WouldBlock`).
    pub full_sends: Probability,
    /// The time for which the buffer stays full.
    pub full_for: Duration,
    /// The share of send calls with several datagrams that send only some of them.
    pub short_sends: Probability,
    /// The largest datagram that can be sent, in bytes. Larger ones fail with
    /// [`SocketError::TooLarge`].
    pub largest: Option<usize>,
    /// The share of receive calls that fail with one of `receive_errors` before they return
    /// datagrams.
    pub failing_receives: Probability,
    /// The errors of receive calls, which report earlier sends as ICMP messages do.
    pub receive_errors: Vec<SocketError>,
    /// True if the machine has lost its addresses: sends fail with
    /// [`SocketError::AddressNotAvailable`], and no packet arrives.
    pub address_is_gone: bool,
}

/// An error that a system reports about datagrams rather than the socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketError {
    /// `EPERM`: a firewall refused it.
    NotPermitted,
    /// `ENOBUFS`: the queue of the device is full.
    NoBuffers,
    /// `EMSGSIZE`: the datagram exceeds the limit of the path or device.
    TooLarge,
    /// `EIO`: the device does not support the operation.
    Device,
    /// `EADDRNOTAVAIL`: the source address was removed.
    AddressNotAvailable,
    /// `ECONNREFUSED`: an ICMP message "port unreachable".
    Refused,
    /// `EHOSTUNREACH`: an ICMP message "host unreachable".
    HostUnreachable,
    /// `ENETUNREACH`: there is no route.
    NetworkUnreachable,
    /// `EINTR`: a signal interrupted the call.
    Interrupted,
}

impl SocketError {
    /// All errors, for tests that try each.
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

    /// Returns the error as the operating system of this build reports it.
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

/// The codes of errors that have no name in the standard library: `ENOBUFS`, `EMSGSIZE`,
/// `EIO`.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CODES: [i32; 3] = [105, 90, 5];
#[cfg(windows)]
const CODES: [i32; 3] = [10_055, 10_040, 10_052];
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
const CODES: [i32; 3] = [55, 40, 5];

const NO_BUFFERS: i32 = CODES[0];
const TOO_LARGE: i32 = CODES[1];
const DEVICE: i32 = CODES[2];

/// The effect of faults on a send call.
#[derive(Debug)]
pub(super) enum SendOutcome {
    /// Sends at most this number of datagrams.
    AtMost(usize),
    Error(io::Error),
}

/// The faults of a machine, and the state that they depend on.
#[derive(Debug)]
pub(super) struct FaultState {
    faults: SocketFaults,
    rng: Rng,
    /// The time until which the buffer stays full.
    full_until: Option<Time>,
    /// True after a failed receive call. The next one succeeds, because a driver that reads until
    /// the socket is empty would otherwise never finish.
    has_failed: bool,
}

impl FaultState {
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

    fn are_active(&self, now: Time) -> bool {
        let elapsed = now - Time::ZERO;
        elapsed >= self.faults.begins && self.faults.ends.is_none_or(|ends| elapsed < ends)
    }

    fn happens(&mut self, chance: Probability) -> bool {
        chance > Probability::NEVER
            && self.rng.below(WHOLE) < u64::from(chance.as_parts_per_billion())
    }

    /// Decides about a call that sends `datagrams` of up to `size` bytes.
    pub(super) fn on_send(&mut self, now: Time, datagrams: usize, size: usize) -> SendOutcome {
        if self.is_full(now) {
            return SendOutcome::Error(ErrorKind::WouldBlock.into());
        }
        if !self.are_active(now) {
            return SendOutcome::AtMost(usize::MAX);
        }
        if self.faults.address_is_gone {
            return SendOutcome::Error(SocketError::AddressNotAvailable.to_io());
        }
        if self.faults.largest.is_some_and(|largest| size > largest) {
            return SendOutcome::Error(SocketError::TooLarge.to_io());
        }
        if self.happens(self.faults.full_sends) {
            self.full_until = Some(now + self.faults.full_for);
            return SendOutcome::Error(ErrorKind::WouldBlock.into());
        }
        if self.happens(self.faults.failing_sends)
            && let Some(error) = pick(&mut self.rng, &self.faults.send_errors)
        {
            return SendOutcome::Error(error.to_io());
        }
        if datagrams > 1 && self.happens(self.faults.short_sends) {
            let most = self.rng.below(datagrams as u64 - 1) + 1;
            return SendOutcome::AtMost(usize::try_from(most).unwrap_or(1));
        }
        SendOutcome::AtMost(usize::MAX)
    }

    /// Returns the error of a receive call, if it fails.
    pub(super) fn on_receive(&mut self, now: Time) -> Option<io::Error> {
        if std::mem::take(&mut self.has_failed) || !self.are_active(now) {
            return None;
        }
        let fails = self.happens(self.faults.failing_receives);
        let error = fails.then(|| pick(&mut self.rng, &self.faults.receive_errors));
        self.has_failed = matches!(error, Some(Some(_)));
        error.flatten().map(SocketError::to_io)
    }

    /// Returns true while the machine has no address, so that no packet reaches it.
    pub(super) fn is_unreachable(&self, now: Time) -> bool {
        self.faults.address_is_gone && self.are_active(now)
    }

    pub(super) fn is_full(&self, now: Time) -> bool {
        self.full_until.is_some_and(|until| now < until)
    }

    /// Returns the time at which a full buffer accepts datagrams again.
    pub(super) fn next_room(&self) -> Option<Time> {
        self.full_until
    }

    /// Returns true once after a full buffer accepts datagrams again.
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

/// The parts of a [`Probability`] of one.
const WHOLE: u64 = 1_000_000_000;
