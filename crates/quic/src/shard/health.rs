//! The condition of the socket in use, as its errors show it.
//!
//! A failed call is a lost datagram. A socket on which every call fails for seconds may be broken, and one
//! whose descriptor is no longer a socket is broken. The driver opens both again. Events for
//! [`Endpoint::socket_event`](crate::Endpoint::socket_event) are recorded at a rate that suits a log.

use std::io;
use std::time::Duration;

use courser_base::Time;
use courser_udp::{ErrorCause, ErrorClass, classify, has_lost_descriptor};

use crate::shard::socket_event::{SocketCall as Call, SocketEvent};

/// Time for which all calls must fail before the socket is opened again (limit K290). Errors of one
/// destination end in that time for others.
const PATIENCE: Duration = Duration::from_secs(2);
/// Failed calls of one direction before the socket is opened again (limit K290). A single connection that begins
/// makes no more in that time.
const MIN_FAILURES: u32 = 2;
/// Attempts to open a lost socket again (limit K290). The last one is some six seconds after the first.
const MAX_ATTEMPTS: u32 = 8;
/// The first pause between attempts to open a lost socket; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two attempts (limit K290).
const LONGEST_PAUSE: Duration = Duration::from_secs(64);
/// Time without an attempt after which the pauses begin with the first one again.
const RESET_AFTER: Duration = Duration::from_secs(128);
/// Time between two events of one cause (limit K291).
const EVENT_INTERVAL: Duration = Duration::from_secs(60);

/// The condition of the socket in use.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// False while there is nothing to forget after a success.
    is_suspect: bool,
    sending: Streak,
    receiving: Streak,
    /// The error that shows that the socket is gone.
    lost: Option<io::Error>,
    /// The user provided the socket, and only the user can replace it.
    is_given: bool,
    /// Attempts to open the socket again in a row.
    attempts: u32,
    last_attempt: Option<Time>,
    /// Something has changed for the driver, or for tasks that wait for events.
    has_changed: bool,
    events: EventQueue,
}

/// Calls in a row that failed with an error that may concern the socket itself.
#[derive(Debug, Default)]
struct Streak {
    since: Option<Time>,
    failures: u32,
}

impl Streak {
    fn on_failure(&mut self, now: Time) {
        self.since.get_or_insert(now);
        self.failures = self.failures.saturating_add(1);
    }

    /// Returns the time from which on the socket counts as broken.
    fn broken_at(&self) -> Option<Time> {
        let since = self.since.filter(|_| self.failures >= MIN_FAILURES)?;
        Some(since + PATIENCE)
    }
}

/// The next step for a lost socket that could not be opened again.
#[derive(Debug)]
pub(crate) enum Outlook {
    /// Another attempt follows later, or the socket is used as it is.
    Wait,
    /// The socket prevents another one from being bound, and is dropped first.
    Release,
    /// No further attempt follows, for this reason.
    Over(String),
}

impl Health {
    /// Records that the system accepted datagrams.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        if self.is_suspect {
            self.sending = Streak::default();
            self.is_suspect = self.receiving.since.is_some();
        }
    }

    /// Records that a receive call succeeded, or had nothing to report.
    #[inline]
    pub(crate) fn on_received(&mut self) {
        if self.is_suspect {
            self.receiving = Streak::default();
            self.is_suspect = self.sending.since.is_some();
        }
    }

    /// Notes a failed call on the socket in use, of which the datagrams are lost.
    #[cold]
    pub(crate) fn on_error(&mut self, now: Time, call: Call, error: io::Error) {
        let class = classify(&error);
        let mut is_broken = false;
        if counts(call, class) && error.kind() != io::ErrorKind::Interrupted {
            self.is_suspect = true;
            self.events.last = Some(error.to_string());
            let streak = match call {
                Call::Send => &mut self.sending,
                Call::Receive => &mut self.receiving,
            };
            streak.on_failure(now);
            self.has_changed |= streak.failures == MIN_FAILURES;
            is_broken = streak.broken_at().is_some_and(|at| at <= now);
        }
        if is_broken || !is_routine(call, ErrorCause::of(&error)) {
            self.note(now, call, &error);
        }
        if class == ErrorClass::Fatal && self.lost.is_none() {
            self.lost = Some(error);
        }
    }

    /// Notes a failed call on any socket, for events.
    #[cold]
    pub(crate) fn note_error(&mut self, now: Time, call: Call, error: &io::Error) {
        if !is_routine(call, ErrorCause::of(error)) {
            self.note(now, call, error);
        }
    }

    fn note(&mut self, now: Time, call: Call, error: &io::Error) {
        // An interrupted call is repeated.
        if error.kind() != io::ErrorKind::Interrupted {
            self.has_changed |= self.events.on_error(now, call, error);
        }
    }

    /// Returns true while nothing can be sent or received.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Returns true if the descriptor of the lost socket may belong to others by now.
    pub(crate) fn has_lost_descriptor(&self) -> bool {
        self.lost.as_ref().is_some_and(has_lost_descriptor)
    }

    /// Returns the time at which the socket should be opened again, if that makes sense.
    pub(crate) fn next_attempt(&self) -> Option<Time> {
        let is_lost = self.is_lost();
        if self.is_given && !is_lost {
            return None;
        }
        let broken_at = [&self.sending, &self.receiving].map(Streak::broken_at);
        let due = match is_lost {
            true => Time::ZERO,
            false => broken_at.into_iter().flatten().min()?,
        };
        let pause = match is_lost {
            true => FIRST_PAUSE,
            false => PATIENCE,
        };
        let doublings = self.attempts.saturating_sub(1).min(16);
        let pause = pause.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
        let after_pause = self.last_attempt.map(|last| last + pause);
        Some(after_pause.map_or(due, |after| due.max(after)))
    }

    /// Returns true if the socket should be opened again now.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        (self.is_suspect || self.is_lost()) && self.next_attempt().is_some_and(|due| due <= now)
    }

    /// Records that another socket is in use: the user has replaced it.
    pub(crate) fn on_other_socket(&mut self) {
        let events = std::mem::take(&mut self.events);
        *self = Self {
            has_changed: self.has_changed,
            events,
            ..Self::default()
        };
    }

    /// Records that the socket was opened again.
    pub(crate) fn on_reopened(&mut self, now: Time) {
        self.begin_attempt(now);
        let cause = self.cause();
        self.add_event(SocketEvent::Reopened { cause });
        self.is_suspect = false;
        (self.sending, self.receiving) = (Streak::default(), Streak::default());
        self.lost = None;
    }

    /// Records that the socket could not be opened again. `can_release` is true if it could be once this one is
    /// dropped.
    pub(crate) fn on_not_reopened(
        &mut self,
        now: Time,
        error: &io::Error,
        can_release: bool,
    ) -> Outlook {
        self.begin_attempt(now);
        self.is_given |= error.kind() == io::ErrorKind::Unsupported;
        let cause = self.cause();
        let can_release = can_release && error.kind() == io::ErrorKind::AddrInUse;
        if !self.is_lost() && can_release {
            self.lost = Some(io::Error::other(cause));
            return Outlook::Release;
        }
        if !self.is_lost() {
            // It is no worse than before.
            if !self.is_given {
                let error = error.to_string();
                self.add_event(SocketEvent::NotReopened { cause, error });
            }
            return Outlook::Wait;
        }
        if self.is_given || self.attempts >= MAX_ATTEMPTS {
            return Outlook::Over(format!("the socket failed: {cause} ({error})"));
        }
        let error = error.to_string();
        self.add_event(SocketEvent::NotReopened { cause, error });
        match can_release {
            true => Outlook::Release,
            false => Outlook::Wait,
        }
    }

    /// Records that the shard has ended.
    pub(crate) fn on_stopped(&mut self, cause: &str) {
        let cause = cause.to_owned();
        self.add_event(SocketEvent::Stopped { cause });
    }

    fn add_event(&mut self, event: SocketEvent) {
        self.events.add(event);
        self.has_changed = true;
    }

    /// Returns true once if there are new events, or if the driver has to look after the socket.
    #[inline]
    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Takes the next event.
    pub(crate) fn take_event(&mut self) -> Option<SocketEvent> {
        (!self.events.waiting.is_empty()).then(|| self.events.waiting.remove(0))
    }

    fn begin_attempt(&mut self, now: Time) {
        let is_reset = self
            .last_attempt
            .is_none_or(|last| now - last > RESET_AFTER);
        self.attempts = if is_reset { 1 } else { self.attempts + 1 };
        self.last_attempt = Some(now);
    }

    /// Returns the reason why the socket is opened again.
    fn cause(&self) -> String {
        let last = self.events.last.as_ref();
        let lost = self.lost.as_ref().map(ToString::to_string);
        lost.or_else(|| last.cloned()).unwrap_or_default()
    }
}

/// The events that no task has taken yet, and the state that limits their rate.
#[derive(Debug, Default)]
struct EventQueue {
    /// At most one for each cause and direction, and one for each other kind.
    waiting: Vec<SocketEvent>,
    /// One element for each direction and cause.
    reported: Vec<ReportedError>,
    /// The text of the last error that may concern the socket itself.
    last: Option<String>,
}

/// An error of which there was an event.
#[derive(Debug)]
struct ReportedError {
    call: Call,
    cause: ErrorCause,
    /// The time of the last event.
    at: Time,
    failures_since: u64,
}

impl EventQueue {
    /// Notes an error. Returns true if it causes an event.
    fn on_error(&mut self, now: Time, call: Call, error: &io::Error) -> bool {
        let cause = ErrorCause::of(error);
        let mut reported = self.reported.iter_mut();
        let failures = match reported.find(|it| (it.call, it.cause) == (call, cause)) {
            Some(known) if now - known.at < EVENT_INTERVAL => {
                known.failures_since += 1;
                return false;
            }
            Some(known) => {
                known.at = now;
                std::mem::take(&mut known.failures_since) + 1
            }
            None => {
                self.reported.push(ReportedError {
                    call,
                    cause,
                    at: now,
                    failures_since: 0,
                });
                1
            }
        };
        let error = error.to_string();
        self.add(SocketEvent::Failed {
            call,
            cause,
            failures,
            error,
        });
        true
    }

    /// Keeps an event. A newer one takes the place of one that was not taken.
    fn add(&mut self, event: SocketEvent) {
        self.waiting.retain(|it| !it.has_same_cause_as(&event));
        self.waiting.push(event);
    }
}

/// Returns true for errors that may concern the socket itself. A send call may fail because of its destination. A
/// receive call reports the reply of a peer or router at most once, and the next call succeeds or has nothing to
/// report. A new socket would not help against a lack of memory.
fn counts(call: Call, class: ErrorClass) -> bool {
    match call {
        Call::Send => class == ErrorClass::Suspect,
        Call::Receive => !matches!(class, ErrorClass::Fatal | ErrorClass::OutOfBuffers),
    }
}

/// Returns true for errors that are of no interest to operators: probes of the path MTU that are too large, and
/// replies of peers and routers.
fn is_routine(call: Call, cause: ErrorCause) -> bool {
    match call {
        Call::Send => matches!(cause, ErrorCause::TooLarge | ErrorCause::Refused),
        Call::Receive => matches!(cause.class(), ErrorClass::Transient | ErrorClass::TooLarge),
    }
}

#[cfg(test)]
mod tests;
