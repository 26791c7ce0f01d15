//! A relay between a client and a server: a NAT whose mappings change, and a link.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use courser_base::{Ecn, Time};
use courser_link::{DuplexSpec, Link, Packet};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::loopback;

/// Forwards datagrams between one client and one server.
pub struct Relay {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

struct Shared {
    server: SocketAddr,
    /// The socket that the client sends to.
    inside: UdpSocket,
    /// The socket that the server sees as the client.
    outside: Mutex<Arc<UdpSocket>>,
    client: Mutex<Option<SocketAddr>>,
    /// The links to the server and back.
    links: Mutex<[Link; 2]>,
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
        let inside = tokio_socket();
        let address = inside.local_addr().expect("bound");
        let outside = Arc::new(tokio_socket());
        let shared = Arc::new(Shared {
            server,
            inside,
            outside: Mutex::new(outside.clone()),
            client: Mutex::new(None),
            links: Mutex::new(link.links(SEED).into()),
        });
        let tasks = vec![
            crate::common::spawn(shared.clone().up()),
            crate::common::spawn(shared.clone().down(outside)),
        ];
        Self {
            address,
            shared,
            tasks,
        }
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

impl Shared {
    async fn up(self: Arc<Self>) {
        let mut buffer = vec![0; BUFFER_LEN];
        loop {
            // An error reports an earlier datagram to a closed port.
            let Ok((len, from)) = self.inside.recv_from(&mut buffer).await else {
                continue;
            };
            *lock(&self.client) = Some(from);
            for payload in self.pass(Direction::Up, &buffer[..len]) {
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
                let _ = self.inside.send_to(&payload, client).await;
            }
        }
    }

    /// Sends a datagram over the link, and returns those that arrive.
    fn pass(&self, direction: Direction, payload: &[u8]) -> Vec<Bytes> {
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

fn tokio_socket() -> UdpSocket {
    let socket = std::net::UdpSocket::bind(loopback()).expect("a port");
    socket.set_nonblocking(true).expect("own socket");
    UdpSocket::from_std(socket).expect("a runtime")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
