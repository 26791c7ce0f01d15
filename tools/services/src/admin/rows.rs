//! Connections as table rows that are sorted, filtered and divided into pages.

use std::cmp::Ordering;
use std::net::SocketAddr;
use std::time::Duration;

use courser::server::ConnectionSummary;
use courser_units::to_f64;
use serde_json::{Map, Value, json};

use super::observer::{LIMITS, LimitTimes, largest};

/// The state of one connection at the time of a snapshot.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: u64,
    pub(super) client: SocketAddr,
    /// The client address as text, which filters search.
    client_text: String,
    name: Option<String>,
    protocol: &'static str,
    state: &'static str,
    cipher: Option<String>,
    age: Duration,
    requests: u64,
    requests_in_flight: u64,
    pub(super) bytes_received: u64,
    pub(super) bytes_sent: u64,
    /// Bytes received and sent per second since the previous snapshot.
    rates: Option<(f64, f64)>,
    pub(super) quic: Option<QuicRow>,
    pub(super) limit_times: Option<LimitTimes>,
    /// The limit that held the sender back for most of the time since the previous snapshot, and its share of
    /// that time.
    limit: Option<(&'static str, Option<f64>)>,
    /// The original destination connection ID, which also names the connection's trace.
    trace: Option<String>,
}

/// The columns that only QUIC connections have.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuicRow {
    pub(super) rtt: Duration,
    pub(super) latest_rtt: Duration,
    pub(super) rtt_variance: Duration,
    pub(super) min_rtt: Duration,
    pub(super) window: u64,
    pub(super) in_flight: u64,
    pub(super) packets_sent: u64,
    pub(super) packets_lost: u64,
    /// 1-RTT packets of the peer that have not arrived, and those that arrived late.
    packets_missing: u64,
    packets_late: u64,
    pub(super) delivery_rate: Option<u64>,
    pub(super) pacing_rate: Option<u64>,
    controller: &'static str,
    mtu: u16,
}

/// The counters of an earlier row, from which rates and limits are computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    bytes_received: u64,
    bytes_sent: u64,
    limit_times: Option<LimitTimes>,
}

impl Row {
    pub(super) fn new(it: &ConnectionSummary, limit_times: Option<LimitTimes>) -> Self {
        let client = it.peer.current_address();
        let is_early = it.quic.is_some_and(|quic| quic.handshake_time.is_none());
        let state = match it.requests_in_flight {
            _ if is_early => "handshake",
            0 => "idle",
            _ => "active",
        };
        let quic = it.quic.map(|quic| QuicRow {
            rtt: quic.path.rtt,
            latest_rtt: quic.path.latest_rtt,
            rtt_variance: quic.path.rtt_variance,
            min_rtt: quic.path.min_rtt,
            window: quic.path.congestion_window,
            in_flight: quic.path.bytes_in_flight,
            packets_sent: quic.packets_sent,
            packets_lost: quic.packets_lost,
            packets_missing: quic.packets_missing,
            packets_late: quic.packets_late,
            delivery_rate: quic.path.delivery_rate.map(|it| it.as_bytes_per_second()),
            pacing_rate: quic.path.pacing_rate.map(|it| it.as_bytes_per_second()),
            controller: quic.path.controller,
            mtu: quic.path.mtu,
        });
        let current = limit_times.map(|limit_times| limit_times.current());
        Self {
            id: it.peer.connection_id(),
            client,
            client_text: client.to_string(),
            name: it.peer.tls().server_name.clone(),
            protocol: it.peer.protocol().name(),
            state,
            cipher: it.peer.tls().cipher_suite.clone(),
            age: it.age,
            requests: it.requests,
            requests_in_flight: it.requests_in_flight,
            bytes_received: it.bytes_received,
            bytes_sent: it.bytes_sent,
            rates: None,
            quic,
            limit_times,
            limit: current.map(|limit| (limit, None)),
            trace: it.peer.original_destination().map(|id| id.to_string()),
        }
    }

    /// Returns the counters from which a later row of the same connection computes its rates.
    pub(super) fn before(&self) -> Before {
        Before {
            bytes_received: self.bytes_received,
            bytes_sent: self.bytes_sent,
            limit_times: self.limit_times,
        }
    }

    /// Computes rates and limits since `before`, which was `passed` ago.
    pub(super) fn measure(&mut self, before: &Before, passed: Duration) {
        let per_second = |now: u64, before: u64| {
            to_f64(now.saturating_sub(before)) / passed.as_secs_f64().max(1e-3)
        };
        self.rates = Some((
            per_second(self.bytes_received, before.bytes_received),
            per_second(self.bytes_sent, before.bytes_sent),
        ));
        if let (Some(limit_times), Some(earlier)) = (self.limit_times, before.limit_times)
            && let Some(shares) = limit_times.shares_since(&earlier)
        {
            let (limit, share) = largest(&shares);
            self.limit = Some((limit, Some(share)));
        }
    }

    /// Returns bytes received and sent per second since the previous measurement.
    pub(super) fn rates(&self) -> Option<(f64, f64)> {
        self.rates
    }

    /// Returns the limit that held the sender back.
    pub(super) fn limit(&self) -> Option<&'static str> {
        self.limit.map(|(limit, _)| limit)
    }

    /// Returns the row as a JSON object.
    pub(super) fn json(&self) -> Value {
        let mut object = Map::new();
        let quic = self.quic.map(|quic| {
            json!({
                "rtt_ms": millis(quic.rtt),
                "rtt_variance_ms": millis(quic.rtt_variance),
                "min_rtt_ms": millis(quic.min_rtt),
                "congestion_window": quic.window,
                "bytes_in_flight": quic.in_flight,
                "packets_sent": quic.packets_sent,
                "packets_lost": quic.packets_lost,
                "packets_missing": quic.packets_missing,
                "packets_late": quic.packets_late,
                "controller": quic.controller,
                "mtu": quic.mtu,
            })
        });
        for (name, value) in [
            ("id", json!(self.id)),
            ("client", json!(self.client_text)),
            ("name", json!(self.name)),
            ("protocol", json!(self.protocol)),
            ("state", json!(self.state)),
            ("cipher", json!(self.cipher)),
            ("seconds", json!(self.age.as_secs_f64())),
            ("requests", json!(self.requests)),
            ("requests_in_flight", json!(self.requests_in_flight)),
            ("bytes_received", json!(self.bytes_received)),
            ("bytes_sent", json!(self.bytes_sent)),
            (
                "received_rate",
                json!(self.rates.map(|(rate, _)| rate.round())),
            ),
            ("sent_rate", json!(self.rates.map(|(_, rate)| rate.round()))),
            ("limit", json!(self.limit())),
            (
                "limit_share",
                json!(self.limit.and_then(|(_, share)| share)),
            ),
            ("trace", json!(self.trace)),
            ("quic", json!(quic)),
        ] {
            object.insert(name.to_owned(), value);
        }
        Value::Object(object)
    }

    fn matches(&self, needle: &str) -> bool {
        let has = |text: &str| text.to_ascii_lowercase().contains(needle);
        has(&self.client_text)
            || self.name.as_deref().is_some_and(has)
            || [self.protocol, self.state].into_iter().any(has)
            || self.limit().is_some_and(has)
            || self.id.to_string() == needle
    }

    fn key(&self, column: Column) -> Key<'_> {
        let count = |count: u64| Key::Number(to_f64(count));
        let of_quic = |value: fn(&QuicRow) -> f64| match &self.quic {
            Some(quic) => Key::Number(value(quic)),
            None => Key::Missing,
        };
        match column {
            Column::Id => count(self.id),
            Column::Client => Key::Address(self.client),
            Column::Name => self.name.as_deref().map_or(Key::Missing, Key::Text),
            Column::Protocol => Key::Text(self.protocol),
            Column::State => Key::Text(self.state),
            Column::Age => Key::Number(self.age.as_secs_f64()),
            Column::Requests => count(self.requests),
            Column::InProgress => count(self.requests_in_flight),
            Column::BytesReceived => count(self.bytes_received),
            Column::BytesSent => count(self.bytes_sent),
            Column::ReceivedRate => self.rates.map_or(Key::Missing, |(it, _)| Key::Number(it)),
            Column::SentRate => self.rates.map_or(Key::Missing, |(_, it)| Key::Number(it)),
            Column::Rtt => of_quic(|it| it.rtt.as_secs_f64()),
            Column::Window => of_quic(|it| to_f64(it.window)),
            Column::InFlight => of_quic(|it| to_f64(it.in_flight)),
            Column::Lost => of_quic(|it| to_f64(it.packets_lost)),
            Column::Limit => self.limit.map_or(Key::Missing, |(limit, share)| {
                let rank = LIMITS
                    .iter()
                    .position(|it| *it == limit)
                    .unwrap_or_default();
                Key::Number(to_f64(rank as u64) * 2.0 + share.unwrap_or(1.0))
            }),
        }
    }
}

/// Converts a duration to milliseconds.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The value by which rows are sorted.
#[derive(Clone, Copy, Debug)]
enum Key<'a> {
    Number(f64),
    Text(&'a str),
    Address(SocketAddr),
    /// A missing value, which is last in both orders.
    Missing,
}

/// The columns by which rows can be sorted; [`COLUMNS`] has their JSON names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    Id,
    Client,
    Name,
    Protocol,
    State,
    Age,
    Requests,
    InProgress,
    BytesReceived,
    BytesSent,
    ReceivedRate,
    SentRate,
    Rtt,
    Window,
    InFlight,
    Lost,
    Limit,
}

impl Column {
    /// Parses the JSON name of a column.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let found = COLUMNS.iter().find(|(it, _)| *it == name);
        found.map(|(_, column)| *column)
    }

    /// Returns the JSON names of all columns for a message.
    pub(super) fn names() -> String {
        COLUMNS.map(|(name, _)| name).join(", ")
    }
}

const COLUMNS: [(&str, Column); 17] = [
    ("id", Column::Id),
    ("client", Column::Client),
    ("name", Column::Name),
    ("protocol", Column::Protocol),
    ("state", Column::State),
    ("seconds", Column::Age),
    ("requests", Column::Requests),
    ("requests_in_flight", Column::InProgress),
    ("bytes_received", Column::BytesReceived),
    ("bytes_sent", Column::BytesSent),
    ("received_rate", Column::ReceivedRate),
    ("sent_rate", Column::SentRate),
    ("rtt_ms", Column::Rtt),
    ("congestion_window", Column::Window),
    ("bytes_in_flight", Column::InFlight),
    ("packets_lost", Column::Lost),
    ("limit", Column::Limit),
];

/// The rows that a request selects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Selection {
    pub(super) sort: Column,
    pub(super) is_descending: bool,
    pub(super) offset: usize,
    pub(super) count: usize,
    /// Text that a row must contain; empty selects all rows.
    pub(super) filter: String,
}

impl Selection {
    /// Returns the selected page of rows, and the number of all rows that match the filter.
    pub(super) fn of<'r>(&self, rows: &'r [Row]) -> (Vec<&'r Row>, usize) {
        let needle = self.filter.to_ascii_lowercase();
        let matching = rows
            .iter()
            .filter(|row| needle.is_empty() || row.matches(&needle));
        let mut keyed: Vec<_> = matching.map(|row| (row.key(self.sort), row)).collect();
        keyed.sort_unstable_by(|(one, row), (other, second)| {
            compare(*one, *other, self.is_descending).then_with(|| row.id.cmp(&second.id))
        });
        let all = keyed.len();
        let page = keyed.iter().skip(self.offset).take(self.count);
        (page.map(|(_, row)| *row).collect(), all)
    }
}

fn compare(one: Key<'_>, other: Key<'_>, is_descending: bool) -> Ordering {
    let ascending = match (one, other) {
        (Key::Missing, Key::Missing) => return Ordering::Equal,
        (Key::Missing, _) => return Ordering::Greater,
        (_, Key::Missing) => return Ordering::Less,
        (Key::Number(one), Key::Number(other)) => one.total_cmp(&other),
        (Key::Text(one), Key::Text(other)) => one.cmp(other),
        (Key::Address(one), Key::Address(other)) => one.cmp(&other),
        // All values of a column have the same kind.
        _ => Ordering::Equal,
    };
    match is_descending {
        true => ascending.reverse(),
        false => ascending,
    }
}

#[cfg(test)]
pub(super) mod tests;
