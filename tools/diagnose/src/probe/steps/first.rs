//! The first connection: its handshake, an exchange, and a change of the client's port.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser::telemetry::EcnState;
use courser::{Connection, h3};
use courser_measure::certificate::{Certificate, length_in_order};
use courser_wire::transport_parameters::TransportParameters;
use http::Method;
use tokio::time::{sleep, timeout};

use crate::probe::dial::Line;
use crate::probe::facts::{Chain, Exchange, First, Move, Parameters, Priorities, Settings};
use crate::probe::talk::{Answer, Asker, MOST_CONTENT, Talk};
use crate::probe::trust::Witness;

/// Observes a connection. The steps that may break it come last.
pub(crate) async fn examine(
    line: &Line,
    witness: &Arc<Witness>,
    asker: &mut Asker,
) -> (First, Option<h3::Settings>) {
    let mut first = First::default();
    let connection = &line.connection;
    if let Some(data) = connection.handshake_data() {
        first.protocol = String::from_utf8_lossy(&data.protocol.unwrap_or_default()).into_owned();
        first.group = data.key_exchange.unwrap_or_default();
        first.suite = data
            .suite
            .map(|suite| format!("{suite:?}"))
            .unwrap_or_default();
        first.chain = chain(connection, witness, data.certificate_compression);
    }
    let talk = Talk::of(connection, &first.protocol);
    let (exchange, settings) = exchange(line, &talk, asker).await;
    first.exchange = exchange;
    wait_for_path(line, asker.limit).await;
    note_connection(line, &mut first);
    if !matches!(talk, Talk::Other) {
        first.rebinding = Some(rebind(line, &talk, asker).await);
    }
    (first, settings)
}

/// Adds what the records, the statistics and the wire have shown so far.
fn note_connection(line: &Line, first: &mut First) {
    let (log, observed, stats) = (
        line.tap.log(),
        line.records.observed(),
        line.connection.stats(),
    );
    first.handshake_ms = millis(stats.handshake_time.unwrap_or_else(|| line.begun.elapsed()));
    first.rtt_ms = millis(stats.path.min_rtt);
    first.version = stats.version.value();
    first.retry = log.retry;
    first.early_bytes = [log.sent_early, log.received_early];
    first.exceeds_three_times = log.exceeds_three_times;
    first.parameters = observed.parameters.as_ref().map(parameters);
    first.ecn = observed.ecn.map(|state| format!("{state:?}"));
    first.marks = [log.received - log.marks[0], log.marks[0]];
    first.greased = [log.short, log.greased];
    first.spins = log.spins;
    first.mtu = (stats.path.mtu, observed.mtu_done);
    first.spare = [observed.spare_ids, observed.tokens];
}

/// Waits until ECN is validated and the path MTU is found, for a part of the limit: probes of sizes that the
/// path does not carry take their time.
async fn wait_for_path(line: &Line, limit: Duration) {
    let found = async {
        loop {
            let observed = line.records.observed();
            let is_settled = matches!(observed.ecn, Some(EcnState::Capable | EcnState::Failed));
            if observed.mtu_done && is_settled {
                return;
            }
            sleep(BETWEEN_LOOKS).await;
        }
    };
    let _ = timeout(limit.min(FOR_PATH), found).await;
}

async fn exchange(
    line: &Line,
    talk: &Talk,
    asker: &mut Asker,
) -> (Option<Result<Exchange, String>>, Option<h3::Settings>) {
    let mut made = Exchange {
        head: true,
        ..Exchange::default()
    };
    // A server that answers HEAD with content, or not at all, may know GET.
    if let Some(Err(_)) = talk.ask(asker, None).await {
        asker.method = Method::GET;
        made.head = false;
    }
    // A dynamic table is filled by the first responses, and referred to by a later one.
    for _ in 1..REPEATED {
        match talk.ask(asker, None).await {
            None => return (None, None),
            Some(Err(error)) => return (Some(Err(error)), None),
            Some(Ok(Answer {
                status,
                server,
                alt_svc,
                content,
            })) => {
                made.status = status.map(|status| status.as_u16());
                (made.server, made.alt_svc, made.content) = (server, alt_svc, content);
            }
        }
    }
    let Talk::Http3(client) = talk else {
        return (Some(Ok(made)), None);
    };
    let streams = line.records.observed().streams;
    let ends = streams.first_key_value().zip(streams.last_key_value());
    // With content, the length of a stream does not show that of its header section.
    made.header_bytes = ends.filter(|_| made.head).map(|(a, b)| [*a.1, *b.1]);
    let settings = timeout(asker.limit, client.settings()).await.ok().flatten();
    made.settings = settings.map(|it| Settings {
        qpack_max_table_capacity: it.qpack_max_table_capacity,
        qpack_blocked_streams: it.qpack_blocked_streams,
        max_field_section_size: it.max_field_section_size,
        enable_connect_protocol: it.enable_connect_protocol,
        h3_datagram: it.h3_datagram,
    });
    // The search for the path MTU begins once a datagram was full.
    let _ = fill_a_datagram(talk, asker).await;
    made.priorities = priorities(line, talk, asker, &mut made.content).await;
    (Some(Ok(made)), settings)
}

/// Sends a request that fills a datagram.
async fn fill_a_datagram(talk: &Talk, asker: &Asker) -> Option<Result<Answer, String>> {
    let asker = Asker {
        padding: PADDING,
        ..asker.clone()
    };
    talk.ask(&asker, None).await
}

/// Requests the same content twice at the same time, the second time urgently.
async fn priorities(line: &Line, talk: &Talk, asker: &Asker, content: &mut u64) -> Priorities {
    let before = line.records.observed().finished.len();
    let asker = Asker {
        method: Method::GET,
        ..asker.clone()
    };
    let late = talk.ask(&asker, Some("u=7"));
    let urgent = talk.ask(&asker, Some("u=0"));
    let (Some(Ok(late)), Some(Ok(_))) = tokio::join!(late, urgent) else {
        return Priorities::NotTried;
    };
    *content = late.content;
    // Longer content is not read to its end, and shorter content leaves in one flight.
    if !(LEAST_CONTENT..MOST_CONTENT).contains(&late.content) {
        return Priorities::TooShort;
    }
    let finished = line.records.observed().finished;
    match finished.get(before..) {
        Some([first, second]) if first > second => Priorities::Honoured,
        Some([_, _]) => Priorities::Ignored,
        _ => Priorities::NotTried,
    }
}

/// Changes the client's port as a NAT does, and sends a request from there.
async fn rebind(line: &Line, talk: &Talk, asker: &Asker) -> Move {
    let before = line.records.observed().challenges;
    if line.tap.rebind().is_err() {
        return Move::default();
    }
    let answer = talk.ask(asker, None).await;
    Move {
        survived: matches!(answer, Some(Ok(_))),
        validated: is_challenged(line, before).await,
    }
}

/// Waits for a PATH_CHALLENGE of the server after `before` others, which may come behind the answer.
pub(crate) async fn is_challenged(line: &Line, before: u64) -> bool {
    let patience = (line.connection.stats().path.min_rtt * 3).min(FOR_CHALLENGE);
    comes_true(patience, || line.records.observed().challenges > before).await
}

/// Waits until a condition holds. Returns false if it does not within the time limit.
async fn comes_true(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let wait = async {
        while !is_true() {
            sleep(BETWEEN_LOOKS).await;
        }
    };
    timeout(limit.max(BETWEEN_LOOKS * 2), wait).await.is_ok()
}

fn chain(
    connection: &Connection,
    witness: &Witness,
    compression: Option<&'static str>,
) -> Option<Chain> {
    let chain = connection.peer_identity()?;
    let read: Vec<_> = chain.iter().filter_map(Certificate::parse).collect();
    let leaf = read.first();
    Some(Chain {
        distrust: witness.verdict().and_then(Result::err),
        bytes: chain.iter().map(|it| it.len()).sum(),
        certificates: chain.len(),
        in_order: length_in_order(&read),
        days_left: leaf.map_or(0, days_left),
        key: leaf.map_or_else(String::new, |leaf| leaf.key.to_owned()),
        names: leaf
            .map(|leaf| leaf.names.iter().take(4).cloned().collect())
            .unwrap_or_default(),
        compression: compression.map(str::to_owned),
    })
}

/// Returns the days until a certificate expires, negative if it has.
fn days_left(certificate: &Certificate) -> i64 {
    let days = |time: Duration| i64::try_from(time.as_secs() / 86_400).unwrap_or(i64::MAX);
    match certificate.not_after.duration_since(SystemTime::now()) {
        Ok(left) => days(left),
        Err(past) => -days(past.duration()) - 1,
    }
}

fn parameters(it: &TransportParameters) -> Parameters {
    Parameters {
        max_idle_timeout_ms: it.max_idle_timeout,
        max_udp_payload_size: it.max_udp_payload_size,
        initial_max_data: it.initial_max_data,
        initial_max_stream_data_bidi_remote: it.initial_max_stream_data_bidi_remote,
        initial_max_streams_bidi: it.initial_max_streams_bidi,
        initial_max_streams_uni: it.initial_max_streams_uni,
        ack_delay_exponent: it.ack_delay_exponent,
        max_ack_delay_ms: it.max_ack_delay,
        disable_active_migration: it.disable_active_migration,
        has_preferred_address: it.preferred_address.is_some(),
        active_connection_id_limit: it.active_connection_id_limit,
        max_datagram_frame_size: it.max_datagram_frame_size,
        has_min_ack_delay: it.min_ack_delay.is_some(),
        reset_stream_at: it.reset_stream_at,
        grease_quic_bit: it.grease_quic_bit,
        has_version_information: it.version_information.is_some(),
        has_stateless_reset_token: it.stateless_reset_token.is_some(),
    }
}

/// Returns a time in milliseconds, with two digits behind the point.
pub(crate) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

/// Equal requests, of which the last one shows the use of a dynamic table.
const REPEATED: usize = 3;
/// Bytes of a field that make a request longer than a datagram.
const PADDING: usize = 1400;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// The longest wait for the validation of a new path.
const FOR_CHALLENGE: Duration = Duration::from_millis(500);
const FOR_PATH: Duration = Duration::from_millis(1500);
/// Shorter content fits into a few congestion windows, where the order of packets shows little.
const LEAST_CONTENT: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_challenge_may_come_a_little_later() {
        let begun = std::time::Instant::now();
        let later = || begun.elapsed() >= Duration::from_millis(60);
        assert!(comes_true(Duration::from_secs(60), later).await);
        assert!(comes_true(Duration::ZERO, || true).await);
        assert!(!comes_true(Duration::from_millis(50), || false).await);
    }
}
