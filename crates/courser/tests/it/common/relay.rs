//! A relay between a client and a server: a NAT whose mappings change, and a link.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use courser_base::{Ecn, Time};
use courser_link::{DuplexSpec, Link, Packet};
use courser_wire::packet::{self, PacketKind};
use tokio::net::{TcpListener, TcpSocket, UdpSocket};
use tokio::task::JoinHandle;

use super::loopback;

/// Forwards datagrams between one client and one server.
pub struct Relay {
    pub address: SocketAddr,
    shared: Arc<RelayState>,
    tasks: Vec<JoinHandle<()>>,
    /// A TCP socket on the same port, which does not listen yet.
    tcp: Mutex<Option<TcpSocket>>,
}

struct RelayState {
    server: SocketAddr,
    /// The socket that the client sends to.
    inside: UdpSocket,
    /// The socket that the server sees as the client.
    outside: Mutex<Arc<UdpSocket>>,
    client: Mutex<Option<SocketAddr>>,
    /// The links to the server and back.
    links: Mutex<[Link; 2]>,
    /// The held datagrams of the server; `None` if they are forwarded at once.
    held: Mutex<Option<Vec<Bytes>>>,
    /// The held datagrams of the client after its first flight; `None` if they are forwarded at once.
    held_up: Mutex<Option<Vec<Bytes>>>,
    /// Datagrams of the client with a 0-RTT packet.
    early: AtomicU64,
    /// Datagrams to the server and back whose first packet has a QUIC bit of 0.
    cleared: [AtomicU64; 2],
    /// The first bytes of the connection IDs in the client's 1-RTT packets.
    connection_ids: Mutex<HashSet<[u8; 8]>>,
}

#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

/// Larger than any datagram that the tests let through.
const BUFFER_LEN: usize = 65_536;

const SEED: u64 = 0x5eed;

impl Relay {
    /// Starts a relay in front of `server` with a link without effects.
    pub fn new(server: SocketAddr) -> Self {
        Self::with_link(server, "none")
    }

    /// Starts a relay with a link without delay: datagrams leave at once or never.
    pub fn with_link(server: SocketAddr, link: &str) -> Self {
        let link: DuplexSpec = link.parse().expect("a link");
        let (inside, tcp) = one_port();
        let address = inside.local_addr().expect("bound");
        let outside = Arc::new(tokio_socket());
        let shared = Arc::new(RelayState {
            server,
            inside,
            outside: Mutex::new(outside.clone()),
            client: Mutex::new(None),
            links: Mutex::new(link.links(SEED).into()),
            held: Mutex::new(None),
            held_up: Mutex::new(None),
            early: AtomicU64::new(0),
            cleared: Default::default(),
            connection_ids: Mutex::default(),
        });
        let tasks = vec![
            crate::common::spawn(shared.clone().up()),
            crate::common::spawn(shared.clone().down(outside)),
        ];
        Self {
            address,
            shared,
            tasks,
            tcp: Mutex::new(Some(tcp)),
        }
    }

    /// Starts to listen on the TCP port with the same number.
    pub fn listen_on_tcp(&self) -> TcpListener {
        let socket = lock(&self.tcp).take().expect("not taken yet");
        socket.listen(16).expect("a listener")
    }

    /// Changes the client's port as a NAT does. The server sees another one from now on, and
    /// datagrams to the old one are dropped.
    pub fn rebind(&mut self) -> u16 {
        let outside = Arc::new(tokio_socket());
        let port = outside.local_addr().expect("bound").port();
        *lock(&self.shared.outside) = outside.clone();
        if let Some(old) = self.tasks.pop() {
            old.abort();
        }
        self.tasks
            .push(crate::common::spawn(self.shared.clone().down(outside)));
        port
    }

    /// Holds back the datagrams of the server until [`Relay::release`]: no handshake that begins
    /// meanwhile can become complete.
    pub fn hold_answers(&self) {
        *lock(&self.shared.held) = Some(Vec::new());
    }

    /// Holds back the datagrams of the client with Handshake or 1-RTT packets until [`Relay::release`]:
    /// no server completes a handshake that begins meanwhile, or validates an address by it.
    pub fn hold_finished(&self) {
        *lock(&self.shared.held_up) = Some(Vec::new());
    }

    /// Returns the number of datagrams of the client that are held back.
    pub fn held_finished(&self) -> usize {
        lock(&self.shared.held_up).as_ref().map_or(0, Vec::len)
    }

    /// Forwards the held datagrams, and later ones at once.
    pub async fn release(&self) {
        let held = lock(&self.shared.held_up).take();
        let outside = lock(&self.shared.outside).clone();
        for payload in held.into_iter().flatten() {
            let _ = outside.send_to(&payload, self.shared.server).await;
        }
        self.release_answers().await;
    }

    /// Forwards the held datagrams of the server, and later ones at once.
    pub async fn release_answers(&self) {
        let held = lock(&self.shared.held).take();
        let client = *lock(&self.shared.client);
        for payload in held.into_iter().flatten() {
            let client = client.expect("it has sent something");
            let _ = self.shared.inside.send_to(&payload, client).await;
        }
    }

    /// Drops the held datagrams of the server, and forwards later ones at once.
    pub fn discard_answers(&self) {
        *lock(&self.shared.held) = None;
    }

    /// Returns the number of datagrams with a 0-RTT packet that the client has sent.
    pub fn early_datagrams(&self) -> u64 {
        self.shared.early.load(Ordering::Relaxed)
    }

    /// Returns the number of datagrams whose first packet has a QUIC bit of 0 (RFC 9287), those to the server
    /// first.
    pub fn cleared(&self) -> [u64; 2] {
        [0, 1].map(|index| self.shared.cleared[index].load(Ordering::Relaxed))
    }

    /// Returns the number of connection IDs that the client has used in 1-RTT packets.
    pub fn connection_ids(&self) -> usize {
        lock(&self.shared.connection_ids).len()
    }

    /// Returns the datagrams that the link dropped, those to the server first.
    pub fn dropped(&self) -> [u64; 2] {
        let links = lock(&self.shared.links);
        [0, 1].map(|index| links[index].stats().dropped.total())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl RelayState {
    async fn up(self: Arc<Self>) {
        let mut buffer = vec![0; BUFFER_LEN];
        loop {
            // An error reports an earlier datagram to a closed port.
            let Ok((len, from)) = self.inside.recv_from(&mut buffer).await else {
                continue;
            };
            *lock(&self.client) = Some(from);
            let has_early = has(&buffer[..len], |kind| kind == PacketKind::ZeroRtt);
            self.early
                .fetch_add(u64::from(has_early), Ordering::Relaxed);
            // The ID follows the first byte of a short header (RFC 9000 §17.3.1).
            if let [0..0x80, id @ ..] = &buffer[..len]
                && let Some(id) = id.first_chunk()
            {
                lock(&self.connection_ids).insert(*id);
            }
            for payload in self.pass(Direction::Up, &buffer[..len]) {
                if let Some(held) = &mut *lock(&self.held_up)
                    && has(&payload, is_after_first_flight)
                {
                    held.push(payload);
                    continue;
                }
                let outside = lock(&self.outside).clone();
                let _ = outside.send_to(&payload, self.server).await;
            }
        }
    }

    async fn down(self: Arc<Self>, outside: Arc<UdpSocket>) {
        let mut buffer = vec![0; BUFFER_LEN];
        loop {
            let Ok((len, _)) = outside.recv_from(&mut buffer).await else {
                continue;
            };
            let client = *lock(&self.client);
            let Some(client) = client else { continue };
            for payload in self.pass(Direction::Down, &buffer[..len]) {
                if let Some(held) = &mut *lock(&self.held) {
                    held.push(payload);
                    continue;
                }
                let _ = self.inside.send_to(&payload, client).await;
            }
        }
    }

    /// Sends a datagram over the link, and returns those that arrive.
    fn pass(&self, direction: Direction, payload: &[u8]) -> Vec<Bytes> {
        let is_cleared = payload.first().is_some_and(|first| first & 0x40 == 0);
        self.cleared[direction as usize].fetch_add(u64::from(is_cleared), Ordering::Relaxed);
        let link = &mut lock(&self.links)[direction as usize];
        let packet = Packet {
            source: self.server,
            destination: self.server,
            ecn: Ecn::NotEct,
            payload: Bytes::copy_from_slice(payload),
        };
        link.send(Time::ZERO, packet);
        let arrived = std::iter::from_fn(|| link.poll(Time::ZERO));
        arrived.map(|packet| packet.payload).collect()
    }
}

/// Returns true if a datagram has a packet of such a kind of version 1, alone or coalesced
/// (RFC 9000 §12.2).
fn has(datagram: &[u8], is_wanted: impl Fn(PacketKind) -> bool) -> bool {
    let mut start = 0;
    while let Ok(packet) = packet::decode(datagram, start, 0) {
        if is_wanted(packet.kind) {
            return true;
        }
        start = packet.end;
    }
    false
}

fn is_after_first_flight(kind: PacketKind) -> bool {
    matches!(kind, PacketKind::Handshake | PacketKind::OneRtt)
}

/// Returns a UDP socket, and a TCP socket that reserves the same port.
fn one_port() -> (UdpSocket, TcpSocket) {
    for _ in 0..100 {
        let udp = tokio_socket();
        let tcp = TcpSocket::new_v4().expect("a socket");
        if tcp.bind(udp.local_addr().expect("bound")).is_ok() {
            return (udp, tcp);
        }
    }
    panic!("no port is free for both");
}

fn tokio_socket() -> UdpSocket {
    let socket = std::net::UdpSocket::bind(loopback()).expect("a port");
    socket.set_nonblocking(true).expect("valid socket");
    UdpSocket::from_std(socket).expect("a runtime")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
