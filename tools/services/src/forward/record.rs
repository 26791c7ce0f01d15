//! Records of requests to a forward proxy: a line of the access log, and counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime};

use courser::masque::{IpTunnelRecord, Prefix, TunnelRecord};
use courser_base::Mutex;
use http::{StatusCode, Version};
use serde_json::json;

use super::relay::End;
use crate::access_log::{AccessLog, LogFormat, cut, escape, protocol};
use crate::client_closed::CLIENT_CLOSED;

/// The counts of a forward proxy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ForwardStats {
    /// CONNECT.
    pub tcp: PassedStats,
    /// CONNECT-UDP.
    pub udp: PassedStats,
    /// CONNECT-IP.
    pub ip: PassedStats,
    /// Requests for `http` URLs.
    pub http: PassedStats,
    /// UDP and IP packets that were dropped, to targets and from targets.
    pub dropped: [u64; 2],
    /// Requests that were refused, by status.
    pub refused: BTreeMap<u16, u64>,
}

/// The counts of a protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PassedStats {
    /// Tunnels or requests that are open.
    pub open: u64,
    /// Tunnels or requests in all, without those that were refused.
    pub opened: u64,
    /// Bytes to targets. Those of UDP and IP tunnels are counted at their end.
    pub to_targets: u64,
    /// Bytes from targets.
    pub from_targets: u64,
}

/// Counters that the records of a proxy share.
#[derive(Debug, Default)]
pub(super) struct Counters {
    tcp: Passed,
    udp: Passed,
    ip: Passed,
    http: Passed,
    dropped: [AtomicU64; 2],
    refused: Mutex<BTreeMap<u16, u64>>,
}

#[derive(Debug, Default)]
struct Passed {
    open: AtomicU64,
    opened: AtomicU64,
    to_targets: AtomicU64,
    from_targets: AtomicU64,
}

impl Passed {
    fn stats(&self) -> PassedStats {
        PassedStats {
            open: self.open.load(Relaxed),
            opened: self.opened.load(Relaxed),
            to_targets: self.to_targets.load(Relaxed),
            from_targets: self.from_targets.load(Relaxed),
        }
    }
}

impl Counters {
    pub(super) fn stats(&self) -> ForwardStats {
        ForwardStats {
            tcp: self.tcp.stats(),
            udp: self.udp.stats(),
            ip: self.ip.stats(),
            http: self.http.stats(),
            dropped: [self.dropped[0].load(Relaxed), self.dropped[1].load(Relaxed)],
            refused: self.refused.lock().clone(),
        }
    }

    fn of(&self, kind: Kind) -> &Passed {
        match kind {
            Kind::Tcp => &self.tcp,
            Kind::Udp => &self.udp,
            Kind::Ip => &self.ip,
            Kind::Http => &self.http,
        }
    }
}

/// The protocol of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Tcp,
    Udp,
    Ip,
    Http,
}

impl Kind {
    /// Returns true for tunnels of packets, which may be dropped.
    const fn has_packets(self) -> bool {
        matches!(self, Self::Udp | Self::Ip)
    }
}

/// Where lines go.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) log: AccessLog,
    pub(super) format: LogFormat,
}

/// The record of a request, which is written and counted when it is dropped.
#[derive(Debug)]
pub(super) struct Record {
    log: Option<Log>,
    counters: Arc<Counters>,
    kind: Kind,
    at: SystemTime,
    began: Instant,
    client: Option<SocketAddr>,
    user: Option<Arc<str>>,
    method: Box<str>,
    target: Box<str>,
    version: Version,
    status: StatusCode,
    reason: Option<Box<str>>,
    address: Option<SocketAddr>,
    /// The addresses of the client inside of an IP tunnel.
    assigned: Vec<IpAddr>,
    to_target: AtomicU64,
    from_target: AtomicU64,
    dropped: [u64; 2],
    end: &'static str,
    is_open: bool,
}

/// The facts of a request that its record begins with.
pub(super) struct Begin {
    pub(super) kind: Kind,
    pub(super) client: Option<SocketAddr>,
    pub(super) method: Box<str>,
    pub(super) target: Box<str>,
    pub(super) version: Version,
}

impl Record {
    pub(super) fn begin(log: Option<Log>, counters: Arc<Counters>, begin: Begin) -> Self {
        Self {
            log,
            counters,
            kind: begin.kind,
            at: SystemTime::now(),
            began: Instant::now(),
            client: begin.client,
            user: None,
            method: begin.method,
            target: begin.target,
            version: begin.version,
            // Until something else is known: the client has left before its response.
            status: CLIENT_CLOSED,
            reason: None,
            address: None,
            assigned: Vec::new(),
            to_target: AtomicU64::new(0),
            from_target: AtomicU64::new(0),
            dropped: [0; 2],
            // A client that leaves drops its request.
            end: End::Client.name(),
            is_open: false,
        }
    }

    /// Returns the name of the protocol.
    pub(super) const fn name(&self) -> &'static str {
        match self.kind {
            Kind::Tcp => "CONNECT",
            Kind::Udp => "CONNECT-UDP",
            Kind::Ip => "CONNECT-IP",
            Kind::Http => "requests for http URLs",
        }
    }

    pub(super) fn on_client(&mut self, user: Arc<str>) {
        self.user = Some(user);
    }

    pub(super) fn on_refused(&mut self, status: StatusCode, reason: &str) {
        self.status = status;
        self.reason = Some(reason.into());
        self.end = "refused";
        let mut refused = self.counters.refused.lock();
        *refused.entry(status.as_u16()).or_default() += 1;
    }

    pub(super) fn on_opened(&mut self, status: StatusCode, address: Option<SocketAddr>) {
        self.status = status;
        self.address = address;
        self.is_open = true;
        let counters = self.counters.of(self.kind);
        counters.open.fetch_add(1, Relaxed);
        counters.opened.fetch_add(1, Relaxed);
    }

    /// Counts bytes to and from the target.
    pub(super) fn on_bytes(&self, to_target: u64, from_target: u64) {
        self.to_target.fetch_add(to_target, Relaxed);
        self.from_target.fetch_add(from_target, Relaxed);
        let counters = self.counters.of(self.kind);
        counters.to_targets.fetch_add(to_target, Relaxed);
        counters.from_targets.fetch_add(from_target, Relaxed);
    }

    pub(super) fn on_end(&mut self, end: &'static str) {
        self.end = end;
    }

    /// Takes what a UDP tunnel has counted.
    pub(super) fn on_udp(&mut self, tunnel: &TunnelRecord) {
        self.address = Some(tunnel.address);
        self.on_bytes(tunnel.bytes_to_target, tunnel.bytes_from_target);
        self.on_dropped([tunnel.dropped_to_target, tunnel.dropped_from_target]);
        self.end = tunnel.end.name();
    }

    /// Takes what an IP tunnel has counted.
    pub(super) fn on_ip(&mut self, tunnel: &IpTunnelRecord) {
        let assigned = tunnel.addresses.iter().map(Prefix::first);
        self.assigned = assigned.take(MAX_ASSIGNED).collect();
        self.on_bytes(tunnel.bytes_to_network, tunnel.bytes_from_network);
        self.on_dropped([tunnel.dropped_to_network, tunnel.dropped_from_network]);
        self.end = tunnel.end.name();
    }

    fn on_dropped(&mut self, dropped: [u64; 2]) {
        self.dropped = dropped;
        for (all, dropped) in self.counters.dropped.iter().zip(dropped) {
            all.fetch_add(dropped, Relaxed);
        }
    }

    fn text(&self) -> String {
        let mut line = String::with_capacity(200);
        let _ = write!(line, "{} ", courser_units::rfc3339_millis(self.at));
        match self.client {
            Some(client) => drop(write!(line, "{client}")),
            None => line.push('-'),
        }
        line.push_str(" \"");
        let user = self.user.as_deref().unwrap_or("-");
        escape(&mut line, user.as_bytes(), MAX_OF_NAME);
        line.push_str("\" \"");
        escape(&mut line, self.method.as_bytes(), MAX_OF_NAME);
        line.push(' ');
        escape(&mut line, self.target.as_bytes(), MAX_OF_TARGET);
        let _ = write!(
            line,
            " {}\" {}",
            protocol(self.version),
            self.status.as_u16()
        );
        if let Some(address) = self.address {
            let _ = write!(line, " address={address}");
        }
        if !self.assigned.is_empty() {
            let _ = write!(line, " assigned={}", self.assigned().join(","));
        }
        let (to, from) = (&self.to_target, &self.from_target);
        let _ = write!(line, " to={} from={}", to.load(Relaxed), from.load(Relaxed));
        if self.kind.has_packets() {
            let [to, from] = self.dropped;
            let _ = write!(line, " dropped-to={to} dropped-from={from}");
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let _ = write!(line, " seconds={seconds:.3} end={}", self.end);
        if let Some(reason) = &self.reason {
            line.push_str(" reason=\"");
            escape(&mut line, reason.as_bytes(), MAX_OF_REASON);
            line.push('"');
        }
        line
    }

    fn assigned(&self) -> Vec<String> {
        self.assigned.iter().map(ToString::to_string).collect()
    }

    fn json(&self) -> String {
        let [dropped_to, dropped_from] = self.dropped;
        let has_packets = self.kind.has_packets();
        json!({
            "time": courser_units::rfc3339_millis(self.at),
            "client": self.client.map(|it| it.to_string()),
            "user": self.user.as_deref().map(|it| cut(it, MAX_OF_NAME)),
            "protocol": protocol(self.version),
            "method": cut(&self.method, MAX_OF_NAME),
            "target": cut(&self.target, MAX_OF_TARGET),
            "status": self.status.as_u16(),
            "address": self.address.map(|it| it.to_string()),
            "assigned": (self.kind == Kind::Ip).then(|| self.assigned()),
            "bytes_to_target": self.to_target.load(Relaxed),
            "bytes_from_target": self.from_target.load(Relaxed),
            "dropped_to_target": has_packets.then_some(dropped_to),
            "dropped_from_target": has_packets.then_some(dropped_from),
            "seconds": self.began.elapsed().as_secs_f64(),
            "end": self.end,
            "reason": self.reason.as_deref().map(|it| cut(it, MAX_OF_REASON)),
        })
        .to_string()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.is_open {
            let counters = self.counters.of(self.kind);
            counters.open.fetch_sub(1, Relaxed);
        }
        if let Some(Log { log, format }) = &self.log {
            log.record_line(match format {
                LogFormat::Json => self.json(),
                LogFormat::Common | LogFormat::Combined => self.text(),
            });
        }
    }
}

/// Largest parts of a line, in bytes: those of other lines are bounded by nature (limit K106).
const MAX_OF_NAME: usize = 255;
const MAX_OF_TARGET: usize = 1600;
const MAX_OF_REASON: usize = 600;

/// Addresses of a client in a line: a tunnel has one of each version.
const MAX_ASSIGNED: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn record(target: &str) -> Record {
        let begin = Begin {
            kind: Kind::Udp,
            client: Some(([0xffff; 8], 65_535).into()),
            method: "M".repeat(5000).into(),
            target: target.into(),
            version: Version::HTTP_3,
        };
        Record::begin(None, Arc::default(), begin)
    }

    #[test]
    fn text_of_clients_ends_no_field_and_no_line() {
        let mut it = record("a\" 200\n\x1b[31m");
        it.on_client("al\"ice".into());
        it.on_refused(StatusCode::FORBIDDEN, "a \"rule\"");
        let text = it.text();
        assert!(text.contains(r#" "al\"ice" "#), "{text}");
        assert!(
            text.contains(r#"a\" 200\x0a\x1b[31m HTTP/3.0" 403 "#),
            "{text}"
        );
        assert!(
            text.ends_with(r#" end=refused reason="a \"rule\"""#),
            "{text}"
        );
        assert!(!it.json().contains('\n'));
        assert_eq!(it.counters.stats().refused[&403], 1);
    }

    #[test]
    fn lines_are_never_longer_than_the_limit() {
        for text in ["\"", "\t", "é", "x"] {
            let text = text.repeat(60_000);
            let mut it = record(&text);
            it.on_client(text.as_str().into());
            it.on_refused(StatusCode::FORBIDDEN, &text);
            it.on_bytes(u64::MAX, u64::MAX);
            it.address = it.client;
            for line in [it.text(), it.json()] {
                assert!(line.len() < crate::access_log::MAX_LINE, "{}", line.len());
            }
        }
    }

    #[test]
    fn open_tunnels_are_counted_until_the_record_ends() {
        let mut it = record("a.test:1");
        let counters = it.counters.clone();
        it.on_opened(StatusCode::OK, None);
        it.on_bytes(3, 5);
        assert_eq!(counters.stats().udp.open, 1);
        drop(it);
        let stats = counters.stats().udp;
        assert_eq!((stats.open, stats.opened), (0, 1));
        assert_eq!((stats.to_targets, stats.from_targets), (3, 5));
    }
}
