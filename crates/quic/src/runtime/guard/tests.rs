use std::net::SocketAddrV6;
use std::sync::Mutex;
use std::task::Waker;

use courser_base::Ecn;

use super::*;

const PEER: ([u8; 4], u16) = ([192, 0, 2, 1], 4433);

/// A transport that answers each call with the next of prepared results.
#[derive(Debug, Default)]
struct FaultyTransport {
    received: Mutex<Vec<io::Result<Received>>>,
    sent: Mutex<Vec<io::Result<usize>>>,
    gso_segments: usize,
}

impl UdpSocket for FaultyTransport {
    fn poll_receive(&self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<Received>> {
        match self.received.lock().expect("no thread has panicked").pop() {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }

    fn try_send(&self, _: &Transmit<'_>) -> io::Result<usize> {
        let next = self.sent.lock().expect("no thread has panicked").pop();
        next.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from(([192, 0, 2, 2], 1)))
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.gso_segments = self.gso_segments;
        capabilities
    }
}

fn received(len: usize, segment_size: usize, peer: SocketAddr) -> Received {
    Received {
        len,
        segment_size,
        peer,
        local: None,
        ecn: Ecn::NotEct,
        truncated: false,
    }
}

fn receive(result: io::Result<Received>) -> Poll<io::Result<Received>> {
    let transport = FaultyTransport::default();
    transport
        .received
        .lock()
        .expect("no thread has panicked")
        .push(result);
    let mut cx = Context::from_waker(Waker::noop());
    Guarded::new(Box::new(transport)).poll_receive(&mut cx, &mut [0; 2000])
}

fn usable(result: Received) -> Received {
    match receive(Ok(result)) {
        Poll::Ready(Ok(received)) => received,
        other => panic!("{result:?}: {other:?}"),
    }
}

#[test]
fn impossible_batches_are_received_as_empty() {
    let peer = SocketAddr::from(PEER);
    let truncated = Received {
        truncated: true,
        ..received(1200, 1200, peer)
    };
    let cases = [
        received(2001, 1200, peer),
        received(usize::MAX, usize::MAX, peer),
        received(0, 0, peer),
        truncated,
        received(1200, 1200, SocketAddr::from((PEER.0, 0))),
        received(1200, 1200, SocketAddr::from(([0; 4], 7))),
        received(1200, 1200, SocketAddr::from(([255; 4], 7))),
        received(1200, 1200, SocketAddr::from(([224, 0, 0, 1], 7))),
        received(
            1200,
            1200,
            "[::ffff:0.0.0.0]:7".parse().expect("the address is valid"),
        ),
        received(
            1200,
            1200,
            "[ff02::1]:7".parse().expect("the address is valid"),
        ),
    ];
    for case in cases {
        assert_eq!(usable(case).len, 0, "{case:?}");
    }
}

#[test]
fn segment_sizes_divide_the_batch() {
    let peer = SocketAddr::from(PEER);
    for (size, expected) in [(0, 1500), (1200, 1200), (1500, 1500), (usize::MAX, 1500)] {
        let received = usable(received(1500, size, peer));
        assert_eq!((received.len, received.segment_size), (1500, expected));
    }
}

#[test]
fn addresses_arrive_in_their_short_form() {
    let mapped = "[::ffff:192.0.2.1]:4433"
        .parse()
        .expect("the address is valid");
    let batch = Received {
        local: "::ffff:192.0.2.2".parse().ok(),
        ..received(1200, 1200, mapped)
    };
    let received = usable(batch);
    assert_eq!(received.peer, SocketAddr::from(PEER));
    assert_eq!(received.local, Some(IpAddr::from([192, 0, 2, 2])));
    // A flow label is no part of an address, and a zone is.
    let ip = "fe80::1".parse().expect("the address is valid");
    let labelled = SocketAddrV6::new(ip, 4433, 0x12345, 3).into();
    let peer = usable(self::received(1200, 1200, labelled)).peer;
    assert_eq!(peer, SocketAddrV6::new(ip, 4433, 0, 3).into());
}

/// Limit K192.
#[test]
fn endless_batches_without_datagrams_become_errors() {
    let transport = FaultyTransport::default();
    let empty = |_| Ok(received(0, 0, SocketAddr::from(PEER)));
    let results = (0..MAX_UNUSABLE_BATCHES + 1).map(empty).collect();
    *transport.received.lock().expect("no thread has panicked") = results;
    let guarded = Guarded::new(Box::new(transport));
    let mut cx = Context::from_waker(Waker::noop());
    let mut receive = || guarded.poll_receive(&mut cx, &mut [0; 2000]);
    for _ in 0..MAX_UNUSABLE_BATCHES {
        assert!(matches!(receive(), Poll::Ready(Ok(received)) if received.len == 0));
    }
    let Poll::Ready(Err(error)) = receive() else {
        panic!("another batch was received");
    };
    assert!(courser_udp::is_transient(&error), "{error}");
    assert!(receive().is_pending(), "no result is left");
}

#[test]
fn blocked_receiving_that_is_ready_counts_as_an_error() {
    let blocked = receive(Err(io::ErrorKind::WouldBlock.into()));
    let Poll::Ready(Err(error)) = blocked else {
        panic!("{blocked:?}");
    };
    assert!(courser_udp::is_transient(&error), "{error}");
}

fn batch(contents: &[u8]) -> Transmit<'_> {
    Transmit {
        destination: SocketAddr::from(PEER),
        source: None,
        ecn: Ecn::NotEct,
        segment_size: Some(1200),
        contents,
    }
}

#[test]
fn sent_bytes_are_whole_datagrams_of_the_batch() {
    let contents = [0; 3000];
    for (claimed, taken, datagrams) in [
        (1, 1200, 1),
        (1201, 2400, 2),
        (3000, 3000, 3),
        (9999, 3000, 3),
    ] {
        let transport = FaultyTransport::default();
        transport
            .sent
            .lock()
            .expect("no thread has panicked")
            .push(Ok(claimed));
        let guarded = Guarded::new(Box::new(transport));
        assert_eq!(
            guarded
                .try_send(&batch(&contents))
                .expect("some of it is sent"),
            taken
        );
        let counters = guarded.counters();
        assert_eq!(
            (counters.send_calls, counters.sent_datagrams),
            (1, datagrams)
        );
        assert_eq!(counters.sent_bytes, taken as u64, "of {claimed}");
    }
}

/// Limit K191.
#[test]
fn writable_transport_that_accepts_nothing_loses_the_batch() {
    for nothing in [None, Some(0)] {
        let transport = FaultyTransport::default();
        if let Some(len) = nothing {
            *transport.sent.lock().expect("no thread has panicked") =
                (0..100).map(|_| Ok(len)).collect();
        }
        let guarded = Guarded::new(Box::new(transport));
        let mut cx = Context::from_waker(Waker::noop());
        let mut attempts = 0;
        let error = loop {
            let error = guarded
                .try_send(&batch(&[0; 1200]))
                .expect_err("nothing is accepted");
            if error.kind() != io::ErrorKind::WouldBlock {
                break error;
            }
            attempts += 1;
            assert!(
                attempts <= MAX_FAILED_SENDS,
                "{nothing:?}: too many attempts"
            );
            assert!(guarded.poll_writable(&mut cx).is_ready());
        };
        assert!(courser_udp::is_transient(&error), "{error}");
        assert_eq!(attempts, MAX_FAILED_SENDS, "{nothing:?}");
    }
}

/// Limit K193.
#[test]
fn batches_have_between_1_and_128_datagrams() {
    for (claimed, segments) in [
        (0, 1),
        (1, 1),
        (128, 128),
        (129, 128),
        (usize::MAX, MAX_SEGMENTS),
    ] {
        let guarded = Guarded::new(Box::new(FaultyTransport {
            gso_segments: claimed,
            ..FaultyTransport::default()
        }));
        assert_eq!(guarded.gso_segments(), segments, "{claimed}");
    }
}
