//! Reads traces of other stacks.
//!
//! The published stacks wrote the files in `data/`, which carry their names and versions. In those of quic-go and
//! quiche, a client sends about 60 000 bytes over 10 ms each way, and some datagrams are dropped. In those of aioquic and
//! ngtcp2, a client receives 6000 bytes over HTTP/3 from `courser serve`, over 10 ms each way, and one datagram is dropped
//! in each direction. Together the files cover three generations of the drafts. The expected numbers were counted in
//! the files by other means.

use std::fs::File;
use std::io::BufReader;

use courser_trace::qlog::{About, EventKind, Reader, Series, Space, Summary};

fn reader(name: &str) -> Reader<BufReader<File>> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = File::open(path).expect("the file is part of the crate");
    Reader::new(BufReader::new(file)).expect("a header")
}

/// Reads a trace, and checks the values that all of them have in common.
fn read(name: &str) -> (About, Summary) {
    let about = reader(name).about().clone();
    let summary = Summary::of(&mut reader(name));
    assert_eq!(summary.unreadable_lines, 0, "{:?}", summary.unreadable);
    assert_eq!(about.format, "JSON-SEQ");
    assert_eq!(about.vantage_point.as_deref(), Some("client"));
    let close = summary.close.as_ref().expect("it was closed");
    assert_eq!(close.initiator.as_deref(), Some("local"));
    assert_eq!(
        (close.error.as_deref(), close.reason.as_deref()),
        (Some("0"), Some("bye"))
    );
    (about, summary)
}

fn near(seen: f64, expected: f64) -> bool {
    (seen - expected).abs() < 1e-9
}

#[test]
fn quic_go_0_48_writes_version_0_3() {
    let (about, summary) = read("quic-go-0.48-client.sqlog");
    assert_eq!(about.schema.as_deref(), Some("0.3"));
    assert_eq!((summary.sent.packets, summary.sent.bytes), (58, 67_953));
    assert_eq!(
        (summary.received.packets, summary.received.bytes),
        (22, 3205)
    );
    assert_eq!(
        (summary.lost.packets, summary.lost.reordering_threshold),
        (2, 2)
    );
    assert_eq!(
        (summary.stream_bytes_sent, summary.stream_bytes_repeated),
        (62_502, 2502)
    );
    let rtt = summary.rtt.expect("samples");
    assert!(near(rtt.min, 0.021_019_977) && near(rtt.median, 0.021_570_365));
    assert!(near(summary.handshake.expect("done"), 0.031_379_513));
    assert_eq!(summary.congestion_window_max, Some(66_560));
}

#[test]
fn quic_go_0_65_mixes_old_and_new_names() {
    let (about, summary) = read("quic-go-0.65-client.sqlog");
    assert_eq!(
        about.schema.as_deref(),
        Some("urn:ietf:params:qlog:events:quic-14")
    );
    assert_eq!((summary.sent.packets, summary.sent.bytes), (52, 61_785));
    assert_eq!(
        (summary.received.packets, summary.received.bytes),
        (15, 3052)
    );
    let lost = summary.lost;
    assert_eq!((lost.packets, lost.unrecorded), (2, 0));
    assert_eq!((lost.reordering_threshold, lost.time_threshold), (1, 1));
    assert_eq!(
        (summary.stream_bytes_sent, summary.stream_bytes_repeated),
        (56_502, 2502)
    );
    assert!(near(summary.handshake.expect("done"), 0.023_411_431));
    let states: Vec<_> = summary
        .states
        .iter()
        .map(|(_, state)| state.as_str())
        .collect();
    let expected = [
        "attempted",
        "handshake_started",
        "handshake_complete",
        "handshake_confirmed",
        "closed",
    ];
    assert_eq!(states, expected);
    assert_eq!(summary.congestion_state_changes, 5);
    assert_eq!(summary.bytes_in_flight_max, Some(42_240));
}

#[test]
fn quiche_0_22_records_no_states_and_no_losses() {
    let (about, summary) = read("quiche-0.22-client.sqlog");
    assert_eq!(about.schema.as_deref(), Some("0.3"));
    assert_eq!((summary.sent.packets, summary.sent.bytes), (65, 70_004));
    assert_eq!(
        (summary.received.packets, summary.received.bytes),
        (8, 3053)
    );
    assert_eq!(
        (summary.stream_bytes_sent, summary.stream_bytes_repeated),
        (67_500, 3500)
    );
    assert_eq!(summary.lost.packets, 0);
    // The time from the first packet to the first 1-RTT packet.
    assert!(near(summary.handshake.expect("done"), 0.032_536_364));
    let rtt = summary.rtt.expect("samples");
    assert!(near(rtt.min, 0.004_038_453) && near(rtt.max, 0.029_703_001));
}

#[test]
fn quiche_0_30_counts_losses_in_its_metrics() {
    let (about, summary) = read("quiche-0.30-client.sqlog");
    assert_eq!(
        about.schema.as_deref(),
        Some("urn:ietf:params:qlog:events:quic-12")
    );
    assert_eq!((summary.sent.packets, summary.sent.bytes), (67, 71_314));
    assert_eq!(
        (summary.received.packets, summary.received.bytes),
        (9, 4260)
    );
    assert_eq!((summary.lost.packets, summary.lost.unrecorded), (3, 3));
    assert_eq!(summary.stream_bytes_repeated, 3500);
    assert!(near(summary.handshake.expect("done"), 0.036_055));
    assert_eq!(summary.congestion_state_changes, 7);
    let (series, _) = Series::of(&mut reader("quiche-0.30-client.sqlog"), 0.1);
    assert_eq!(series.losses.as_slice().len(), 3);
}

/// Summarizes a trace that has no event for the close, but a frame.
fn read_without_close_event(name: &str, format: &str) -> (About, Summary) {
    let mut reader = reader(name);
    let summary = Summary::of(&mut reader);
    // aioquic writes the vantage point after the events.
    let about = reader.about().clone();
    assert_eq!(summary.unreadable_lines, 0, "{:?}", summary.unreadable);
    assert_eq!(
        (about.format, about.schema.as_deref()),
        (format, Some("0.3"))
    );
    assert_eq!(about.vantage_point.as_deref(), Some("client"));
    let close = summary.close.as_ref().expect("a frame");
    assert_eq!(close.initiator.as_deref(), Some("local"));
    assert_eq!(close.error.as_deref(), Some("256"));
    (about, summary)
}

#[test]
fn aioquic_1_7_names_lost_packets_in_its_own_way() {
    let name = "aioquic-1.7-client.qlog";
    let (_, summary) = read_without_close_event(name, "JSON");
    let close = summary.close.expect("a frame");
    assert_eq!(close.reason.as_deref(), Some("bye"));
    assert_eq!((summary.sent.packets, summary.sent.bytes), (15, 2123));
    assert_eq!(
        (summary.received.packets, summary.received.bytes),
        (13, 9338)
    );
    assert_eq!((summary.lost.packets, summary.lost.unrecorded), (1, 1));
    // It repeats the request.
    assert_eq!(
        (summary.stream_bytes_sent, summary.stream_bytes_repeated),
        (59, 19)
    );
    let rtt = summary.rtt.expect("samples");
    assert!(near(rtt.min, 0.024_443_306_999_955_894) && near(rtt.max, 0.035_636_422_999_914_43));
    assert!((summary.handshake.expect("done") - 0.047_452_637).abs() < 1e-6);
    assert_eq!(summary.congestion_window_max, Some(13_598));
    assert_eq!(summary.bytes_in_flight_max, Some(1200));
    let lost: Vec<_> = reader(name)
        .filter_map(|line| match line.expect("readable").kind {
            EventKind::PacketLost(lost) => Some((lost.space, lost.number)),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [(Space::Application, Some(4))]);
}

#[test]
fn ngtcp2_0_12_counts_probe_timeouts_in_its_metrics() {
    let (about, summary) = read_without_close_event("ngtcp2-0.12-client.sqlog", "JSON-SEQ");
    let group = about.group_id.as_deref();
    assert_eq!(group.map(str::len), Some(36), "{group:?}");
    assert_eq!((summary.sent.packets, summary.sent.bytes), (8, 5076));
    assert_eq!(
        (summary.received.packets, summary.received.bytes),
        (11, 9730)
    );
    assert_eq!((summary.lost.packets, summary.lost.unrecorded), (2, 2));
    assert_eq!(summary.probe_timeouts, 1);
    assert_eq!(
        (summary.stream_bytes_sent, summary.stream_bytes_repeated),
        (62, 0)
    );
    let rtt = summary.rtt.expect("samples");
    assert!(near(rtt.min, 0.024) && near(rtt.max, 0.033));
    // The time from the first packet to the first 1-RTT packet: the last flight of the client was lost.
    assert!(near(summary.handshake.expect("done"), 1.04));
    assert_eq!(summary.congestion_window_max, Some(14_520));
    assert_eq!(summary.bytes_in_flight_max, Some(2547));
}

#[test]
fn series_agree_with_the_summary() {
    for name in ["quic-go-0.48-client.sqlog", "quic-go-0.65-client.sqlog"] {
        let (series, summary) = Series::of(&mut reader(name), 0.1);
        assert_eq!(
            series.lost.as_slice().len() as u64,
            summary.lost.packets,
            "{name}"
        );
        assert_eq!(
            series.received.as_slice().len() as u64,
            summary.received.packets,
            "{name}"
        );
        let last = series.received.as_slice().last().expect("some").1;
        assert_eq!(last, summary.received.bytes as f64, "{name}");
        let peak = series.send_rate.as_slice().iter().map(|point| point.1);
        assert_eq!(peak.fold(0.0, f64::max), summary.sent.peak_rate, "{name}");
        let window = series
            .congestion_window
            .as_slice()
            .iter()
            .map(|point| point.1);
        assert_eq!(
            Some(window.fold(0.0, f64::max) as u64),
            summary.congestion_window_max
        );
    }
}
