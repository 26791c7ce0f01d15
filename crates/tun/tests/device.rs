//! Devices of the system. Each test has a network namespace of its own, which needs root: without it they print that and
//! end.
#![cfg(all(target_os = "linux", feature = "network"))]
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser_tun::network::{Action, Destination, MAIN, Network, Route, Rule};
use courser_tun::{Device, OpenError, ReadBuffer, WriteBuffer};

/// Runs a test on a thread in a new network namespace, which ends with the thread.
fn isolated(test: impl FnOnce() + Send + 'static) {
    let run = move || {
        // SAFETY: the call affects this thread only, which does nothing else before it.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            eprintln!("skipped: no network namespaces");
            return;
        }
        match Device::builder().open() {
            Err(OpenError::Missing | OpenError::NotPermitted) => {
                eprintln!("skipped: no TUN devices");
            }
            _ => test(),
        }
    };
    if let Err(panic) = thread::spawn(run).join() {
        std::panic::resume_unwind(panic);
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A device with addresses and a route to 198.51.100.0/24 and 2001:db8:1::/64.
fn device(offloads: bool) -> (Device, Network, u32) {
    let mut builder = Device::builder().name("courser0");
    if !offloads {
        builder = builder.without_offloads();
    }
    let device = builder.open().unwrap();
    assert_eq!(device.name(), "courser0");
    let mut network = Network::open().unwrap();
    let index = network.interface("courser0").unwrap().index;
    // IPv6 delivers packets to addresses of the system through it.
    network.set_up(LOOPBACK).unwrap();
    network.set_mtu(index, 1400).unwrap();
    network.set_up(index).unwrap();
    network
        .add_address(index, address("192.0.2.1"), 32)
        .unwrap();
    network
        .add_address(index, address("2001:db8::1"), 128)
        .unwrap();
    for (to, length) in [("198.51.100.0", 24), ("2001:db8:1::", 64)] {
        let to = Destination::new(address(to), length);
        network.add_route(&Route::through(index, to)).unwrap();
    }
    // The system accepts packets to an address of IPv6 a little later.
    let deadline = Instant::now() + Duration::from_secs(5);
    let is_own = |route: Route| route.table == LOCAL;
    while !network.route_to(address("2001:db8::1")).is_ok_and(is_own) {
        assert!(Instant::now() < deadline, "the address stays unusable");
        thread::sleep(Duration::from_millis(1));
    }
    let interface = network.interface("courser0").unwrap();
    assert!(interface.is_up && interface.mtu == 1400, "{interface:?}");
    (device, network, index)
}

/// Reads until there are `count` packets of UDP.
fn read_udp(device: &Device, count: usize) -> Vec<Bytes> {
    let mut buffer = ReadBuffer::new();
    let (mut found, mut packets) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + Duration::from_secs(5);
    while found.len() < count && Instant::now() < deadline {
        match device.read_many(&mut buffer, &mut packets, 64) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{error}"),
        }
        // The system itself sends router solicitations.
        let is_udp = |packet: &Bytes| match packet[0] >> 4 {
            4 => packet[9] == 17,
            _ => packet[6] == 17,
        };
        found.extend(packets.drain(..).filter(is_udp));
    }
    found
}

/// Exchanges addresses and ports, which changes no checksum.
fn reflect(packet: &Bytes) -> Bytes {
    let mut bytes = packet.to_vec();
    let (addresses, length, ports) = match bytes[0] >> 4 {
        4 => (12, 4, 20),
        _ => (8, 16, 40),
    };
    for at in 0..length {
        bytes.swap(addresses + at, addresses + length + at);
    }
    bytes.swap(ports, ports + 2);
    bytes.swap(ports + 1, ports + 3);
    Bytes::from(bytes)
}

#[test]
fn datagrams_pass_both_ways() {
    for offloads in [true, false] {
        isolated(move || {
            let (device, ..) = device(offloads);
            if !offloads {
                assert_eq!(device.offloads(), courser_tun::Offloads::default());
            }
            for (local, remote) in [
                ("192.0.2.1", "198.51.100.9"),
                ("2001:db8::1", "2001:db8:1::9"),
            ] {
                let socket = UdpSocket::bind((address(local), 0)).unwrap();
                let timeout = Some(Duration::from_secs(5));
                socket.set_read_timeout(timeout).unwrap();
                socket
                    .connect(SocketAddr::from((address(remote), 4433)))
                    .unwrap();
                let payloads: Vec<_> = (0..10_u8).map(|it| vec![it; 1000]).collect();
                for payload in &payloads {
                    socket.send(payload).unwrap();
                }
                let packets = read_udp(&device, payloads.len());
                let mut answers: Vec<_> = packets.iter().map(reflect).collect();
                let mut buffer = WriteBuffer::new();
                let written = device.write_many(&mut buffer, &mut answers).unwrap();
                assert_eq!((written.packets, written.dropped), (10, 0));
                let calls = if device.offloads().udp { 1 } else { 10 };
                assert_eq!(written.calls, calls);
                for payload in &payloads {
                    let mut received = [0; 2000];
                    let length = socket.recv(&mut received).unwrap();
                    assert_eq!(&received[..length], payload);
                }
            }
        });
    }
}

/// The system passes what a program sent with one call as one packet, which is cut.
#[test]
fn batch_of_a_program_is_cut_into_datagrams() {
    isolated(|| {
        let (device, ..) = device(true);
        if !device.offloads().udp {
            eprintln!("skipped: no offload of UDP");
            return;
        }
        let socket = UdpSocket::bind("192.0.2.1:0").unwrap();
        use std::os::fd::AsRawFd as _;
        let size = 500_i32;
        // SAFETY: the descriptor is open, and the option is a number of four bytes.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_UDP,
                libc::UDP_SEGMENT,
                (&raw const size).cast(),
                4,
            )
        };
        assert_eq!(result, 0);
        let sent: Vec<u8> = (0..5100_u32).map(|it| it as u8).collect();
        socket.send_to(&sent, "198.51.100.9:9").unwrap();
        let packets = read_udp(&device, 11);
        let lengths: Vec<_> = packets.iter().map(|it| it.len() - 28).collect();
        assert_eq!(
            lengths,
            [500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 100]
        );
        let received: Vec<_> = packets.iter().flat_map(|it| it[28..].to_vec()).collect();
        assert_eq!(received, sent);
    });
}

#[test]
fn names_in_use_are_refused() {
    isolated(|| {
        let (_device, ..) = device(true);
        let error = Device::builder().name("courser0").open().unwrap_err();
        assert!(matches!(&error, OpenError::Taken(name) if name == "courser0"));
        let error = Device::builder().name("lo").open().unwrap_err();
        assert!(matches!(error, OpenError::Taken(_)), "{error}");
    });
}

#[test]
fn device_that_is_down_drops_packets_and_one_that_is_dropped_is_removed() {
    isolated(|| {
        let device = Device::builder().name("courser1").open().unwrap();
        let packet = {
            let mut packet = vec![0_u8; 40];
            packet[0] = 0x45;
            Bytes::from(packet)
        };
        let mut packets = vec![packet; 3];
        let written = device
            .write_many(&mut WriteBuffer::new(), &mut packets)
            .unwrap();
        assert_eq!((written.packets, written.dropped), (0, 3));
        let mut network = Network::open().unwrap();
        let index = network.interface("courser1").unwrap().index;
        assert!(network.has_interface(index).unwrap());
        drop(device);
        assert!(!network.has_interface(index).unwrap());
        let error = network.interface("courser1").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("cannot find the interface courser1"),
            "{error}"
        );
    });
}

#[test]
fn routes_and_rules_are_added_found_and_removed() {
    isolated(|| {
        let (device, mut network, index) = device(true);
        let found = network.route_to(address("198.51.100.77")).unwrap();
        assert_eq!((found.interface, found.gateway), (index, None));
        for is_ipv6 in [false, true] {
            let all = Destination::all(is_ipv6);
            let route = Route {
                table: 51_000,
                ..Route::through(index, all)
            };
            network.add_route(&route).unwrap();
            assert!(network.add_route(&route).unwrap_err().is_present());
            assert_eq!(network.routes(51_000, is_ipv6).unwrap(), [route]);
            // The usual default route leads elsewhere.
            network.add_route(&Route::through(LOOPBACK, all)).unwrap();
            let (proxy, other) = match is_ipv6 {
                true => (address("2001:db8:9::1"), address("2001:db8:9::2")),
                false => (address("203.0.113.1"), address("203.0.113.2")),
            };
            let rule = |priority, to, action| Rule {
                priority,
                to,
                action,
            };
            let suppress = Action::LookupLonger {
                table: MAIN,
                suppress: 0,
            };
            let rules = [
                rule(5000, Destination::single(proxy), Action::Lookup(MAIN)),
                rule(5001, Destination::single(proxy), Action::Unreachable),
                rule(5002, all, suppress),
                rule(5003, all, Action::Lookup(51_000)),
            ];
            for rule in &rules {
                network.add_rule(rule).unwrap();
            }
            assert!(network.add_rule(&rules[0]).unwrap_err().is_present());
            assert_eq!(network.rules(is_ipv6).unwrap(), rules);
            assert_eq!(network.route_to(other).unwrap().interface, index);
            assert_eq!(network.route_to(proxy).unwrap().interface, LOOPBACK);
            // Without another way to the proxy, its packets do not enter the tunnel.
            network
                .remove_route(&Route::through(LOOPBACK, all))
                .unwrap();
            let error = network.route_to(proxy).unwrap_err();
            assert!(
                error.to_string().contains("cannot find a route to"),
                "{error}"
            );
            for rule in &rules {
                network.remove_rule(rule).unwrap();
            }
            assert_eq!(network.rules(is_ipv6).unwrap(), []);
        }
        drop(device);
        assert_eq!(network.routes(51_000, false).unwrap(), []);
        assert_eq!(network.routes(51_000, true).unwrap(), []);
    });
}

/// The number of the interface `lo` in each namespace.
const LOOPBACK: u32 = 1;

/// The table of the system's own addresses.
const LOCAL: u32 = 255;
