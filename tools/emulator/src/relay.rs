//! The loop of the emulator: receive datagrams, pass them through the links, send those that are due.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser_base::{Ecn, Time};
use courser_link::{DuplexSpec, Histogram, Link, NatSpec, Packet, TooBig};
use courser_udp::{
    ErrorClass, RECEIVE_BUFFER_LEN, Received, Transmit, UdpSocket, classify, is_transient,
};

use crate::batch::Batch;
use crate::clients::Clients;
use crate::icmp::Router;
use crate::observer::{ObservationPoint, ObservedDatagram, Observer};
use crate::slabs::Slabs;
use crate::wait::{wait_readable, wait_writable, wake_exactly};

/// Both directions of a link between clients and a server.
#[derive(Debug)]
pub(crate) struct Relay {
    listener: UdpSocket,
    server: SocketAddr,
    start: Instant,
    pub(crate) clients: Clients,
    pub(crate) to_server: LinkDirection,
    pub(crate) to_clients: LinkDirection,
    nat: Option<NatSpec>,
    /// The time of the next rebinding.
    rebind_at: Option<Time>,
    /// The last byte of the address of the next rebinding, less one.
    host: u8,
    expire_at: Time,
    buffer: Box<[u8]>,
    slabs: Slabs,
    pub(crate) router: Router,
    /// Time spent polling the sockets shortly before datagrams were due.
    pub(crate) spun: Duration,
    batch: Batch,
    ready: Vec<bool>,
    pub(crate) late_replies: u64,
    observer: Option<Box<dyn Observer>>,
}

/// One direction of the link.
#[derive(Debug)]
pub(crate) struct LinkDirection {
    pub(crate) link: Link,
    /// The time for which packets may wait to share a batch with others.
    grain: Duration,
    /// The time at which packets were last sent.
    last_release: Time,
    /// Datagrams that could not be sent, or whose clients were forgotten.
    pub(crate) unsent: u64,
    /// The delay of packets after the time that the link sets.
    pub(crate) lateness: Histogram,
}

/// The destination of datagrams, which selects the direction of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Toward {
    Server,
    Clients,
}

impl Relay {
    /// Creates a relay for a bound socket.
    pub(crate) fn new(
        listener: UdpSocket,
        server: SocketAddr,
        clients: Clients,
        router: Router,
        spec: &DuplexSpec,
        seed: u64,
    ) -> Self {
        let (to_server, to_clients) = spec.links(seed);
        Self {
            listener,
            server,
            start: Instant::now(),
            clients,
            to_server: LinkDirection::new(to_server, spec.forward.total_delay()),
            to_clients: LinkDirection::new(to_clients, spec.back.total_delay()),
            nat: spec.nat,
            rebind_at: spec.nat.map(|nat| Time::ZERO + nat.first),
            host: u8::try_from(seed % 200).unwrap_or(0),
            expire_at: Time::ZERO + EXPIRE_EVERY,
            buffer: vec![0; RECEIVE_BUFFER_LEN].into(),
            slabs: Slabs::new(),
            router,
            spun: Duration::ZERO,
            batch: Batch::new(),
            ready: Vec::new(),
            late_replies: 0,
            observer: None,
        }
    }

    /// Reports all datagrams to `observer`.
    pub(crate) fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// Limits the bytes on the link in each direction.
    pub(crate) fn set_hold(&mut self, bytes: u64) {
        self.to_server.link.set_max_bytes(bytes);
        self.to_clients.link.set_max_bytes(bytes);
    }

    pub(crate) fn listener(&self) -> &UdpSocket {
        &self.listener
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the number of datagrams that the kernel dropped because they were not read in time.
    pub(crate) fn kernel_drops(&self) -> u64 {
        let listener = self.listener.receive_overflow().unwrap_or(0);
        listener + self.clients.counts.kernel_drops + self.clients.open_kernel_drops()
    }

    /// Waits for the first datagram of a client, at which all times of the link start. Returns when
    /// `keep_running` returns false, which is called at least every 50 ms.
    pub(crate) fn wait_for_client(&mut self, mut keep_running: impl FnMut() -> bool) {
        while keep_running() {
            let listener = std::iter::once(&self.listener);
            if wait_readable(listener, LONGEST_SLEEP, &mut self.ready) {
                break;
            }
        }
        self.ready.clear();
        self.start = Instant::now();
    }

    /// Relays until `keep_running` returns false. It is called at least every 50 ms.
    ///
    /// # Errors
    /// Returns an error if the listening socket fails, or no socket can be opened for a rebinding.
    pub(crate) fn run(&mut self, mut keep_running: impl FnMut(&Self) -> bool) -> io::Result<()> {
        wake_exactly();
        while keep_running(self) {
            let timeout = self.timeout();
            let sockets = std::iter::once(&self.listener)
                .chain(self.clients.upstreams())
                .chain(&self.clients.retired);
            let before = self.now();
            let is_any = wait_readable(sockets, timeout, &mut self.ready);
            let now = self.now();
            if timeout.is_zero() && !is_any {
                // A longer poll includes time that the system gave to other processes.
                self.spun += (now - before).min(LONGEST_SPIN);
            }
            self.run_timers(now)?;
            self.receive_all()?;
            self.release_due();
        }
        Ok(())
    }

    fn now(&self) -> Time {
        let nanos = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Time::from_nanos(nanos)
    }

    /// Returns the time to sleep, which ends shortly before the next event. The relay spins for the rest.
    fn timeout(&self) -> Duration {
        let due = [self.to_server.due(), self.to_clients.due(), self.rebind_at];
        let next = due.into_iter().flatten().min();
        let left = next.map_or(LONGEST_SLEEP, |next| next - self.now());
        left.saturating_sub(SPIN).min(LONGEST_SLEEP)
    }

    /// Rebinds and forgets clients when due.
    fn run_timers(&mut self, now: Time) -> io::Result<()> {
        if let Some(nat) = self.nat
            && self.rebind_at.is_some_and(|at| at <= now)
        {
            self.rebind_at = nat.next_after(now - Time::ZERO).map(|at| Time::ZERO + at);
            // Starts at 127.0.0.2, because other programs use 127.0.0.1.
            self.host = self.host % 252 + 1;
            self.clients.rebind(nat.address.then_some(self.host + 1))?;
            self.ready.clear();
        }
        if self.expire_at <= now {
            self.expire_at = now + EXPIRE_EVERY;
            self.clients.expire(now);
            self.ready.clear();
        }
        Ok(())
    }

    /// Receives from the sockets that are ready.
    fn receive_all(&mut self) -> io::Result<()> {
        let mut ready = std::mem::take(&mut self.ready).into_iter();
        if ready.next() == Some(true) {
            self.receive_from_clients()?;
        }
        // New clients have the highest positions: their sockets were not polled.
        let indexes: Vec<usize> = self.clients.indexes().collect();
        let mut polled = ready.len().saturating_sub(self.clients.retired.len());
        for index in indexes {
            if polled == 0 {
                break;
            }
            polled -= 1;
            if ready.next() == Some(true) {
                self.receive_from_server(index);
            }
        }
        for (socket, is_ready) in self.clients.retired.iter().zip(ready) {
            if is_ready {
                self.late_replies += drain(socket, &mut self.buffer);
            }
        }
        Ok(())
    }

    fn receive_from_clients(&mut self) -> io::Result<()> {
        let mut budget = Budget::new();
        while budget.is_left() {
            let received = match self.listener.try_receive(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if classify(&error) == ErrorClass::WouldBlock => break,
                Err(error) if is_transient(&error) => continue,
                Err(error) => return Err(error),
            };
            budget.take(received.len);
            let now = self.now();
            let known = self
                .clients
                .find_or_add(now, received.peer, received.local)?;
            let Some(index) = known else {
                self.clients.counts.refused_datagrams += received.count() as u64;
                continue;
            };
            let (source, destination) = (received.peer, self.server);
            let all = self.slabs.copy(&self.buffer[..received.len]);
            for payload in datagrams(&received, &all) {
                self.observe(
                    now,
                    ObservationPoint::FromClient,
                    index,
                    received.ecn,
                    &payload,
                );
                enter(
                    &mut self.to_server.link,
                    now,
                    source,
                    destination,
                    &received,
                    payload,
                );
            }
        }
        Ok(())
    }

    fn receive_from_server(&mut self, index: usize) {
        let mut budget = Budget::new();
        while budget.is_left() {
            let Some(client) = self.clients.get(index) else {
                return;
            };
            let (source, destination) = (self.server, client.address);
            let received = match client.upstream.try_receive(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if classify(&error) == ErrorClass::WouldBlock => break,
                // The server does not run, or not yet. As on a real path, its clients see a loss.
                Err(_) => continue,
            };
            budget.take(received.len);
            let now = self.now();
            self.clients.on_server_sent(now, index, received.len as u64);
            let all = self.slabs.copy(&self.buffer[..received.len]);
            for payload in datagrams(&received, &all) {
                self.observe(
                    now,
                    ObservationPoint::FromServer,
                    index,
                    received.ecn,
                    &payload,
                );
                enter(
                    &mut self.to_clients.link,
                    now,
                    source,
                    destination,
                    &received,
                    payload,
                );
            }
        }
    }

    fn release_due(&mut self) {
        let now = self.now();
        for toward in [Toward::Server, Toward::Clients] {
            let direction = self.direction(toward);
            if direction.due().is_some_and(|due| due <= now) {
                direction.last_release = now;
                self.release(toward, now);
            }
        }
    }

    fn release(&mut self, toward: Toward, now: Time) {
        while let Some((at, packet)) = self.direction(toward).link.poll_with_time(now) {
            self.direction(toward).lateness.record(now - at);
            let address = match toward {
                Toward::Server => packet.source,
                Toward::Clients => packet.destination,
            };
            let Some(client) = self.clients.find(address) else {
                self.direction(toward).unsent += 1;
                continue;
            };
            let place = match toward {
                Toward::Server => ObservationPoint::ToServer,
                Toward::Clients => ObservationPoint::ToClient,
            };
            self.observe(now, place, client, packet.ecn, &packet.payload);
            let limit = self.listener.gso_segments();
            if !self.batch.add(client, packet.ecn, &packet.payload, limit) {
                self.flush(toward);
                self.batch.add(client, packet.ecn, &packet.payload, limit);
            }
        }
        self.flush(toward);
        while let Some(message) = self.direction(toward).link.poll_report(now) {
            self.answer(toward, &message);
        }
    }

    /// Reports a datagram to the observer, if there is one.
    fn observe(
        &mut self,
        now: Time,
        place: ObservationPoint,
        client: usize,
        ecn: Ecn,
        payload: &Bytes,
    ) {
        let Some(observer) = &mut self.observer else {
            return;
        };
        if let Some(client) = self.clients.get(client) {
            observer.on_datagram(&ObservedDatagram {
                at: now - Time::ZERO,
                place,
                client: client.address,
                translated: client.upstream.local_addr().ok(),
                ecn,
                payload: payload.clone(),
            });
        }
    }

    /// Reports to the sender of a packet that it was too large for the link.
    fn answer(&mut self, toward: Toward, message: &TooBig) {
        let address = match toward {
            Toward::Server => message.packet.source,
            Toward::Clients => message.packet.destination,
        };
        let index = self.clients.find(address);
        let Some(client) = index.and_then(|index| self.clients.get(index)) else {
            return;
        };
        let (entrance, source) = match toward {
            Toward::Server => (&self.listener, client.address),
            Toward::Clients => (&client.upstream, self.server),
        };
        let Ok(mut destination) = entrance.local_addr() else {
            return;
        };
        if let Some(local) = client.local.filter(|_| toward == Toward::Server) {
            destination.set_ip(local);
        }
        self.router.report_too_big(source, destination, message);
    }

    fn flush(&mut self, toward: Toward) {
        if self.batch.is_empty() {
            return;
        }
        let index = self.batch.client();
        let Some(client) = self.clients.get(index) else {
            self.batch.clear();
            return;
        };
        let (socket, destination, source) = match toward {
            Toward::Server => (&client.upstream, self.server, None),
            Toward::Clients => (&self.listener, client.address, client.local),
        };
        let transmit = Transmit {
            destination,
            source,
            ecn: self.batch.ecn(),
            segment_size: self.batch.segment_size(),
            contents: self.batch.contents(),
        };
        let unsent = send(socket, transmit);
        if toward == Toward::Server {
            let bytes = self.batch.contents().len() as u64;
            self.clients.on_reached_server(index, bytes);
        }
        self.direction(toward).unsent += unsent;
        self.batch.clear();
    }

    fn direction(&mut self, toward: Toward) -> &mut LinkDirection {
        match toward {
            Toward::Server => &mut self.to_server,
            Toward::Clients => &mut self.to_clients,
        }
    }
}

impl LinkDirection {
    fn new(link: Link, delay: Duration) -> Self {
        Self {
            link,
            grain: (delay / 64).clamp(MIN_GRAIN, MAX_GRAIN),
            last_release: Time::ZERO,
            unsent: 0,
            lateness: Histogram::new(),
        }
    }

    /// Returns the time of the next batch: that of the link, but at least [`grain`](Self::grain) after the last
    /// batch, so that the packets of a fast sender share system calls.
    fn due(&self) -> Option<Time> {
        let next = self.link.next_time()?;
        Some(next.max(self.last_release + self.grain))
    }
}

/// Returns the datagrams of a batch that was received in one call.
fn datagrams(received: &Received, all: &Bytes) -> impl Iterator<Item = Bytes> {
    let (len, size) = (received.len, received.segment_size);
    let starts = (0..len).step_by(size);
    starts.map(move |start| all.slice(start..len.min(start + size)))
}

/// Puts a received datagram on a link.
fn enter(
    link: &mut Link,
    now: Time,
    source: SocketAddr,
    destination: SocketAddr,
    received: &Received,
    payload: Bytes,
) {
    link.send(
        now,
        Packet {
            source,
            destination,
            ecn: received.ecn,
            payload,
        },
    );
}

/// Reads and drops the datagrams that wait on a socket, at most those of one turn. Returns their number.
fn drain(socket: &UdpSocket, buffer: &mut [u8]) -> u64 {
    let received = (0..CALLS_AT_ONCE).map_while(|_| socket.try_receive(buffer).ok());
    received.map(|received| received.count() as u64).sum()
}

/// Sends a batch. Returns the number of datagrams that could not be sent.
fn send(socket: &UdpSocket, mut transmit: Transmit<'_>) -> u64 {
    let mut tries = SEND_TRIES;
    while !transmit.contents.is_empty() {
        match socket.try_send_some(&transmit) {
            Ok(taken) => transmit.contents = &transmit.contents[taken..],
            Err(_) if tries == 0 => break,
            Err(error) => {
                tries -= 1;
                // Other errors may be about an earlier datagram. The next call then sends this one.
                if classify(&error) == ErrorClass::WouldBlock {
                    wait_writable(socket);
                }
            }
        }
    }
    let size = transmit.segment_size.unwrap_or(transmit.contents.len());
    transmit.contents.len().div_ceil(size.max(1)) as u64
}

/// The time before an event at which sleeping ends, because waking takes about as long.
const SPIN: Duration = Duration::from_micros(50);

/// The shortest and the longest time for which packets wait to share a batch: half of a full batch and a full
/// batch at 5 Gbit/s. Longer delays of the link allow longer waits, which save a fifth of the CPU time.
const MIN_GRAIN: Duration = Duration::from_micros(50);
const MAX_GRAIN: Duration = Duration::from_micros(100);

/// The longest poll of the sockets that counts as spinning. A poll takes a microsecond or two.
const LONGEST_SPIN: Duration = Duration::from_micros(20);

/// The longest time until `keep_running` is called again.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// The limit of receiving from one socket before other sockets and due packets have their turn.
#[derive(Debug)]
struct Budget {
    calls: usize,
    bytes: usize,
}

impl Budget {
    fn new() -> Self {
        Self {
            calls: CALLS_AT_ONCE,
            bytes: BYTES_AT_ONCE,
        }
    }

    /// Returns true if another call may be made, and counts it.
    fn is_left(&mut self) -> bool {
        let is_left = self.calls > 0 && self.bytes > 0;
        self.calls = self.calls.saturating_sub(1);
        is_left
    }

    fn take(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// The largest number of receive calls. Each takes a microsecond for a single datagram without offload.
const CALLS_AT_ONCE: usize = 64;
/// The largest number of received bytes: eight full batches of 64 KiB.
const BYTES_AT_ONCE: usize = 512 << 10;

const SEND_TRIES: u32 = 3;

const EXPIRE_EVERY: Duration = Duration::from_secs(1);
