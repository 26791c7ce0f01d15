//! The counters of endpoints, their shards and sockets.

use courser_quic::{Endpoint, EndpointStats};

use super::family::{Family, Value};

/// Returns the counters of the named endpoints.
pub(super) fn families(endpoints: &[(String, Endpoint)]) -> Vec<Family> {
    let shards: Vec<Shard<'_>> = endpoints
        .iter()
        .flat_map(|(name, endpoint)| {
            let each = endpoint.shard_stats().into_iter().enumerate();
            each.map(|(shard, stats)| Shard { name, shard, stats })
        })
        .collect();
    let mut families = vec![
        gauge(
            &shards,
            "endpoint_connections",
            "Connections, including draining ones",
            |it| it.connections as u64,
        ),
        gauge(
            &shards,
            "endpoint_handshakes",
            "Handshakes in progress",
            |it| it.half_open as u64,
        ),
        gauge(
            &shards,
            "endpoint_waiting",
            "Clients that wait to be accepted",
            |it| it.waiting as u64,
        ),
        gauge(
            &shards,
            "endpoint_memory_bytes",
            "Memory held for peers",
            |it| it.memory_used,
        ),
        gauge(
            &shards,
            "endpoint_memory_limit_bytes",
            "Memory that all shards may hold for peers",
            |it| it.memory_budget,
        ),
        counter(&shards, "endpoint_accepted", "Connections accepted", |it| {
            it.accepted
        }),
        counter(&shards, "endpoint_connected", "Connections started", |it| {
            it.connected
        }),
    ];
    families.extend(DIVIDED.iter().map(|it| divided(&shards, it)));
    families.extend(sockets(endpoints));
    families
}

/// The counters of one shard of an endpoint.
struct Shard<'a> {
    name: &'a str,
    shard: usize,
    stats: EndpointStats,
}

impl Shard<'_> {
    fn labels(&self) -> Vec<(&'static str, String)> {
        vec![
            ("endpoint", self.name.to_owned()),
            ("shard", self.shard.to_string()),
        ]
    }
}

type Read = fn(&EndpointStats) -> u64;

fn counter(shards: &[Shard<'_>], name: &'static str, help: &'static str, read: Read) -> Family {
    let mut family = Family::new(name, help);
    for shard in shards {
        family.push(shard.labels(), Value::Counter(read(&shard.stats)));
    }
    family
}

#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
fn gauge(shards: &[Shard<'_>], name: &'static str, help: &'static str, read: Read) -> Family {
    let mut family = Family::new(name, help);
    for shard in shards {
        family.push(shard.labels(), Value::Gauge(read(&shard.stats) as f64));
    }
    family
}

fn divided(shards: &[Shard<'_>], (name, help, label, values): &Divided) -> Family {
    let mut family = Family::new(name, help);
    for shard in shards {
        for (of, read) in *values {
            let mut labels = shard.labels();
            labels.push((label, (*of).to_owned()));
            family.push(labels, Value::Counter(read(&shard.stats)));
        }
    }
    family
}

fn sockets(endpoints: &[(String, Endpoint)]) -> Vec<Family> {
    let mut datagrams = Family::new("socket_datagrams", "Datagrams");
    let mut bytes = Family::new("socket_bytes", "Bytes of UDP payload");
    let mut calls = Family::new("socket_calls", "System calls that moved datagrams");
    let help = "Received datagrams that the kernel dropped because the receive buffer was full";
    let mut dropped = Family::new("socket_dropped_datagrams", help);
    let help = "Failed system calls whose datagrams are lost";
    let mut errors = Family::new("socket_errors", help);
    let mut buffers = Family::new("socket_buffer_bytes", "Size of socket buffers");
    let help = "Size of socket buffers that was requested";
    let mut wanted = Family::new("socket_buffer_wanted_bytes", help);
    for (name, endpoint) in endpoints {
        let labels = |direction: &str| {
            let direction = direction.to_owned();
            vec![("endpoint", name.clone()), ("direction", direction)]
        };
        let counters = endpoint.socket_counters();
        let pairs = [
            (
                &mut datagrams,
                counters.sent_datagrams,
                counters.received_datagrams,
            ),
            (&mut bytes, counters.sent_bytes, counters.received_bytes),
            (&mut calls, counters.send_calls, counters.receive_calls),
        ];
        for (family, sent, received) in pairs {
            family.push(labels("sent"), Value::Counter(sent));
            family.push(labels("received"), Value::Counter(received));
        }
        let failed = [
            ("sent", counters.send_errors),
            ("received", counters.receive_errors),
        ];
        for (direction, counts) in failed {
            for (cause, count) in counts.iter() {
                let mut labels = labels(direction);
                labels.push(("cause", cause.name().to_owned()));
                errors.push(labels, Value::Counter(count));
            }
        }
        // Some systems do not report overflows.
        if let Some(overflow) = endpoint.receive_overflow() {
            dropped.push(vec![("endpoint", name.clone())], Value::Counter(overflow));
        }
        let capabilities = endpoint.capabilities();
        let sizes = [
            (
                "received",
                capabilities.receive_buffer,
                capabilities.receive_buffer_wanted,
            ),
            (
                "sent",
                capabilities.send_buffer,
                capabilities.send_buffer_wanted,
            ),
        ];
        for (direction, size, requested) in sizes {
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let [size, requested] = [size, requested].map(|bytes| Value::Gauge(bytes as f64));
            buffers.push(labels(direction), size);
            wanted.push(labels(direction), requested);
        }
    }
    vec![datagrams, bytes, calls, errors, dropped, buffers, wanted]
}

/// Counters that are divided by a label: name, help, label, and each label value with its counter.
type Divided = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, Read)],
);

const DIVIDED: &[Divided] = &[
    (
        "endpoint_refused",
        "Clients refused or ignored",
        "reason",
        &[
            ("application", |it| it.refused),
            ("ignored", |it| it.ignored - it.ignored_for_room),
            ("room", |it| it.ignored_for_room),
            ("share", |it| it.refused_for_share),
            ("rate", |it| it.refused_for_rate),
            ("busy", |it| it.refused_while_busy),
            ("memory", |it| it.refused_for_memory),
        ],
    ),
    (
        "endpoint_closed",
        "Connections that the endpoint closed",
        "reason",
        &[
            ("address_blocked", |it| it.closed_for_block),
            ("memory", |it| it.closed_for_memory),
            ("fault", |it| it.faults),
        ],
    ),
    (
        "endpoint_datagrams_dropped",
        "Received datagrams that were dropped",
        "reason",
        &[
            ("no_connection", |it| it.datagrams_dropped),
            ("address_blocked", |it| it.datagrams_blocked),
            ("over_share", |it| it.datagrams_over_share),
            ("stray", |it| it.strays_dropped),
        ],
    ),
    (
        "endpoint_replies",
        "Packets sent without a connection",
        "kind",
        &[
            ("retry", |it| it.retries_sent),
            ("version_negotiation", |it| it.version_negotiations_sent),
            ("stateless_reset", |it| it.resets_sent),
        ],
    ),
    (
        "endpoint_replies_suppressed",
        "Packets without a connection that were not sent",
        "reason",
        &[
            ("rate", |it| it.replies_over_rate),
            ("room", |it| it.replies_over_room),
        ],
    ),
    (
        "endpoint_features_given_up",
        "Optional packet features disabled on a path that drops packets with them",
        "feature",
        &[
            ("batches", |it| it.fallbacks.batches),
            ("ecn", |it| it.fallbacks.ecn),
            ("cleared_quic_bit", |it| it.fallbacks.quic_bit),
        ],
    ),
    (
        "endpoint_strays",
        "Datagrams of connections of another shard",
        "direction",
        &[
            ("handed_on", |it| it.strays_sent),
            ("taken_over", |it| it.strays_received),
        ],
    ),
    (
        "endpoint_packets_too_big",
        "ICMP Packet Too Big messages",
        "result",
        &[
            ("used", |it| it.packets_too_big),
            ("ignored", |it| it.packets_too_big_ignored),
        ],
    ),
];
