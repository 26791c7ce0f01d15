//! Tests the trace of a whole connection: its events, their times and their order.

use std::io::{self, Write};

use courser_base::Mutex;
use courser_qlog::{QlogSink, TraceHeader};
use courser_telemetry::{Sink, SinkFactory};
use serde_json::Value;

use super::*;
use crate::config::{ServerConfig, TransportConfig};
use crate::testing::Setup;
use crate::testing::identity::server_tls;

/// Keeps traces in memory.
#[derive(Debug, Default)]
struct Traces {
    client: Shared,
    server: Shared,
}

#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock();
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SinkFactory for Traces {
    fn sink(&self, id: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        let writer = match side {
            Side::Client => self.client.clone(),
            Side::Server => self.server.clone(),
        };
        Some(Box::new(QlogSink::new(
            writer,
            &TraceHeader::new(*id, side),
        )))
    }
}

impl Shared {
    fn events(&self) -> Vec<Value> {
        let bytes = self.0.lock();
        let text = std::str::from_utf8(&bytes).expect("text");
        let records = text.split('\u{1e}').skip(2);
        records
            .map(|record| serde_json::from_str(record).expect("JSON"))
            .collect()
    }

    /// Returns each event in a line: milliseconds since the start, name, details.
    fn lines(&self) -> Vec<String> {
        self.events().iter().map(line).collect()
    }
}

fn line(event: &Value) -> String {
    let time = event["time"].as_f64().expect("a time") - 1000.0;
    let data = &event["data"];
    let name = event["name"].as_str().expect("a name");
    let name = name.strip_prefix("quic:").expect("the namespace");
    let mut line = format!("{time} {name}");
    let mut add = |value: &Value| match value {
        Value::String(text) => line += &format!(" {text}"),
        Value::Number(number) => line += &format!(" {number}"),
        _ => {}
    };
    let keys = ["initiator", "key_type", "new", "reason", "trigger"];
    keys.iter().for_each(|key| add(&data[key]));
    add(&data["header"]["packet_type"]);
    add(&data["header"]["packet_number"]);
    let frames = data["frames"].as_array();
    frames
        .into_iter()
        .flatten()
        .for_each(|frame| add(&frame["frame_type"]));
    line
}

fn traced() -> (Pair, Arc<Traces>) {
    let traces = Arc::new(Traces::default());
    let transport = TransportConfig {
        sinks: Some(traces.clone()),
        ..TransportConfig::default()
    };
    let server = ServerConfig {
        transport: Arc::new(transport.clone()),
        ..ServerConfig::new(server_tls(&[b"test"]))
    };
    let pair = Pair::with(Setup {
        client: transport,
        server,
        ..Setup::default()
    });
    (pair, traces)
}

/// Runs a connection without any streams, closed by the client.
fn handshake_and_close() -> Arc<Traces> {
    let (mut pair, traces) = traced();
    pair.connect();
    let now = pair.now;
    pair.client.connection().close(now, 3, b"bye");
    pair.client.touch();
    pair.run_for(Duration::from_secs(2));
    drop(pair);
    traces
}

#[test]
fn trace_of_a_client_contains_the_whole_handshake() {
    let lines = handshake_and_close().client.lines();
    let expected: Vec<_> = CLIENT.lines().collect();
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
}

#[test]
fn trace_of_a_server_contains_the_whole_handshake() {
    let lines = handshake_and_close().server.lines();
    let expected: Vec<_> = SERVER.lines().collect();
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
}

#[test]
fn same_seed_writes_the_same_lines() {
    let (one, other) = (handshake_and_close(), handshake_and_close());
    assert_eq!(one.client.lines(), other.client.lines());
}

#[test]
fn lost_packet_is_recorded_with_its_trigger_before_it_is_sent_again() {
    let (mut pair, traces) = traced();
    pair.connect();
    let mut dropped = false;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        let is_first = !dropped && datagram.bytes.len() == 1200;
        dropped |= is_first;
        !is_first
    }));
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("room");
    let data = [1; 20_000];
    assert_eq!(streams.write(id, &data), Ok(data.len()));
    pair.client.touch();
    pair.run_for(RTT * 5);
    pair.client.connection().tap().set(None);
    let lines = traces.client.lines();
    let lost = lines.iter().position(|line| line.contains("packet_lost"));
    let lost = lost.expect("a loss");
    assert!(
        lines[lost].contains("reordering_threshold 1RTT"),
        "{}",
        lines[lost]
    );
    assert!(
        lines[lost..]
            .iter()
            .any(|line| line.contains("packet_sent 1RTT") && line.contains("stream"))
    );
}

#[test]
fn guest_receives_the_present_state_without_effects_on_the_sink() {
    let (mut pair, traces) = traced();
    let guest = Shared::default();
    // The validation of ECN ends in the first batch that the guest sees, 40 ms after the start.
    pair.start();
    pair.run_for(Duration::from_millis(30));
    let header = TraceHeader::new(ConnectionId::EMPTY, Side::Client);
    let sink = QlogSink::new(guest.clone(), &header);
    pair.client
        .connection()
        .tap()
        .set_guest(Some(Box::new(sink)));
    pair.run_for(Duration::from_millis(70));
    let now = pair.now;
    pair.client.connection().close(now, 3, b"bye");
    pair.client.touch();
    pair.run_for(Duration::from_secs(2));
    drop(pair);
    let lines = traces.client.lines();
    let expected: Vec<_> = CLIENT.lines().collect();
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
    let learned = guest.lines();
    let learned: Vec<_> = learned
        .iter()
        .filter(|line| line.contains("state_updated ") || line.contains("metrics"))
        .filter(|line| !line.contains("connection_"))
        .collect();
    assert_eq!(
        learned,
        [
            "40 congestion_state_updated slow_start",
            "40 recovery_metrics_updated",
            "40 ecn_state_updated capable",
            "40 recovery_metrics_updated",
        ]
    );
}

/// The trace of a client of a server 10 ms away. Its second flight leaves when the first answer
/// arrives.
const CLIENT: &str = "\
0 connection_started
0 tuple_assigned
0 version_information
0 connection_state_updated attempted
0 parameters_set local
0 recovery_parameters_set
0 key_updated client_initial_secret tls
0 key_updated server_initial_secret tls
0 congestion_state_updated slow_start
0 recovery_metrics_updated
0 packet_sent initial 0 crypto
0 recovery_metrics_updated
0 packet_sent initial 1 crypto padding
0 recovery_metrics_updated
20 packet_received initial 0 ack crypto
20 connection_id_updated remote 7051f401e3d3df50
20 recovery_metrics_updated
20 packet_received initial 1 crypto
20 key_updated client_handshake_secret tls
20 key_updated server_handshake_secret tls
20 packet_received handshake 0 crypto padding
20 parameters_set remote
20 key_updated client_1rtt_secret tls
20 key_updated server_1rtt_secret tls
20 alpn_information
20 connection_state_updated handshake_complete
20 packet_sent initial 2 ack
20 packet_sent handshake 0 ack crypto padding
20 key_discarded client_initial_secret tls
20 key_discarded server_initial_secret tls
20 recovery_metrics_updated
20 packet_sent 1RTT 0 new_connection_id new_connection_id new_connection_id
20 recovery_metrics_updated
40 packet_received 1RTT 0 ack crypto handshake_done new_connection_id new_connection_id new_connection_id
40 connection_state_updated handshake_confirmed
40 key_discarded client_handshake_secret tls
40 key_discarded server_handshake_secret tls
40 ecn_state_updated capable
40 recovery_metrics_updated
40 packet_received 1RTT 1 new_token new_token
40 packet_sent 1RTT 1 ack
40 connection_data_blocked_updated blocked application
100 connection_closed local bye application
100 connection_state_updated closing
100 packet_sent 1RTT 2 connection_close
120 packet_received 1RTT 2 connection_close
120 connection_state_updated draining
345 connection_state_updated closed";

/// The trace of the same connection at the server.
const SERVER: &str = "\
10 connection_started
10 tuple_assigned
10 version_information
10 connection_state_updated attempted
10 parameters_set local
10 recovery_parameters_set
10 key_updated client_initial_secret tls
10 key_updated server_initial_secret tls
10 congestion_state_updated slow_start
10 recovery_metrics_updated
10 packet_received initial 0 crypto
10 packet_received initial 1 crypto padding
10 parameters_set remote
10 key_updated client_handshake_secret tls
10 key_updated server_handshake_secret tls
10 key_updated client_1rtt_secret tls
10 key_updated server_1rtt_secret tls
10 packet_sent initial 0 ack crypto
10 packet_sent initial 1 crypto
10 packet_sent handshake 0 crypto padding
10 recovery_metrics_updated
30 packet_received initial 2 ack
30 packet_received handshake 0 ack crypto padding
30 key_discarded client_initial_secret tls
30 key_discarded server_initial_secret tls
30 alpn_information
30 connection_state_updated handshake_complete
30 connection_state_updated handshake_confirmed
30 key_discarded client_handshake_secret tls
30 key_discarded server_handshake_secret tls
30 recovery_metrics_updated
30 packet_received 1RTT 0 new_connection_id new_connection_id new_connection_id
30 packet_sent 1RTT 0 ack crypto handshake_done new_connection_id new_connection_id new_connection_id
30 recovery_metrics_updated
30 connection_data_blocked_updated blocked application
30 packet_sent 1RTT 1 new_token new_token
30 recovery_metrics_updated
50 packet_received 1RTT 1 ack
50 ecn_state_updated capable
50 recovery_metrics_updated
110 packet_received 1RTT 2 connection_close
110 connection_closed remote bye application
110 connection_state_updated draining
110 packet_sent 1RTT 2 connection_close
312.5 connection_state_updated closed";
