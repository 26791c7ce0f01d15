//! Windows of receivers: tiny, huge, shared, and updates that are lost.

use std::time::Duration;

use crate::common;
use crate::common::lab::{
    MS, SECOND, back, controlled, ethernet, finish_down, ideal, there, transfer_down, transfer_up,
    watch,
};
use crate::common::{SERVER, Scene, Setup, for_each_seed};
use courser_base::Time;
use courser_recovery::Algorithm;
use courser_sim::apps::{AppCounters, is_pattern_at, pattern_at};
use courser_sim::host::{App, Context};
use courser_transport::{ConnectionError, ConnectionHandle, ReadError, TransportConfig};
use courser_wire::{Direction, StreamId};

fn stream_window(config: &mut TransportConfig, bytes: u64) {
    config.stream_receive_window = bytes;
    config.stream_receive_window_max = bytes;
}

fn connection_window(config: &mut TransportConfig, bytes: u64) {
    config.receive_window = bytes;
    config.receive_window_max = bytes;
}

/// With a constant window, at most a window per round trip arrives, and at least half of that: an
/// update leaves when half of the window was read.
fn limited_by(window: u64, setup: Setup, bytes: u64, rtt: Duration) {
    let (_, time) = transfer_up(1, setup, bytes, SECOND * 100);
    let rounds = bytes as f64 / window as f64;
    assert!(
        time > rtt.mul_f64(rounds),
        "{time:?}: more than a window per round trip"
    );
    assert!(
        time < rtt.mul_f64(2.0 * rounds + 4.0),
        "{time:?}: less than half a window"
    );
}

#[test]
fn stream_window_of_16_kb_gives_a_window_per_round_trip() {
    let setup = ethernet("100mbit,rtt=50ms").both(|it| stream_window(it, 16_384));
    limited_by(16_384, setup, 300_000, MS * 50);
}

#[test]
fn connection_window_of_16_kb_gives_a_window_per_round_trip() {
    let setup = ethernet("100mbit,rtt=50ms").both(|it| connection_window(it, 16_384));
    limited_by(16_384, setup, 300_000, MS * 50);
}

/// A window of one byte: the slowest transfer, which still ends.
#[test]
fn stream_window_of_one_byte_still_delivers() {
    let setup = ethernet("100mbit,rtt=10ms").both(|it| stream_window(it, 1));
    let (scene, time) = transfer_up(1, setup, 100, SECOND * 20);
    assert!(time > MS * 900, "{time:?}");
    assert_eq!(scene.stats().data_retransmitted, 0);
}

#[test]
fn tiny_windows_survive_loss() {
    for_each_seed(10, |seed| {
        let setup = ethernet("10mbit,rtt=20ms,loss=5%").both(|it| {
            stream_window(it, 3000);
            connection_window(it, 5000);
        });
        let (scene, time) = transfer_up(seed, setup, 100_000, SECOND * 100);
        assert!(there(&scene).dropped.loss + back(&scene).dropped.loss > 0);
        assert!(time < SECOND * 20, "{time:?}");
    });
}

/// Windows begin at 256 KiB, the path holds 5 MB: they grow as fast as the congestion window.
#[test]
fn receive_windows_grow_on_long_fat_links() {
    let bytes = 30_000_000;
    let setup = controlled("200mbit,rtt=200ms,queue=1bdp", Algorithm::Cubic);
    let (_, time) = transfer_up(1, setup, bytes, SECOND * 60);
    // With fixed windows it would take 115 round trips of 200 ms.
    let limit = ideal(bytes, 200, MS * 200) + SECOND;
    assert!(time < limit, "{time:?}, at most {limit:?}");
}

/// The same in the other direction, where the send buffer of the server has to grow as well.
#[test]
fn send_buffer_grows_on_long_fat_links() {
    let bytes = 30_000_000;
    let setup = controlled("200mbit,rtt=200ms,queue=1bdp", Algorithm::Cubic);
    let mut scene = Scene::new(1, setup, common::lab::down(bytes));
    let mut most = 0;
    watch(&mut scene, SECOND * 2, MS * 10, |_, _| {});
    for _ in 0..50 {
        scene.run_for(MS * 10);
        most = most.max(scene.server_stats().path.bytes_in_flight);
    }
    assert!(most > 1_000_000, "{most}");
    let time = finish_down(&mut scene, bytes, SECOND * 60);
    assert!(time < ideal(bytes, 200, MS * 200) + SECOND, "{time:?}");
}

/// Slow start doubles each round trip, and in each a packet is lost that blocks the client's
/// reading for another one, or two. Windows and the server's buffer grow nevertheless: when they
/// grew only with bytes read, this took 14 to 20 s.
#[test]
fn windows_grow_on_long_fat_links_that_lose_packets() {
    let bytes = 30_000_000;
    for_each_seed(3, |seed| {
        let link = "50mbit,rtt=600ms,loss=3%,queue=1bdp";
        let setup = controlled(link, Algorithm::Bbr);
        let (scene, time) = transfer_down(seed, setup, bytes, SECOND * 60);
        assert!(back(&scene).dropped.loss > 300);
        let limit = ideal(bytes, 50, MS * 600).mul_f64(1.35);
        assert!(time < limit, "{time:?}, at most {limit:?}");
    });
}

/// Windows that cannot grow and are four times the BDP.
#[test]
fn fixed_windows_of_four_bdp_are_enough() {
    let setup = ethernet("20mbit,rtt=40ms,queue=1bdp").both(|it| stream_window(it, 400_000));
    let (_, time) = transfer_up(1, setup, 5_000_000, SECOND * 20);
    assert!(
        time < ideal(5_000_000, 20, MS * 40).mul_f64(1.2),
        "{time:?}"
    );
}

/// All packets of the receiver are lost for a second, updates too, while the sender waits for them.
/// The transfer must continue without help when they are sent again.
#[test]
fn blocked_sender_continues_after_lost_updates() {
    for_each_seed(20, |seed| {
        let from = 300 + seed * 7;
        let link = format!("50mbit,rtt=40ms;50mbit,rtt=40ms,blackhole={from}ms:1s");
        let setup = ethernet(&link).both(|it| stream_window(it, 50_000));
        let (scene, time) = transfer_up(seed, setup, 1_000_000, SECOND * 30);
        assert!(back(&scene).dropped.blackhole > 0);
        // Without the hole 20 windows, at most 41 round trips; then the hole, and probe timeouts
        // that have doubled up to its length at most.
        let limit = MS * 40 * 44 + SECOND * 2 + MS * 500;
        assert!(time < limit, "{time:?}, at most {limit:?}");
    });
}

/// Every third packet back is lost, among them updates.
#[test]
fn lost_updates_are_sent_again() {
    for_each_seed(10, |seed| {
        let link = "50mbit,rtt=20ms;50mbit,rtt=20ms,loss=30%";
        let setup = ethernet(link).both(|it| connection_window(it, 20_000));
        let (scene, time) = transfer_up(seed, setup, 300_000, SECOND * 60);
        assert!(back(&scene).dropped.loss > 3);
        assert!(time < SECOND * 10, "{time:?}");
    });
}

/// Reads streams of the client, a limited number of bytes at a fixed interval.
#[derive(Debug)]
struct SlowReader {
    step: usize,
    interval: Duration,
    next: Option<Time>,
    streams: Vec<(ConnectionHandle, StreamId, u64)>,
    counters: AppCounters,
}

impl SlowReader {
    fn new(step: usize, interval: Duration) -> Self {
        Self {
            step,
            interval,
            next: None,
            streams: Vec::new(),
            counters: AppCounters::default(),
        }
    }
}

impl App for SlowReader {
    fn on_connected(&mut self, context: &mut Context<'_>, connection: ConnectionHandle) {
        self.next = Some(context.now());
        self.on_opened(context, connection, Direction::Unidirectional);
    }

    fn on_opened(
        &mut self,
        context: &mut Context<'_>,
        connection: ConnectionHandle,
        direction: Direction,
    ) {
        let streams = context.streams(connection).expect("the connection exists");
        while let Some(id) = streams.accept(direction) {
            self.streams.push((connection, id, 0));
        }
    }

    fn on_closed(&mut self, _: &mut Context<'_>, _: ConnectionHandle, error: &ConnectionError) {
        if !matches!(error, ConnectionError::ApplicationClosed { .. }) {
            self.counters.failures.push(error.to_string());
        }
        self.next = None;
    }

    fn on_timer(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        self.next = Some(now + self.interval);
        let (counters, step) = (&mut self.counters, self.step);
        self.streams.retain_mut(|(connection, id, offset)| {
            let Some(streams) = context.streams(*connection) else {
                return false;
            };
            match streams.read_chunk(*id, step) {
                Ok(Some(chunk)) => {
                    assert!(
                        is_pattern_at(*offset, &chunk),
                        "wrong bytes at {offset} of {id:?}"
                    );
                    *offset += chunk.len() as u64;
                    counters.received += chunk.len() as u64;
                    true
                }
                Ok(None) => {
                    counters.streams += 1;
                    counters.finished_at = Some(now);
                    false
                }
                Err(ReadError::Blocked) => true,
                Err(error) => panic!("{error}"),
            }
        });
    }

    fn next_timer(&self) -> Option<Time> {
        self.next
    }

    fn counters(&self) -> Option<&AppCounters> {
        Some(&self.counters)
    }
}

/// Sends bytes on several streams at once.
#[derive(Debug)]
struct ManyStreams {
    len: u64,
    count: usize,
    connection: Option<ConnectionHandle>,
    streams: Vec<(StreamId, u64)>,
    counters: AppCounters,
}

impl ManyStreams {
    fn new(count: usize, len: u64) -> Self {
        Self {
            len,
            count,
            connection: None,
            streams: Vec::new(),
            counters: AppCounters::default(),
        }
    }

    fn write(&mut self, context: &mut Context<'_>) {
        let Some(streams) = self.connection.and_then(|it| context.streams(it)) else {
            return;
        };
        for (id, offset) in &mut self.streams {
            while *offset < self.len {
                let mut next = pattern_at(*offset, self.len - *offset);
                match streams.write_chunk(*id, &mut next) {
                    Ok(len) => {
                        *offset += len as u64;
                        self.counters.written += len as u64;
                    }
                    Err(_) => break,
                }
                if *offset == self.len {
                    streams.finish(*id).expect("the endpoint is open");
                }
            }
        }
    }
}

impl App for ManyStreams {
    fn on_start(&mut self, context: &mut Context<'_>) {
        self.connection = Some(
            context
                .connect(SERVER)
                .expect("the endpoint accepts another connection"),
        );
    }

    fn on_connected(&mut self, context: &mut Context<'_>, connection: ConnectionHandle) {
        for _ in 0..self.count {
            let streams = context.streams(connection).expect("the connection exists");
            let id = streams
                .open(Direction::Unidirectional)
                .expect("the stream limit allows it");
            self.streams.push((id, 0));
        }
        self.write(context);
    }

    fn on_writable(&mut self, context: &mut Context<'_>, _: ConnectionHandle, _: StreamId) {
        self.write(context);
    }

    fn on_closed(&mut self, _: &mut Context<'_>, _: ConnectionHandle, error: &ConnectionError) {
        self.counters.failures.push(error.to_string());
    }

    fn counters(&self) -> Option<&AppCounters> {
        Some(&self.counters)
    }
}

fn many(
    seed: u64,
    setup: Setup,
    app: ManyStreams,
    reader: SlowReader,
    limit: Duration,
) -> (Scene, Duration) {
    let total = app.len * app.count as u64;
    let count = app.count as u64;
    let mut scene = Scene::with(seed, setup, app, reader);
    let time = scene.run_until(limit, "end of all streams", |scene| {
        scene.server_counters().streams == count
    });
    assert_eq!(
        (scene.server_counters().received, scene.counters().written),
        (total, total)
    );
    common::lab::assert_clean(&scene);
    (scene, time)
}

/// Fifty streams, each with a window as large as that of the connection: none starves, and the sum
/// is the limit of the connection.
#[test]
fn fifty_streams_share_a_connection_window() {
    let setup = ethernet("100mbit,rtt=40ms").both(|it| connection_window(it, 64_000));
    let reader = SlowReader::new(usize::MAX, MS);
    let (_, time) = many(1, setup, ManyStreams::new(50, 20_000), reader, SECOND * 20);
    let rounds = 1_000_000.0 / 64_000.0;
    assert!(time > (MS * 40).mul_f64(rounds), "{time:?}");
    assert!(time < (MS * 42).mul_f64(2.0 * rounds + 4.0), "{time:?}");
}

#[test]
fn fifty_streams_share_a_connection_window_with_loss() {
    for_each_seed(5, |seed| {
        let setup = ethernet("100mbit,rtt=20ms,loss=2%").both(|it| connection_window(it, 64_000));
        let reader = SlowReader::new(usize::MAX, MS);
        let (scene, _) = many(
            seed,
            setup,
            ManyStreams::new(50, 10_000),
            reader,
            SECOND * 20,
        );
        assert!(there(&scene).dropped.loss > 0);
    });
}

/// The reader is the limit: 20 000 bytes each 10 ms. Unread bytes stay within the granted window,
/// and the sender waits.
#[test]
fn slow_reader_limits_the_sender() {
    let setup = ethernet("100mbit,rtt=20ms").both(|it| stream_window(it, 100_000));
    let reader = SlowReader::new(2_000, MS * 10);
    let mut scene = Scene::with(1, setup, ManyStreams::new(1, 300_000), reader);
    let mut most = 0;
    for _ in 0..1000 {
        scene.run_for(MS);
        let unread = scene.server_stats().data_received - scene.server_counters().received;
        most = most.max(unread);
    }
    assert!(most <= 100_000 && most > 50_000, "{most}");
    scene.run_until(SECOND * 5, "end", |scene| {
        scene.server_counters().streams == 1
    });
    let time = scene.world.now() - Time::ZERO;
    assert!((MS * 1500..MS * 1800).contains(&time), "{time:?}");
    common::lab::assert_clean(&scene);
}

/// A window that may grow does not if the reader is slow: growth is for readers that read a window
/// within two round trips.
#[test]
fn window_does_not_grow_for_a_slow_reader() {
    let setup = ethernet("100mbit,rtt=20ms").both(|it| {
        it.stream_receive_window = 50_000;
        it.receive_window = 50_000;
    });
    let reader = SlowReader::new(2_000, MS * 10);
    let mut scene = Scene::with(1, setup, ManyStreams::new(1, 3_000_000), reader);
    let mut most = 0;
    for _ in 0..2000 {
        scene.run_for(MS);
        let unread = scene.server_stats().data_received - scene.server_counters().received;
        most = most.max(unread);
    }
    // One growth at the beginning is allowed.
    assert!(most <= 100_000, "{most}");
    common::lab::assert_clean(&scene);
}

/// A download through a window of one datagram.
#[test]
fn window_of_one_datagram_carries_a_download() {
    let setup = ethernet("100mbit,rtt=10ms").both(|it| {
        stream_window(it, 1200);
        connection_window(it, 1200);
    });
    let (_, time) = transfer_down(1, setup, 60_000, SECOND * 30);
    // 50 windows, half of one per round trip at the least.
    assert!((MS * 500..MS * 1100).contains(&time), "{time:?}");
}

/// The mapping of the client changes while it waits for credit. The update goes to the old address,
/// and no packet of the client is in flight. Only a new request for credit (RFC 9000 §4.1) reveals
/// its new address.
#[test]
fn blocked_sender_asks_again_when_the_update_went_to_its_old_address() {
    for_each_seed(40, |seed| {
        let at = 400 + seed;
        let setup = ethernet(&format!("50mbit,rtt=40ms,rebind={at}ms:never"))
            .both(|it| stream_window(it, 20_000));
        let (scene, time) = transfer_up(seed, setup, 600_000, SECOND * 20);
        assert_eq!(scene.world.rebindings(scene.link), 1);
        // 30 windows, at most 61 round trips, and a pause of three probe timeouts or so.
        let limit = MS * 40 * 64 + SECOND;
        assert!(time < limit, "{time:?}, at most {limit:?}");
    });
}
