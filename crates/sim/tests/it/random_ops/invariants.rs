//! The invariants of every connection at the end of a run.

use std::time::Duration;

use courser_base::Time;
use courser_transport::{ConnectionError, ConnectionHandle, ConnectionStats};
use courser_wire::TransportErrorCode;

use super::book::{Book, End};
use super::run::{Ending, Run, WORST_RTT};
use crate::common::faulty_host::ReceiveTimes;

/// Checks a run that is over.
///
/// # Panics
/// If an invariant does not hold.
pub fn check_invariants(run: &Run, ended_at: Time) {
    let book = run.book.borrow();
    for ((is_server, handle), end) in &book.ends {
        let checked = CheckedEnd {
            run,
            book: &book,
            is_server: *is_server,
            handle: *handle,
            end,
        };
        checked.reason();
        checked.silence(ended_at);
        checked.handshake();
        checked.counters();
    }
    if !run.choices.changes_address() {
        close_arrives(run, &book, ended_at);
    }
}

/// One end of one connection.
struct CheckedEnd<'a> {
    run: &'a Run,
    book: &'a Book,
    is_server: bool,
    handle: ConnectionHandle,
    end: &'a End,
}

impl CheckedEnd<'_> {
    fn name(&self) -> String {
        let side = if self.is_server { "server" } else { "client" };
        format!("{side} {:?}", self.handle)
    }

    fn other(&self) -> Option<&End> {
        let key = self.end.key?;
        self.book.other(self.is_server, key).map(|(_, end)| end)
    }

    fn other_handle(&self) -> Option<ConnectionHandle> {
        let key = self.end.key?;
        let other = self.book.other(self.is_server, key);
        other.map(|(handle, _)| handle)
    }

    /// Checks that the application received one event about the end, with the correct reason.
    fn reason(&self) {
        let name = self.name();
        let Some((_, error)) = &self.end.lost else {
            panic!("{name} got no event for the end of its connection");
        };
        let other = self.other();
        match error {
            ConnectionError::LocallyClosed => {
                assert!(self.end.closed.is_some(), "{name} did not close");
            }
            ConnectionError::ApplicationClosed { code, reason } => {
                let peer_code = other.and_then(|end| end.closed);
                assert_eq!(
                    peer_code,
                    Some(code.0),
                    "{name} received a code that the peer did not send"
                );
                assert_eq!(
                    reason[..],
                    code.0.to_le_bytes(),
                    "{name} reports another reason"
                );
            }
            // An application's close must not leave before the handshake protects it.
            ConnectionError::ConnectionClosed(close)
                if close.code == TransportErrorCode::APPLICATION_ERROR =>
            {
                let mut others = self.book.ends.iter();
                let closed =
                    others.any(|((of, _), end)| *of != self.is_server && end.closed.is_some());
                assert!(closed, "{name}: neither end closed");
            }
            ConnectionError::ConnectionClosed(close)
                if close.code == TransportErrorCode::NO_VIABLE_PATH =>
            {
                assert!(self.run.choices.network.has_mtu, "{name}: {error}");
            }
            ConnectionError::TransportError(cause)
                if cause.code == TransportErrorCode::NO_VIABLE_PATH =>
            {
                assert!(self.run.choices.network.has_mtu, "{name}: {error}");
            }
            ConnectionError::Reset => {
                let is_lost = other.is_none_or(|end| end.lost.is_some());
                assert!(
                    is_lost,
                    "{name} was reset, and the peer knows the connection"
                );
            }
            // The time is checked below.
            ConnectionError::TimedOut => {}
            ConnectionError::HandshakeTimedOut => {
                assert!(self.end.key.is_none(), "{name}: its handshake was complete");
            }
            // Tokens of a Retry are valid for ten seconds, at one address.
            ConnectionError::ConnectionClosed(close)
                if close.code == TransportErrorCode::INVALID_TOKEN =>
            {
                let choices = &self.run.choices;
                let is_moved = choices.changes_address() || choices.faults[1].jumps();
                assert!(is_moved, "{name}: {error}");
            }
            _ => panic!("{name} reports an error of its own or of its peer: {error:?}"),
        }
    }

    fn receive_times(&self) -> Option<ReceiveTimes> {
        let node = self.run.node(usize::from(self.is_server));
        node.receive_times(self.handle)
    }

    /// Checks that a silent connection ends at the idle timeout: not sooner, and not much later.
    fn silence(&self, ended_at: Time) {
        let Some((lost_at, ConnectionError::TimedOut)) = &self.end.lost else {
            return;
        };
        let choices = &self.run.choices;
        let (name, at) = (self.name(), usize::from(self.is_server));
        let Some(receive_times) = self.receive_times() else {
            panic!("{name} ended before its first packet");
        };
        let (silence, idle) = (*lost_at - receive_times.last_received, choices.idle());
        let slack = Duration::from_millis(1);
        assert!(
            silence + slack >= idle,
            "{name} timed out after {silence:?} of {idle:?}"
        );
        // The first packet sent after the last one received restarts the timeout.
        let calm_from = self.run.node(at).clock_time(ended_at);
        if choices.ending == Ending::Idle
            && receive_times.last_received >= calm_from
            && self.end.key.is_some()
        {
            let most = idle.mul_f64(1.1).max(3 * choices.pto(WORST_RTT));
            assert!(
                silence <= most,
                "{name} timed out only after {silence:?} of {idle:?}"
            );
        }
        if *lost_at < calm_from {
            self.was_cut_off(silence);
        }
    }

    /// Checks that a connection with work to do was not silent without a cause: one of its ends has
    /// received nothing since the faults ended. The exception is a probe of the other end that was
    /// not due yet: it waits for some of its last round trips, or for as long again as it had
    /// waited when the faults ended, since probe timeouts double.
    fn was_cut_off(&self, silence: Duration) {
        let (run, name) = (self.run, self.name());
        let Some((other, key)) = self.other_handle().zip(self.end.key) else {
            return;
        };
        // Behind a NAT that continues to rebind, an end that only receives gets nothing. After a
        // jump of the clock the ends differ about the time at which the faults ended.
        let has_clock_jump = |at: usize| run.choices.faults[at].jumps();
        if run.choices.network.has_nat || has_clock_jump(0) || has_clock_jump(1) {
            return;
        }
        let host = run.node(usize::from(!self.is_server)).host();
        let rtt = host.stats(other).map_or(WORST_RTT, |stats| stats.path.rtt);
        let delays = run.choices.settings.iter().map(|it| it.max_ack_delay);
        let allowance = 2 * run.choices.chaos + 10 * rtt + delays.max().unwrap_or_default();
        if silence < allowance {
            return;
        }
        let mut flows = self.book.flows.iter();
        let has_more = flows.any(|((of, ..), flow)| *of == key && !flow.is_over());
        let has_received = |at: usize, handle| {
            let receive_times = run.node(at).receive_times(handle);
            receive_times.is_some_and(|receive_times| {
                receive_times.last_received > Time::ZERO + run.choices.chaos
            })
        };
        let at = usize::from(self.is_server);
        assert!(
            !has_more || !has_received(at, self.handle) || !has_received(1 - at, other),
            "{name} received nothing on a network without faults, with open streams"
        );
    }

    /// A handshake has ten seconds, and at a server that has not validated the client's address
    /// five seconds without packets (limit K12).
    fn handshake(&self) {
        let Some((lost_at, ConnectionError::HandshakeTimedOut)) = &self.end.lost else {
            return;
        };
        let (name, receive_times) = (self.name(), self.receive_times());
        let receive_times =
            receive_times.unwrap_or_else(|| panic!("{name} ended before its first packet"));
        let whole = self.run.choices.settings[usize::from(self.is_server)].handshake_timeout;
        let (took, silence) = (
            *lost_at - receive_times.since,
            *lost_at - receive_times.last_received,
        );
        let slack = Duration::from_millis(1);
        let is_late = took + slack >= whole;
        let is_silent = self.is_server && silence + slack >= whole / 2;
        assert!(
            is_late || is_silent,
            "{name} ended its handshake after {took:?}, {silence:?} after the last packet"
        );
    }

    fn stats(&self) -> ConnectionStats {
        let host = self.run.node(usize::from(self.is_server)).host();
        host.stats(self.handle)
            .expect("the statistics of ended connections are kept")
    }

    /// Checks that the counters fit each other and the operations of the applications.
    fn counters(&self) {
        let (name, stats) = (self.name(), self.stats());
        assert_eq!(
            stats.path.bytes_in_flight, 0,
            "{name}: in flight after the end"
        );
        let ordered = [
            ("lost", stats.packets_lost, stats.packets_sent),
            ("late", stats.packets_spuriously_lost, stats.packets_lost),
            ("acknowledged", stats.data_acked, stats.data_sent),
            ("datagrams", stats.udp_sent.datagrams, stats.packets_sent),
            ("batches", stats.udp_sent.batches, stats.udp_sent.datagrams),
            (
                "asking",
                stats.ack_eliciting_received,
                stats.packets_received,
            ),
            ("marked", stats.ce_received, stats.packets_received),
        ];
        for (what, part, whole) in ordered {
            assert!(part <= whole, "{name}: {part} {what} of {whole}: {stats:?}");
        }
        let Some(key) = self.end.key else {
            return;
        };
        let flows = |of_server: bool, count: fn(&super::book::Flow) -> u64| -> u64 {
            let flows = self.book.flows.iter();
            let of = flows.filter(|((of, _, sender), _)| *of == key && *sender == of_server);
            of.map(|(_, flow)| count(flow)).sum()
        };
        let written = flows(self.is_server, |flow| flow.written);
        let read = flows(!self.is_server, |flow| flow.read);
        assert!(
            stats.data_sent <= written,
            "{name}: sent {} of {written}",
            stats.data_sent
        );
        assert!(
            read <= stats.data_received,
            "{name}: read {read} of {}",
            stats.data_received
        );
        if let Some((other, _)) = self.book.other(self.is_server, key) {
            let host = self.run.node(usize::from(!self.is_server)).host();
            let peer_stats = host.stats(other).unwrap_or_default();
            assert!(
                stats.data_received <= peer_stats.data_sent,
                "{name}: more was received than the peer sent"
            );
            assert!(
                stats.data_acked <= peer_stats.data_received,
                "{name}: acknowledged packets that did not arrive"
            );
        }
    }
}

/// Checks that on a calm network with both ends alive a close reaches the other end at once.
fn close_arrives(run: &Run, book: &Book, ended_at: Time) {
    let Ending::Close { client, server } = run.choices.ending else {
        return;
    };
    for ((is_server, handle), end) in &book.ends {
        let Some(((at, error), key)) = end.lost.as_ref().zip(end.key) else {
            continue;
        };
        let was_there = *at >= run.node(usize::from(*is_server)).clock_time(ended_at);
        let own = if *is_server { server } else { client };
        let Some((_, other)) = book
            .other(*is_server, key)
            .filter(|_| was_there && own.is_none())
        else {
            continue;
        };
        let closed_now = other
            .lost
            .as_ref()
            .is_some_and(|(at, _)| *at == run.node(usize::from(!*is_server)).clock_time(ended_at));
        if closed_now {
            // It may have given up before the close arrived, behind packets that a delay of the
            // chaos still holds up.
            let delayed = Time::ZERO + run.choices.chaos + Duration::from_secs(3) - ended_at;
            let in_transit = run.choices.network.delay + Duration::from_millis(20) + delayed;
            let is_early =
                *at <= run.node(usize::from(*is_server)).clock_time(ended_at) + in_transit;
            let seen = matches!(error, ConnectionError::ApplicationClosed { .. })
                || (is_early && error.is_timeout());
            assert!(
                seen,
                "{handle:?} was closed by its peer, and reports: {error}"
            );
        }
    }
}
