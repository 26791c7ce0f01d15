//! Two sessions that are joined: that of a client and that of the upstream server.

use std::sync::Arc;

use bytes::Bytes;
use courser::h3::{Code, DatagramError};
use courser::webtransport::{ApplicationCode, Closed, Session};
use tokio::sync::watch;

use super::counts::Counts;
use super::stream::{self, Running};

/// Passes everything on between two sessions until one of them ends, and then ends the other in the same way.
pub(super) struct Relay {
    client: Session,
    upstream: Session,
    counts: Arc<Counts>,
}

/// The side of a relay whose session has ended.
enum Ended {
    Client(Closed),
    Upstream(Closed),
}

impl Relay {
    pub(super) fn new(client: Session, upstream: Session, counts: Arc<Counts>) -> Self {
        Self {
            client,
            upstream,
            counts,
        }
    }

    pub(super) async fn run(self) {
        let Self {
            client,
            upstream,
            counts,
        } = &self;
        counts.on_forwarded();
        let running = watch::Sender::new(0);
        let all = async {
            tokio::join!(
                bidirectional(client, upstream, &running),
                bidirectional(upstream, client, &running),
                unidirectional(client, upstream, &running),
                unidirectional(upstream, client, &running),
                datagrams(client, upstream, counts),
                datagrams(upstream, client, counts),
                draining(client, upstream),
                draining(upstream, client),
            );
            // All parts may have ended with a session whose reason has yet to arrive.
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            closed = client.closed() => Ended::Client(closed),
            closed = upstream.closed() => Ended::Upstream(closed),
            () = all => return,
        };
        match ended {
            Ended::Client(closed) => {
                stream::settle(&running).await;
                pass(&closed, upstream, Code::REQUEST_CANCELLED);
                upstream.closed().await;
            }
            Ended::Upstream(closed) => {
                stream::settle(&running).await;
                pass(&closed, client, Code::CONNECT_ERROR);
                client.closed().await;
            }
        }
    }
}

/// Ends a session as the other one has ended. A session that was lost has no reason that could be passed on, so that the
/// other one is reset with `lost`.
fn pass(closed: &Closed, to: &Session, lost: Code) {
    match closed {
        Closed::Peer(reason) | Closed::Local(reason) => {
            let ApplicationCode(code) = reason.code;
            to.close(code, &reason.message);
        }
        Closed::Reset(code) => to.reset(*code),
        _ => to.reset(lost),
    }
}

/// Passes on the streams of one end, in the order in which they were opened. While the other end grants no stream, the
/// following ones wait where they are, and their peer gets no credit for others.
async fn bidirectional(from: &Session, to: &Session, running: &watch::Sender<usize>) {
    while let Ok((send_back, receive)) = from.accept_bi().await {
        let Ok((send, receive_back)) = to.open_bi().await else {
            return;
        };
        tokio::spawn(stream::copy(receive, send, Running::begin(running)));
        tokio::spawn(stream::copy(
            receive_back,
            send_back,
            Running::begin(running),
        ));
    }
}

async fn unidirectional(from: &Session, to: &Session, running: &watch::Sender<usize>) {
    while let Ok(receive) = from.accept_uni().await {
        let Ok(send) = to.open_uni().await else {
            return;
        };
        tokio::spawn(stream::copy(receive, send, Running::begin(running)));
    }
}

/// Passes on datagrams in batches, without a copy. One that the other path cannot carry is dropped.
async fn datagrams(from: &Session, to: &Session, counts: &Counts) {
    let mut batch: Vec<Bytes> = Vec::new();
    while from
        .datagrams()
        .receive_many(&mut batch, BATCH)
        .await
        .is_some()
    {
        while let Err(error) = to.datagrams().send_many(&mut batch) {
            if !matches!(error, DatagramError::TooLarge { .. }) || batch.is_empty() {
                return;
            }
            batch.remove(0);
            counts.on_too_large();
        }
    }
}

async fn draining(from: &Session, to: &Session) {
    from.draining().await;
    to.drain();
}

/// Datagrams that are passed on at once.
const BATCH: usize = 64;
