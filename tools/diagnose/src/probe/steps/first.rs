//! The first connection: its handshake, requests, and a change of the client's port.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser::telemetry::EcnState;
use courser::{Connection, h3};
use courser_measure::certificate::{Certificate, length_in_order};
use courser_wire::transport_parameters::TransportParameters;
use http::Method;
use tokio::time::{sleep, timeout};

use crate::probe::connector::ProbeConnection;
use crate::probe::facts::{
    AddressChange, Chain, Exchange, FirstConnection, Parameters, Priorities, Settings,
};
use crate::probe::recording_verifier::RecordingVerifier;
use crate::probe::requests::{Answer, MAX_CONTENT, RequestClient, RequestTemplate};
use crate::webtransport::WebTransport;

/// Observes the first connection. Steps that may break it come last.
pub(crate) async fn examine(
    probe: &ProbeConnection,
    verifier: &Arc<RecordingVerifier>,
    template: &mut RequestTemplate,
) -> (FirstConnection, Option<h3::Settings>) {
    let mut first = FirstConnection::default();
    let connection = &probe.connection;
    if let Some(data) = connection.handshake_data() {
        first.protocol = String::from_utf8_lossy(&data.protocol.unwrap_or_default()).into_owned();
        first.group = data.key_exchange.unwrap_or_default();
        first.suite = data
            .suite
            .map(|suite| format!("{suite:?}"))
            .unwrap_or_default();
        first.chain = chain(connection, verifier, data.certificate_compression);
    }
    let client = RequestClient::of(connection, &first.protocol);
    let (exchange, settings) = exchange(probe, &client, template).await;
    first.exchange = exchange;
    first.webtransport = webtransport(probe, &client, template.limit).await;
    wait_for_path(probe, template.limit).await;
    add_observations(probe, &mut first);
    if !matches!(client, RequestClient::Other) {
        first.rebinding = Some(rebind(probe, &client, template).await);
    }
    (first, settings)
}

/// Adds the observations so far from the records, the statistics and the datagrams.
fn add_observations(probe: &ProbeConnection, first: &mut FirstConnection) {
    let (log, observed, stats) = (
        probe.socket.log(),
        probe.records.observed(),
        probe.connection.stats(),
    );
    first.handshake_ms = millis(
        stats
            .handshake_time
            .unwrap_or_else(|| probe.began.elapsed()),
    );
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
    first.observed_address = probe.connection.observed_address();
}

/// Waits until ECN is validated and the path MTU is known, for at most [`PATH_TIMEOUT`]: probes that are too
/// large for the path take a while to be declared lost.
async fn wait_for_path(probe: &ProbeConnection, limit: Duration) {
    let found = async {
        loop {
            let observed = probe.records.observed();
            let is_settled = matches!(observed.ecn, Some(EcnState::Capable | EcnState::Failed));
            if observed.mtu_done && is_settled {
                return;
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    let _ = timeout(limit.min(PATH_TIMEOUT), found).await;
}

async fn exchange(
    probe: &ProbeConnection,
    client: &RequestClient,
    template: &mut RequestTemplate,
) -> (Option<Result<Exchange, String>>, Option<h3::Settings>) {
    let mut exchange = Exchange {
        head: true,
        ..Exchange::default()
    };
    // A server that answers HEAD with content, or not at all, may support GET.
    if let Some(Err(_)) = client.request(template, None).await {
        template.method = Method::GET;
        exchange.head = false;
    }
    // The first responses insert into the dynamic table, and a later one refers to it.
    for _ in 1..REPEATED {
        match client.request(template, None).await {
            None => return (None, None),
            Some(Err(error)) => return (Some(Err(error)), None),
            Some(Ok(Answer {
                status,
                server,
                alt_svc,
                content,
            })) => {
                exchange.status = status.map(|status| status.as_u16());
                (exchange.server, exchange.alt_svc, exchange.content) = (server, alt_svc, content);
            }
        }
    }
    let RequestClient::Http3(http3) = client else {
        return (Some(Ok(exchange)), None);
    };
    let streams = probe.records.observed().streams;
    let ends = streams.first_key_value().zip(streams.last_key_value());
    // With content, the length of a stream does not show the length of its header section.
    exchange.header_bytes = ends.filter(|_| exchange.head).map(|(a, b)| [*a.1, *b.1]);
    let settings = timeout(template.limit, http3.settings())
        .await
        .ok()
        .flatten();
    exchange.settings = settings.map(|it| Settings {
        qpack_max_table_capacity: it.qpack_max_table_capacity,
        qpack_blocked_streams: it.qpack_blocked_streams,
        max_field_section_size: it.max_field_section_size,
        enable_connect_protocol: it.enable_connect_protocol,
        h3_datagram: it.h3_datagram,
    });
    // The search for the path MTU starts after the first full datagram.
    let _ = fill_a_datagram(client, template).await;
    exchange.priorities = priorities(probe, client, template, &mut exchange.content).await;
    (Some(Ok(exchange)), settings)
}

/// Returns the announcement of WebTransport. Servers that serve nothing else have one too, and answer no request.
async fn webtransport(
    probe: &ProbeConnection,
    client: &RequestClient,
    limit: Duration,
) -> Option<WebTransport> {
    let RequestClient::Http3(http3) = client else {
        return None;
    };
    let extension = http3.extension();
    let both = async { Some((http3.settings().await?, extension.settings().await?)) };
    let (known, others) = timeout(limit, both).await.ok()??;
    let parameters = probe.records.observed().parameters;
    let parameters = parameters.as_ref();
    Some(WebTransport {
        has_datagrams: parameters.map(|it| it.max_datagram_frame_size > 0),
        reset_stream_at: parameters.map(|it| it.reset_stream_at),
        ..WebTransport::of(&others, &known)
    })
}

/// Sends a request with a padding field that fills a datagram.
async fn fill_a_datagram(
    client: &RequestClient,
    template: &RequestTemplate,
) -> Option<Result<Answer, String>> {
    let template = RequestTemplate {
        padding: PADDING,
        ..template.clone()
    };
    client.request(&template, None).await
}

/// Sends two concurrent requests for the same content, the second one with high urgency (RFC 9218 §4.1).
async fn priorities(
    probe: &ProbeConnection,
    client: &RequestClient,
    template: &RequestTemplate,
    content: &mut u64,
) -> Priorities {
    let before = probe.records.observed().finished.len();
    let template = RequestTemplate {
        method: Method::GET,
        ..template.clone()
    };
    let late = client.request(&template, Some("u=7"));
    let urgent = client.request(&template, Some("u=0"));
    let (Some(Ok(late)), Some(Ok(_))) = tokio::join!(late, urgent) else {
        return Priorities::NotTried;
    };
    *content = late.content;
    // Longer content is not read to its end, and shorter content is sent in one flight.
    if !(MIN_CONTENT..MAX_CONTENT).contains(&late.content) {
        return Priorities::TooShort;
    }
    let finished = probe.records.observed().finished;
    match finished.get(before..) {
        Some([first, second]) if first > second => Priorities::Honoured,
        Some([_, _]) => Priorities::Ignored,
        _ => Priorities::NotTried,
    }
}

/// Changes the client's port as a NAT does, and sends a request from the new port.
async fn rebind(
    probe: &ProbeConnection,
    client: &RequestClient,
    template: &RequestTemplate,
) -> AddressChange {
    let before = probe.records.observed().challenges;
    if probe.socket.rebind().is_err() {
        return AddressChange::default();
    }
    let answer = client.request(template, None).await;
    AddressChange {
        survived: matches!(answer, Some(Ok(_))),
        validated: is_challenged(probe, before).await,
    }
}

/// Waits for a PATH_CHALLENGE of the server after `before` others. It may arrive after the response.
pub(crate) async fn is_challenged(probe: &ProbeConnection, before: u64) -> bool {
    let limit = (probe.connection.stats().path.min_rtt * 3).min(CHALLENGE_TIMEOUT);
    wait_for(limit, || probe.records.observed().challenges > before).await
}

/// Waits until a condition holds. Returns false after the time limit.
async fn wait_for(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let wait = async {
        while !is_true() {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(limit.max(POLL_INTERVAL * 2), wait).await.is_ok()
}

fn chain(
    connection: &Connection,
    verifier: &RecordingVerifier,
    compression: Option<&'static str>,
) -> Option<Chain> {
    let chain = connection.peer_identity()?;
    let read: Vec<_> = chain.iter().filter_map(Certificate::parse).collect();
    let leaf = read.first();
    Some(Chain {
        distrust: verifier.verdict().and_then(Result::err),
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
        has_several_paths: it.initial_max_path_id.is_some(),
        reports_addresses: it.address_discovery.is_some_and(|it| it.provides()),
        takes_candidates: it.max_candidates.is_some(),
    }
}

/// Returns a time in milliseconds, rounded to two decimals.
pub(crate) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

/// The number of equal requests, of which the last one shows the use of a dynamic table.
const REPEATED: usize = 3;
/// The length of a field that makes a request longer than a datagram.
const PADDING: usize = 1400;
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The longest wait for the validation of a new path.
const CHALLENGE_TIMEOUT: Duration = Duration::from_millis(500);
const PATH_TIMEOUT: Duration = Duration::from_millis(1500);
/// The smallest content for which the order of packets shows priorities: less fits into a few congestion
/// windows.
const MIN_CONTENT: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn challenge_may_arrive_after_the_response() {
        let began = std::time::Instant::now();
        let later = || began.elapsed() >= Duration::from_millis(60);
        assert!(wait_for(Duration::from_secs(60), later).await);
        assert!(wait_for(Duration::ZERO, || true).await);
        assert!(!wait_for(Duration::from_millis(50), || false).await);
    }
}
