use std::net::SocketAddr;
use std::sync::atomic::AtomicU32;
use std::task::Wake;

use courser_base::{Ecn, FourTuple, Time};

use super::*;
use crate::config::EndpointConfig;
use crate::endpoint::ReceiveMeta;

#[derive(Debug, Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn places(count: usize) -> Vec<ShardPlace> {
    ShardPlace::of_all(count).into_iter().flatten().collect()
}

/// Delivers a datagram for the second of two shards to the first.
fn receive(first: &mut Endpoint, len: usize) {
    let mut bytes = vec![0; len];
    bytes[..9].copy_from_slice(&[0x40, 9, 9, 9, 9, 9, 9, 9, 1]);
    let meta = ReceiveMeta {
        path: FourTuple::to(SocketAddr::from(([192, 0, 2, 1], 50_000))),
        ecn: Ecn::NotEct,
        segment_size: len,
    };
    first.handle_datagrams(Time::ZERO, &mut bytes, &meta);
}

fn endpoints() -> Vec<Endpoint> {
    Endpoint::shards(EndpointConfig::from_seed([1; 32]), None, [2; 32], 2)
}

#[test]
fn single_shard_has_no_place() {
    assert!(ShardPlace::of_all(1).iter().all(Option::is_none));
    assert_eq!(places(3).len(), 3);
}

#[test]
fn misrouted_datagrams_wake_their_shard_once() {
    let (places, mut endpoints) = (places(2), endpoints());
    let count = Arc::new(Count::default());
    let mut taken = VecDeque::new();
    places[1].take(&count.clone().into(), &mut taken);
    for _ in 0..3 {
        receive(&mut endpoints[0], 100);
        places[0].forward(Time::ZERO, &mut endpoints[0]);
    }
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert!(places[1].has_misrouted() && !places[0].has_misrouted());
    places[1].take(&count.clone().into(), &mut taken);
    assert_eq!(taken.len(), 3);
    assert!(!places[1].has_misrouted());
    for batch in taken {
        endpoints[1].handle_misrouted(Time::ZERO, batch);
    }
    let (one, two) = (endpoints[0].stats(), endpoints[1].stats());
    assert_eq!(
        (one.strays_sent, one.strays_dropped, two.strays_received),
        (3, 0, 3)
    );
}

#[test]
fn strays_above_the_limit_are_dropped() {
    for (len, room) in [
        (100, MAX_MISROUTED_BATCHES),
        (16_384, MAX_MISROUTED_BYTES / 16_384),
    ] {
        let (places, mut endpoints) = (places(2), endpoints());
        for _ in 0..room + 10 {
            receive(&mut endpoints[0], len);
            places[0].forward(Time::ZERO, &mut endpoints[0]);
        }
        let stats = endpoints[0].stats();
        assert_eq!(stats.strays_sent, room as u64 + 10, "{len} bytes");
        assert_eq!(stats.strays_dropped, 10, "{len} bytes");
        let mut taken = VecDeque::new();
        places[1].take(Waker::noop(), &mut taken);
        assert_eq!(taken.len(), room);
        receive(&mut endpoints[0], len);
        places[0].forward(Time::ZERO, &mut endpoints[0]);
        assert_eq!(
            endpoints[0].stats().strays_dropped,
            10,
            "below the limit again"
        );
    }
}

#[test]
fn shards_are_over_when_the_last_one_is() {
    let places = places(3);
    let count = Arc::new(Count::default());
    for place in &places {
        place.take(&count.clone().into(), &mut VecDeque::new());
    }
    places[0].on_over();
    places[2].on_over();
    assert!(!places[0].are_all_over());
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    places[1].on_over();
    assert!(places.iter().all(ShardPlace::are_all_over));
    assert_eq!(count.0.load(Ordering::Relaxed), 3, "all are woken");
}

#[test]
fn failure_of_one_shard_leaves_the_others_running() {
    let (places, mut endpoints) = (places(3), endpoints());
    let mut taken = VecDeque::new();
    let count = Arc::new(Count::default());
    for place in &places {
        place.take(&count.clone().into(), &mut taken);
    }
    receive(&mut endpoints[0], 100);
    places[0].forward(Time::ZERO, &mut endpoints[0]);
    places[1].on_failed();
    places[1].on_failed();
    assert!(!places[1].has_misrouted(), "a failed shard has no strays");
    assert_eq!(
        count.0.load(Ordering::Relaxed),
        1,
        "the others have nothing to do"
    );
    let failed = [0, 1, 2].map(|number: usize| places[number].has_failed());
    assert_eq!(failed, [false, true, false]);
    assert!(places[1].has_living());
    // They are over without it.
    places[0].on_over();
    places[2].on_over();
    assert!(places[0].are_all_over());
    places[0].on_failed();
    places[2].on_failed();
    assert!(!places[1].has_living());
}

/// The peer of a connection of a shard that has failed gets a stateless reset from the shard at which its
/// packets arrive.
#[test]
fn datagrams_of_a_failed_shard_are_answered() {
    let (places, mut endpoints) = (places(2), endpoints());
    places[1].on_failed();
    receive(&mut endpoints[0], 100);
    places[0].forward(Time::ZERO, &mut endpoints[0]);
    let stats = endpoints[0].stats();
    assert_eq!(
        (stats.resets_sent, stats.strays_dropped),
        (1, 0),
        "{stats:?}"
    );
}
