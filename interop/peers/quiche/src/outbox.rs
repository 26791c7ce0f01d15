//! A socket that sends packets at the times that the pacer gave them.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use quiche::{Connection, RecvInfo};

use crate::Result;

/// A socket and the packets that are not due yet.
pub(crate) struct Outbox {
    socket: UdpSocket,
    local: SocketAddr,
    waiting: BTreeMap<(Instant, u64), (SocketAddr, Vec<u8>)>,
    count: u64,
}

impl Outbox {
    pub(crate) fn bind(address: SocketAddr) -> Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            local: socket.local_addr()?,
            socket,
            waiting: BTreeMap::new(),
            count: 0,
        })
    }

    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Takes all packets that a connection may send.
    pub(crate) fn take_from(&mut self, connection: &mut Connection) -> Result {
        let mut packet = [0; 1500];
        loop {
            match connection.send(&mut packet) {
                Ok((len, info)) => {
                    self.count += 1;
                    let at = (info.at, self.count);
                    self.waiting.insert(at, (info.to, packet[..len].to_vec()));
                }
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn send_now(&self, packet: &[u8], to: SocketAddr) -> Result {
        match self.socket.send_to(packet, to) {
            Err(error) if !is_passing(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Sends what is due, and waits for a datagram: at most until the next packet is due, and at most
    /// for `patience`.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        patience: Option<Duration>,
    ) -> Result<Option<(usize, RecvInfo)>> {
        let now = Instant::now();
        while let Some(entry) = self.waiting.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (to, packet) = entry.remove();
            self.send_now(&packet, to)?;
        }
        let next = self.waiting.first_key_value();
        let next = next.map(|((at, _), _)| at.saturating_duration_since(now));
        let wait = next.into_iter().chain(patience).min();
        let wait = wait.unwrap_or(Duration::from_secs(1));
        let deadline = now + wait;
        loop {
            match self.socket.recv_from(buffer) {
                Ok((len, from)) => {
                    let to = self.local;
                    return Ok(Some((len, RecvInfo { from, to })));
                }
                Err(error) if !is_passing(&error) => return Err(error.into()),
                Err(_) => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            thread::sleep(left.min(TICK));
        }
    }
}

/// The longest sleep between two looks at the socket.
const TICK: Duration = Duration::from_micros(500);

/// Returns true for errors that say nothing about later datagrams. A port that is closed may be one of
/// another connection.
fn is_passing(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    )
}
