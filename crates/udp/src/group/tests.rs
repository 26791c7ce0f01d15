use std::net::{IpAddr, UdpSocket as Plain};

use courser_base::FourTuple;

use super::*;
use crate::{RECEIVE_BUFFER_LEN, Transmit};

const RULE: Steering = Steering {
    id_len: 8,
    offset: 7,
};

fn group(count: u16, rule: Option<Steering>) -> SocketGroup {
    let group = SocketGroup::bind("127.0.0.1:0".parse().unwrap(), count, rule).unwrap();
    assert_eq!(group.sockets.len(), usize::from(count));
    assert!(
        group.unshared.is_none() && group.unsteered.is_none(),
        "{group:?}"
    );
    group
}

/// Returns the numbers of the sockets at which datagrams have arrived, each once per datagram. Those of
/// loopback are there when `send_to` returns.
fn arrivals(group: &SocketGroup) -> Vec<usize> {
    let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
    let mut found = Vec::new();
    for (number, socket) in group.sockets.iter().enumerate() {
        while let Ok(received) = socket.try_receive(&mut buffer) {
            found.extend(std::iter::repeat_n(number, received.count()));
        }
    }
    found
}

/// Sends one datagram from a fresh port and returns the number of the socket at which it arrives.
fn arrives_at(group: &SocketGroup, datagram: &[u8]) -> usize {
    let client = Plain::bind("127.0.0.1:0").unwrap();
    send(&client, group, datagram);
    let found = arrivals(group);
    assert_eq!(found.len(), 1, "{datagram:?}");
    found[0]
}

fn send(client: &Plain, group: &SocketGroup, datagram: &[u8]) {
    let to = group.sockets[0].local_addr().unwrap();
    assert_eq!(client.send_to(datagram, to).unwrap(), datagram.len());
}

fn short(id: &[u8]) -> Vec<u8> {
    [&[0x4f], id, &[0x55; 30]].concat()
}

fn long(first: u8, version: u32, id: &[u8]) -> Vec<u8> {
    let len = u8::try_from(id.len()).unwrap();
    [&[first], &version.to_be_bytes()[..], &[len], id, &[0; 1200]].concat()
}

#[test]
fn short_headers_are_steered_by_the_byte_from_any_address() {
    for count in [2, 3, 16] {
        let group = group(count, Some(RULE));
        for byte in 0..=255 {
            let id = [0xff, 1, 2, 3, 4, 5, 6, byte];
            let found = arrives_at(&group, &short(&id));
            assert_eq!(
                found,
                usize::from(byte) % usize::from(count),
                "{byte} of {count}"
            );
        }
    }
}

#[test]
fn long_headers_with_our_ids_are_steered_by_the_byte() {
    const V2: u32 = 0x6b33_43cf;
    let group = group(4, Some(RULE));
    // Handshake and Retry of version 1, and of version 2, and Version Negotiation.
    let kinds = [
        (0xe0, 1),
        (0xf0, 1),
        (0xf0, V2),
        (0xc0, V2),
        (0x80, 0),
        (0xd5, 0),
    ];
    for (first, version) in kinds {
        for byte in 0..8 {
            let id = [9, 1, 2, 3, 4, 5, 6, byte];
            let found = arrives_at(&group, &long(first, version, &id));
            assert_eq!(
                found,
                usize::from(byte) % 4,
                "{first:#x} of {version:#x}, {byte}"
            );
        }
    }
}

/// The IDs of these packets are those that clients have chosen, and may be random.
#[test]
fn datagrams_of_unknown_ids_stay_with_their_address() {
    const V2: u32 = 0x6b33_43cf;
    let group = group(4, Some(RULE));
    let client = Plain::bind("127.0.0.1:0").unwrap();
    let kinds = [
        (0xc0, 1, 8), // Initial and 0-RTT of version 1
        (0xd0, 1, 8),
        (0xd0, V2, 8), // and of version 2
        (0xe0, V2, 8),
        (0xe0, 0x0a0a_0a0a, 8), // an unknown version
        (0xe0, 1, 7),           // IDs of other lengths
        (0xe0, 1, 9),
    ];
    for (first, version, len) in kinds {
        for byte in 0..16 {
            send(&client, &group, &long(first, version, &vec![byte; len]));
        }
    }
    let found = arrivals(&group);
    assert_eq!(found.len(), kinds.len() * 16);
    assert!(found.iter().all(|number| *number == found[0]), "{found:?}");
}

#[test]
fn first_packets_of_many_clients_are_distributed() {
    let group = group(4, Some(RULE));
    for _ in 0..200 {
        let client = Plain::bind("127.0.0.1:0").unwrap();
        send(&client, &group, &long(0xc0, 1, &[0; 8]));
    }
    let found = arrivals(&group);
    for number in 0..4 {
        let count = found.iter().filter(|it| **it == number).count();
        assert!(
            (20..=90).contains(&count),
            "{count} of 200 at socket {number}"
        );
    }
}

#[test]
fn truncated_datagrams_reach_some_socket() {
    let group = group(4, Some(RULE));
    let whole = long(0xe0, 1, &[3; 8]);
    for len in 0..16 {
        arrives_at(&group, &whole[..len]);
        arrives_at(&group, &short(&[3; 8])[..len]);
    }
}

#[test]
fn addresses_choose_the_socket_without_a_rule() {
    let group = group(4, None);
    let client = Plain::bind("127.0.0.1:0").unwrap();
    for byte in 0..64 {
        send(&client, &group, &short(&[byte; 8]));
    }
    let found = arrivals(&group);
    assert_eq!(found, vec![found[0]; 64]);
}

#[test]
fn address_in_use_is_an_error_for_groups_and_sockets() {
    let group = group(2, Some(RULE));
    let taken = group.sockets[0].local_addr().unwrap();
    for count in [1, 2] {
        let error = SocketGroup::bind(taken, count, Some(RULE)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{count}");
    }
    assert!(UdpSocket::bind(taken).is_err());
}

#[test]
fn dual_stack_groups_are_steered_for_both_families() {
    let Ok(group) = SocketGroup::bind("[::]:0".parse().unwrap(), 4, Some(RULE)) else {
        // The machine has no IPv6.
        return;
    };
    let port = group.sockets[0].local_addr().unwrap().port();
    for (local, to) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1")] {
        let client = Plain::bind(local).unwrap();
        let to = SocketAddr::from((to.parse::<IpAddr>().unwrap(), port));
        for byte in 0..8 {
            client.send_to(&short(&[byte; 8]), to).unwrap();
            assert_eq!(arrivals(&group), [usize::from(byte) % 4], "{to}");
        }
    }
}

#[test]
fn ranges_are_checked() {
    let address = "127.0.0.1:0".parse().unwrap();
    let rule = |id_len, offset| Some(Steering { id_len, offset });
    let cases = [
        (0, rule(8, 7)),
        (257, rule(8, 7)),
        (2, rule(8, 8)),
        (2, rule(21, 0)),
    ];
    for (count, rule) in cases {
        let error = SocketGroup::bind(address, count, rule).unwrap_err();
        assert_eq!(
            error.kind(),
            io::ErrorKind::InvalidInput,
            "{count} {rule:?}"
        );
    }
    assert_eq!(group(1, rule(1, 0)).sockets.len(), 1);
}

/// A socket that is opened again has the number of the one before, so that the rule leads to it.
#[test]
fn reopened_socket_keeps_its_number() {
    for number in 0..4 {
        let mut group = group(4, Some(RULE));
        let again = group.sockets[number].reopen().unwrap();
        drop(std::mem::replace(&mut group.sockets[number], again));
        for byte in 0..8 {
            let id = [0xff, 1, 2, 3, 4, 5, 6, byte];
            let found = arrives_at(&group, &short(&id));
            assert_eq!(found, usize::from(byte) % 4, "{byte} without {number}");
        }
    }
}

/// A process that ends keeps the sockets of its peers. The next one binds the address, and receives everything else.
#[test]
fn left_address_is_bound_by_the_next_process() {
    // The system would choose 127.0.0.1 as the own address on a path from 127.0.0.1.
    for (listen, ip, own) in [
        ("127.0.0.1:0", "127.0.0.1", "127.0.0.1"),
        ("0.0.0.0:0", "127.0.0.1", "127.0.0.2"),
        ("[::]:0", "127.0.0.1", "127.0.0.2"),
        ("[::]:0", "[::1]", "[::1]"),
        ("[::1]:0", "[::1]", "[::1]"),
    ] {
        for count in [1, 3] {
            let client = || Plain::bind(format!("{ip}:0")).unwrap();
            let (kept, other) = (client(), client());
            let former = SocketGroup::bind(listen.parse().unwrap(), count, Some(RULE)).unwrap();
            let local = former.sockets[0].local_addr().unwrap();
            let to: SocketAddr = format!("{own}:{}", local.port()).parse().unwrap();
            let path = FourTuple {
                peer: kept.local_addr().unwrap(),
                local: Some(to.ip()),
            };
            let socket = former.sockets[0].open_for_path(path).unwrap();
            let taken = SocketGroup::bind(local, count, Some(RULE)).unwrap_err();
            assert_eq!(
                taken.kind(),
                io::ErrorKind::AddrInUse,
                "{listen}, {own}, {count}"
            );
            for socket in &former.sockets {
                socket.leave_address().unwrap();
            }
            let next = SocketGroup::bind(local, count, Some(RULE)).unwrap();
            let taken = SocketGroup::bind(local, count, Some(RULE)).unwrap_err();
            assert_eq!(
                taken.kind(),
                io::ErrorKind::AddrInUse,
                "{listen}, {own}, {count}"
            );
            for byte in 0..6 {
                let packet = short(&[0, 1, 2, 3, 4, 5, 6, byte]);
                other.send_to(&packet, to).unwrap();
                let number = usize::from(byte) % usize::from(count);
                assert_eq!(arrivals(&next), [number], "{listen}, {own}, {count}");
                kept.send_to(&packet, to).unwrap();
                assert_eq!(arrivals(&next), [], "{listen}, {own}, {count}");
            }
            let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
            let mut received = 0;
            while let Ok(batch) = socket.try_receive(&mut buffer) {
                received += batch.count();
            }
            assert_eq!(received, 6, "{listen}, {own}, {count}");
            let answer = Transmit {
                destination: kept.local_addr().unwrap(),
                source: Some(to.ip()),
                ecn: courser_base::Ecn::NotEct,
                contents: b"answer",
                segment_size: None,
            };
            former.sockets[0].try_send(&answer).unwrap();
            let (len, from) = kept.recv_from(&mut buffer).unwrap();
            assert_eq!(
                (&buffer[..len], from),
                (&b"answer"[..], to),
                "{listen}, {own}, {count}"
            );
            assert_eq!(arrivals(&former), [], "{listen}, {own}, {count}");
        }
    }
}
