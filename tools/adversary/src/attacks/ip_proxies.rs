//! Attacks on IP proxies: packets with false headers, and capsules.

use crate::attack::{Expect, Plan, Victim};
use crate::http;
use crate::sessions::{self, ipv4};

use super::Crowd;
use super::session_streams::clients;

pub(super) const PACKETS: Plan = Plan {
    name: "ip-packets",
    labels: &["A361", "A362", "A365", "A367", "A368", "A369"],
    summary: "packets of foreign sources, to prohibited destinations, with lengths that lie, and quoting others",
    victim: Victim::IpProxy,
    expect: Expect::TOLERATED.statuses(&[200]),
    make: || Box::new(packets()),
};

fn packets() -> Crowd {
    let packets = hostile_packets();
    clients(2, move |connection, progress| {
        let tunnel = http::request_stream(0);
        for id in progress.requests(connection, 1 - progress.streams.min(1)) {
            connection.push_bytes(http::stream(id, 0, &sessions::ip_request(), false));
        }
        for packet in &packets {
            let payload = [&[0], &packet[..]].concat();
            connection.push_bytes(sessions::datagram(tunnel, &payload));
        }
    })
}

/// Packets of which a proxy may forward none: their sources are not those of the tunnel, whatever that has.
fn hostile_packets() -> Vec<Vec<u8>> {
    let foreign = [198, 51, 100, 1];
    let host = [192, 0, 2, 1];
    let mut packets = vec![
        Vec::new(),
        vec![0x45],
        vec![0x60; 39],
        ipv4(foreign, host, 64, 17, &[0; 32]),
        ipv4([10, 89, 0, 1], host, 64, 17, &[0; 32]),
        ipv4([127, 0, 0, 1], host, 64, 17, &[0; 32]),
        ipv4(host, foreign, 64, 17, &[0; 32]),
        ipv4(foreign, [169, 254, 169, 254], 64, 6, &[0; 32]),
        ipv4(foreign, host, 0, 17, &[0; 32]),
        ipv4(foreign, host, 1, 17, &[0; 32]),
        // An ICMP error that quotes a packet of another client.
        ipv4(
            foreign,
            [10, 89, 0, 2],
            64,
            1,
            &[
                &[3, 1, 0, 0, 0, 0, 0, 0][..],
                &ipv4([10, 89, 0, 2], host, 64, 17, &[0; 8]),
            ]
            .concat(),
        ),
        // Twenty extension headers in front of nothing.
        ipv6(0, &[0, 0, 1, 4, 0, 0, 0, 0].repeat(20)),
        // A fragment behind the longest packet.
        ipv6(44, &[17, 0, 0xff, 0xf8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let mut short = ipv4(foreign, host, 64, 17, &[0; 32]);
    short.truncate(30);
    let mut long = ipv4(foreign, host, 64, 17, &[0; 32]);
    long[3] = 0xff;
    let mut options = ipv4(foreign, host, 64, 17, &[0; 32]);
    options[0] = 0x4f;
    packets.extend([short, long, options]);
    packets
}

/// Builds a packet from a foreign address to one of the network.
fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).expect("short").to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, len[0], len[1], next, 64];
    let address = |last: u8| [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    packet.extend(address(0x77));
    packet.extend(address(1));
    packet.extend_from_slice(payload);
    packet
}

pub(super) const CAPSULES: Plan = Plan {
    name: "ip-capsules",
    labels: &["A366"],
    summary: "addresses and routes that overlap, are unordered or have no end, and storms of requests",
    victim: Victim::IpProxy,
    expect: Expect::ANY
        .statuses(&[200])
        .streams(&[sessions::MESSAGE_ERROR, sessions::EXCESSIVE_LOAD]),
    make: || Box::new(capsules()),
};

fn capsules() -> Crowd {
    clients(2, |connection, progress| {
        for id in progress.requests(connection, 1) {
            let value: &[u8] = match id.index() % 5 {
                // Backwards, unordered, and one request ID twice.
                0 => &[4, 10, 0, 0, 2, 10, 0, 0, 1, 0],
                1 => &[
                    4, 10, 0, 0, 2, 10, 0, 0, 2, 0, 4, 10, 0, 0, 1, 10, 0, 0, 1, 0,
                ],
                2 => &[7, 4, 0, 0, 0, 0, 32, 7, 4, 0, 0, 0, 0, 32],
                // More ranges than a proxy reads, and a storm of requests.
                3 => &[4; 9000],
                _ => &[],
            };
            let mut bytes = sessions::ip_request();
            match (id.index() % 5, value) {
                (2, value) => bytes.extend(sessions::capsule(2, value)),
                (4, _) => {
                    for number in 1..=63 {
                        bytes.extend(sessions::capsule(2, &[number, 4, 0, 0, 0, 0, 32]));
                    }
                }
                (_, value) => bytes.extend(sessions::capsule(3, value)),
            }
            for frame in http::stream_in_chunks(id, &bytes, false) {
                connection.push_bytes(frame);
            }
        }
    })
    .with_pause(std::time::Duration::from_millis(5))
}
