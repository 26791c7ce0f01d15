//! Closed connections: counts by cause, and the latest failures.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use courser::h3::Code;
use courser::telemetry::{CloseCause, ConnectionClosed};
use courser_base::canonical;

/// Statistics of closed connections since the server started. Its size is bounded, because peers choose codes
/// and reasons (limit K246).
#[derive(Clone, Debug, Default)]
pub(super) struct Closes {
    totals: BTreeMap<(&'static str, String), Total>,
    recent: VecDeque<Close>,
    failures: u64,
}

/// The number of connections that one end closed for one cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Total {
    pub(super) count: u64,
    /// True for causes that do not indicate a failure.
    pub(super) is_ordinary: bool,
    /// True for the few causes with a name, false for arbitrary codes.
    is_named: bool,
}

/// The end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Close {
    /// Sequence number of the failure, from 1.
    pub(super) number: u64,
    pub(super) at: Instant,
    /// The end that closed: `local` or `peer`.
    pub(super) by: &'static str,
    pub(super) cause: String,
    /// The reason phrase, which the peer may have chosen, truncated to [`MAX_REASON`] characters.
    pub(super) reason: String,
    pub(super) client: Option<SocketAddr>,
    /// The time from the first packet to the close.
    pub(super) age: Duration,
    is_ordinary: bool,
    is_named: bool,
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
            reason: closed.reason.chars().take(MAX_REASON).collect(),
            client: client.map(canonical),
            age,
            is_ordinary: is_ordinary(&closed.cause, is_http3),
            is_named: is_named(&closed.cause, is_http3),
        }
    }
}

impl Closes {
    /// Counts a close, and keeps it in the list of the latest if it is a failure.
    pub(super) fn add(&mut self, mut close: Close) {
        self.count(&close);
        if close.is_ordinary {
            return;
        }
        self.failures += 1;
        close.number = self.failures;
        if self.recent.len() >= MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(close);
    }

    fn count(&mut self, close: &Close) {
        let key = (close.by, close.cause.clone());
        let is_new = !self.totals.contains_key(&key);
        if is_new && self.totals.len() >= MAX_CAUSES && !(close.is_named && self.merge_rarest()) {
            self.other(close.by).count += 1;
            return;
        }
        let total = self.totals.entry(key).or_default();
        total.count += 1;
        total.is_ordinary = close.is_ordinary;
        total.is_named = close.is_named;
    }

    /// Merges the rarest cause without a name into the others of its end, so that arbitrary codes of peers
    /// cannot displace named causes. Returns false if there is none.
    fn merge_rarest(&mut self) -> bool {
        let numbers = self.totals.iter().filter(|(_, it)| !it.is_named);
        let rarest = numbers.min_by_key(|(_, it)| it.count);
        let Some(key) = rarest.map(|(key, _)| key.clone()) else {
            return false;
        };
        let count = self.totals.remove(&key).map_or(0, |it| it.count);
        self.other(key.0).count += count;
        true
    }

    /// Returns the total of the causes of one end that are not counted separately.
    fn other(&mut self, by: &'static str) -> &mut Total {
        let other = self.totals.entry((by, "other".to_owned())).or_default();
        // `other` is kept as a named cause.
        other.is_named = true;
        other
    }

    /// Returns the totals by the end that closed and the cause.
    pub(super) fn totals(&self) -> impl Iterator<Item = ((&'static str, &str), Total)> {
        let totals = self.totals.iter();
        totals.map(|((by, cause), total)| ((*by, cause.as_str()), *total))
    }

    /// Returns the latest failures, newest first.
    pub(super) fn recent(&self) -> impl Iterator<Item = &Close> {
        self.recent.iter().rev()
    }
}

/// Returns the name of a cause. HTTP/3 codes have names (RFC 9114 §8.1, RFC 9204 §6).
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
        CloseCause::PathSilent => "path silent".to_owned(),
        CloseCause::StatelessReset => "stateless reset".to_owned(),
        CloseCause::VersionMismatch => "no common version".to_owned(),
    }
}

/// Returns true if a cause does not indicate a failure.
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

/// Returns true if a cause has a name. The others are arbitrary codes.
fn is_named(cause: &CloseCause, is_http3: bool) -> bool {
    match *cause {
        CloseCause::Transport { code } => code.name().is_some(),
        CloseCause::Application { code } if is_http3 => {
            is_reserved(code.0) || Code::from_value(code.0).name().is_some()
        }
        CloseCause::Application { .. } => false,
        _ => true,
    }
}

/// Returns true for reserved codes, which peers may send instead of H3_NO_ERROR to test that unknown codes are
/// tolerated (RFC 9114 §8.1).
const fn is_reserved(code: u64) -> bool {
    code >= 0x21 && (code - 0x21).is_multiple_of(0x1f)
}

/// Number of latest failures that are kept (limit K246).
const MAX_RECENT: usize = 100;
/// Number of causes that are counted separately; further ones count as `other` of their end (limit K246).
const MAX_CAUSES: usize = 64;
/// Number of characters of a reason phrase that are kept (limit K246).
const MAX_REASON: usize = 200;

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
        assert_eq!(closes.totals().count(), MAX_CAUSES + 1);
        assert_eq!(closes.totals().map(|(_, it)| it.count).sum::<u64>(), 1000);
        let others = closes.totals().find(|((_, cause), _)| *cause == "other");
        assert_eq!(others.map(|(_, it)| it.count), Some(1000 - 64));
        let recent: Vec<_> = closes.recent().collect();
        assert_eq!(recent.len(), MAX_RECENT);
        assert_eq!((recent[0].number, recent[99].number), (1000, 901));
        assert_eq!(recent[0].reason.len(), MAX_REASON);
    }

    #[test]
    fn causes_with_names_count_apart_although_peers_have_filled_the_table() {
        let mut closes = Closes::default();
        for code in 1..=1000 {
            closes.add(close(code, ""));
        }
        let mut own = close(1001, "");
        own.by = "local";
        closes.add(own);
        let closed = ConnectionClosed {
            by_peer: false,
            cause: CloseCause::IdleTimeout,
            reason: String::new(),
        };
        closes.add(Close::new(&closed, true, None, Duration::ZERO));
        let count = |by: &str, cause: &str| {
            let found = closes.totals().find(|(key, _)| *key == (by, cause));
            found.map(|(_, it)| it.count)
        };
        assert_eq!(count("local", "idle timeout"), Some(1));
        assert_eq!(count("local", "other"), Some(1));
        assert_eq!(count("peer", "other"), Some(1000 - 64 + 1));
        assert_eq!(closes.totals().count(), MAX_CAUSES + 2);
        assert_eq!(closes.totals().map(|(_, it)| it.count).sum::<u64>(), 1002);
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
