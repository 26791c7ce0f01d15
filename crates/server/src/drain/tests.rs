use std::sync::Arc;

use tokio::time::Instant as Clock;

use super::*;
use crate::own_response::OwnListener;
use crate::peer::{Addresses, Peer, Protocol, TlsFacts};
use crate::requests::Handlers;
use crate::tally::{InFlight, Open, Traffic};

const DEADLINE: Duration = Duration::from_secs(30);

/// A server with one connection that has one request.
struct Scene {
    phases: Phases,
    tally: Arc<Tally>,
}

impl Scene {
    fn begin() -> (Self, Open, InFlight) {
        let tally = Arc::new(Tally::new(
            1 << 30,
            OwnListener::default(),
            Handlers::default(),
        ));
        let addresses = Addresses {
            peer: ([127, 0, 0, 1], 1).into(),
            local: None,
        };
        let peer = Peer::new(
            addresses,
            Protocol::Http2,
            tally.new_id(),
            TlsFacts::default(),
        );
        let holder = tally.holders.open_over_quic(std::net::Ipv4Addr::LOCALHOST);
        let open = Open::new(&tally, peer, Arc::new(Traffic::default()), holder, None);
        let request = open.begin_request(1000);
        let phases = Phases::new();
        (Self { phases, tally }, open, request)
    }

    /// Waits for the end of the drain. Returns its duration.
    async fn finish(&self) -> Duration {
        let began = Clock::now();
        finish(DEADLINE, &self.phases, &self.tally).await;
        began.elapsed()
    }
}

/// The task of an HTTP/2 request ends after its connection, although its response was sent.
#[tokio::test(start_paused = true)]
async fn request_that_ends_after_its_connection_is_finished() {
    let (scene, open, request) = Scene::begin();
    let part = scene.phases.part();
    let late = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop((part, open));
        tokio::time::sleep(LAST_REQUESTS / 2).await;
        drop(request);
    });
    let took = scene.finish().await;
    let ended = Duration::from_secs(1) + LAST_REQUESTS / 2;
    assert!(
        (ended..=ended + CHECK_INTERVAL * 2).contains(&took),
        "{took:?}"
    );
    assert_eq!((scene.tally.answered(), scene.tally.cut()), (1, (0, 0)));
    late.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn request_held_by_user_code_delays_the_end_briefly_and_counts_as_cut() {
    let (scene, open, request) = Scene::begin();
    drop(open);
    let took = scene.finish().await;
    assert!(
        (LAST_REQUESTS..=LAST_REQUESTS + CHECK_INTERVAL * 2).contains(&took),
        "{took:?}"
    );
    assert_eq!((scene.tally.answered(), scene.tally.cut()), (0, (1, 0)));
    drop(request);
}

#[tokio::test(start_paused = true)]
async fn server_without_requests_ends_at_once() {
    let (scene, open, request) = Scene::begin();
    drop((open, request));
    assert_eq!(scene.finish().await, Duration::ZERO);
    assert_eq!((scene.tally.answered(), scene.tally.cut()), (1, (0, 0)));
}

/// Open requests are aborted at the deadline and by a second signal, even if they complete later.
#[tokio::test(start_paused = true)]
async fn connection_that_does_not_end_is_cut() {
    for is_impatient in [false, true] {
        let (scene, open, request) = Scene::begin();
        let part = scene.phases.part();
        if is_impatient {
            scene.phases.enter(Phase::Cut);
        }
        let took = scene.finish().await;
        let expected = if is_impatient {
            Duration::ZERO
        } else {
            DEADLINE
        };
        assert!(took.abs_diff(expected) < CHECK_INTERVAL * 2, "{took:?}");
        drop((part, open, request));
        assert_eq!(scene.tally.cut(), (1, 1));
    }
}

#[test]
fn progress_counts_requests_and_connections_since_the_drain_began() {
    let (scene, open, request) = Scene::begin();
    assert_eq!(scene.tally.drain_progress(), None);
    assert_eq!(scene.tally.begin_drain(DEADLINE), 1);
    let progress = scene.tally.drain_progress().expect("it has begun");
    assert_eq!((progress.connections, progress.connections_open), (1, 1));
    assert_eq!(progress.requests_in_flight, 1);
    assert_eq!(progress.deadline, DEADLINE);
    drop(request);
    drop(open);
    let progress = scene.tally.drain_progress().expect("it has begun");
    assert_eq!((progress.connections, progress.connections_open), (1, 0));
    assert_eq!(progress.requests_in_flight, 0);
    // A second signal has no effect.
    assert_eq!(scene.tally.begin_drain(Duration::ZERO), 1);
    assert_eq!(
        scene.tally.drain_progress().map(|it| it.deadline),
        Some(DEADLINE)
    );
}
