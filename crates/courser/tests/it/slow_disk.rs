//! A disk that blocks delays no packet.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{self, within};
use courser::telemetry::{BackgroundWriter, Sink, SinkFactory};
use courser::{Connection, ConnectionId, ServerConfig, Side, TransportConfig};
use courser_qlog::{Outcome, QlogSink, TraceHeader};

/// Never completes a write before the other end of the channel is dropped.
struct SlowDisk(Arc<Mutex<Receiver<()>>>);

impl Write for SlowDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let released = self.0.lock().expect("no panic").recv();
        assert!(released.is_err(), "the sender was dropped");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Traces only the first connection, to a slow disk.
#[derive(Debug)]
struct FirstTraced {
    writer: BackgroundWriter,
    blocked: Arc<Mutex<Receiver<()>>>,
    outcome: Outcome,
    has_traced: AtomicBool,
}

impl SinkFactory for FirstTraced {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        if self.has_traced.swap(true, Ordering::Relaxed) {
            return None;
        }
        let header = TraceHeader::new(*original_destination, side);
        let disk = SlowDisk(self.blocked.clone());
        let output = self.writer.output(|| Ok(disk), |error| panic!("{error}"));
        let sink = QlogSink::new(output, &header).with_outcome(self.outcome.clone());
        Some(Box::new(sink))
    }
}

/// Echoes the content of each stream.
pub async fn echo(connection: Connection) {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        if let Ok(bytes) = receive.read_to_end(1000).await {
            // The client may be gone.
            let _ = send.write_all(&bytes).await;
            let _ = send.finish();
        }
    }
}

pub async fn round_trip(connection: &Connection) -> Duration {
    let began = Instant::now();
    let (mut send, mut receive) = connection.open_bi().await.expect("allowed");
    send.write_all(b"ping").await.expect("open");
    send.finish().expect("open");
    assert_eq!(receive.read_to_end(10).await.expect("an answer"), b"ping");
    began.elapsed()
}

/// Returns the median of several round trips.
async fn median_round_trip(connection: &Connection) -> Duration {
    let mut times = Vec::new();
    for _ in 0..21 {
        times.push(round_trip(connection).await);
    }
    times.sort();
    times[times.len() / 2]
}

async fn upload(client: &Connection, server: &Connection, len: usize) {
    let sending = async {
        let mut send = client.open_uni().await.expect("allowed");
        send.write_all(&vec![7; len]).await.expect("open");
        send.finish().expect("open");
    };
    let receiving = async {
        let mut receive = server.accept_uni().await.expect("a stream");
        receive.read_to_end(len).await.expect("complete").len()
    };
    let ((), received) = tokio::join!(sending, receiving);
    assert_eq!(received, len);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disk_that_blocks_delays_no_other_connection() {
    let (release, blocked) = channel::<()>();
    let sinks = Arc::new(FirstTraced {
        // Room for two buffers.
        writer: BackgroundWriter::with_capacity("slow-disk", 80 << 10).expect("a thread"),
        blocked: Arc::new(Mutex::new(blocked)),
        outcome: Outcome::default(),
        has_traced: AtomicBool::new(false),
    });
    let traced = sinks.clone();
    let transport = TransportConfig {
        mtu_discovery: false,
        ..TransportConfig::default()
    };
    let record = |config: ServerConfig| config.sinks(traced);
    let pair = common::pair_with(transport, record);
    let (slow_client, slow_server) = pair.connect().await;
    let (client, server) = pair.connect().await;
    let echoing = common::spawn(echo(server));
    let uploading = async {
        // Each fills some two buffers of records.
        while sinks.outcome.dropped().buffers < 3 {
            upload(&slow_client, &slow_server, 200_000).await;
        }
    };
    let (median, ()) = within(60, async {
        tokio::join!(median_round_trip(&client), uploading)
    })
    .await;
    assert!(median < Duration::from_millis(50), "{median:?}");
    let dropped = sinks.outcome.dropped();
    assert!(dropped.records > 100, "{dropped:?}");
    assert!(sinks.writer.dropped().writes >= dropped.buffers);
    drop(release);
    drop((client, slow_client, slow_server));
    pair.finish().await;
    echoing.await.expect("no panic");
}
