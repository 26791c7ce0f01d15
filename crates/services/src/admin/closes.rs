//! The ends of connections: counts by cause, and the latest failures.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use courser::h3::Code;
use courser::telemetry::{CloseCause, ConnectionClosed};

/// The ends of connections since the server began. Bounded, since peers choose codes and reasons (limit K246).
#[derive(Debug, Default)]
pub(super) struct Closes {
    totals: BTreeMap<(&'static str, String), Total>,
    recent: VecDeque<Close>,
    failures: u64,
}

/// The connections that ended for one cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Total {
    pub(super) count: u64,
    /// True if connections end like this when nothing is wrong.
    pub(super) is_ordinary: bool,
}

/// A connection that failed.
#[derive(Clone, Debug)]
pub(super) struct Close {
    /// Counts failures, from 1.
    pub(super) number: u64,
    pub(super) at: Instant,
    /// `local` or `peer`.
    pub(super) by: &'static str,
    pub(super) cause: String,
    /// The reason phrase, which the peer may have chosen.
    pub(super) reason: String,
    pub(super) client: Option<SocketAddr>,
    /// The age of the connection.
    pub(super) age: Duration,
    is_ordinary: bool,
}

impl Close {
    pub(super) fn new(
        closed: &ConnectionClosed,
        is_http3: bool,
        client: Option<SocketAddr>,
        age: Duration,
    ) -> Self {
        Self {
            number: 0,
            at: Instant::now(),
            by: if closed.by_peer { "peer" } else { "local" },
            cause: cause(&closed.cause, is_http3),
            reason: closed.reason.chars().take(MOST_REASON).collect(),
            client: client.map(|it| SocketAddr::new(it.ip().to_canonical(), it.port())),
            age,
            is_ordinary: is_ordinary(&closed.cause, is_http3),
        }
    }
}

impl Closes {
    /// Counts an end, and keeps it if it is a failure.
    pub(super) fn add(&mut self, mut close: Close) {
        let mut key = (close.by, close.cause.clone());
        let mut is_ordinary = close.is_ordinary;
        if !self.totals.contains_key(&key) && self.totals.len() >= MOST_CAUSES {
            key = ("peer", "other".to_owned());
            is_ordinary = false;
        }
        let total = self.totals.entry(key).or_default();
        total.count += 1;
        total.is_ordinary = is_ordinary;
        if close.is_ordinary {
            return;
        }
        self.failures += 1;
        close.number = self.failures;
        if self.recent.len() >= MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(close);
    }

    /// Returns who ended connections and why, with their numbers.
    pub(super) fn totals(&self) -> impl Iterator<Item = ((&'static str, &str), Total)> {
        let totals = self.totals.iter();
        totals.map(|((by, cause), total)| ((*by, cause.as_str()), *total))
    }

    /// Returns the latest failures, the newest first.
    pub(super) fn recent(&self) -> impl Iterator<Item = &Close> {
        self.recent.iter().rev()
    }
}

/// Returns the name of a cause. The codes of HTTP/3 have names (RFC 9114 §8.1, RFC 9204 §6).
fn cause(cause: &CloseCause, is_http3: bool) -> String {
    match *cause {
        CloseCause::Transport { code } => code.to_string(),
        CloseCause::Application { code } if is_http3 && is_reserved(code.0) => {
            "H3_NO_ERROR by a reserved code".to_owned()
        }
        CloseCause::Application { code } if is_http3 => Code::from_value(code.0).to_string(),
        CloseCause::Application { code } => code.to_string(),
        CloseCause::IdleTimeout => "idle timeout".to_owned(),
        CloseCause::HandshakeTimeout => "handshake timeout".to_owned(),
        CloseCause::StatelessReset => "stateless reset".to_owned(),
        CloseCause::VersionMismatch => "no common version".to_owned(),
    }
}

/// Returns true if connections end like this when nothing is wrong.
fn is_ordinary(cause: &CloseCause, is_http3: bool) -> bool {
    match *cause {
        CloseCause::Transport { code } => code == courser::TransportErrorCode::NO_ERROR,
        CloseCause::Application { code } if is_http3 => {
            code.0 == Code::NO_ERROR.value() || is_reserved(code.0)
        }
        CloseCause::Application { code } => code.0 == 0,
        CloseCause::IdleTimeout => true,
        _ => false,
    }
}

/// Returns true for codes that peers may send in place of H3_NO_ERROR, so that unknown codes are exercised
/// (RFC 9114 §8.1).
const fn is_reserved(code: u64) -> bool {
    code >= 0x21 && (code - 0x21).is_multiple_of(0x1f)
}

/// Latest failures that are kept (limit K246).
const MOST_RECENT: usize = 100;
/// Causes that are counted apart; further ones count as `other` (limit K246).
const MOST_CAUSES: usize = 64;
/// Characters of a reason phrase that are kept (limit K246).
const MOST_REASON: usize = 200;

#[cfg(test)]
mod tests {
    use courser::ApplicationErrorCode;

    use super::*;

    fn close(code: u64, reason: &str) -> Close {
        let closed = ConnectionClosed {
            by_peer: true,
            cause: CloseCause::Application {
                code: ApplicationErrorCode(code),
            },
            reason: reason.to_owned(),
        };
        Close::new(&closed, false, None, Duration::ZERO)
    }

    #[test]
    fn codes_and_reasons_of_peers_take_bounded_memory() {
        let mut closes = Closes::default();
        for code in 1..=1000 {
            closes.add(close(code, &"x".repeat(1000)));
        }
        assert_eq!(closes.totals().count(), MOST_CAUSES + 1);
        assert_eq!(closes.totals().map(|(_, it)| it.count).sum::<u64>(), 1000);
        let others = closes.totals().find(|((_, cause), _)| *cause == "other");
        assert_eq!(others.map(|(_, it)| it.count), Some(1000 - 64));
        let recent: Vec<_> = closes.recent().collect();
        assert_eq!(recent.len(), MOST_RECENT);
        assert_eq!((recent[0].number, recent[99].number), (1000, 901));
        assert_eq!(recent[0].reason.len(), MOST_REASON);
    }

    #[test]
    fn reserved_codes_of_http3_are_ordinary() {
        for (code, is_ordinary) in [
            (0x100, true),
            (0x21, true),
            (0x0010_2e9b_449c_c2ff, true),
            (0x101, false),
            (0x20, false),
            (0x107, false),
        ] {
            let cause_of_end = CloseCause::Application {
                code: ApplicationErrorCode(code),
            };
            assert_eq!(
                super::is_ordinary(&cause_of_end, true),
                is_ordinary,
                "{code:#x}"
            );
            let has_name = cause(&cause_of_end, true).contains("H3_NO_ERROR");
            assert_eq!(has_name, is_ordinary, "{code:#x}");
        }
    }

    #[test]
    fn known_cause_counts_although_the_table_is_full() {
        let mut closes = Closes::default();
        for code in (1..=100).chain([1, 1]) {
            closes.add(close(code, ""));
        }
        let first = closes
            .totals()
            .find(|((_, cause), _)| cause.ends_with("0x1"));
        assert_eq!(first.map(|(_, it)| it.count), Some(3));
    }
}
