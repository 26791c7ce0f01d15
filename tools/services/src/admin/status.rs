//! The content of `/status`.

use std::collections::VecDeque;
use std::time::{Instant, SystemTime};

use courser::server::{AcmeStats, CertificateFacts, DrainProgress, Protocol, ServerStats};
use courser::webtransport::{Monitor, SessionFacts};
use serde_json::{Value, json};

use super::Admin;
use super::closes::{Close, Closes};
use super::rows::Row;
use crate::proxy::{SessionProxyStats, UpstreamStats};
use courser_units::rfc3339;

impl Admin {
    /// Returns the state of the server as JSON, without its connections.
    pub(super) fn summary(&self, stats: &ServerStats) -> Value {
        let protocols = Protocol::ALL.map(|protocol| {
            let it = stats.of(protocol);
            json!({
                "protocol": protocol.name(),
                "connections": it.connections,
                "connections_open": it.connections_open,
                "requests": it.requests,
                "requests_in_flight": it.requests_in_flight,
            })
        });
        let udp = stats.listeners.iter().filter_map(|listener| listener.udp);
        let (udp_received, udp_sent) = udp.fold((0, 0), |(received, sent), it| {
            (received + it.received_bytes, sent + it.sent_bytes)
        });
        let dropped = stats.listeners.iter().filter_map(|it| it.udp_overflow);
        let dropped = dropped.reduce(|sum, next| sum + next);
        let refused = stats.refusals.by_reason();
        let certificates = self.handle.certificates();
        json!({
            "what": self.what,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_seconds": self.began.elapsed().as_secs(),
            "ready": stats.ready,
            "stopped_tasks": stats.stopped_tasks,
            "draining": stats.draining,
            "busy": stats.busy,
            "drain": stats.drain.map(drain),
            "refused": Value::from_iter(refused),
            "protocols": protocols,
            "bytes_received": stats.tcp.bytes_received + udp_received,
            "bytes_sent": stats.tcp.bytes_sent + udp_sent,
            "handshakes_failed": stats.tcp.handshakes_failed + stats.quic_handshakes_failed,
            "quic_packets_sent": stats.quic.packets_sent,
            "quic_packets_lost": stats.quic.packets_lost,
            "early_data": early_data_counts(stats),
            "udp_dropped_datagrams": dropped,
            "upstream": self.metrics.upstream().map(upstream),
            "webtransport": self.handle.sessions().map(|it| sessions(&it)),
            "upstream_sessions": self.metrics.session_proxy().map(|it| session_proxy(&it)),
            "certificates": certificates.iter().map(certificate).collect::<Vec<_>>(),
            "acme": stats.acme.as_ref().map(acme),
            "closes": closes(&self.observer.closes()),
        })
    }

    /// Returns the `count` newest connections, newest first, and the number of the others.
    pub(super) fn newest(&self, count: usize) -> (Vec<Value>, u64) {
        let mut newest = VecDeque::with_capacity(count);
        let mut others = 0;
        self.handle.for_each_connection(|it| {
            newest.push_front(it);
            if newest.len() > count {
                newest.pop_back();
                others += 1;
            }
        });
        let rows = newest.iter().map(|it| Row::new(it, None).json());
        (rows.collect(), others)
    }
}

/// Returns the counts of connections and requests with early data (0-RTT) as JSON.
pub fn early_data_counts(stats: &ServerStats) -> Value {
    json!({
        "connections_accepted": stats.quic.early_data_accepted,
        "connections_refused": stats.quic.early_data_refused,
        "requests_accepted": stats.early_requests,
        "requests_too_early": stats.requests_too_early,
        "connections_without_token": stats.early_data_without_token,
    })
}

fn drain(progress: DrainProgress) -> Value {
    json!({
        "seconds": progress.elapsed.as_secs_f64(),
        "deadline_seconds": progress.deadline.as_secs_f64(),
        "connections": progress.connections,
        "connections_open": progress.connections_open,
        "requests_in_flight": progress.requests_in_flight,
    })
}

fn certificate(facts: &CertificateFacts) -> Value {
    let days = match facts.not_after.duration_since(SystemTime::now()) {
        Ok(left) => left.as_secs_f64() / SECONDS_PER_DAY,
        Err(error) => -error.duration().as_secs_f64() / SECONDS_PER_DAY,
    };
    json!({
        "names": facts.names,
        "not_after": rfc3339(facts.not_after),
        "days_left": days,
    })
}

/// Returns the progress of an ACME client as JSON.
fn acme(stats: &AcmeStats) -> Value {
    json!({
        "attempts": stats.attempts,
        "failures": stats.failures,
        "certificates": stats.issued,
        "next_attempt": stats.next_attempt.map(rfc3339),
        "last_failure": stats.last_failure,
    })
}

/// Returns the use of the connections to the upstream server as JSON.
fn upstream(stats: UpstreamStats) -> Value {
    json!({
        "connections_open": stats.connections_open,
        "connections_limit": stats.connections_limit,
        "requests": stats.requests,
        "waiting": stats.waiting,
        "waiting_limit": stats.waiting_limit,
        "refused": stats.refused,
        "queue_timeouts": stats.timed_out,
        "tunnels": stats.tunnels,
        "tunnels_idle": stats.tunnels_idle,
    })
}

/// Returns the counts of sessions of WebTransport as JSON, with the oldest that are open.
fn sessions(monitor: &Monitor) -> Value {
    let stats = monitor.stats();
    let (refused, dialects) = (stats.refused.iter(), stats.opened_by_dialect.iter());
    let open = monitor.sessions(LISTED_SESSIONS);
    json!({
        "open": stats.open,
        "limit": stats.limit,
        "opened": stats.opened,
        "opened_by_dialect": Value::from_iter(dialects.map(|(it, count)| (it.name(), *count))),
        "refused": Value::from_iter(refused.map(|(kind, count)| (kind.name(), *count))),
        "streams": stats.streams,
        "datagrams_dropped": stats.datagrams_dropped,
        "sessions": open.iter().map(session).collect::<Vec<_>>(),
    })
}

fn session(facts: &SessionFacts) -> Value {
    let stats = &facts.stats;
    json!({
        "peer": facts.peer.to_string(),
        "uri": facts.uri,
        "origin": facts.origin,
        "protocol": facts.protocol,
        "dialect": facts.dialect.to_string(),
        "age_seconds": facts.age.as_secs_f64(),
        "rtt_ms": stats.rtt.as_secs_f64() * 1000.0,
        "streams_opened": stats.streams_opened,
        "streams_accepted": stats.streams_accepted,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "datagrams_dropped": stats.datagrams_dropped,
    })
}

/// Returns the use of the proxy of sessions as JSON.
fn session_proxy(stats: &SessionProxyStats) -> Value {
    json!({
        "open": stats.open,
        "forwarded": stats.forwarded,
        "refused_upstream": stats.refused_upstream,
        "failed": stats.failed,
        "datagrams_too_large": stats.datagrams_too_large,
    })
}

/// Returns the close statistics as JSON.
fn closes(closes: &Closes) -> Value {
    let totals = closes.totals().map(|((by, cause), total)| {
        json!({"by": by, "cause": cause, "count": total.count, "ordinary": total.is_ordinary})
    });
    let now = Instant::now();
    let recent = |it: &Close| {
        json!({
            "number": it.number,
            "seconds_ago": now.saturating_duration_since(it.at).as_secs_f64(),
            "by": it.by,
            "cause": it.cause,
            "reason": it.reason,
            "client": it.client.map(|it| it.to_string()),
            "seconds": it.age.as_secs_f64(),
        })
    };
    json!({
        "totals": totals.collect::<Vec<_>>(),
        "failures": closes.recent().map(recent).collect::<Vec<_>>(),
    })
}

/// Sessions of WebTransport that `/status` lists (limit K672).
const LISTED_SESSIONS: usize = 100;
const SECONDS_PER_DAY: f64 = 86_400.0;
