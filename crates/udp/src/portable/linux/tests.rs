use std::time::Duration;

use socket2::SockRef;

use super::*;
use crate::Counters;

/// Binds a socket whose calls block, so that tests need no loop.
fn socket(address: &str) -> Socket {
    waiting(Socket::new(UdpSocket::bind(address).unwrap()).unwrap())
}

fn waiting(socket: Socket) -> Socket {
    socket.io.set_nonblocking(false).unwrap();
    socket
        .io
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    socket
}

fn transmit(to: &Socket, contents: &'static [u8]) -> Transmit<'static> {
    Transmit {
        destination: to.local_addr().unwrap(),
        source: None,
        ecn: Ecn::NotEct,
        segment_size: Some(10),
        contents,
    }
}

/// The kernel refuses to split batches of a socket with checksums turned off. That is a faithful
/// stand-in for a device that cannot compute them.
#[test]
fn refused_offload_falls_back_to_single_datagrams() {
    let receiver = socket("127.0.0.1:0");
    let sender = socket("127.0.0.1:0");
    sockopt::set(sender.io.as_fd(), (libc::SOL_SOCKET, libc::SO_NO_CHECK), 1).unwrap();
    let counters = AtomicCounters::default();
    assert_eq!(
        sender
            .send(&transmit(&receiver, &[7; 25]), &counters)
            .unwrap(),
        25
    );
    let expected = Counters {
        send_calls: 3,
        sent_datagrams: 3,
        sent_bytes: 25,
        gso_fallbacks: 1,
        ..Counters::default()
    };
    assert_eq!(counters.snapshot(), expected);
    assert_eq!(sender.capabilities().gso_segments, 1);
    let mut buffer = vec![0; crate::RECEIVE_BUFFER_LEN];
    let lens: Vec<usize> = (0..3)
        .map(|_| {
            receiver
                .receive(&mut buffer, &AtomicCounters::default())
                .unwrap()
                .len
        })
        .collect();
    assert_eq!(lens, [10, 10, 5]);
}

#[test]
fn connected_mark_is_set_once_per_change() {
    let receiver = socket("127.0.0.1:0");
    let sender = socket("127.0.0.1:0");
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    let counters = AtomicCounters::default();
    let mut buffer = vec![0; crate::RECEIVE_BUFFER_LEN];
    for ecn in [Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1] {
        sender
            .send(
                &Transmit {
                    ecn,
                    ..transmit(&receiver, b"x")
                },
                &counters,
            )
            .unwrap();
        assert_eq!(sender.mark.load(Ordering::Relaxed), ecn.to_bits());
        assert_eq!(
            sockopt::get(sender.io.as_fd(), (libc::SOL_IP, libc::IP_TOS)).unwrap(),
            i32::from(ecn.to_bits())
        );
        assert_eq!(
            receiver
                .receive(&mut buffer, &AtomicCounters::default())
                .unwrap()
                .ecn,
            ecn
        );
    }
    // The same mark is not set again, so a change made elsewhere persists.
    sockopt::set(sender.io.as_fd(), (libc::SOL_IP, libc::IP_TOS), 0).unwrap();
    sender
        .send(
            &Transmit {
                ecn: Ecn::Ect1,
                ..transmit(&receiver, b"x")
            },
            &counters,
        )
        .unwrap();
    assert_eq!(
        receiver
            .receive(&mut buffer, &AtomicCounters::default())
            .unwrap()
            .ecn,
        Ecn::NotEct
    );
}

#[test]
fn other_destination_on_a_connected_socket_is_reached_with_its_own_mark() {
    let peer = socket("127.0.0.1:0");
    let other = socket("127.0.0.1:0");
    let sender = socket("127.0.0.1:0");
    sender.connect(peer.local_addr().unwrap()).unwrap();
    let counters = AtomicCounters::default();
    sender
        .send(
            &Transmit {
                ecn: Ecn::Ect0,
                ..transmit(&peer, b"x")
            },
            &counters,
        )
        .unwrap();
    sender.send(&transmit(&other, b"x"), &counters).unwrap();
    let mut buffer = [0; 64];
    assert_eq!(
        peer.receive(&mut buffer, &AtomicCounters::default())
            .unwrap()
            .ecn,
        Ecn::Ect0
    );
    assert_eq!(
        other
            .receive(&mut buffer, &AtomicCounters::default())
            .unwrap()
            .ecn,
        Ecn::NotEct
    );
}

#[test]
fn options_set_by_others_do_not_disturb_receiving() {
    let receiver = socket("127.0.0.1:0");
    let sender = socket("127.0.0.1:0");
    let fd = receiver.io.as_fd();
    sockopt::set(fd, (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS), 1).unwrap();
    sockopt::set(fd, (libc::SOL_IP, libc::IP_RECVTTL), 1).unwrap();
    sender
        .send(
            &Transmit {
                ecn: Ecn::Ect0,
                ..transmit(&receiver, &[1; 20])
            },
            &AtomicCounters::default(),
        )
        .unwrap();
    let received = receiver
        .receive(&mut [0; 64], &AtomicCounters::default())
        .unwrap();
    assert_eq!((received.len, received.segment_size), (20, 10));
    assert_eq!(received.ecn, Ecn::Ect0);
    assert!(!received.truncated);
}

#[test]
fn adopted_connected_socket_has_its_peer() {
    let receiver = socket("127.0.0.1:0");
    let io = UdpSocket::bind("0.0.0.0:0").unwrap();
    io.connect(receiver.local_addr().unwrap()).unwrap();
    let sender = waiting(Socket::new(io).unwrap());
    assert_eq!(sender.peer_addr(), Some(receiver.local_addr().unwrap()));
    let again = sender.connect(receiver.local_addr().unwrap()).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn drops_of_a_full_buffer_are_counted() {
    let receiver = socket("127.0.0.1:0");
    SockRef::from(&receiver.io)
        .set_recv_buffer_size(4_096)
        .unwrap();
    let sender = socket("127.0.0.1:0");
    for _ in 0..200 {
        sender
            .send(
                &transmit(&receiver, b"0123456789"),
                &AtomicCounters::default(),
            )
            .unwrap();
    }
    assert!(receiver.receive_overflow().unwrap() > 0);
}

#[test]
fn interrupted_receives_are_repeated() {
    let mut calls = 0;
    let result = uninterrupted(|| {
        calls += 1;
        if calls < 3 {
            Err(io::ErrorKind::Interrupted.into())
        } else {
            Ok(calls)
        }
    });
    assert_eq!(result.unwrap(), 3);
}
