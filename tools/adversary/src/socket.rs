//! Attacks over real UDP sockets.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use courser_base::Time;

use crate::attack::{Attack, Pace};
use crate::attacker::Attacker;

/// UDP sockets on one local address, one for each port that the attack uses.
#[derive(Debug)]
pub struct Sockets {
    local: IpAddr,
    sockets: BTreeMap<u16, UdpSocket>,
    began: Instant,
    buffer: Vec<u8>,
}

/// Datagrams read from one socket before the next socket is read.
const MAX_READS: usize = 256;

/// The pause of the loop if it neither sent nor received a datagram.
const NAP: Duration = Duration::from_millis(1);

impl Sockets {
    /// Creates sockets on an address. The first one is bound immediately, to the port of `local`.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be bound.
    pub fn bind(local: SocketAddr) -> io::Result<Self> {
        let mut sockets = Self {
            local: local.ip(),
            sockets: BTreeMap::new(),
            began: Instant::now(),
            buffer: vec![0; 65_535],
        };
        sockets.open(0, local.port())?;
        Ok(sockets)
    }

    /// Returns the address of the first socket.
    ///
    /// # Errors
    /// Returns an error if the system does not report it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.sockets.first_key_value().map_or_else(
            || Err(io::ErrorKind::NotFound.into()),
            |(_, it)| it.local_addr(),
        )
    }

    /// Runs the attack on this thread for `time`. Datagrams that the system refuses are dropped.
    ///
    /// # Errors
    /// Returns an error if a socket cannot be bound.
    pub fn run(
        &mut self,
        attacker: &mut Attacker,
        attack: &mut dyn Attack,
        time: Duration,
    ) -> io::Result<()> {
        let end = Instant::now() + time;
        let mut next_turn = self.now();
        while Instant::now() < end {
            let now = self.now();
            let has_received = self.receive(now, attacker);
            if next_turn <= now || has_received {
                next_turn = match attack.turn(attacker, now) {
                    Pace::Now => now,
                    Pace::At(at) => at,
                };
            }
            attacker.transmit(now);
            let has_sent = self.send(attacker)?;
            if !has_sent && !has_received {
                std::thread::sleep(NAP);
            }
        }
        Ok(())
    }

    fn now(&self) -> Time {
        let nanos = self.began.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn receive(&mut self, now: Time, attacker: &mut Attacker) -> bool {
        let mut has_received = false;
        for (port, socket) in &self.sockets {
            for _ in 0..MAX_READS {
                match socket.recv_from(&mut self.buffer) {
                    Ok((len, from)) => {
                        has_received = true;
                        attacker.receive(now, *port, from, &mut self.buffer[..len]);
                    }
                    // The error belongs to an earlier datagram. The next call may return data.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(_) => break,
                }
            }
        }
        has_received
    }

    fn send(&mut self, attacker: &mut Attacker) -> io::Result<bool> {
        let mut has_sent = false;
        while let Some(datagram) = attacker.poll_datagram() {
            has_sent = true;
            if !self.sockets.contains_key(&datagram.port) {
                self.open(datagram.port, 0)?;
            }
            // A full send buffer drops datagrams, as a network does.
            let _ = self.sockets[&datagram.port].send_to(&datagram.bytes, datagram.to);
        }
        Ok(has_sent)
    }

    fn open(&mut self, number: u16, port: u16) -> io::Result<()> {
        let socket = UdpSocket::bind(SocketAddr::from((self.local, port)))?;
        socket.set_nonblocking(true)?;
        self.sockets.insert(number, socket);
        Ok(())
    }
}
