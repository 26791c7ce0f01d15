use std::task::Waker;

use super::*;

fn registry(streams: &[u64]) -> Registry {
    let registry = Registry::new(true);
    for &stream in streams {
        registry.open(Time::ZERO, stream);
    }
    registry
}

fn deliver(registry: &Registry, stream: u64, payload: Vec<u8>) -> Delivery {
    registry.deliver(Time::ZERO, (stream, payload.into()), false)
}

fn receive(registry: &Registry, stream: u64) -> Poll<Option<Bytes>> {
    let mut received = None;
    let cx = &mut Context::from_waker(Waker::noop());
    let polled = registry.poll_receive(cx, stream, 1, |payload| received = Some(payload));
    polled.map(|_| received)
}

/// K583: a request with limits of its own takes no room of the others, and drops its oldest datagrams.
#[test]
fn requests_with_their_own_limits_count_alone() {
    let registry = Registry::new(true);
    registry.open(Time::ZERO, 0);
    registry.open(Time::ZERO, 4);
    registry.deliver(Time::ZERO, (0, Bytes::from_static(b"before")), false);
    registry.set_limits(0, 1000, 300_000);
    for n in 0..1001_u32 {
        let payload = Bytes::copy_from_slice(&n.to_be_bytes());
        registry.deliver(Time::ZERO, (0, payload), false);
    }
    assert_eq!(registry.dropped(0), 2);
    let mut batch = Vec::new();
    let cx = &mut Context::from_waker(Waker::noop());
    let polled = registry.poll_receive(cx, 0, 600, |payload| batch.push(payload));
    assert_eq!(polled, Poll::Ready(Some(600)));
    assert_eq!(batch[0], 1_u32.to_be_bytes()[..]);
    // In bytes: a large one displaces several.
    for _ in 0..3 {
        let payload = Bytes::from(vec![0; 150_000]);
        registry.deliver(Time::ZERO, (0, payload), false);
    }
    let left = registry.poll_receive(cx, 0, usize::MAX, |_| {});
    assert_eq!(left, Poll::Ready(Some(2)));
    assert_eq!(registry.dropped(0), 2 + 400 + 1);
    registry.deliver(Time::ZERO, (0, Bytes::from(vec![0; 300_001])), false);
    assert!(
        registry.poll_receive(cx, 0, 1, |_| {}).is_pending(),
        "too large"
    );
    // The others have all of their bytes, and the sum is right at the end.
    for _ in 0..2 {
        registry.deliver(Time::ZERO, (4, Bytes::from(vec![0; 128 * 1024])), false);
    }
    registry.deliver(Time::ZERO, (4, Bytes::from(vec![0; 1])), false);
    assert_eq!(registry.dropped(4), 1);
    registry.on_handle_dropped(0);
    registry.on_handle_dropped(4);
    assert_eq!(registry.lock().bytes, 0);
}

/// Returns all datagrams that wait for a stream.
fn all(registry: &Registry, stream: u64) -> Vec<Bytes> {
    std::iter::from_fn(|| match receive(registry, stream) {
        Poll::Ready(payload) => payload,
        Poll::Pending => None,
    })
    .collect()
}

#[test]
fn each_request_gets_its_own_in_order() {
    let registry = registry(&[0, 4]);
    for (stream, text) in [(0, "a"), (4, "b"), (0, "c")] {
        assert_eq!(deliver(&registry, stream, text.into()), Delivery::Done);
    }
    assert_eq!(all(&registry, 0), ["a", "c"]);
    assert_eq!(all(&registry, 4), ["b"]);
    assert_eq!(receive(&registry, 4), Poll::Pending);
}

#[test]
fn at_most_64_datagrams_wait_and_the_oldest_is_dropped() {
    let registry = registry(&[0]);
    for number in 0..65 {
        deliver(&registry, 0, vec![number]);
        let kept = registry.lock().requests[&0].queue.len();
        assert_eq!(kept, usize::from(number + 1).min(64), "limit K27");
    }
    let kept = all(&registry, 0);
    assert_eq!((kept[0][0], kept[63][0]), (1, 64));
    assert_eq!(registry.lock().bytes, 0);
}

#[test]
fn bytes_of_all_requests_are_limited_to_256_kib() {
    let registry = registry(&[0, 4]);
    for _ in 0..4 {
        deliver(&registry, 0, vec![0; 65_536]);
    }
    assert_eq!(registry.lock().bytes, 256 * 1024, "limit K27");
    deliver(&registry, 4, vec![1]);
    assert_eq!(receive(&registry, 4), Poll::Pending, "one byte too many");
    assert!(receive(&registry, 0).is_ready());
    deliver(&registry, 4, vec![1]);
    assert!(receive(&registry, 4).is_ready());
}

#[test]
fn early_datagrams_are_limited_in_number_and_time() {
    let registry = registry(&[]);
    let early = |millis, number| {
        let now = Time::ZERO + Duration::from_millis(millis);
        let payload = Bytes::from(vec![number]);
        assert_eq!(registry.deliver(now, (8, payload), true), Delivery::Done);
    };
    (0..33).for_each(|number| early(0, number));
    registry.open(Time::ZERO, 8);
    let kept = all(&registry, 8);
    assert_eq!((kept.len(), kept[0][0]), (32, 1), "limit K28");

    let registry = Registry::new(true);
    let payload = Bytes::from_static(b"x");
    registry.deliver(Time::ZERO, (12, payload), true);
    registry.open(Time::ZERO + LONGEST_EARLY, 8);
    registry.open(Time::ZERO + LONGEST_EARLY, 12);
    assert_eq!(receive(&registry, 12), Poll::Pending);
    assert_eq!(registry.lock().bytes, 0);
}

/// RFC 9297 §2.1.
#[test]
fn datagrams_for_ended_streams_are_dropped() {
    let registry = registry(&[0]);
    deliver(&registry, 0, b"before".into());
    registry.on_receiving_over(0);
    assert_eq!(deliver(&registry, 0, b"after".into()), Delivery::Done);
    assert_eq!(all(&registry, 0), ["before"]);
    assert_eq!(receive(&registry, 0), Poll::Ready(None));
    assert_eq!(registry.on_handle_dropped(0), Delivery::Done);
    assert_eq!(deliver(&registry, 0, b"after".into()), Delivery::Done);
    let table = registry.lock();
    assert!(table.requests.is_empty() && table.early.is_empty() && table.bytes == 0);
}

/// RFC 9297 §2.
#[test]
fn request_that_does_not_use_datagrams_is_aborted_once() {
    let registry = registry(&[0, 4, 8]);
    assert_eq!(registry.on_handle_dropped(0), Delivery::Done);
    assert_eq!(deliver(&registry, 0, b"x".into()), Delivery::Refused);
    assert!(registry.was_aborted(0));
    assert_eq!(deliver(&registry, 0, b"x".into()), Delivery::Done);
    // A datagram that waits while its use is undecided counts too.
    deliver(&registry, 4, b"x".into());
    assert_eq!(registry.on_handle_dropped(4), Delivery::Refused);
    assert_eq!(registry.lock().bytes, 0);
    // This does not apply to a request that used datagrams before its last handle was dropped.
    assert!(registry.claim(8));
    assert_eq!(registry.on_handle_dropped(8), Delivery::Done);
    assert_eq!(deliver(&registry, 8, b"x".into()), Delivery::Done);
    for stream in [0, 4, 8] {
        registry.on_receiving_over(stream);
    }
    assert!(registry.lock().requests.is_empty());
}

#[test]
fn datagrams_are_not_sent_after_the_end_of_the_sending_direction() {
    let registry = registry(&[0]);
    assert!(registry.claim(0));
    registry.on_sending_over(0);
    assert!(!registry.claim(0));
    assert!(!registry.claim(4), "no request");
}

#[test]
fn end_of_the_connection_ends_the_wait() {
    let registry = registry(&[0]);
    assert_eq!(receive(&registry, 0), Poll::Pending);
    registry.on_end();
    assert_eq!(receive(&registry, 0), Poll::Ready(None));
}

/// K592. Sixteen sessions have room for 16 MiB, and one of them is late.
#[test]
fn requests_with_limits_of_their_own_share_the_bytes_of_a_connection() {
    let registry = Registry::new(true);
    for stream in 0..16 {
        registry.open(Time::ZERO, 4 * stream);
        registry.set_limits(4 * stream, 10_000, 1 << 20);
        assert!(registry.claim(4 * stream));
    }
    let deliver = |stream: u64| {
        let payload = Bytes::from(vec![0; 1024]);
        registry.deliver(Time::ZERO, (4 * stream, payload), false);
    };
    for _ in 0..1024 {
        (0..15).for_each(deliver);
    }
    let waiting = |stream: u64| registry.lock().requests[&(4 * stream)].queue.len();
    let sum: usize = (0..15).map(waiting).sum();
    assert_eq!(sum * 1024, MAX_LIMITED_BYTES);
    // The slow ones take nothing from the last.
    (0..512).for_each(|_| deliver(15));
    assert_eq!((waiting(15), registry.dropped(4 * 15)), (512, 0));
    deliver(15);
    assert_eq!((waiting(15), registry.dropped(4 * 15)), (512, 1));
    // What is taken, and what is dropped with its request, is room for others.
    let cx = &mut Context::from_waker(Waker::noop());
    for stream in 0..8 {
        let taken = registry.poll_receive(cx, 4 * stream, usize::MAX, drop);
        assert!(matches!(taken, Poll::Ready(Some(_))), "{taken:?}");
    }
    for stream in 8..16 {
        assert_eq!(registry.on_handle_dropped(4 * stream), Delivery::Done);
    }
    let table = registry.lock();
    assert_eq!((table.limited, table.limited_bytes, table.bytes), (8, 0, 0));
}
