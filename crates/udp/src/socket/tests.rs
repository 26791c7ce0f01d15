#[cfg(target_os = "linux")]
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use courser_base::Ecn;
#[cfg(target_os = "linux")]
use courser_base::Unreachable;
use socket2::SockRef;

use super::*;
use crate::{ErrorCause, ErrorClass, RECEIVE_BUFFER_LEN, classify, is_too_large, is_transient};

/// Binds a socket whose calls block, so that tests need no loop.
fn bind(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address.parse().unwrap()).unwrap();
    SockRef::from(&socket).set_nonblocking(false).unwrap();
    SockRef::from(&socket)
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    socket
}

fn port(socket: &UdpSocket) -> u16 {
    socket.local_addr().unwrap().port()
}

fn address(ip: &str, socket: &UdpSocket) -> SocketAddr {
    SocketAddr::from((ip.parse::<IpAddr>().unwrap(), port(socket)))
}

fn transmit(destination: SocketAddr, contents: &[u8]) -> Transmit<'_> {
    Transmit {
        destination,
        source: None,
        ecn: Ecn::NotEct,
        segment_size: None,
        contents,
    }
}

/// Returns `count` datagrams of `size` bytes, each with distinct contents, the last one of `last`
/// bytes.
fn batch(count: usize, size: usize, last: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..count)
        .flat_map(|datagram| vec![u8::try_from(datagram).unwrap(); size])
        .collect();
    bytes.truncate((count - 1) * size + last);
    bytes
}

/// Receives until `count` datagrams have arrived. Returns them and the number of calls.
fn receive_all(socket: &UdpSocket, count: usize) -> (Vec<Vec<u8>>, usize) {
    let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
    let (mut datagrams, mut calls) = (Vec::new(), 0);
    while datagrams.len() < count {
        let received = socket.try_receive(&mut buffer).unwrap();
        assert!(!received.truncated);
        datagrams.extend(received.datagrams(&buffer).map(<[u8]>::to_vec));
        calls += 1;
    }
    (datagrams, calls)
}

fn chunks(bytes: &[u8], size: usize) -> Vec<Vec<u8>> {
    bytes.chunks(size).map(<[u8]>::to_vec).collect()
}

#[test]
fn socket_is_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<UdpSocket>();
}

#[test]
fn batch_keeps_its_boundaries() {
    let (receiver, sender) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let contents = batch(45, 1_452, 700);
    let out = transmit(receiver.local_addr().unwrap(), &contents);
    sender
        .try_send(&Transmit {
            segment_size: Some(1_452),
            ..out
        })
        .unwrap();
    let (datagrams, calls) = receive_all(&receiver, 45);
    assert_eq!(datagrams, chunks(&contents, 1_452));
    let sent = sender.counters();
    assert_eq!(
        (sent.sent_datagrams, sent.sent_bytes),
        (45, contents.len() as u64)
    );
    let received = receiver.counters();
    assert_eq!(
        (received.received_datagrams, received.received_bytes),
        (45, sent.sent_bytes)
    );
    if sender.capabilities().gso_segments >= 45 && receiver.capabilities().gro {
        assert_eq!((sent.send_calls, calls), (1, 1));
    }
}

#[test]
fn batch_beyond_the_segment_limit_is_split() {
    let (receiver, sender) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let contents = batch(250, 40, 17);
    let out = transmit(receiver.local_addr().unwrap(), &contents);
    sender
        .try_send(&Transmit {
            segment_size: Some(40),
            ..out
        })
        .unwrap();
    let (datagrams, _) = receive_all(&receiver, 250);
    assert_eq!(datagrams, chunks(&contents, 40));
    let calls = 250_usize.div_ceil(sender.gso_segments());
    assert_eq!(sender.counters().send_calls, calls as u64);
}

#[test]
fn batch_beyond_64_kilobytes_is_split() {
    let (receiver, sender) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    let contents = batch(100, 1_452, 1_452);
    let out = transmit(receiver.local_addr().unwrap(), &contents);
    let taken = sender
        .try_send_some(&Transmit {
            segment_size: Some(1_452),
            ..out
        })
        .unwrap();
    assert_eq!(taken, contents.len());
    assert_eq!(receive_all(&receiver, 100).0, chunks(&contents, 1_452));
}

#[cfg(target_os = "linux")]
#[test]
fn marks_arrive_on_every_family_and_from_both_kinds_of_socket() {
    let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
    let cases = [
        ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1"),
        ("[::1]:0", "[::1]:0", "::1"),
        ("[::]:0", "127.0.0.1:0", "127.0.0.1"),
        ("[::]:0", "[::]:0", "127.0.0.1"),
        ("[::]:0", "[::]:0", "::1"),
        ("127.0.0.1:0", "[::]:0", "127.0.0.1"),
    ];
    for (receiver_at, sender_at, ip) in cases {
        for connect in [false, true] {
            let (receiver, sender) = (bind(receiver_at), bind(sender_at));
            let destination = address(ip, &receiver);
            if connect {
                sender.connect(destination).unwrap();
            }
            for ecn in [Ecn::Ect0, Ecn::NotEct, Ecn::Ect1, Ecn::Ce, Ecn::Ect0] {
                let case = format!("{sender_at} to {receiver_at} by {ip}, {connect}, {ecn:?}");
                let contents = batch(3, 100, 50);
                let out = Transmit {
                    ecn,
                    ..transmit(destination, &contents)
                };
                sender
                    .try_send(&Transmit {
                        segment_size: Some(100),
                        ..out
                    })
                    .expect(&case);
                let received = receiver.try_receive(&mut buffer).expect(&case);
                assert_eq!(received.ecn, ecn, "{case}");
                assert_eq!((received.count(), received.len), (3, 250), "{case}");
                assert_eq!(received.peer, address(ip, &sender), "{case}");
                assert_eq!(received.local, Some(destination.ip()), "{case}");
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn wildcard_socket_reports_and_uses_the_local_address() {
    for wildcard in ["0.0.0.0:0", "[::]:0"] {
        let (server, client) = (bind(wildcard), bind("127.0.0.1:0"));
        let second = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
        client
            .try_send(&transmit(
                SocketAddr::from((second, port(&server))),
                b"hello",
            ))
            .unwrap();
        let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
        let received = server.try_receive(&mut buffer).unwrap();
        assert_eq!(received.local, Some(second), "{wildcard}");
        assert_eq!(received.peer, client.local_addr().unwrap(), "{wildcard}");
        for ecn in [Ecn::NotEct, Ecn::Ect0] {
            let contents = batch(4, 10, 3);
            let out = Transmit {
                ecn,
                source: received.local,
                ..transmit(received.peer, &contents)
            };
            server
                .try_send(&Transmit {
                    segment_size: Some(10),
                    ..out
                })
                .unwrap();
            let answer = client.try_receive(&mut buffer).unwrap();
            assert_eq!(
                answer.peer,
                SocketAddr::from((second, port(&server))),
                "{wildcard}"
            );
            assert_eq!((answer.count(), answer.ecn), (4, ecn), "{wildcard}");
        }
    }
}

#[test]
fn unusable_source_address_is_left_out() {
    let (server, client) = (bind("[::]:0"), bind("127.0.0.1:0"));
    let source = Some("::1".parse().unwrap());
    let destination = client.local_addr().unwrap();
    server
        .try_send(&Transmit {
            source,
            ..transmit(destination, b"x")
        })
        .unwrap();
    let received = client.try_receive(&mut [0; 64]).unwrap();
    assert_eq!(received.peer, address("127.0.0.1", &server));
}

#[cfg(target_os = "linux")]
#[test]
fn removed_source_address_is_a_transient_error() {
    let server = bind("0.0.0.0:0");
    let source = Some("192.0.2.77".parse().unwrap());
    let destination = address("127.0.0.1", &server);
    let error = server
        .try_send(&Transmit {
            source,
            ..transmit(destination, b"x")
        })
        .unwrap_err();
    assert!(is_transient(&error), "{error}");
}

#[test]
fn buffers_can_be_limited() {
    let (limited, usual) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    limited.limit_buffers(64 * 1024);
    let buffers = |socket: &UdpSocket| {
        let capabilities = socket.capabilities();
        (capabilities.receive_buffer, capabilities.send_buffer)
    };
    let (receive, send) = buffers(&limited);
    assert!(
        receive <= 64 * 1024 && send <= 64 * 1024,
        "{receive} {send}"
    );
    // Buffers that are small enough stay as they are.
    let before = buffers(&usual);
    assert!(before.0 > 64 * 1024, "{before:?}");
    usual.limit_buffers(usize::MAX);
    assert_eq!(buffers(&usual), before);
}

#[test]
fn connected_client_talks_to_a_server() {
    for (wildcard, ip) in [
        ("0.0.0.0:0", "127.0.0.1"),
        ("[::]:0", "::1"),
        ("[::]:0", "127.0.0.1"),
    ] {
        let (server, client) = (bind(wildcard), bind(wildcard));
        client.connect(address(ip, &server)).unwrap();
        assert_eq!(client.peer_addr(), Some(address(ip, &server)));
        if cfg!(target_os = "linux") {
            assert_eq!(client.local_addr().unwrap(), address(ip, &client));
        }
        let contents = batch(10, 1_200, 99);
        let out = transmit(address(ip, &server), &contents);
        client
            .try_send(&Transmit {
                segment_size: Some(1_200),
                ..out
            })
            .unwrap();
        let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
        let received = server.try_receive(&mut buffer).unwrap();
        assert_eq!(received.peer, address(ip, &client));
        let answer = Transmit {
            source: received.local,
            ..transmit(received.peer, b"answer")
        };
        server.try_send(&answer).unwrap();
        let received = client.try_receive(&mut buffer).unwrap();
        assert_eq!(&buffer[..received.len], b"answer");
        assert_eq!(received.peer, address(ip, &server));
        if client.capabilities().pktinfo {
            assert_eq!(received.local, Some(address(ip, &server).ip()));
        }
    }
}

#[test]
fn second_connect_is_refused() {
    let (server, client) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let peer = server.local_addr().unwrap();
    client.connect(peer).unwrap();
    assert_eq!(
        client.connect(peer).unwrap_err().kind(),
        io::ErrorKind::AlreadyExists
    );
}

#[test]
fn failed_connect_leaves_the_socket_free() {
    let (server, client) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    client.connect("[::1]:443".parse().unwrap()).unwrap_err();
    assert_eq!(client.peer_addr(), None);
    client.connect(server.local_addr().unwrap()).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn short_buffer_is_reported() {
    let (receiver, sender) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    sender
        .try_send(&transmit(receiver.local_addr().unwrap(), &[5; 100]))
        .unwrap();
    let received = receiver.try_receive(&mut [0; 60]).unwrap();
    assert!(received.truncated);
    assert_eq!(received.len, 60);
}

#[test]
fn empty_datagrams_arrive() {
    let (receiver, sender) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let destination = receiver.local_addr().unwrap();
    sender.try_send(&transmit(destination, &[])).unwrap();
    sender
        .try_send(&Transmit {
            segment_size: Some(1_200),
            ..transmit(destination, &[])
        })
        .unwrap();
    for _ in 0..2 {
        let received = receiver.try_receive(&mut [0; 64]).unwrap();
        assert_eq!((received.len, received.segment_size), (0, 1));
        assert_eq!(received.peer, sender.local_addr().unwrap());
    }
    assert_eq!(receiver.counters().received_datagrams, 2);
    assert_eq!(sender.counters().sent_datagrams, 2);
}

#[test]
fn fresh_socket_would_block() {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = socket.try_receive(&mut [0; 64]).unwrap_err();
    assert_eq!(classify(&error), ErrorClass::WouldBlock);
    assert_eq!(socket.counters(), Counters::default());
}

#[cfg(target_os = "linux")]
#[test]
fn refused_port_is_a_transient_error_and_clears() {
    let (client, closed) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let destination = closed.local_addr().unwrap();
    client.connect(destination).unwrap();
    drop(closed);
    client.try_send(&transmit(destination, b"x")).unwrap();
    let error = client.try_receive(&mut [0; 64]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    assert!(is_transient(&error));
    let again = bind(&destination.to_string());
    client.try_send(&transmit(destination, b"y")).unwrap();
    assert_eq!(again.try_receive(&mut [0; 64]).unwrap().len, 1);
}

#[cfg(target_os = "linux")]
#[test]
fn refusals_do_not_disturb_an_unconnected_socket_and_are_counted() {
    let (server, closed) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let destination = closed.local_addr().unwrap();
    drop(closed);
    for _ in 0..3 {
        server.try_send(&transmit(destination, b"x")).unwrap();
    }
    // This call reads the ICMP message about the last datagram.
    assert!(is_transient(&server.try_receive(&mut [0; 64]).unwrap_err()));
    let counters = server.counters();
    assert_eq!((counters.path_errors, counters.packets_too_big), (3, 0));
    assert!(server.take_packet_too_big().is_none());
    assert!(server.has_icmp_messages());
    for _ in 0..3 {
        let report = server.take_unreachable().unwrap();
        assert_eq!(report.destination, destination);
        assert_eq!(report.cause, Unreachable::Port);
        assert_eq!(report.quote(), b"x");
    }
    assert!(!server.has_icmp_messages() && server.take_unreachable().is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn refused_port_over_ipv6_is_reported_with_the_beginning_of_the_datagram() {
    if UdpSocket::bind("[::1]:0".parse().unwrap()).is_err() {
        eprintln!("SKIPPED refused_port_over_ipv6_is_reported: no IPv6");
        return;
    }
    let (socket, closed) = (bind("[::1]:0"), bind("[::1]:0"));
    let destination = closed.local_addr().unwrap();
    drop(closed);
    let datagram: Vec<_> = (0..=199).collect();
    socket.try_send(&transmit(destination, &datagram)).unwrap();
    assert!(is_transient(&socket.try_receive(&mut [0; 64]).unwrap_err()));
    let report = socket.take_unreachable().unwrap();
    assert_eq!(
        (report.destination, report.cause),
        (destination, Unreachable::Port)
    );
    assert_eq!(report.quote(), &datagram[..crate::MAX_QUOTE]);
}

#[test]
fn oversized_datagram_is_too_large_and_the_socket_keeps_working() {
    let (receiver, sender) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let destination = receiver.local_addr().unwrap();
    let error = sender
        .try_send(&transmit(destination, &[0; 65_508]))
        .unwrap_err();
    assert!(is_too_large(&error), "{error}");
    assert!(is_transient(&error));
    sender
        .try_send(&transmit(destination, &[0; 1_200]))
        .unwrap();
    assert_eq!(sender.counters().gso_fallbacks, 0);
}

#[test]
fn impossible_destinations_are_transient_errors() {
    let socket = bind("127.0.0.1:0");
    for destination in ["127.0.0.1:0", "[::1]:443"] {
        let out = transmit(destination.parse().unwrap(), b"x");
        let error = socket.try_send(&out).unwrap_err();
        assert!(is_transient(&error), "{destination}: {error}");
    }
}

#[test]
fn buffers_are_reported_and_small_ones_warned_about() {
    let capabilities = bind("127.0.0.1:0").capabilities();
    assert!(capabilities.receive_buffer > 0);
    assert!(capabilities.send_buffer > 0);
    let is_small = capabilities.receive_buffer < capabilities.receive_buffer_wanted;
    let warns = capabilities
        .warnings
        .iter()
        .any(|text| text.contains("bulk receive"));
    assert_eq!(is_small, warns, "{capabilities:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn packet_info_is_on_for_wildcard_addresses_only() {
    assert!(bind("0.0.0.0:0").capabilities().pktinfo);
    assert!(bind("[::]:0").capabilities().pktinfo);
    assert!(!bind("127.0.0.1:0").capabilities().pktinfo);
}

#[cfg(target_os = "linux")]
#[test]
fn interface_mtu_is_found_without_a_datagram() {
    let peer = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = peer.local_addr().unwrap();
    let loopback = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
    let mtu: u32 = loopback.trim().parse().unwrap();
    // The length field of IPv4 holds no more.
    let mtu = mtu.min(65_535);
    for local in ["127.0.0.1:0", "0.0.0.0:0"] {
        let socket = UdpSocket::bind(local.parse().unwrap()).unwrap();
        assert_eq!(socket.interface_mtu(address), Some(mtu), "{local}");
    }
    let mut buffer = [0; 64];
    let error = peer.try_receive(&mut buffer).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    let nowhere = "[2001:db8::1]:9".parse().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    if let Some(mtu) = socket.interface_mtu(nowhere) {
        assert!(mtu >= 1280, "IPv6 takes that everywhere: {mtu}");
    }
}

#[test]
fn failed_calls_are_counted_by_cause_and_waiting_is_not() {
    let (receiver, sender) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let destination = receiver.local_addr().unwrap();
    let out = transmit(destination, &[0; 65_508]);
    for _ in 0..3 {
        sender.try_send(&out).unwrap_err();
    }
    let waiting = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    waiting.try_receive(&mut [0; 64]).unwrap_err();
    let errors = sender.counters().send_errors;
    assert_eq!(errors.of(ErrorCause::TooLarge), 3);
    assert_eq!(errors.total(), 3, "{errors:?}");
    assert_eq!(errors.iter().map(|(_, count)| count).sum::<u64>(), 3);
    assert_eq!(waiting.counters(), Counters::default());
}

/// A socket that was shut down refuses to send with EPIPE, which Darwin does after a suspension. The
/// one that takes its place has its address, although the first is still there, and lets no other join.
#[cfg(target_os = "linux")]
#[test]
fn shut_down_socket_is_reopened() {
    for local in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"] {
        let broken = bind(local);
        let family = match local.starts_with('[') {
            true => "[::1]:0",
            false => "127.0.0.1:0",
        };
        let peer = bind(family);
        let destination = peer.local_addr().unwrap();
        // Linux reports that there is no peer, and obeys.
        let _ = SockRef::from(&broken).shutdown(std::net::Shutdown::Both);
        let error = broken.try_send(&transmit(destination, b"x")).unwrap_err();
        assert_eq!(ErrorCause::of(&error), ErrorCause::Disconnected, "{error}");
        assert_eq!(classify(&error), ErrorClass::Suspect);
        let again = broken.reopen().unwrap();
        assert_eq!(again.local_addr().unwrap(), broken.local_addr().unwrap());
        again.try_send(&transmit(destination, b"y")).unwrap();
        let received = peer.try_receive(&mut [0; 64]).unwrap();
        assert_eq!(received.peer.port(), port(&broken), "{local}");
        drop(broken);
        let second = again.local_addr().unwrap();
        assert!(
            UdpSocket::bind(second).is_err(),
            "{local}: the port is taken"
        );
        let shared = unbound(second).unwrap();
        share_port(&shared).unwrap();
        assert!(shared.bind(&second.into()).is_err(), "{local}: by one");
        // Further ones follow.
        again.reopen().unwrap();
    }
}

#[test]
fn supplied_socket_is_not_reopened() {
    let given = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let socket = UdpSocket::from_std(given).unwrap();
    let error = socket.reopen().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
}

/// The datagrams of a peer arrive at its own socket, and all others at the first one, from which both are answered.
#[cfg(target_os = "linux")]
#[test]
fn peer_has_a_socket_of_its_own() {
    for (listen, from) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::]:0", "127.0.0.1:0")] {
        let first = bind(listen);
        let (peer, other) = (bind(from), bind(from));
        let to = address("127.0.0.1", &first);
        let own = first
            .open_for_path(FourTuple::to(address("127.0.0.1", &peer)))
            .unwrap();
        let send = |socket: &UdpSocket, content: &[u8]| {
            SockRef::from(socket).send_to(content, &to.into()).unwrap();
        };
        send(&other, b"other");
        send(&peer, b"peer");
        let receive = |socket: &UdpSocket| {
            SockRef::from(socket).set_nonblocking(false).unwrap();
            let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
            let received = socket.try_receive(&mut buffer).unwrap();
            buffer[..received.len].to_vec()
        };
        assert_eq!(receive(&first), b"other", "{listen}");
        assert_eq!(receive(&own), b"peer", "{listen}");
    }
}
