use std::io::ErrorKind;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use courser::runtime::{Ecn, Received, Runtime, Transmit, UdpSocket};

use super::*;

fn bind(machine: &Machine, address: &str) -> Box<dyn UdpSocket> {
    try_bind(machine, address).expect("the address is free")
}

fn try_bind(machine: &Machine, address: &str) -> std::io::Result<Box<dyn UdpSocket>> {
    machine
        .core()
        .bind(address.parse().expect("the address is valid"))
}

fn receive(socket: &dyn UdpSocket, buffer: &mut [u8]) -> Option<Received> {
    let mut cx = Context::from_waker(Waker::noop());
    match socket.poll_receive(&mut cx, buffer) {
        Poll::Ready(received) => Some(received.expect("the machine exists")),
        Poll::Pending => None,
    }
}

fn to<'a>(destination: &str, contents: &'a [u8]) -> Transmit<'a> {
    Transmit {
        destination: destination.parse().expect("the address is valid"),
        source: None,
        ecn: Ecn::Ect0,
        segment_size: None,
        contents,
    }
}

fn packet(destination: &str, payload: &'static [u8]) -> Packet {
    Packet {
        source: "10.0.0.9:9".parse().expect("the address is valid"),
        destination: destination.parse().expect("the address is valid"),
        ecn: Ecn::Ce,
        payload: Bytes::from_static(payload),
    }
}

#[test]
fn batch_is_sent_as_packets_with_its_mark() {
    let mut machine = Machine::new([CLIENT], 1);
    let socket = bind(&machine, "0.0.0.0:0");
    assert_eq!(
        socket.local_addr().expect("the socket is bound").port(),
        49_152
    );
    let transmit = Transmit {
        segment_size: Some(3),
        ..to("10.0.0.2:4433", b"abcdefgh")
    };
    assert_eq!(socket.try_send(&transmit).expect("the buffer has room"), 8);
    let packets: Vec<Packet> = std::iter::from_fn(|| machine.transmit(Time::ZERO)).collect();
    let payloads: Vec<&[u8]> = packets.iter().map(|packet| &packet.payload[..]).collect();
    assert_eq!(payloads, [&b"abc"[..], b"def", b"gh"]);
    for packet in &packets {
        assert_eq!(packet.source, SocketAddr::from((CLIENT, 49_152)));
        assert_eq!(packet.destination, server_address());
        assert_eq!(packet.ecn, Ecn::Ect0);
    }
    let counters = socket.counters();
    assert_eq!((counters.send_calls, counters.sent_datagrams), (1, 3));
}

/// A machine has one link, whose zone is 1.
#[test]
fn link_local_addresses_are_in_the_zone_of_the_link() {
    let own: IpAddr = "fe80::1".parse().expect("the address is valid");
    let mut machine = Machine::new([own], 1);
    let socket = bind(&machine, "[fe80::1%1]:9");
    let local = socket.local_addr().expect("the socket is bound");
    assert_eq!(local.to_string(), "[fe80::1%1]:9");
    let sent = socket.try_send(&to("[fe80::2%1]:4433", b"question"));
    assert_eq!(sent.expect("the address is on the link"), 8);
    let question = machine.transmit(Time::ZERO).expect("a packet is sent");
    assert_eq!(question.source, local);
    machine.receive(
        Time::ZERO,
        Packet {
            source: question.destination,
            destination: question.source,
            ecn: Ecn::NotEct,
            payload: Bytes::from_static(b"answer"),
        },
    );
    let received = receive(&*socket, &mut [0; 100]).expect("the answer is received");
    assert_eq!(received.peer.to_string(), "[fe80::2%1]:4433");
    for elsewhere in ["[fe80::2%2]:4433", "[fe80::1%2]:4433"] {
        let error = socket
            .try_send(&to(elsewhere, b"lost"))
            .expect_err(elsewhere);
        assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
    }
    let error = try_bind(&machine, "[fe80::1%2]:10").expect_err("the zone belongs to another link");
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
}

#[test]
fn equal_datagrams_are_received_as_one_batch() {
    let mut machine = Machine::new([CLIENT], 1);
    let socket = bind(&machine, "10.0.0.1:9");
    for payload in [&b"abc"[..], b"def", b"g", b"hij", b"", b"k"] {
        machine.receive(Time::ZERO, packet("10.0.0.1:9", payload));
    }
    let mut buffer = [0; 100];
    let batch = receive(&*socket, &mut buffer).expect("a batch is received");
    assert_eq!(&buffer[..batch.len], b"abcdefg");
    assert_eq!(
        (batch.segment_size, batch.ecn, batch.local),
        (3, Ecn::Ce, Some(CLIENT))
    );
    let lens: Vec<usize> =
        std::iter::from_fn(|| receive(&*socket, &mut buffer).map(|batch| batch.len)).collect();
    assert_eq!(lens, [3, 0, 1]);
    assert_eq!(socket.counters().received_datagrams, 6);
}

#[test]
fn batch_ends_where_the_buffer_does() {
    let mut machine = Machine::new([CLIENT], 1);
    let socket = bind(&machine, "10.0.0.1:9");
    for _ in 0..3 {
        machine.receive(Time::ZERO, packet("10.0.0.1:9", b"abcd"));
    }
    let batch = receive(&*socket, &mut [0; 11]).expect("a batch is received");
    assert_eq!((batch.len, batch.truncated), (8, false));
    let batch = receive(&*socket, &mut [0; 3]).expect("a datagram is received");
    assert_eq!((batch.len, batch.truncated), (3, true));
}

#[test]
fn full_receive_buffer_drops_and_counts() {
    let mut machine = Machine::new([CLIENT], 1).with_receive_buffer(2 * (256 + 4));
    let socket = bind(&machine, "10.0.0.1:9");
    for _ in 0..5 {
        machine.receive(Time::ZERO, packet("10.0.0.1:9", b"abcd"));
    }
    let counters = machine.network_counters();
    assert_eq!((counters.received, counters.dropped_buffer_full), (2, 3));
    assert!(receive(&*socket, &mut [0; 100]).is_some());
    machine.receive(Time::ZERO, packet("10.0.0.1:9", b"abcd"));
    assert_eq!(machine.network_counters().received, 3);
}

#[test]
fn sender_waits_for_room_and_is_woken() {
    let mut machine = Machine::new([CLIENT], 1);
    let mut handle = machine.spawn({
        let socket = bind(&machine, "10.0.0.1:0");
        async move {
            let datagram = [0; 60_000];
            let mut sent = 0u32;
            let error = loop {
                match socket.try_send(&to("10.0.0.2:1", &datagram)) {
                    Ok(_) => sent += 1,
                    Err(error) => break error,
                }
            };
            std::future::poll_fn(|cx| socket.poll_writable(cx))
                .await
                .expect("the buffer has room");
            (error.kind(), sent)
        }
    });
    machine.run(Time::ZERO);
    assert!(result_of(&mut handle).is_none(), "the task waits for room");
    assert_eq!(machine.next_timeout(), None);
    assert!(machine.transmit(Time::ZERO).is_some());
    assert_eq!(machine.next_timeout(), Some(Time::ZERO));
    machine.run(Time::ZERO);
    // 7 MiB, 60 256 bytes each. The last one may exceed the limit.
    assert_eq!(
        result_of(&mut handle),
        Some(Ok((ErrorKind::WouldBlock, 122)))
    );
}

#[test]
fn packets_are_delivered_to_the_most_specific_socket() {
    let address: IpAddr = "fd00::1".parse().expect("the address is valid");
    let mut machine = Machine::new([CLIENT, SERVER, address], 1);
    let exact = bind(&machine, "10.0.0.1:9");
    let other = bind(&machine, "[::]:10");
    let v4 = bind(&machine, "0.0.0.0:11");
    let mut buffer = [0; 10];
    for (destination, socket) in [
        ("10.0.0.1:9", &exact),
        ("10.0.0.2:10", &other),
        ("[fd00::1]:10", &other),
        ("10.0.0.2:11", &v4),
    ] {
        machine.receive(Time::ZERO, packet(destination, b"x"));
        let received = receive(&**socket, &mut buffer);
        assert!(received.is_some(), "{destination}");
    }
    for destination in ["10.0.0.2:9", "[fd00::1]:11", "10.0.0.3:11"] {
        machine.receive(Time::ZERO, packet(destination, b"x"));
    }
    assert_eq!(machine.network_counters().dropped_no_socket, 3);
}

#[test]
fn binding_errors_name_the_cause() {
    let machine = Machine::new([CLIENT], 1);
    let first = bind(&machine, "10.0.0.1:9");
    for (address, kind, text) in [
        (
            "10.0.0.1:9",
            ErrorKind::AddrInUse,
            "port 9 of 10.0.0.1 is taken",
        ),
        (
            "0.0.0.0:9",
            ErrorKind::AddrInUse,
            "port 9 of 0.0.0.0 is taken",
        ),
        ("[::]:9", ErrorKind::AddrInUse, "is taken"),
        (
            "10.0.0.2:9",
            ErrorKind::AddrNotAvailable,
            "it has [10.0.0.1]",
        ),
    ] {
        let error = try_bind(&machine, address).expect_err(address);
        assert_eq!(error.kind(), kind, "{address}");
        assert!(error.to_string().contains(text), "{error}");
    }
    bind(&machine, "127.0.0.1:9");
    drop(first);
    bind(&machine, "10.0.0.1:9");
}

#[test]
fn ephemeral_ports_are_reused_and_run_out() {
    let machine = Machine::new([CLIENT], 1);
    let mut sockets: Vec<_> = (0..16_384).map(|_| bind(&machine, "10.0.0.1:0")).collect();
    let error = try_bind(&machine, "10.0.0.1:0").expect_err("all ports are taken");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    let freed = sockets
        .swap_remove(77)
        .local_addr()
        .expect("the socket is bound");
    let again = bind(&machine, "10.0.0.1:0")
        .local_addr()
        .expect("the socket is bound");
    assert_eq!(again, freed);
}

#[test]
fn unreachable_destination_fails_only_its_own_datagrams() {
    let machine = Machine::new([CLIENT], 1);
    let wildcard = bind(&machine, "0.0.0.0:1");
    let loopback = bind(&machine, "127.0.0.1:2");
    let any = bind(&machine, "[::]:3");
    for (socket, destination) in [
        (&wildcard, "10.0.0.2:0"),
        (&wildcard, "0.0.0.0:5"),
        (&wildcard, "[fd00::2]:5"),
        (&loopback, "10.0.0.2:5"),
        (&any, "[fd00::2]:5"),
    ] {
        let error = socket
            .try_send(&to(destination, b"x"))
            .expect_err(destination);
        assert!(courser_udp::is_transient(&error), "{destination}: {error}");
    }
    let foreign = Transmit {
        source: Some(SERVER),
        ..to("10.0.0.2:5", b"x")
    };
    let error = wildcard
        .try_send(&foreign)
        .expect_err("the address is not one of the machine");
    assert!(courser_udp::is_transient(&error), "{error}");
}

#[test]
fn loopback_takes_ten_microseconds() {
    let mut machine = Machine::new([CLIENT], 1);
    let socket = bind(&machine, "127.0.0.1:9");
    socket
        .try_send(&to("127.0.0.1:9", b"echo"))
        .expect("the buffer has room");
    assert!(machine.transmit(Time::ZERO).is_none());
    let due = machine.next_timeout().expect("the packet is in transit");
    assert_eq!(due.as_nanos(), 10_000);
    machine.run(due);
    assert_eq!(
        receive(&*socket, &mut [0; 9]).map(|batch| batch.len),
        Some(4)
    );
}
