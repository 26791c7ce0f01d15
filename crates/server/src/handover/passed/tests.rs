use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

use socket2::Domain;

use super::*;

fn passed(descriptor: impl Into<OwnedFd>) -> PassedDescriptor {
    PassedDescriptor {
        name: "web.socket".to_owned(),
        number: 3,
        descriptor: descriptor.into(),
    }
}

fn udp(address: SocketAddr, shares: bool) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
    socket.set_reuse_port(shares).expect("an option");
    socket.bind(&address.into()).expect("a port");
    socket.into()
}

#[test]
fn sockets_of_an_address_are_combined() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = tcp.local_addr().expect("bound");
    let first = udp(address, true);
    let elsewhere = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let other = elsewhere.local_addr().expect("bound");
    let mut all = Vec::new();
    let second = udp(address, true);
    let sockets: [OwnedFd; 4] = [first.into(), elsewhere.into(), tcp.into(), second.into()];
    for socket in sockets {
        add(&mut all, passed(socket)).expect("usable");
    }
    let found = all.iter().map(|it| {
        assert!(it.stay_open, "{it:?}");
        check(it).expect("usable");
        (it.address, it.tcp.is_some(), it.udp.len())
    });
    let expected = [(address, true, 2), (other, false, 1)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn unusable_sockets_are_refused_with_a_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let connection = std::net::TcpStream::connect(address).expect("listens");
    let connected = UdpSocket::bind("127.0.0.1:0").expect("a port");
    connected.connect(address).expect("a peer");
    let file = std::fs::File::open("/dev/null").expect("readable");
    let unix = UnixDatagram::unbound().expect("a socket");
    let bound = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let udplite = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDPLITE));
    let mut refused: Vec<(OwnedFd, &str)> = vec![
        (file.into(), "not a socket"),
        (unix.into(), "no IP address"),
        (connection.into(), "Accept=no"),
        (bound.into(), "Accept=no"),
        (connected.into(), "connected"),
    ];
    // Some kernels lack it.
    if let Ok(socket) = udplite {
        refused.push((socket.into(), "neither a TCP nor a UDP socket"));
    }
    for (descriptor, expected) in refused {
        let mut all = Vec::new();
        let reason = add(&mut all, passed(descriptor)).expect_err(expected);
        assert!(reason.contains(expected), "{reason}");
        assert!(all.is_empty(), "{expected}");
    }
}

#[test]
fn second_tcp_socket_of_an_address_is_refused() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut all = Vec::new();
    add(&mut all, passed(tcp.try_clone().expect("a descriptor"))).expect("usable");
    let reason = add(&mut all, passed(tcp)).expect_err("twice");
    assert!(reason.contains("another TCP socket"), "{reason}");
}

#[test]
fn udp_sockets_of_an_address_must_share_it() {
    let socket = udp(([127, 0, 0, 1], 0).into(), false);
    let mut all = Vec::new();
    for _ in 0..2 {
        let socket = socket.try_clone().expect("a descriptor");
        add(&mut all, passed(socket)).expect("usable");
    }
    let error = check(&all[0]).expect_err("one would receive everything");
    assert!(error.to_string().contains("ReusePort=yes"), "{error}");
}
