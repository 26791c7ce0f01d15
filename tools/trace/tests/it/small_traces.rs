//! Explanations of small handwritten traces in the dialects of other stacks.

use courser_trace::explain::{Cause, Explanation, sentences};
use courser_trace::qlog::Reader;
use serde_json::{Value, json};

/// Returns a trace in the format of qlog 0.3.
fn trace(side: &str, events: &[(f64, &str, Value)]) -> String {
    let head = json!({"qlog_version": "0.3", "trace": {"vantage_point": {"type": side}}});
    let mut text = format!("\u{1e}{head}\n");
    for (time, name, data) in events {
        let event = json!({"time": time, "name": name, "data": data});
        text += &format!("\u{1e}{event}\n");
    }
    text
}

fn explain(text: &str) -> Explanation {
    Explanation::of(Reader::new(text.as_bytes()).expect("a trace"))
}

fn packet(number: u64, frames: &Value) -> Value {
    json!({
        "header": {"packet_type": "1RTT", "packet_number": number},
        "raw": {"length": 1250},
        "frames": frames,
    })
}

fn stream(offset: u64, len: u64) -> Value {
    json!([{"frame_type": "stream", "stream_id": 0, "offset": offset, "length": len}])
}

fn ack(last: u64, delay: f64) -> Value {
    json!([{"frame_type": "ack", "ack_delay": delay, "acked_ranges": [[0, last]]}])
}

#[test]
fn late_acknowledgements_are_distinguished_from_a_long_path() {
    let mut events = Vec::new();
    for round in 0..20 {
        let start = f64::from(round) * 100.0;
        let number = u64::from(round as u32);
        events.push((
            start,
            "transport:packet_sent",
            packet(number, &stream(number * 1200, 1200)),
        ));
        let full = json!({"congestion_window": 2400, "bytes_in_flight": 2400, "min_rtt": 20, "latest_rtt": 100});
        events.push((start, "recovery:metrics_updated", full));
        events.push((
            start + 99.0,
            "transport:packet_received",
            packet(number, &ack(number, 79.0)),
        ));
        let empty = json!({"bytes_in_flight": 0, "latest_rtt": 20.5, "smoothed_rtt": 20.5});
        events.push((start + 99.0, "recovery:metrics_updated", empty));
    }
    let explanation = explain(&trace("client", &events));
    assert_eq!(
        explanation.first_cause(),
        Some(Cause::AckDelay),
        "{explanation:#?}"
    );
    let text = sentences(&explanation).join("\n");
    assert!(
        text.contains("delayed its acknowledgements by 79.0 ms"),
        "{text}"
    );
}

#[test]
fn flow_control_is_found_in_a_trace_without_limits() {
    let limits = json!({
        "owner": "remote",
        "initial_max_data": 2400,
        "initial_max_stream_data_bidi_remote": 100_000,
    });
    let mut events = vec![(0.0, "transport:parameters_set", limits)];
    let metrics = json!({"congestion_window": 100_000, "bytes_in_flight": 1200, "min_rtt": 50});
    for round in 0..10 {
        let start = f64::from(round) * 50.0;
        let (number, offset) = (u64::from(round as u32), u64::from(round as u32) * 2400);
        events.push((
            start,
            "transport:packet_sent",
            packet(number * 2, &stream(offset, 1200)),
        ));
        events.push((
            start,
            "transport:packet_sent",
            packet(number * 2 + 1, &stream(offset + 1200, 1200)),
        ));
        events.push((start, "recovery:metrics_updated", metrics.clone()));
        let more = json!([
            {"frame_type": "ack", "acked_ranges": [[0, number * 2 + 1]]},
            {"frame_type": "max_data", "maximum": offset + 4800},
        ]);
        events.push((
            start + 50.0,
            "transport:packet_received",
            packet(number, &more),
        ));
    }
    let explanation = explain(&trace("client", &events));
    assert_eq!(
        explanation.first_cause(),
        Some(Cause::ConnectionFlowControl),
        "{explanation:#?}"
    );
    let finding = &explanation.findings[0];
    assert!(finding.share > 0.9, "{finding:#?}");
    assert!(
        finding.text.contains("began with 2.40 kB"),
        "{}",
        finding.text
    );
    assert!(
        finding.advice.contains("receive_window"),
        "{}",
        finding.advice
    );
}

#[test]
fn empty_and_cut_traces_are_explained_as_far_as_they_go() {
    let nothing = explain(&trace("client", &[]));
    assert_eq!(nothing.first_cause(), None);
    assert!(
        sentences(&nothing)
            .join("\n")
            .contains("nothing to explain")
    );
    let whole = trace(
        "client",
        &[
            (
                0.0,
                "transport:packet_sent",
                json!({"header": {"packet_type": "initial"}}),
            ),
            (30.0, "transport:packet_sent", packet(0, &stream(0, 100))),
        ],
    );
    let cut = explain(&whole[..whole.len() - 10]);
    assert_eq!(cut.unreadable_lines, 1);
    assert!(
        cut.unreadable
            .is_some_and(|error| error.starts_with("line 3: not JSON"))
    );
}

/// Returns a trace of two seconds with a full congestion window and a queue, in which `losses` packets
/// are declared lost spuriously. The window is reduced if `reduces`.
fn spurious_losses(losses: u64, reduces: bool) -> String {
    let mut events = Vec::new();
    for round in 0..40_u64 {
        let start = round as f64 * 50.0;
        let sent = packet(round, &stream(round * 1200, 1200));
        events.push((start, "transport:packet_sent", sent));
        let window = if reduces && round >= 2 { 2400 } else { 4800 };
        let full = json!({"congestion_window": window, "bytes_in_flight": 4800, "min_rtt": 20,
            "latest_rtt": 49, "smoothed_rtt": 49});
        if (1..=losses).contains(&round) {
            let lost = json!({"header": {"packet_type": "1RTT", "packet_number": round - 1}});
            events.push((start, "recovery:packet_lost", lost));
            events.push((start, "recovery:spurious_loss", json!({})));
        }
        events.push((start, "recovery:metrics_updated", full));
    }
    trace("client", &events)
}

#[test]
fn few_spurious_losses_are_not_explained_as_reordering() {
    let first = |losses, reduces| explain(&spurious_losses(losses, reduces)).first_cause();
    assert_eq!(first(1, true), Some(Cause::Bottleneck));
    // Without a reduction of the window they had no effect.
    assert_eq!(first(8, false), Some(Cause::Bottleneck));
    assert_eq!(first(8, true), Some(Cause::Reordering));
}

/// The sentences about the end of a connection, after the headline.
fn ending(events: &[(f64, &str, Value)]) -> Vec<String> {
    let explanation = explain(&trace("client", events));
    sentences(&explanation)[1..3].to_vec()
}

#[test]
fn close_of_the_peer_is_named_and_unfinished_streams_are_counted() {
    let request =
        json!([{"frame_type": "stream", "stream_id": 0, "offset": 0, "length": 30, "fin": true}]);
    let answer = json!([
        {"frame_type": "ack", "acked_ranges": [[0, 0]]},
        {"frame_type": "stream", "stream_id": 0, "offset": 0, "length": 900},
        {"frame_type": "stream", "stream_id": 3, "offset": 0, "length": 9},
    ]);
    let rest = json!([{"frame_type": "stream", "stream_id": 0, "offset": 900, "length": 100, "fin": true}]);
    let alpn = json!({"chosen_alpn": {"string_value": "h3"}});
    let closed =
        |code: u64| json!({"owner": "remote", "application_code": code, "reason": "no \u{1b}room"});
    let mut events = vec![
        (0.0, "transport:packet_sent", packet(0, &request)),
        (0.0, "transport:alpn_information", alpn),
        (50.0, "transport:packet_received", packet(0, &answer)),
        (90.0, "connectivity:connection_closed", closed(0x107)),
    ];
    let text = ending(&events);
    assert_eq!(
        text[0],
        "closed by the peer: H3_EXCESSIVE_LOAD (0x107), \"no \\u{1b}room\", at 90.0 ms (line 5)"
    );
    assert_eq!(
        text[1],
        "the transfer was incomplete: 1 stream sent, 0 of 1 stream received to the end (1 open)"
    );
    events.insert(3, (60.0, "transport:packet_received", packet(1, &rest)));
    events[4].2 = closed(0x100);
    let text = ending(&events);
    assert!(
        text[0].starts_with("closed by the peer: H3_NO_ERROR (0x100)"),
        "{text:?}"
    );
    assert_eq!(
        text[1],
        "the transfer was complete: 1 stream sent, 1 stream received"
    );
    let explanation = explain(&trace("client", &events));
    assert_eq!(explanation.is_complete, Some(true));
    let close = explanation.close.expect("a close");
    assert_eq!(
        (close.code, close.initiator.as_deref()),
        (Some(0x100), Some("remote"))
    );
}

#[test]
fn timeouts_violations_and_missing_closes_are_named() {
    let sent = ("transport:packet_sent", packet(0, &stream(0, 100)));
    let of = |close: Option<Value>| {
        let mut events = vec![(0.0, sent.0, sent.1.clone())];
        events.extend(close.map(|close| (500.0, "quic:connection_closed", close)));
        ending(&events)
    };
    let incomplete =
        "the transfer was incomplete: 0 of 1 stream sent and acknowledged to the end (1 open)";
    assert_eq!(of(None), ["the trace has no close", incomplete]);
    let timeout = json!({"initiator": "local", "trigger": "idle_timeout"});
    assert_eq!(
        of(Some(timeout))[0],
        "ended by the idle timeout, at 500 ms (line 3)"
    );
    let violation =
        json!({"initiator": "local", "connection_error": "protocol_violation", "trigger": "error"});
    assert_eq!(
        of(Some(violation))[0],
        "closed by this end: PROTOCOL_VIOLATION (0xa), at 500 ms (line 3)"
    );
    let own = json!({"initiator": "local", "application_error": "unknown", "error_code": 7});
    assert_eq!(
        of(Some(own))[0],
        "closed by this end: error code 0x7, at 500 ms (line 3)"
    );
}

/// The beginning of a trace in which the receiver allows a hundred packets on a stream.
fn window_of_100_packets(owner: &str) -> Vec<(f64, &'static str, Value)> {
    let limits = json!({
        "owner": owner,
        "initial_max_data": 1_000_000,
        "initial_max_stream_data_bidi_local": 120_000,
        "initial_max_stream_data_bidi_remote": 120_000,
    });
    let metrics = json!({"congestion_window": 1_000_000, "min_rtt": 50});
    vec![
        (0.0, "transport:parameters_set", limits),
        (0.0, "recovery:metrics_updated", metrics),
    ]
}

/// Returns the trace of a client whose peer fills the window of a stream. One packet arrives a second
/// late, after which the peer continues.
fn download_with_one_late_packet(late: u64) -> String {
    let mut events = window_of_100_packets("local");
    let request =
        json!([{"frame_type": "stream", "stream_id": 0, "offset": 0, "length": 10, "fin": true}]);
    events.push((0.0, "transport:packet_sent", packet(0, &request)));
    let mut data = |time, number, offset| {
        let received = packet(number, &stream(offset * 1200, 1200));
        events.push((time, "transport:packet_received", received));
    };
    for number in (0..100).filter(|number| *number != late) {
        data(50.0 + number as f64, number, number);
    }
    data(1150.0, 100, late);
    let more = json!([{"frame_type": "max_stream_data", "stream_id": 0, "maximum": 240_000}]);
    events.push((1150.0, "transport:packet_sent", packet(1, &more)));
    let received = packet(101, &stream(120_000, 1200));
    events.push((1200.0, "transport:packet_received", received));
    trace("client", &events)
}

#[test]
fn window_full_behind_a_gap_is_distinguished_from_a_slow_reader() {
    // Enough packets follow for the missing one to count as lost.
    let explanation = explain(&download_with_one_late_packet(1));
    assert_eq!(explanation.first_cause(), Some(Cause::HeadOfLine));
    // The data that new credit allows arrives a round trip later, which has the same cause.
    let seconds = explanation.findings[0].seconds;
    assert!((seconds - 1.051).abs() < 1e-9, "{explanation:#?}");
    let text = sentences(&explanation).join("\n");
    assert!(
        text.contains("lost data kept this end from reading what had come after it"),
        "{text}"
    );
    assert!(text.contains("stream_receive_window"), "{text}");
    // Before this gap are 95 packets that the application could read.
    let explanation = explain(&download_with_one_late_packet(95));
    assert_eq!(explanation.first_cause(), Some(Cause::SlowReader));
}

#[test]
fn sender_infers_the_gap_of_its_peer_from_acknowledgements() {
    let mut events = window_of_100_packets("remote");
    for number in 0..100 {
        let sent = packet(number, &stream(number * 1200, 1200));
        events.push((number as f64, "transport:packet_sent", sent));
    }
    let ranges = json!([{"frame_type": "ack", "acked_ranges": [[0, 0], [2, 99]]}]);
    let received = packet(0, &ranges);
    events.push((150.0, "transport:packet_received", received));
    let empty = json!({"bytes_in_flight": 0});
    events.push((150.0, "recovery:metrics_updated", empty));
    // The packet that repeats the data is late.
    events.push((
        1100.0,
        "transport:packet_sent",
        packet(100, &stream(1200, 1200)),
    ));
    let rest = json!([
        {"frame_type": "ack", "acked_ranges": [[100, 100]]},
        {"frame_type": "max_stream_data", "stream_id": 0, "maximum": 240_000},
    ]);
    events.push((1150.0, "transport:packet_received", packet(1, &rest)));
    let explanation = explain(&trace("client", &events));
    assert_eq!(
        explanation.first_cause(),
        Some(Cause::HeadOfLine),
        "{explanation:#?}"
    );
    assert!((explanation.findings[0].seconds - 1.0).abs() < 1e-9);
}

#[test]
fn close_frame_counts_if_the_trace_has_no_close_event() {
    let close = json!([{"frame_type": "connection_close", "error_space": "transport",
        "error_code": "protocol_violation", "raw_error_code": 10, "reason": "no"}]);
    let mut events = vec![
        (0.0, "transport:packet_sent", packet(0, &stream(0, 100))),
        (40.0, "transport:packet_received", packet(0, &close)),
        (900.0, "transport:packet_received", packet(1, &close)),
    ];
    assert_eq!(
        ending(&events)[0],
        "closed by the peer: PROTOCOL_VIOLATION (0xa), \"no\", at 40.0 ms (line 3)"
    );
    // The time after the close does not belong to the transfer.
    assert!((explain(&trace("client", &events)).duration - 0.04).abs() < 1e-9);
    // The event has more details: a frame has no trigger.
    let idle = json!({"owner": "local", "trigger": "idle_timeout"});
    events.push((900.0, "connectivity:connection_closed", idle));
    assert_eq!(
        ending(&events)[0],
        "ended by the idle timeout, at 900 ms (line 5)"
    );
}

#[test]
fn trace_with_gaps_or_a_late_beginning_leaves_completeness_unknown() {
    let answer = |number, offset| {
        let frames = json!([{"frame_type": "stream", "stream_id": 0, "offset": offset, "length": 5, "fin": true}]);
        (0.0, "transport:packet_received", packet(number, &frames))
    };
    let dropped = (5.0, "courser:records_dropped", json!({"records": 3}));
    let unknown = "whether the transfer was complete is unknown, because";
    for (events, why) in [
        (
            vec![answer(0, 5)],
            "the trace begins after its connection did: 0 of 1 stream received to the end (1 open)",
        ),
        (
            vec![answer(7, 0)],
            "the trace begins after its connection did: 1 stream received",
        ),
        (
            vec![answer(0, 0), dropped],
            "records are missing in the trace or cannot be read: 1 stream received",
        ),
    ] {
        assert_eq!(ending(&events)[1], format!("{unknown} {why}"));
        assert_eq!(explain(&trace("client", &events)).is_complete, None);
    }
}

#[test]
fn completeness_is_unknown_without_streams() {
    let initial = json!({"header": {"packet_type": "initial", "packet_number": 0}});
    let closed = json!({"initiator": "remote", "connection_error": "connection_refused"});
    let explanation = explain(&trace(
        "client",
        &[
            (0.0, "transport:packet_sent", initial),
            (50.0, "quic:connection_closed", closed),
        ],
    ));
    assert_eq!(explanation.is_complete, None);
    let text = sentences(&explanation).join("\n");
    assert!(!text.contains("complete"), "{text}");
}

#[test]
fn time_blocked_by_qpack_is_a_note() {
    let blocked = |stream: u64, state: &str| json!({"stream_id": stream, "state": state});
    let explanation = explain(&trace(
        "server",
        &[
            (0.0, "transport:packet_sent", packet(0, &stream(0, 100))),
            (10.0, "qpack:stream_state_updated", blocked(4, "blocked")),
            (90.0, "qpack:stream_state_updated", blocked(4, "unblocked")),
        ],
    ));
    let text = sentences(&explanation).join("\n");
    assert!(
        text.contains("note: 1 stream waited for insertions into the dynamic table of QPACK, for 80.0 ms in all"),
        "{text}"
    );
    assert!(
        text.contains("at 10.0 ms to 90.0 ms (lines 3 to 4)"),
        "{text}"
    );
}

#[test]
fn feature_that_the_path_drops_is_named_once_with_its_time() {
    let given_up = |feature: &str| json!({"feature": feature, "new": "given_up"});
    let used = json!({"feature": "batches", "new": "used"});
    let name = "courser:path_feature_updated";
    let mut events = vec![
        (0.0, "transport:packet_sent", packet(0, &stream(0, 1200))),
        (500.0, name, given_up("batches")),
        (600.0, name, used),
        (700.0, name, given_up("batches")),
        (800.0, name, given_up("ecn")),
    ];
    // Unknown features are named as in the trace, up to a limit.
    events.extend((0..100).map(|at| (900.0, name, given_up(&format!("x{at}")))));
    let notes = explain(&trace("client", &events)).notes;
    let starts = [
        "batches of segmentation offload were lost",
        "packets with an ECN mark were lost",
    ];
    for (note, (start, time)) in notes.iter().zip(starts.into_iter().zip([0.5, 0.8])) {
        assert!(note.text.starts_with(start), "{}", note.text);
        assert!((note.evidence[0].from.time - time).abs() < 1e-9, "{note:?}");
        assert!(!note.advice.is_empty());
    }
    assert!(notes[2].text.contains("x0"), "{}", notes[2].text);
    assert_eq!(notes.len(), 8);
}
