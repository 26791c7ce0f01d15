//! Packets that are sent while woken tasks run, and writers that yield to other tasks.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::common::{Pair, pair_with, within};
use courser::congestion::{
    AckSample, Controller, ControllerFactory, LossSample, RttEstimator, Time,
};
use courser::{Connection, Rate, SendStream, TransportConfig};

const REQUESTS: usize = 100;

/// Answers `REQUESTS` streams at once, after all have arrived.
async fn answer_all(server: &Connection) {
    let mut streams = Vec::new();
    for _ in 0..REQUESTS {
        let (send, mut receive) = server.accept_bi().await.expect("a request");
        receive.read_to_end(10).await.expect("complete");
        streams.push(send);
    }
    for send in &mut streams {
        send.write_all(b"a").await.expect("enough credit");
        send.finish().expect("open");
    }
}

/// Sends `REQUESTS` requests. Each task that has an answer sends another request. Returns the calls that
/// sent those.
async fn ask_again(pair: &Pair, client: &Connection, server: &Connection) -> u64 {
    let mut tasks = Vec::new();
    for _ in 0..REQUESTS {
        let (mut send, mut receive) = client.open_bi().await.expect("allowed");
        send.write_all(b"q").await.expect("enough credit");
        send.finish().expect("open");
        let client = client.clone();
        tasks.push(tokio::spawn(async move {
            receive.read_to_end(10).await.expect("an answer");
            let (mut send, receive) = client.open_bi().await.expect("allowed");
            send.write_all(b"q").await.expect("enough credit");
            send.finish().expect("open");
            receive
        }));
    }
    // All tasks wait for their answers.
    tokio::task::yield_now().await;
    answer_all(server).await;
    let before = pair.client.socket_counters().send_calls;
    for task in tasks {
        task.await.expect("no panic");
    }
    pair.client.socket_counters().send_calls - before
}

/// The peer can work while the other tasks run, instead of both ends waiting for each other alternately.
#[tokio::test]
async fn the_first_of_many_writes_leave_before_the_last_task_has_run() {
    within(60, async {
        let pair = pair_with(TransportConfig::default(), |config| config);
        let (client, server) = pair.connect().await;
        let calls = ask_again(&pair, &client, &server).await;
        // At the 64th, the 128th and the 256th use of the connection, of some 300.
        assert!((3..20).contains(&calls), "{calls} calls");
        pair.finish().await;
    })
    .await;
}

/// A tunnel or a game waits for several things at once, so that a future that is not ready does not mean that its task
/// waits.
#[tokio::test]
async fn writes_between_looks_at_a_reader_share_calls() {
    within(60, async {
        let pair = pair_with(TransportConfig::default(), |config| config);
        let (client, _server) = pair.connect().await;
        client.ping().await.expect("open");
        let (sender, mut packets) = tokio::sync::mpsc::channel(50);
        for _ in 0..50 {
            sender.try_send(()).expect("room");
        }
        drop(sender);
        let before = pair.client.socket_counters().send_calls;
        loop {
            tokio::select! {
                biased;
                _ = client.read_datagram() => panic!("the server sends none"),
                packet = packets.recv() => match packet {
                    Some(()) => client.send_datagram(vec![7; 20].into()).expect("open"),
                    None => break,
                },
            }
        }
        client.ping().await.expect("open");
        let calls = pair.client.socket_counters().send_calls - before;
        assert!(calls < 10, "{calls} calls");
        pair.finish().await;
    })
    .await;
}

/// A congestion controller that never refuses anything.
#[derive(Clone, Debug)]
struct Unlimited;

impl Controller for Unlimited {
    fn on_sent(&mut self, _: Time, _: u64, _: u64, _: u64) {}
    fn on_ack(&mut self, _: &AckSample<'_>) {}
    fn on_congestion(&mut self, _: &LossSample<'_>) {}
    fn on_mtu_update(&mut self, _: u16) {}
    fn window(&self) -> u64 {
        1 << 40
    }
    fn ssthresh(&self) -> Option<u64> {
        None
    }
    fn pacing_rate(&self, _: &RttEstimator) -> Option<Rate> {
        None
    }
    fn in_slow_start(&self) -> bool {
        false
    }
    fn name(&self) -> &'static str {
        "unlimited"
    }
}

impl ControllerFactory for Unlimited {
    fn make(&self, _: u16, _: u64) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// Settings with which a writer is never refused for a while.
pub(crate) fn unlimited() -> TransportConfig {
    TransportConfig {
        stream_receive_window: 16 << 20,
        receive_window: 16 << 20,
        controller_factory: Some(Arc::new(Unlimited)),
        ..TransportConfig::default()
    }
}

/// Writes so many bytes and finishes. Returns the most bytes that were written without a wait.
pub(crate) async fn longest_run(send: &mut SendStream, mut bytes: usize) -> usize {
    let (piece, mut run, mut longest) = (vec![7; 64 << 10], 0, 0);
    poll_fn(|cx| {
        while bytes > 0 {
            let Poll::Ready(written) = send.poll_write(cx, &piece[..bytes.min(piece.len())]) else {
                run = 0;
                return Poll::Pending;
            };
            let written = written.expect("open");
            bytes -= written;
            run += written;
            longest = longest.max(run);
        }
        Poll::Ready(())
    })
    .await;
    send.finish().expect("open");
    longest
}

/// Limit K215: a writer that never blocks yields its thread after half a megabyte, although all of its bytes
/// would be accepted.
#[tokio::test]
async fn writer_that_never_blocks_yields_to_other_tasks() {
    const BYTES: usize = 8 << 20;
    within(60, async {
        let pair = pair_with(unlimited(), |config| config);
        let (client, server) = pair.connect().await;
        let reading = tokio::spawn(async move {
            let mut receive = server.accept_uni().await.expect("a stream");
            receive.read_to_end(BYTES).await.expect("complete")
        });
        let mut send = client.open_uni().await.expect("allowed");
        let longest = longest_run(&mut send, BYTES).await;
        assert!((512 << 10..=576 << 10).contains(&longest), "{longest}");
        assert_eq!(reading.await.expect("no panic").len(), BYTES);
        pair.finish().await;
    })
    .await;
}
