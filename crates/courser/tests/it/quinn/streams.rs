//! Streams that end early: resets and stops carry their codes to the peer.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::setup::World;
use super::stack::{Receiving, Sending, Stack};
use crate::common::within;

/// Resets a stream in the middle.
async fn resets<A: Stack, B: Stack>(from: &A, to: &B) {
    let mut send = from.open_uni().await;
    send.write_all(b"the beginning")
        .await
        .expect("enough credit");
    let mut receive = to.accept_uni().await;
    let mut beginning = [0; 13];
    receive.read_exact(&mut beginning).await.expect("sent");
    assert_eq!(&beginning, b"the beginning");
    send.reset(77);
    assert_eq!(receive.reset_code().await, Some(77));
}

/// Stops reading what the other end sends.
async fn stops<A: Stack, B: Stack>(from: &A, to: &B) {
    let mut send = from.open_uni().await;
    send.write_all(b"unwanted").await.expect("enough credit");
    let mut receive = to.accept_uni().await;
    receive.stop(88);
    assert_eq!(send.stopped().await, Some(88));
}

/// Ends each half of one stream in its own way.
async fn halves_end_apart<A: Stack, B: Stack>(from: &A, to: &B) {
    let (mut send, mut receive) = from.open_bi().await;
    send.write_all(b"question").await.expect("enough credit");
    let (mut answer, mut question) = to.accept_bi().await;
    answer.reset(5);
    assert_eq!(receive.reset_code().await, Some(5));
    send.write_all(b", and more").await.expect("enough credit");
    send.shutdown().await.expect("not finished");
    let mut all = Vec::new();
    question.read_to_end(&mut all).await.expect("sent");
    assert_eq!(all, b"question, and more");
    assert_eq!(send.stopped().await, None, "delivered");
}

async fn all<A: Stack, B: Stack>(one: &A, other: &B) {
    resets(one, other).await;
    resets(other, one).await;
    stops(one, other).await;
    stops(other, one).await;
    halves_end_apart(one, other).await;
    halves_end_apart(other, one).await;
}

#[tokio::test]
async fn resets_and_stops_with_a_courser_client() {
    let pair = World::default().courser_to_quinn().await;
    within(20, all(&pair.client, &pair.server)).await;
}

#[tokio::test]
async fn resets_and_stops_with_a_quinn_client() {
    let pair = World::default().quinn_to_courser().await;
    within(20, all(&pair.client, &pair.server)).await;
}
