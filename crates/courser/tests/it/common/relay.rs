//! A relay between a client and a server: a NAT that can lose its mapping, a network that can lose
//! packets.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::{Random, loopback};

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
    loss: Mutex<Loss>,
    dropped: [AtomicU64; 2],
}

struct Loss {
    percent: u64,
    random: Random,
}

#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

/// Larger than any datagram that the tests let through.
const BUFFER_LEN: usize = 65_536;

impl Relay {
    /// Starts a relay in front of `server` that drops nothing.
    pub fn new(server: SocketAddr) -> Self {
        Self::losing(server, 0)
    }

    /// Starts a relay that drops so many per cent in each direction.
    pub fn losing(server: SocketAddr, percent: u64) -> Self {
        let inside = tokio_socket();
        let address = inside.local_addr().expect("bound");
        let outside = Arc::new(tokio_socket());
        let shared = Arc::new(Shared {
            server,
            inside,
            outside: Mutex::new(outside.clone()),
            client: Mutex::new(None),
            loss: Mutex::new(Loss {
                percent,
                random: Random(0x5eed),
            }),
            dropped: [AtomicU64::new(0), AtomicU64::new(0)],
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

    /// Changes the client's port like a NAT that has lost its mapping. The server sees the new one
    /// from now on, and datagrams to the old one are lost.
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

    /// Returns the datagrams dropped on purpose, those to the server first.
    pub fn dropped(&self) -> [u64; 2] {
        [0, 1].map(|index| self.shared.dropped[index].load(Ordering::Relaxed))
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
            // An asynchronous error from an earlier datagram that was undeliverable.
            let Ok((len, from)) = self.inside.recv_from(&mut buffer).await else {
                continue;
            };
            *lock(&self.client) = Some(from);
            if self.loses(Direction::Up) {
                continue;
            }
            let outside = lock(&self.outside).clone();
            let _ = outside.send_to(&buffer[..len], self.server).await;
        }
    }

    async fn down(self: Arc<Self>, outside: Arc<UdpSocket>) {
        let mut buffer = vec![0; BUFFER_LEN];
        loop {
            let Ok((len, _)) = outside.recv_from(&mut buffer).await else {
                continue;
            };
            let client = *lock(&self.client);
            if let Some(client) = client
                && !self.loses(Direction::Down)
            {
                let _ = self.inside.send_to(&buffer[..len], client).await;
            }
        }
    }

    fn loses(&self, direction: Direction) -> bool {
        let mut loss = lock(&self.loss);
        let loses = loss.random.below(100) < loss.percent;
        if loses {
            self.dropped[direction as usize].fetch_add(1, Ordering::Relaxed);
        }
        loses
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
