//! Reports of `courser qlog` about traces of aioquic and ngtcp2, which are in `data`.
//!
//! In each trace, a client receives 6000 bytes over HTTP/3 with a delay of 10 ms in each direction. One
//! datagram is dropped in each direction. The expected numbers were counted in the files by other means.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

use courser_trace::Stats;
use courser_trace::explain::{Cause, Direction, Explanation, sentences};
use courser_trace::qlog::Reader;

use crate::commands::{Folder, courser_qlog};

const AIOQUIC: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/aioquic-1.7-client.qlog"
);
const NGTCP2: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/ngtcp2-0.12-client.sqlog"
);

fn open(path: &str) -> Reader<BufReader<File>> {
    let file = File::open(path).expect("the file is part of the repository");
    Reader::new(BufReader::new(file)).expect("a header")
}

fn counts<const N: usize>(pairs: [(&str, u64); N]) -> BTreeMap<String, u64> {
    pairs.map(|(name, count)| (name.to_owned(), count)).into()
}

#[test]
fn stats_of_aioquic_are_right() {
    let stats = Stats::of(&mut open(AIOQUIC));
    let packets = [("1RTT", 11), ("handshake", 1), ("initial", 1)];
    for (name, count) in packets {
        assert_eq!(stats.received.packets[name].0, count, "{name}");
    }
    let frames = counts([
        ("ack", 5),
        ("crypto", 2),
        ("handshake_done", 1),
        ("new_connection_id", 3),
        ("new_token", 2),
        ("padding", 3),
        ("ping", 1),
        ("stream", 9),
    ]);
    assert_eq!(stats.received.frames, frames);
    assert_eq!(stats.sent.frames["connection_close"], 1);
    assert_eq!(stats.http3_sent, counts([("headers", 1)]));
    assert_eq!(stats.http3_received, counts([("data", 1), ("headers", 1)]));
    assert_eq!(stats.lost.values().sum::<u64>(), 1);
    assert_eq!(stats.rtt.expect("samples").count, 5);
}

#[test]
fn stats_of_ngtcp2_are_right() {
    let stats = Stats::of(&mut open(NGTCP2));
    let frames = counts([
        ("ack", 3),
        ("crypto", 3),
        ("handshake_done", 1),
        ("new_connection_id", 3),
        ("new_token", 2),
        ("padding", 2),
        ("ping", 1),
        ("stream", 8),
    ]);
    assert_eq!(stats.received.frames, frames);
    assert_eq!(stats.sent.frames["connection_close"], 1);
    assert_eq!(stats.sent.packets["initial"].0, 3);
    assert_eq!(stats.lost.values().sum::<u64>(), 2);
}

#[test]
fn explanation_of_aioquic_has_the_close_and_the_times() {
    let explanation = Explanation::of(open(AIOQUIC));
    let lines = sentences(&explanation);
    assert_eq!(
        lines[..3],
        [
            "received 6.12 kB in 182 ms, 269 kbit/s, shortest round trip 24.4 ms",
            "closed by this end: H3_NO_ERROR (0x100), \"bye\", at 208 ms (line 97)",
            "the transfer was complete: 1 stream sent, 1 stream received",
        ]
    );
    assert_eq!(
        (explanation.direction, explanation.bytes_received),
        (Direction::Received, 6115)
    );
    let of = |cause| explanation.findings.iter().find(|it| it.cause == cause);
    let handshake = of(Cause::Handshake).expect("there is one");
    assert!(
        (handshake.seconds - 0.047_453).abs() < 1e-5,
        "{handshake:?}"
    );
    assert_eq!(explanation.counts.lost, 1);
    // The time after the close is not attributed to any cause.
    let seconds: f64 = explanation.findings.iter().map(|it| it.seconds).sum();
    assert!((seconds - 0.181_681).abs() < 1e-5, "{seconds}");
}

#[test]
fn explanation_of_ngtcp2_reports_lost_handshake_packets() {
    let explanation = Explanation::of(open(NGTCP2));
    let lines = sentences(&explanation);
    assert_eq!(
        lines[..3],
        [
            "received 6.12 kB in 1.10 s, 44.6 kbit/s, shortest round trip 24.0 ms",
            "closed by this end: error code 0x100, at 1.10 s (line 42)",
            "the transfer was complete: 1 stream sent, 1 stream received",
        ]
    );
    // The datagram with the Finished message of the client was dropped.
    assert_eq!(explanation.first_cause(), Some(Cause::Handshake));
    let first = &explanation.findings[0];
    assert!((first.seconds - 1.04).abs() < 1e-9, "{first:?}");
    assert!(first.text.contains("packets of it were lost"), "{first:?}");
    assert_eq!(
        (explanation.counts.lost, explanation.counts.probe_timeouts),
        (2, 1)
    );
}

#[test]
fn converted_traces_have_the_same_counts_and_explanations() {
    let folder = Folder::new("other-stacks");
    for (path, name) in [(AIOQUIC, "aioquic.sqlog"), (NGTCP2, "ngtcp2.qlog")] {
        let output = folder.path(name);
        let (seen, result) = courser_qlog(&["convert", path, "-o", &output]);
        assert!(result.is_ok(), "{result:?}: {:?}", seen.notes);
        let [before, after] = [path, &output].map(|path| Stats::of(&mut open(path)));
        assert_eq!(before.sent, after.sent, "{name}");
        assert_eq!(before.received, after.received, "{name}");
        assert_eq!((before.lost, before.rtt), (after.lost, after.rtt), "{name}");
        let [before, after] = [path, &output].map(|path| Explanation::of(open(path)));
        let causes = |it: &Explanation| {
            let findings = it.findings.iter();
            findings
                .map(|it| (it.cause, it.text.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(causes(&before), causes(&after), "{name}");
        let close = |it: Explanation| it.close.map(|close| (close.code, close.reason));
        assert_eq!(close(before), close(after), "{name}");
    }
    let text = std::fs::read_to_string(folder.path("aioquic.sqlog")).expect("written");
    let lost = text.lines().find(|line| line.contains("quic:packet_lost"));
    let lost = lost.expect("one");
    for part in [r#""packet_number":4"#, r#""packet_type":"1RTT""#] {
        assert!(lost.contains(part), "{lost}");
    }
}
