//! Attacks on UDP proxies: targets inside of their network, paths, tunnels and datagrams.

use courser_wire::StreamId;

use crate::attack::{Expect, Plan, Victim};
use crate::connection::Connection;
use crate::http;
use crate::sessions;

use super::Crowd;
use super::crowd::Progress;
use super::session_streams::clients;

pub(super) const TARGETS: Plan = Plan {
    name: "proxy-targets",
    labels: &["A350", "A351"],
    summary: "targets inside of the network of the proxy, in every form, and the proxy itself",
    victim: Victim::Proxy,
    expect: Expect::TOLERATED.refused().statuses(&[400, 403]),
    make: || {
        Box::new(clients(2, |connection, progress| {
            for id in progress.requests(connection, 4) {
                let host = PRIVATE[usize::try_from(id.index()).unwrap_or(0) % PRIVATE.len()];
                // Whatever runs there.
                let port = (id.index() % 65_535 + 1).to_string();
                push(connection, id, &sessions::udp_request(host, &port), false);
            }
        }))
    },
};

/// Hosts that no proxy of the public internet may reach. Numbers that are no addresses of four decimal parts are
/// malformed.
const PRIVATE: [&str; 24] = [
    "127.0.0.2",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "localhost",
    "%3A%3A1",
    "%3A%3A",
    "%3A%3Affff%3A127.0.0.1",
    "%3A%3Affff%3A7f00%3A1",
    "64%3Aff9b%3A%3A7f00%3A1",
    "2002%3A7f00%3A1%3A%3A",
    "fe80%3A%3A1",
    "fd00%3A%3A1",
    "ff02%3A%3A1",
    "2130706433",
    "0177.0.0.1",
    "0x7f000001",
    "127.1",
];

pub(super) const PATHS: Plan = Plan {
    name: "proxy-paths",
    labels: &["A360"],
    summary: "percent-encoding in paths that hides a path or a target",
    victim: Victim::Proxy,
    expect: Expect::TOLERATED.refused().statuses(&[400]),
    make: || {
        Box::new(clients(2, |connection, progress| {
            for id in progress.requests(connection, 4) {
                let path = TRICKS[usize::try_from(id.index()).unwrap_or(0) % TRICKS.len()];
                let fields: &[(&str, &[u8])] = &[("capsule-protocol", b"?1")];
                push(
                    connection,
                    id,
                    &sessions::connect("connect-udp", path, fields),
                    false,
                );
            }
        }))
    },
};

const TRICKS: [&str; 12] = [
    "/.well-known/masque/udp/192.0.2.1%2F443/",
    "/.well-known/masque/udp/192.0.2.1/443%2F/",
    "/.well-known/masque/udp/192.0.2.1%00/443/",
    "/.well-known/masque/udp/192.0.2.1/443%00/",
    "/.well-known/masque/udp/../192.0.2.1/443/",
    "/.well-known/masque/udp/%2e%2e/443/",
    "/.well-known/masque/udp/192.0.2.1/0/",
    "/.well-known/masque/udp/192.0.2.1/65536/",
    "/.well-known/masque/udp/192.0.2.1/+443/",
    "/.well-known/masque/udp//443/",
    "/.well-known/masque/udp/%25 31/443/",
    "/.well-known%2Fmasque/udp/192.0.2.1/443/",
];

pub(super) const TUNNELS: Plan = Plan {
    name: "proxy-tunnels",
    labels: &["A353"],
    summary: "tunnels of four connections, as many as the proxy permits",
    victim: Victim::Proxy,
    expect: Expect::TOLERATED.statuses(&[200, 429]),
    make: || {
        Box::new(clients(4, |connection, progress| {
            for id in progress.requests(connection, 32) {
                open(connection, progress, id);
            }
        }))
    },
};

pub(super) const DATAGRAMS: Plan = Plan {
    name: "proxy-datagrams",
    labels: &["A354"],
    summary: "datagrams of unknown contexts, without a context, and longer than a packet",
    victim: Victim::Proxy,
    expect: Expect::ANY
        .statuses(&[200])
        .streams(&[sessions::DATAGRAM_ERROR]),
    make: || Box::new(datagrams()),
};

fn datagrams() -> Crowd {
    clients(2, |connection, progress| {
        if progress.streams == 0 {
            for id in progress.requests(connection, 3) {
                open(connection, progress, id);
            }
            return;
        }
        if !connection.seen().statuses.contains_key(&200) {
            return;
        }
        let flooded = http::request_stream(0);
        for context in 0..64_u8 {
            // Contexts of clients are even, and none but the first is registered.
            let payload = [&[context % 32 * 2][..], &[0x5a; 200]].concat();
            connection.push_bytes(sessions::datagram(flooded, &payload));
        }
        if progress.bursts == 20 {
            connection.push_bytes(sessions::datagram(http::request_stream(1), &[]));
            let id = http::request_stream(2);
            let header = sessions::bare_capsule(0, 65_529, &[0]);
            let mut content = http::header(http::DATA, header.len() as u64 + 65_528);
            content.extend(header);
            content.resize(content.len() + 65_528, 0x5a);
            let offset = request_to_echo(progress).len();
            for (index, chunk) in content.chunks(http::CHUNK).enumerate() {
                let offset = (offset + index * http::CHUNK) as u64;
                connection.push_bytes(http::stream(id, offset, chunk, false));
            }
        }
    })
}

pub(super) const SILENT: Plan = Plan {
    name: "proxy-silent-target",
    labels: &["A352"],
    summary: "a flood through one tunnel of each connection to a host that never answers",
    victim: Victim::Proxy,
    expect: Expect::TOLERATED.statuses(&[200]),
    make: || {
        Box::new(clients(2, |connection, progress| {
            let tunnel = http::request_stream(0);
            let Some(goals) = progress.goals else { return };
            for id in progress.requests(connection, 1 - progress.streams.min(1)) {
                let (host, port) = (goals.silent.ip().to_string(), goals.silent.port());
                let request = sessions::udp_request(&host, &port.to_string());
                push(connection, id, &request, false);
            }
            for _ in 0..64 {
                connection.push_bytes(sessions::datagram(tunnel, &[0; 1000]));
            }
        }))
    },
};

fn request_to_echo(progress: &Progress) -> Vec<u8> {
    let Some(goals) = progress.goals else {
        return Vec::new();
    };
    let (host, port) = (goals.echo.ip().to_string(), goals.echo.port());
    sessions::udp_request(&host, &port.to_string())
}

fn open(connection: &mut Connection, progress: &Progress, id: StreamId) {
    push(connection, id, &request_to_echo(progress), false);
}

fn push(connection: &mut Connection, id: StreamId, bytes: &[u8], fin: bool) {
    connection.push_bytes(http::stream(id, 0, bytes, fin));
}
