//! The metrics of a server, beside those of its requests, which are counted as they end.

use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use courser_observe::Metrics;
use courser_observe::hooks::{self, Family, Report, Value};
use courser_quic::{Counters, EndpointStats};

use crate::handle::Running;
use crate::peer::Protocol;
use crate::stats::{AcmeStats, DrainProgress, ProtocolStats, ServerStats, ShardStats};

/// Reports a server in `metrics` as long as it has handles.
pub(super) fn report(metrics: &Metrics, server: &Arc<Running>) {
    let server = Arc::downgrade(server);
    let server: Weak<dyn Report> = server;
    hooks::add_server(metrics, server);
}

impl Report for Running {
    fn families(&self) -> Vec<Family> {
        let stats = self.stats();
        let mut out = Out(Vec::new());
        out.state(&stats);
        out.protocols(&stats);
        out.refusals(&stats);
        out.quic(&stats);
        out.shards(&self.shard_stats());
        out.endpoints(&stats);
        out.memory(&stats);
        out.sockets(&stats);
        out.certificates(self);
        // Without ACME too, so that an alarm on failures has something to watch.
        out.acme(stats.acme.as_ref().unwrap_or(&AcmeStats::default()));
        out.0
    }
}

/// Sums that a server has contributed to remain when it is gone.
impl Drop for Running {
    fn drop(&mut self) {
        if let Some(metrics) = &self.metrics {
            hooks::keep_counters(metrics, self.families());
        }
    }
}

/// The families of a server.
struct Out(Vec<Family>);

impl Out {
    fn state(&mut self, stats: &ServerStats) {
        let help = "1 while the server accepts new clients";
        let mut ready = Family::new("ready", help);
        ready.push(Vec::new(), Value::Least(f64::from(u8::from(stats.ready))));
        self.0.push(ready);
        let busy = u64::from(stats.busy);
        self.gauge("busy", "1 while new clients are refused", busy);
        let draining = u64::from(stats.draining && !stats.ended);
        self.gauge("draining", "1 while the server drains", draining);
        if let Some(drain) = &stats.drain {
            self.drain(drain);
        }
        let stopped = stats.stopped_tasks.len() as u64;
        let help = "Background tasks that have ended and were not restarted yet";
        self.gauge("stopped_tasks", help, stopped);
        self.counter("task_ends", "Ends of background tasks", stats.task_ends);
        let help = "Panics of the service and of the content of its responses";
        self.counter("handler_panics", help, stats.handler_panics);
    }

    fn drain(&mut self, drain: &DrainProgress) {
        let seconds = |time: std::time::Duration| Value::Gauge(time.as_secs_f64());
        let help = "Time since the start of the drain";
        self.one("drain_elapsed_seconds", help, seconds(drain.elapsed));
        let help = "Time after the start of the drain at which requests are aborted";
        self.one("drain_deadline_seconds", help, seconds(drain.deadline));
        let help = "Connections that were open at the start of the drain";
        self.gauge("drain_connections", help, drain.connections);
    }

    fn protocols(&mut self, stats: &ServerStats) {
        let each = |count: fn(&ProtocolStats) -> u64| {
            Protocol::ALL.map(|protocol| (protocol.name(), count(stats.of(protocol))))
        };
        let open = each(|it| it.connections_open);
        self.gauges_by("connections_open", "Open connections", "protocol", &open);
        let in_flight = each(|it| it.requests_in_flight);
        self.gauges_by(
            "requests_in_flight",
            "Requests in progress",
            "protocol",
            &in_flight,
        );
        let all = each(|it| it.connections);
        self.counters_by("connections", "Connections accepted", "protocol", &all);
    }

    fn refusals(&mut self, stats: &ServerStats) {
        self.counter(
            "connections_refused",
            "Connections rejected because of the limit",
            stats.refused,
        );
        self.counter(
            "requests_misdirected",
            "Requests answered with 421 because the certificate does not name their host",
            stats.requests_misdirected,
        );
        let causes = stats.requests_by_cause.iter();
        let causes: Vec<_> = causes
            .map(|(cause, count)| (cause.name(), *count))
            .collect();
        let help = "Requests that the server answered itself before they reached the service";
        self.counters_by("http_requests_refused", help, "cause", &causes);
        let refused = stats.refusals.by_reason();
        self.counters_by("refused", "Clients refused", "reason", &refused);
    }

    fn quic(&mut self, stats: &ServerStats) {
        let quic = stats.quic;
        self.counter(
            "quic_handshakes",
            "QUIC handshakes completed",
            quic.handshakes,
        );
        let seconds = Value::Seconds(quic.handshake_time.as_secs_f64());
        let help = "Total duration of QUIC handshakes";
        self.one("quic_handshakes_duration_seconds", help, seconds);
        let failed = stats.quic_handshakes_failed;
        self.counter(
            "quic_handshakes_failed",
            "QUIC handshakes that failed",
            failed,
        );
        self.counter("quic_packets_sent", "QUIC packets sent", quic.packets_sent);
        let received = quic.packets_received;
        self.counter("quic_packets_received", "QUIC packets received", received);
        let lost = quic.packets_lost;
        self.counter("quic_packets_lost", "QUIC packets declared lost", lost);
        let late = quic.packets_spuriously_lost;
        self.counter(
            "quic_packets_spuriously_lost",
            "QUIC packets declared lost that arrived late",
            late,
        );
        self.counter("quic_ptos", "Probe timeouts", quic.ptos);
        let cuts = quic.congestion_events;
        self.counter(
            "quic_congestion_events",
            "Congestion window reductions",
            cuts,
        );
        let accepted = [
            ("accepted", quic.early_data_accepted),
            ("refused", quic.early_data_refused),
        ];
        let help = "QUIC connections with early data (0-RTT)";
        self.counters_by("early_data_connections", help, "result", &accepted);
        let processed = [
            ("accepted", stats.early_requests),
            ("too_early", stats.requests_too_early),
        ];
        let help = "Requests in early data (0-RTT)";
        self.counters_by("early_data_requests", help, "result", &processed);
        let help = "Connections whose early data saved no time because no token validated the client's address";
        let without_token = stats.early_data_without_token;
        self.counter("early_data_without_token", help, without_token);
    }

    /// Adds the metrics that show how evenly the work is distributed among the shards.
    fn shards(&mut self, shards: &[ShardStats]) {
        let of = |name, help, value: fn(&EndpointStats) -> Value| {
            let mut family = Family::new(name, help);
            for it in shards {
                let labels = vec![
                    ("address", it.address.to_string()),
                    ("shard", it.shard.to_string()),
                ];
                family.push(labels, value(&it.quic));
            }
            family
        };
        self.0.push(of(
            "quic_shard_connections",
            "Open connections of each shard",
            |it| Value::Gauge(to_f64(it.connections as u64)),
        ));
        self.0.push(of(
            "quic_shard_accepted",
            "Connections that each shard accepted",
            |it| Value::Counter(it.accepted),
        ));
        self.0.push(of(
            "quic_shard_handed_on",
            "Datagrams that each shard forwarded to the shard of their connection",
            |it| Value::Counter(it.strays_sent),
        ));
        self.0.push(of(
            "quic_shard_taken_over",
            "Datagrams that each shard received from other shards",
            |it| Value::Counter(it.strays_received),
        ));
    }

    fn endpoints(&mut self, stats: &ServerStats) {
        let endpoints = || stats.listeners.iter().filter_map(|listener| listener.quic);
        let sum = |count: fn(EndpointStats) -> u64| endpoints().map(count).sum::<u64>();
        let retries = sum(|it| it.retries_sent);
        self.counter("quic_retries_sent", "Retry packets sent", retries);
        self.counter("quic_refused", "Clients refused", sum(|it| it.refused));
        let dropped = sum(|it| it.datagrams_dropped);
        self.counter(
            "quic_datagrams_dropped",
            "Datagrams that match no connection",
            dropped,
        );
        let strays = sum(|it| it.strays_sent);
        let help = "Datagrams forwarded to the shard of their connection";
        self.counter("quic_datagrams_handed_on", help, strays);
        let disabled = sum(|it| it.fallbacks.batches + it.fallbacks.ecn + it.fallbacks.quic_bit);
        let help = "Optional packet features disabled on a path that drops packets with them";
        self.counter("quic_features_given_up", help, disabled);
        let dropped = sum(|it| it.strays_dropped);
        let help = "Datagrams dropped because the queue between two shards was full";
        self.counter("quic_handed_on_dropped", help, dropped);
    }

    fn memory(&mut self, stats: &ServerStats) {
        let endpoints = || stats.listeners.iter().filter_map(|listener| listener.quic);
        let sum = |count: fn(EndpointStats) -> u64| endpoints().map(count).sum::<u64>();
        let help = "Memory held for clients over QUIC";
        self.gauge("quic_memory_bytes", help, sum(|it| it.memory_used));
        let help = "Memory that may be held for clients over QUIC";
        let budget = sum(|it| it.memory_budget);
        self.gauge("quic_memory_limit_bytes", help, budget);
        let help = "Clients refused because the memory limit was reached";
        let refused = sum(|it| it.refused_for_memory);
        self.counter("quic_refused_for_memory", help, refused);
        let help = "Connections closed because the memory limit was reached";
        let closed = sum(|it| it.closed_for_memory);
        self.counter("quic_closed_for_memory", help, closed);
        let help = "Estimated memory of connections over TCP, without their requests";
        self.gauge("tcp_memory_bytes", help, stats.tcp.memory);
        let help = "Estimated memory of requests in progress";
        self.gauge("requests_memory_bytes", help, stats.requests_memory);
        let help = "Requests refused because the memory limit was reached";
        let refused = stats.requests_refused_for_memory;
        self.counter("requests_refused_for_memory", help, refused);
        let help = "Connections closed at the memory limit because they held the most memory";
        let closed = stats.connections_closed_for_memory;
        self.counter("connections_closed_for_memory", help, closed);
    }

    fn sockets(&mut self, stats: &ServerStats) {
        let sockets = || stats.listeners.iter().filter_map(|listener| listener.udp);
        let sum = |count: fn(Counters) -> u64| sockets().map(count).sum::<u64>();
        let sent = sum(|it| it.sent_bytes);
        self.counter("udp_sent_bytes", "Bytes sent over UDP", sent);
        let received = sum(|it| it.received_bytes);
        self.counter("udp_received_bytes", "Bytes received over UDP", received);
        let overflows = || stats.listeners.iter().filter_map(|it| it.udp_overflow);
        // Some systems do not report overflows.
        if overflows().next().is_some() {
            self.counter(
                "udp_dropped_datagrams",
                "Received datagrams that the kernel dropped because a receive buffer was full",
                overflows().sum::<u64>(),
            );
        }
        let calls = sum(|it| it.send_calls);
        self.counter("udp_send_calls", "System calls that sent datagrams", calls);
        let calls = sum(|it| it.receive_calls);
        let help = "System calls that received datagrams";
        self.counter("udp_receive_calls", help, calls);
        let tcp = &stats.tcp;
        let received = tcp.bytes_received;
        self.counter("tcp_received_bytes", "Bytes received over TCP", received);
        self.counter("tcp_sent_bytes", "Bytes sent over TCP", tcp.bytes_sent);
        let failed = tcp.handshakes_failed;
        let help = "TLS handshakes over TCP that failed";
        self.counter("tcp_handshakes_failed", help, failed);
    }

    fn certificates(&mut self, server: &Running) {
        let certificates = server.site.resolver.facts();
        if let Some(first) = certificates.iter().map(|it| it.not_after).min() {
            let until = first.duration_since(UNIX_EPOCH).unwrap_or_default();
            let help = "Expiry of the certificate that expires first, in seconds since 1970";
            let until = Value::Least(until.as_secs_f64());
            self.one("certificate_not_after_seconds", help, until);
        }
        let now = SystemTime::now();
        let expiring = certificates.iter().filter(|it| it.expires_soon(now));
        let help = "Certificates that have expired, or expire soon and were not renewed";
        self.gauge("certificates_expiring", help, expiring.count() as u64);
    }

    fn acme(&mut self, acme: &AcmeStats) {
        let help = "Attempts to obtain a certificate";
        self.counter("acme_attempts", help, acme.attempts);
        let help = "Attempts to obtain a certificate that have failed";
        self.counter("acme_failures", help, acme.failures);
        let help = "Certificates that were obtained";
        self.counter("acme_certificates", help, acme.issued);
        if let Some(next) = acme.next_attempt {
            let at = next.duration_since(UNIX_EPOCH).unwrap_or_default();
            let help = "Next attempt to obtain a certificate, in seconds since 1970";
            let at = Value::Least(at.as_secs_f64());
            self.one("acme_next_attempt_seconds", help, at);
        }
    }

    fn one(&mut self, name: &'static str, help: &'static str, value: Value) {
        let mut family = Family::new(name, help);
        family.push(Vec::new(), value);
        self.0.push(family);
    }

    fn counter(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.one(name, help, Value::Counter(value));
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.one(name, help, Value::Gauge(to_f64(value)));
    }

    /// Adds counters with one series for each value of a label.
    fn counters_by(
        &mut self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: &[(&'static str, u64)],
    ) {
        let mut family = Family::new(name, help);
        for &(of, value) in values {
            family.push(vec![(label, of.to_owned())], Value::Counter(value));
        }
        self.0.push(family);
    }

    /// Adds gauges with one series for each value of a label.
    fn gauges_by(
        &mut self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: &[(&'static str, u64)],
    ) {
        let mut family = Family::new(name, help);
        for &(of, value) in values {
            let value = Value::Gauge(to_f64(value));
            family.push(vec![(label, of.to_owned())], value);
        }
        self.0.push(family);
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and bytes of memory are below 2^53"
)]
fn to_f64(value: u64) -> f64 {
    value as f64
}
