//! Tests of spans and events with the usual subscriber.

use std::io;
use std::sync::{Arc, Mutex};

use courser_base::Side;
use courser_observe::TracingSinks;
use courser_quic::telemetry::{Detail, SinkFactory};
use courser_wire::ConnectionId;
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

use super::Pair;

/// The text that a subscriber writes.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Runs `work` with a subscriber of this level, and returns its lines.
fn lines(level: Level, work: impl FnOnce()) -> Vec<String> {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_max_level(level)
        .with_ansi(false)
        .without_time()
        .with_span_events(FmtSpan::NEW | FmtSpan::CLOSE)
        .finish();
    tracing::subscriber::with_default(subscriber, work);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Returns the lines of a connection with a request and a response.
fn connection(level: Level) -> Vec<String> {
    lines(level, || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let sinks: Arc<dyn SinkFactory> = Arc::new(TracingSinks::new());
            Pair::connect(&sinks).await.exchange().await;
        });
    })
}

#[track_caller]
fn count(lines: &[String], parts: &[&str]) -> usize {
    let all = |line: &&String| {
        let line = format!("{line}\n");
        parts.iter().all(|part| line.contains(part))
    };
    lines.iter().filter(all).count()
}

#[test]
fn info_shows_connections_and_their_ends() {
    let lines = connection(Level::INFO);
    for side in ["client", "server"] {
        let side = format!("side=\"{side}\" peer=127.0.0.1:");
        let named = ["connection{id=", side.as_str()];
        let established = [
            &named[..],
            &["version=0x1", "alpn=\"test\"", "established took="],
        ]
        .concat();
        assert_eq!(count(&lines, &established), 1, "{lines:#?}");
        assert_eq!(
            count(
                &lines,
                &[&named[..], &["courser::connection: close\n"]].concat()
            ),
            1,
            "{lines:#?}"
        );
    }
    let cause = r#"cause=application error 0x7 reason="done\nadmin: logged in""#;
    assert_eq!(
        count(&lines, &["closed by=\"peer\"", cause]),
        1,
        "{lines:#?}"
    );
    assert_eq!(
        count(&lines, &["closed by=\"local\"", cause]),
        1,
        "{lines:#?}"
    );
    assert_eq!(count(&lines, &["courser::packet"]), 0, "{lines:#?}");
}

#[test]
fn debug_shows_paths_and_streams() {
    let lines = connection(Level::DEBUG);
    assert_eq!(
        count(&lines, &["path{peer=", "courser::path: new"]),
        2,
        "{lines:#?}"
    );
    assert_eq!(
        count(&lines, &["stream{id=0", "courser::stream: new"]),
        2,
        "{lines:#?}"
    );
    let ends = [
        ("client", "is_ours=true sent=7 received=3000"),
        ("server", "is_ours=false sent=3000 received=7"),
    ];
    for (side, sizes) in ends {
        let side = format!("side=\"{side}\"");
        let parts = [side.as_str(), sizes, "courser::stream: close\n"];
        assert_eq!(count(&lines, &parts), 1, "{lines:#?}");
    }
    // Both directions finish, and both ends see both of them.
    assert_eq!(
        count(&lines, &["courser::stream: finished"]),
        4,
        "{lines:#?}"
    );
    assert_eq!(
        count(&lines, &["transport parameters", "by_peer=true"]),
        2,
        "{lines:#?}"
    );
}

#[test]
fn trace_shows_packets_with_their_frames() {
    let lines = connection(Level::TRACE);
    let request = "STREAM 0 0+7 FIN";
    assert!(
        count(&lines, &["courser::packet: sent kind=\"1rtt\"", request]) >= 1,
        "{lines:#?}"
    );
    assert!(
        count(
            &lines,
            &["courser::packet: received kind=\"1rtt\"", request]
        ) >= 1
    );
    assert!(
        count(
            &lines,
            &["courser::packet: sent kind=\"initial\"", "CRYPTO 0+"]
        ) >= 2
    );
    assert!(count(&lines, &["courser::recovery: metrics"]) >= 2);
}

#[test]
fn records_without_a_subscriber_are_not_built() {
    let id = ConnectionId::new(&[7; 8]).unwrap();
    let detail = || {
        let sink = TracingSinks::new().sink(&id, Side::Server);
        sink.map(|sink| sink.detail())
    };
    assert_eq!(detail(), None);
    let details = [
        (Level::ERROR, None),
        (Level::INFO, Some(Detail::Events)),
        (Level::DEBUG, Some(Detail::Packets)),
        (Level::TRACE, Some(Detail::Packets)),
    ];
    for (level, expected) in details {
        lines(level, || assert_eq!(detail(), expected, "{level}"));
    }
}
