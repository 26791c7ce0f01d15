use std::io::Write as _;

use super::*;

/// The sum over data that includes its own RFC 1071 checksum is all ones.
#[test]
fn checksums_are_valid() {
    let message = message_v4(1400, &[1, 2, 3]);
    assert_eq!(checksum(&message), 0);
    assert_eq!((message[0], message[1]), (3, 4));
    assert_eq!(message[6..8], 1400_u16.to_be_bytes());
    let quote = quote_v4(
        (Ipv4Addr::LOCALHOST, Ipv4Addr::new(192, 0, 2, 1)),
        (1, 2),
        b"abc",
    );
    assert_eq!(checksum(&quote[..IPV4_HEADER]), 0);
    assert_eq!(quote.len(), IPV4_HEADER + UDP_HEADER + 3);
}

#[test]
fn quotes_are_as_long_as_the_rfcs_allow() {
    let ends = (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    assert_eq!(quote_v6(ends, (1, 2), &[0; 65_000]).len(), QUOTE_V6);
    let ends = (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
    let quote = quote_v4(ends, (1, 2), &[0; 1472]);
    assert_eq!(quote.len(), QUOTE_V4);
    // The length fields still describe the whole datagram.
    assert_eq!(quote[2..4], 1500_u16.to_be_bytes());
    assert_eq!(quote[24..26], 1480_u16.to_be_bytes());
}

#[cfg(target_os = "linux")]
mod on_loopback {
    use std::time::Duration;

    use courser_base::Ecn;

    use super::*;
    use crate::{ErrorClass, PacketTooBig, Transmit, UdpSocket, classify};

    /// Opens raw sockets. Returns `None` if the process lacks the privilege; the test then checks
    /// nothing. Any other error fails the test.
    fn router() -> Option<TooBigSender> {
        match TooBigSender::open(true, true) {
            Ok(sender) => Some(sender),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // Not captured, so that `.ci/run` can count it.
                let name = std::thread::current().name().unwrap_or_default().to_owned();
                let _ = writeln!(io::stderr(), "SKIPPED {name}: no raw sockets: {error}");
                None
            }
            Err(error) => panic!("raw sockets cannot be opened: {error}"),
        }
    }

    fn send(socket: &UdpSocket, destination: SocketAddr, contents: &[u8]) -> io::Result<()> {
        socket.try_send(&Transmit {
            destination,
            source: None,
            ecn: Ecn::NotEct,
            segment_size: None,
            contents,
        })
    }

    /// Waits for a Packet Too Big message, which the kernel delivers while the raw socket sends it.
    fn receive_too_big(socket: &UdpSocket) -> Option<PacketTooBig> {
        for _ in 0..100 {
            match socket.try_receive(&mut [0; 64]) {
                Err(error) if classify(&error) == ErrorClass::WouldBlock => {}
                other => assert!(crate::is_transient(
                    &other.expect_err("no datagram is sent")
                )),
            }
            if let Some(message) = socket.take_packet_too_big() {
                return Some(message);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Checks that a sender receives the MTU and the quote. Each test uses addresses of its own,
    /// because the kernel caches the MTU of a destination for all sockets.
    fn check_too_big(local: &str, peer: &str, mtu: u32, connect: bool) {
        let Some(router) = router() else { return };
        let socket = UdpSocket::bind(local.parse().unwrap()).unwrap();
        let port = socket.local_addr().unwrap().port();
        let peer = UdpSocket::bind(peer.parse().unwrap()).unwrap();
        let destination = peer.local_addr().unwrap();
        if connect {
            socket.connect(destination).unwrap();
        }
        let payload: Vec<u8> = (0..1452).map(|at| (at % 251) as u8).collect();
        send(&socket, destination, &payload).unwrap();
        assert!(!socket.has_icmp_messages());
        let ip = match destination.ip() {
            IpAddr::V4(_) => IpAddr::from([127, 77, 0, 1]),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let refused = Refused {
            source: SocketAddr::from((ip, port)),
            destination,
            payload: &payload,
        };
        router.send(&refused, mtu).unwrap();
        let message = receive_too_big(&socket).expect("a message is received");
        assert_eq!(
            (message.destination, message.mtu),
            (destination, mtu),
            "{local}"
        );
        assert_eq!(message.quote(), &payload[..crate::MAX_QUOTE]);
        assert!(socket.take_packet_too_big().is_none());
        assert_eq!(socket.counters().packets_too_big, 1);
        // The socket still works.
        send(&socket, destination, b"next").unwrap();
    }

    #[test]
    fn ipv4_sender_receives_mtu_and_quote() {
        check_too_big("127.77.0.1:0", "127.77.0.2:0", 1400, false);
        check_too_big("127.77.0.1:0", "127.77.0.3:0", 1400, true);
    }

    #[test]
    fn dual_stack_sender_receives_the_mtu_of_an_ipv4_datagram() {
        let Some(router) = router() else { return };
        let socket = UdpSocket::bind("[::]:0".parse().unwrap()).unwrap();
        let port = socket.local_addr().unwrap().port();
        let peer = UdpSocket::bind("127.77.0.4:0".parse().unwrap()).unwrap();
        let destination = peer.local_addr().unwrap();
        send(&socket, destination, &[9; 1400]).unwrap();
        let refused = Refused {
            source: SocketAddr::from(([127, 0, 0, 1], port)),
            destination,
            payload: &[9; 1400],
        };
        router.send(&refused, 1300).unwrap();
        let message = receive_too_big(&socket).expect("a message is received");
        assert_eq!((message.destination, message.mtu), (destination, 1300));
    }

    #[test]
    fn ipv6_sender_receives_mtu_and_quote() {
        // A large MTU, because the kernel applies it to all other traffic on ::1.
        check_too_big("[::1]:0", "[::1]:0", 65_530, false);
    }

    /// RFC 9000 §14.2.1: messages of this kind must not disturb a connection.
    #[test]
    fn flood_of_messages_costs_no_datagram() {
        let Some(router) = router() else { return };
        let socket = UdpSocket::bind("127.77.0.1:0".parse().unwrap()).unwrap();
        let peer = UdpSocket::bind("127.77.0.5:0".parse().unwrap()).unwrap();
        let (source, destination) = (socket.local_addr().unwrap(), peer.local_addr().unwrap());
        for round in 0..20 {
            for _ in 0..30 {
                let refused = Refused {
                    source,
                    destination,
                    payload: &[1; 1400],
                };
                router.send(&refused, 1300).unwrap();
            }
            send(&socket, destination, &[2; 100]).expect("the datagram is sent");
            let received = peer
                .try_receive(&mut [0; 2000])
                .expect("the datagram arrives");
            assert_eq!(received.len, 100, "round {round}");
        }
        let counters = socket.counters();
        assert!(counters.packets_too_big >= 600, "{counters:?}");
        let waiting = std::iter::from_fn(|| socket.take_packet_too_big()).count();
        assert!((1..=64).contains(&waiting), "{waiting}");
    }
}
