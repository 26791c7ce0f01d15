//! The limit of datagrams as a peer: `peer-pipe server|client`.
//!
//! Batches of datagrams go through the same kind of socket as courser's, with GSO and GRO, but with no
//! protocol: nothing is protected, acknowledged, paced or repeated. The sender goes on until the
//! receiver says that it has enough. So the goodput is that of what arrived; what the receiver could
//! not take in time is dropped at its socket, and counted there.
//!
//! Short datagrams are the orders: a letter, a number of bytes or datagrams, and the size of each.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use courser_base::Ecn;
use courser_udp::{MAX_BATCH_LEN, RECEIVE_BUFFER_LEN, Transmit, UdpSocket};
use peers::command_line::{ClientOptions, CommandLine, Role, Scenario, ServerOptions};
use peers::operations::Done;
use peers::settings::DATAGRAM_PAYLOAD;
use peers::tally::Tally;
use peers::{ClientResult, Datagrams, Failure, Ready, ServerResult, standard_input};
use socket2::SockRef;

fn main() -> Result<(), Failure> {
    match CommandLine::parse().role {
        Role::Server(options) => Ok(peers::print(&serve(&options)?)?),
        Role::Client(options) => Ok(peers::print(&work(&options)?)?),
    }
}

/// An order of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order {
    kind: Kind,
    /// Bytes, or datagrams.
    count: u64,
    /// Bytes of each datagram.
    size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Take `count` bytes, then say so.
    Up,
    /// Send until told to stop; the client wants `count` bytes.
    Down,
    /// Count the datagrams that follow.
    Count,
    /// The sender has sent all, or the receiver has enough.
    End,
}

impl Order {
    const END: Self = Self {
        kind: Kind::End,
        count: 0,
        size: 0,
    };

    fn to_bytes(self) -> [u8; ORDER_LEN] {
        let mut bytes = [0; ORDER_LEN];
        bytes[0] = match self.kind {
            Kind::Up => b'U',
            Kind::Down => b'D',
            Kind::Count => b'C',
            Kind::End => b'E',
        };
        bytes[1..9].copy_from_slice(&self.count.to_be_bytes());
        bytes[9..].copy_from_slice(&(self.size as u64).to_be_bytes());
        bytes
    }

    /// `None` for anything that is no order; contents are longer.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; ORDER_LEN] = bytes.try_into().ok()?;
        let (letter, rest) = bytes.split_first()?;
        let kind = match letter {
            b'U' => Kind::Up,
            b'D' => Kind::Down,
            b'C' => Kind::Count,
            b'E' => Kind::End,
            _ => return None,
        };
        let (count, size) = rest.split_first_chunk::<8>()?;
        let size = u64::from_be_bytes(size.try_into().ok()?);
        Some(Self {
            kind,
            count: u64::from_be_bytes(*count),
            size: usize::try_from(size)
                .ok()
                .filter(|size| *size <= MAX_BATCH_LEN)?,
        })
    }
}

/// The result of one call of the kernel.
enum Batch {
    Order(Order, SocketAddr),
    /// The contents of so many datagrams, with so many bytes.
    Contents {
        datagrams: u64,
        bytes: u64,
    },
}

/// A socket whose calls block, and its buffer.
struct Receiver<'a> {
    socket: &'a UdpSocket,
    buffer: Vec<u8>,
}

impl<'a> Receiver<'a> {
    fn new(socket: &'a UdpSocket) -> Self {
        Self {
            socket,
            buffer: vec![0; RECEIVE_BUFFER_LEN],
        }
    }

    /// Waits for a batch.
    fn next(&mut self) -> Result<Batch, Failure> {
        loop {
            let received = match self.socket.try_receive(&mut self.buffer) {
                Ok(received) => received,
                // A refusal of an earlier datagram, or the time after which a call returns.
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(order) = Order::from_bytes(&self.buffer[..received.len]) {
                return Ok(Batch::Order(order, received.peer));
            }
            return Ok(Batch::Contents {
                datagrams: received.count() as u64,
                bytes: received.len as u64,
            });
        }
    }

    /// Takes contents until there are `count` bytes of them.
    fn take(&mut self, count: u64) -> Result<(), Failure> {
        let mut left = count;
        while left > 0 {
            if let Batch::Contents { bytes, .. } = self.next()? {
                left = left.saturating_sub(bytes);
            }
        }
        Ok(())
    }

    /// Counts datagrams until the end is announced.
    fn count(&mut self) -> Result<Datagrams, Failure> {
        let (mut received, mut first, mut last) = (0, None, None);
        loop {
            match self.next()? {
                Batch::Contents { datagrams, .. } => {
                    received += datagrams;
                    last = Some(Instant::now());
                    first = first.or(last);
                }
                Batch::Order(order, _) if order.kind == Kind::End => break,
                Batch::Order(..) => {}
            }
        }
        let span = last.zip(first).map(|(last, first)| last - first);
        Ok(Datagrams {
            received,
            seconds: span.unwrap_or_default().as_secs_f64(),
        })
    }

    fn wait_for_end(&mut self) -> Result<(), Failure> {
        loop {
            if let Batch::Order(order, _) = self.next()?
                && order.kind == Kind::End
            {
                return Ok(());
            }
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || courser_udp::is_transient(error)
}

/// Binds a socket whose calls block instead of returning `WouldBlock`.
fn waiting_socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    SockRef::from(&socket).set_nonblocking(false)?;
    Ok(socket)
}

fn send(socket: &UdpSocket, peer: SocketAddr, size: usize, contents: &[u8]) -> io::Result<()> {
    let batch = Transmit {
        destination: peer,
        source: None,
        ecn: Ecn::Ect0,
        segment_size: Some(size),
        contents,
    };
    match socket.try_send(&batch) {
        // Lost as on a path.
        Err(error) if is_passing(&error) => Ok(()),
        other => other,
    }
}

fn order(socket: &UdpSocket, peer: SocketAddr, order: Order) -> io::Result<()> {
    send(socket, peer, ORDER_LEN, &order.to_bytes())
}

/// Returns the datagrams of one call of the kernel.
fn full_batch(socket: &UdpSocket, size: usize) -> Vec<u8> {
    let datagrams = (MAX_BATCH_LEN / size).min(socket.gso_segments()).max(1);
    vec![0; size * datagrams]
}

/// Sends batch after batch until the peer has enough.
fn send_until_end(socket: &UdpSocket, peer: SocketAddr, size: usize) -> Result<(), Failure> {
    let contents = full_batch(socket, size);
    let is_enough = AtomicBool::new(false);
    thread::scope(|scope| {
        // Asleep until then, so that the sender need not ask the kernel after each batch.
        let listener = scope.spawn(|| {
            let result = Receiver::new(socket).wait_for_end();
            is_enough.store(true, Ordering::Relaxed);
            result
        });
        while !is_enough.load(Ordering::Relaxed) {
            send(socket, peer, size, &contents)?;
        }
        listener.join().map_err(|_| "the listener has failed")?
    })
}

fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let socket = waiting_socket(options.listen)?;
    peers::print(&Ready {
        listening: socket.local_addr()?,
    })?;
    let tally = Arc::new(Tally::default());
    let own = tally.clone();
    // The thread ends with the process.
    thread::spawn(move || {
        if let Err(error) = obey(&socket, &own) {
            eprintln!("pipe: {error}");
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(standard_input::closed());
    Ok(ServerResult::new(&tally))
}

fn obey(socket: &UdpSocket, tally: &Tally) -> Result<(), Failure> {
    let mut receiver = Receiver::new(socket);
    loop {
        // Contents that come after the end are what was under way.
        let Batch::Order(given, client) = receiver.next()? else {
            continue;
        };
        match given.kind {
            Kind::Up => {
                tally.connected();
                receiver.take(given.count)?;
                tally.answered(given.count, 0);
                order(socket, client, Order::END)?;
            }
            Kind::Down => {
                tally.connected();
                send_until_end(socket, client, given.size.max(1))?;
                tally.answered(0, given.count);
            }
            Kind::Count => {
                tally.connected();
                tally.datagrams_came(receiver.count()?);
                order(socket, client, Order::END)?;
            }
            Kind::End => {}
        }
    }
}

fn work(options: &ClientOptions) -> Result<ClientResult, Failure> {
    let socket = waiting_socket(options.local())?;
    let (server, size) = (options.server, usize::from(options.transport.datagram));
    let give = |kind, count, size| order(&socket, server, Order { kind, count, size });
    let start = Instant::now();
    let done = match options.scenario {
        Scenario::Up => {
            give(Kind::Up, options.bytes, size)?;
            send_until_end(&socket, server, size)?;
            Done {
                bytes: options.bytes,
                ..Done::after(start.elapsed())
            }
        }
        Scenario::Down => {
            give(Kind::Down, options.bytes, size)?;
            Receiver::new(&socket).take(options.bytes)?;
            let time = start.elapsed();
            order(&socket, server, Order::END)?;
            Done {
                bytes: options.bytes,
                ..Done::after(time)
            }
        }
        Scenario::Datagrams => {
            give(Kind::Count, options.count, DATAGRAM_PAYLOAD)?;
            let time = send_datagrams(&socket, server, options.count)?;
            Done {
                count: options.count,
                ..Done::after(time)
            }
        }
        other => return Err(format!("a pipe has no connections and does no {other:?}").into()),
    };
    Ok(ClientResult::new(
        peers::locked_version("courser-udp"),
        options.scenario,
        &done,
    ))
}

/// Sends so many datagrams and waits until the server has counted those that came.
fn send_datagrams(socket: &UdpSocket, server: SocketAddr, count: u64) -> Result<Duration, Failure> {
    let contents = full_batch(socket, DATAGRAM_PAYLOAD);
    let start = Instant::now();
    let mut left = usize::try_from(count)?.saturating_mul(DATAGRAM_PAYLOAD);
    while left > 0 {
        let next = left.min(contents.len());
        send(socket, server, DATAGRAM_PAYLOAD, &contents[..next])?;
        left -= next;
    }
    let time = start.elapsed();
    // The server empties its buffer first, where the end then has room.
    thread::sleep(DRAIN);
    order(socket, server, Order::END)?;
    Receiver::new(socket).wait_for_end()?;
    Ok(time)
}

/// A letter and two numbers; shorter than any contents.
const ORDER_LEN: usize = 17;

const DRAIN: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_are_written() {
        for kind in [Kind::Up, Kind::Down, Kind::Count, Kind::End] {
            let order = Order {
                kind,
                count: 1 << 40,
                size: 1452,
            };
            assert_eq!(Order::from_bytes(&order.to_bytes()), Some(order));
        }
    }

    #[test]
    fn contents_are_no_orders() {
        assert_eq!(Order::from_bytes(&[0; ORDER_LEN]), None);
        assert_eq!(Order::from_bytes(&[b'U'; 1200]), None);
        // A batch has 65 507 bytes at most.
        let mut order = Order::END.to_bytes();
        order[9..].copy_from_slice(&65_508_u64.to_be_bytes());
        assert_eq!(Order::from_bytes(&order), None);
    }

    #[test]
    fn a_batch_is_full_of_whole_datagrams() {
        let socket = waiting_socket("127.0.0.1:0".parse().unwrap()).unwrap();
        for size in [1, 1200, 1452, 9000, MAX_BATCH_LEN] {
            let length = full_batch(&socket, size).len();
            assert_eq!(length % size, 0);
            assert!((size..=MAX_BATCH_LEN).contains(&length));
        }
    }
}
