//! QUIC without a runtime: the sans-IO core, a blocking socket and a loop.
//!
//! A server in one thread echoes what a client in another one sends. `Driver::run` is a complete event loop. It
//! calls the core in the order that the documentation of `courser_transport` explains.

use std::error::Error;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_base::{Ecn, FourTuple, Time};
use courser_tls::{
    ClientOptions, Identity, ServerOptions, TlsClient, TlsServer, Trust, client_config,
    rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer},
    server_config,
};
use courser_transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Event, ReadError, ReceiveMeta,
    ServerConfig, StreamEvent, TransmitBuffer,
};
use courser_wire::{Direction, StreamId};

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

// ANCHOR: driver
/// A socket, a clock and an endpoint.
struct Driver {
    socket: UdpSocket,
    started: Instant,
    endpoint: Endpoint,
    /// A batch is one datagram here, because `std` has no segmentation offload.
    buffer: TransmitBuffer,
}

impl Driver {
    fn new(server: Option<Arc<ServerConfig>>) -> Result<Self> {
        // Random numbers of the system, from which the keys of tokens and resets are derived.
        let mut seeds = [[0; 32]; 2];
        seeds
            .iter_mut()
            .try_for_each(|seed| aws_lc_rs::rand::fill(seed))?;
        let config = EndpointConfig::from_seed(seeds[0]);
        Ok(Self {
            socket: UdpSocket::bind("127.0.0.1:0")?,
            started: Instant::now(),
            endpoint: Endpoint::new(config, server, seeds[1]),
            buffer: TransmitBuffer::new(1),
        })
    }

    /// Returns the time since the start of the driver, because the core has no clock.
    fn now(&self) -> Time {
        Time::ZERO + self.started.elapsed()
    }

    /// Drives the endpoint until `on_event` returns true.
    fn run(&mut self, mut on_event: impl FnMut(Time, &mut Connection, Event) -> bool) -> Result {
        let mut datagram = vec![0; 65_535];
        let mut is_over = false;
        while !is_over {
            let now = self.now();
            // 1. Timers that have fired, and new clients.
            self.endpoint.handle_timeout(now);
            while let Some(incoming) = self.endpoint.poll_incoming() {
                // A client that TLS refuses has been answered.
                let _ = self.endpoint.accept(now, incoming, None);
            }
            // 2. For each connection with activity, first its events, then its datagrams.
            while let Some(handle) = self.endpoint.next_ready() {
                let Some(connection) = self.endpoint.connection_mut(handle) else {
                    continue;
                };
                while let Some(event) = connection.poll_event() {
                    is_over |= on_event(now, connection, event);
                }
                let is_drained = connection.is_drained();
                while let Some(to) = self.endpoint.poll_transmit(now, handle, &mut self.buffer) {
                    self.socket.send_to(self.buffer.bytes(), to.destination)?;
                }
                if is_drained {
                    self.endpoint.release(handle);
                }
            }
            // 3. Answers to packets without a connection: Retry, Version Negotiation, stateless reset.
            while let Some(to) = self.endpoint.poll_stateless_transmit(&mut self.buffer) {
                self.socket.send_to(self.buffer.bytes(), to.destination)?;
            }
            // 4. Wait for a datagram, at most until the next timer.
            let wait = self.endpoint.next_timeout().map(|at| at - self.now());
            let wait = wait.map(|wait| wait.max(Duration::from_millis(1)));
            self.socket.set_read_timeout(wait)?;
            match self.socket.recv_from(&mut datagram) {
                _ if is_over => {}
                Ok((len, peer)) => {
                    let meta = ReceiveMeta {
                        path: FourTuple::to(peer),
                        ecn: Ecn::NotEct,
                        segment_size: len.max(1),
                    };
                    let now = self.now();
                    self.endpoint
                        .handle_datagrams(now, &mut datagram[..len], &meta);
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

// ANCHOR_END: driver
/// Reads what has arrived on a stream. Returns the bytes, and true at the end of the stream.
fn read(
    connection: &mut Connection,
    id: StreamId,
) -> std::result::Result<(Vec<u8>, bool), ReadError> {
    let mut all = Vec::new();
    loop {
        match connection.streams().read_chunk(id, usize::MAX) {
            Ok(Some(chunk)) => all.extend_from_slice(&chunk),
            Ok(None) => return Ok((all, true)),
            // An event announces more.
            Err(ReadError::Blocked) => return Ok((all, false)),
            Err(error) => return Err(error),
        }
    }
}

/// Echoes each stream. Returns true when the connection is over.
fn echo(_now: Time, connection: &mut Connection, event: Event) -> bool {
    let mut readable = Vec::new();
    match event {
        Event::Stream(StreamEvent::Opened { direction }) => {
            while let Some(id) = connection.streams().accept(direction) {
                readable.push(id);
            }
        }
        Event::Stream(StreamEvent::Readable { id }) => readable.push(id),
        Event::Lost(_) => return true,
        _ => {}
    }
    for id in readable {
        // The client may have reset the stream. A server of more than a few bytes keeps what `write` did not
        // take, and goes on at `StreamEvent::Writable`.
        if let Ok((bytes, is_end)) = read(connection, id)
            && connection.streams().write(id, &bytes) == Ok(bytes.len())
            && is_end
        {
            let _ = connection.streams().finish(id);
        }
    }
    false
}

fn main() -> Result {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let identity = Identity {
        chain: vec![made.cert.der().clone()],
        key: key.into(),
    };
    let alpn = vec![b"echo".to_vec()];
    let tls = TlsServer::new(server_config(ServerOptions::new(identity, alpn.clone()))?)?;
    let mut server = Driver::new(Some(Arc::new(ServerConfig::new(Arc::new(tls)))))?;
    let address = server.socket.local_addr()?;
    let serving = std::thread::spawn(move || server.run(echo));

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone())?;
    let tls = TlsClient::new(client_config(ClientOptions::new(
        Trust::Roots(roots),
        alpn,
    ))?)?;
    let config = ClientConfig::new(Arc::new(tls));
    let mut client = Driver::new(None)?;
    let now = client.now();
    client
        .endpoint
        .connect(now, &config, address, "localhost")?;
    let mut answer = Vec::new();
    client.run(|now, connection, event| match event {
        Event::Connected => {
            let id = connection.streams().open(Direction::Bidirectional);
            let id = id.expect("servers allow streams by default");
            let written = connection.streams().write(id, b"there and back");
            written.expect("room for a few bytes");
            connection.streams().finish(id).expect("open");
            // `Readable` follows a read that found nothing, or this call.
            connection.streams().await_data(id);
            false
        }
        Event::Stream(StreamEvent::Readable { id }) => {
            let (bytes, is_end) = read(connection, id).expect("the server resets nothing");
            answer.extend(bytes);
            if is_end {
                connection.close(now, 0, b"done");
            }
            is_end
        }
        Event::Lost(error) => {
            assert!(error.is_local_close(), "{error}");
            true
        }
        _ => false,
    })?;
    println!("{}", String::from_utf8_lossy(&answer));
    serving.join().expect("no panic")
}
