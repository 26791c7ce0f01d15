//! Traces of real connections.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common;
use courser::TransportConfig;
use courser_qlog::{Dialect, QlogDirectory};
use qlog::reader::{Event, QlogSeqReader};
use serde_json::Value;

const BYTES: usize = 300_000;

/// A directory that is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("courser-{name}-{}", std::process::id()));
        Self(path)
    }

    /// Returns the traces by the end that wrote them.
    fn traces(&self) -> BTreeMap<String, PathBuf> {
        let entries = fs::read_dir(&self.0).expect("the directory");
        entries
            .map(|entry| entry.expect("an entry").path())
            .map(|path| {
                let name = path
                    .file_stem()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned();
                let (_id, side) = name.split_once('_').expect("<odcid>_<side>");
                (side.to_owned(), path)
            })
            .collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The content of a trace.
struct Trace {
    header: Value,
    events: Vec<Value>,
}

impl Trace {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("the trace");
        let records = text.split('\u{1e}').skip(1);
        let mut records = records.map(|record| serde_json::from_str(record).expect("JSON"));
        Self {
            header: records.next().expect("a header"),
            events: records.collect(),
        }
    }

    /// Returns the data of the events with this name.
    fn named(&self, name: &str) -> impl Iterator<Item = &Value> {
        let named = move |event: &&Value| event["name"] == format!("quic:{name}");
        self.events.iter().filter(named).map(|event| &event["data"])
    }

    fn count(&self, name: &str) -> u64 {
        self.named(name).count() as u64
    }

    /// Returns the number of bytes up to the end of the stream that is sent.
    fn stream_end(&self) -> Option<u64> {
        let packets = self.named("packet_sent");
        let frames = packets.flat_map(|packet| packet["frames"].as_array().into_iter().flatten());
        let streams = frames.filter(|frame| frame["frame_type"] == "stream");
        let end =
            |frame: &Value| Some(frame["offset"].as_u64()? + frame["raw"]["length"].as_u64()?);
        streams.filter_map(end).max()
    }
}

/// Sends [`BYTES`] to the server on a connection that is recorded at both ends.
async fn transfer(directory: &Arc<QlogDirectory>) -> courser::ConnectionStats {
    let transport = TransportConfig {
        sinks: Some(directory.clone()),
        // Enough packets for a useful trace.
        mtu_discovery: false,
        ..TransportConfig::default()
    };
    let pair = common::pair_with(transport, |config| config);
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("allowed");
    let writing = async {
        send.write_all(&vec![7; BYTES]).await.expect("open");
        send.finish().expect("open");
    };
    let reading = async {
        let mut receive = server.accept_uni().await.expect("a stream");
        receive.read_to_end(BYTES).await.expect("complete").len()
    };
    let ((), read) = tokio::join!(writing, reading);
    assert_eq!(read, BYTES);
    client.close(7u32.into(), b"done");
    server.closed().await;
    let stats = client.stats();
    drop((client, server));
    pair.finish().await;
    assert!(directory.flush(), "the disk is fast");
    stats
}

#[tokio::test]
async fn traces_of_both_ends_agree_with_the_statistics() {
    let scratch = Scratch::new("trace");
    let directory = Arc::new(QlogDirectory::create(&scratch.0).expect("a directory"));
    let stats = transfer(&directory).await;
    assert!(directory.take_error().is_none());
    assert_eq!(directory.traces(), 2);
    let traces = scratch.traces();
    let (client, server) = (
        Trace::read(&traces["client"]),
        Trace::read(&traces["server"]),
    );
    for (side, trace) in [("client", &client), ("server", &server)] {
        assert_eq!(trace.header["trace"]["vantage_point"]["type"], side);
        let states: Vec<_> = trace.named("connection_state_updated").collect();
        let is_complete = states.iter().any(|it| it["new"] == "handshake_complete");
        assert!(is_complete, "{states:?}");
    }
    let id = |trace: &Trace| trace.header["trace"]["common_fields"]["group_id"].clone();
    assert_eq!(id(&client), id(&server));
    let id = id(&client);
    let id = id.as_str().expect("the original destination ID");
    let name = traces["client"]
        .file_name()
        .expect("a name")
        .to_string_lossy();
    assert!(
        name.starts_with(id) && name.ends_with("_client.sqlog"),
        "{name}"
    );
    // A few packets follow the close, after the counters were read.
    let few = |counted: u64| counted..=counted + 10;
    assert!(few(stats.packets_sent).contains(&client.count("packet_sent")));
    assert!(few(stats.packets_received).contains(&client.count("packet_received")));
    assert_eq!(client.count("packet_lost"), stats.packets_lost);
    assert_eq!(client.stream_end(), Some(BYTES as u64));
    for field in ["latest_rtt", "congestion_window"] {
        let mut metrics = client.named("recovery_metrics_updated");
        assert!(metrics.any(|it| it[field].is_number()), "{field}");
    }
    let close = client.named("connection_closed").next().expect("closed");
    assert_eq!(
        (&close["initiator"], &close["error_code"]),
        (&"local".into(), &7.into())
    );
    let close = server.named("connection_closed").next().expect("closed");
    assert_eq!(
        (&close["initiator"], &close["reason"]),
        (&"remote".into(), &"done".into())
    );
}

#[tokio::test]
async fn the_qlog_crate_has_a_type_for_every_line() {
    let scratch = Scratch::new("crate");
    let directory = QlogDirectory::create(&scratch.0).expect("a directory");
    let directory = Arc::new(directory.dialect(Dialect::QlogCrate));
    transfer(&directory).await;
    for path in scratch.traces().values() {
        let bytes = fs::read(path).expect("the trace");
        let written = bytes.iter().filter(|&&byte| byte == 0x1e).count() - 1;
        let reader = QlogSeqReader::new(Box::new(&bytes[..])).expect("the head has its type");
        let events: Vec<_> = reader.collect();
        assert!(events.len() == written && written > 100, "{written} events");
        for event in events {
            if let Event::Json(event) = event {
                // The drafts do not define such an event.
                assert_eq!(event.name, "courser:spurious_loss", "{}", event.data);
            }
        }
    }
}

#[tokio::test]
async fn missing_directory_costs_the_trace_but_not_the_connection() {
    let scratch = Scratch::new("gone");
    let directory = Arc::new(QlogDirectory::create(&scratch.0).expect("a directory"));
    fs::remove_dir_all(&scratch.0).expect("removed");
    transfer(&directory).await;
    let error = directory.take_error().expect("an error");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(directory.traces(), 0);
}

#[test]
fn path_that_is_a_file_is_refused() {
    let scratch = Scratch::new("file");
    fs::create_dir_all(&scratch.0).expect("a directory");
    let file = scratch.0.join("x");
    fs::write(&file, b"").expect("written");
    assert!(QlogDirectory::create(file).is_err());
}
