//! Transfers in both directions, on many streams at once, compared by hash.

use aws_lc_rs::digest::{Context, Digest, SHA256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::setup::World;
use super::stack::{Ending, Receiving, Sending, Stack};
use crate::common::{Random, within};

/// The length and hash of what was sent or received on one stream.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fingerprint {
    len: usize,
    hash: Vec<u8>,
}

impl Fingerprint {
    fn new(len: usize, hash: &Digest) -> Self {
        Self {
            len,
            hash: hash.as_ref().to_vec(),
        }
    }
}

/// The number of streams of each kind and direction, and their length.
#[derive(Clone, Copy)]
pub struct Plan {
    pub bidi: usize,
    pub uni: usize,
    pub len: usize,
}

impl Plan {
    pub fn bytes(self) -> usize {
        2 * (self.bidi + self.uni) * self.len
    }
}

const PIECE: usize = 64 * 1024;

/// Returns bytes without a pattern that could hide an error.
pub struct Source(Random);

impl Source {
    pub fn new(seed: u64) -> Self {
        Self(Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    }

    pub fn fill(&mut self, piece: &mut [u8]) {
        for word in piece.chunks_mut(7) {
            word.copy_from_slice(&self.0.next().to_le_bytes()[..word.len()]);
        }
    }
}

/// Sends `len` bytes derived from the seed, and the end.
pub async fn send(mut stream: impl Sending, seed: u64, len: usize) -> Fingerprint {
    let mut source = Source::new(seed);
    let mut hash = Context::new(&SHA256);
    let mut piece = vec![0; PIECE];
    let mut left = len;
    while left > 0 {
        let now = left.min(PIECE);
        source.fill(&mut piece[..now]);
        hash.update(&piece[..now]);
        stream.write_all(&piece[..now]).await.expect("peer reads");
        left -= now;
    }
    stream.shutdown().await.expect("not finished");
    Fingerprint::new(len, &hash.finish())
}

/// Reads to the end.
pub async fn receive(mut stream: impl Receiving) -> Fingerprint {
    let mut hash = Context::new(&SHA256);
    let mut piece = vec![0; PIECE];
    let mut len = 0;
    loop {
        match stream.read(&mut piece).await.expect("peer writes") {
            0 => return Fingerprint::new(len, &hash.finish()),
            read => {
                hash.update(&piece[..read]);
                len += read;
            }
        }
    }
}

/// Runs the plan from both ends and compares the sent with the received data.
pub async fn exchange<C: Stack, S: Stack>(client: &C, server: &S, plan: Plan) {
    let (mut sent, mut received) = (JoinSet::new(), JoinSet::new());
    for index in 0..plan.bidi {
        let seed = index as u64;
        let (send_half, receive_half) = client.open_bi().await;
        sent.spawn(send(send_half, seed, plan.len));
        received.spawn(receive(receive_half));
        let server = server.clone();
        let (send_half, receive_half) = server.accept_bi().await;
        sent.spawn(send(send_half, 1000 + seed, plan.len));
        received.spawn(receive(receive_half));
    }
    for index in 0..plan.uni {
        let seed = index as u64;
        sent.spawn(send(client.open_uni().await, 2000 + seed, plan.len));
        received.spawn(receive(server.accept_uni().await));
        sent.spawn(send(server.open_uni().await, 3000 + seed, plan.len));
        received.spawn(receive(client.accept_uni().await));
    }
    let (mut sent, mut received) = (sent.join_all().await, received.join_all().await);
    sent.sort();
    received.sort();
    assert_eq!(sent.len(), 2 * (plan.bidi + plan.uni));
    assert_eq!(sent, received);
}

/// Runs the plan, and then a close that the other end receives.
async fn exchange_and_close<C: Stack, S: Stack>(client: &C, server: &S, plan: Plan) {
    exchange(client, server, plan).await;
    client.close(3, b"all here");
    assert_eq!(server.closed().await, Ending::application(3, b"all here"));
}

/// 100 MB over one connection.
const HUNDRED_MB: Plan = Plan {
    bidi: 5,
    uni: 5,
    len: 5_000_000,
};

/// More streams than either end allows at a time.
const MANY_STREAMS: Plan = Plan {
    bidi: 300,
    uni: 300,
    len: 2_000,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundred_megabytes_from_a_courser_client() {
    assert_eq!(HUNDRED_MB.bytes(), 100_000_000);
    let pair = World::default().courser_to_quinn().await;
    within(
        60,
        exchange_and_close(&pair.client, &pair.server, HUNDRED_MB),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundred_megabytes_from_a_quinn_client() {
    let pair = World::default().quinn_to_courser().await;
    within(
        60,
        exchange_and_close(&pair.client, &pair.server, HUNDRED_MB),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_from_a_courser_client() {
    let pair = World::default().courser_to_quinn().await;
    within(
        60,
        exchange_and_close(&pair.client, &pair.server, MANY_STREAMS),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_from_a_quinn_client() {
    let pair = World::default().quinn_to_courser().await;
    within(
        60,
        exchange_and_close(&pair.client, &pair.server, MANY_STREAMS),
    )
    .await;
}
