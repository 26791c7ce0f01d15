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
    pub(crate) there: LinkDirection,
    pub(crate) back: LinkDirection,
    nat: Option<NatSpec>,
    /// The time of the next rebinding.
    rebind_at: Option<Time>,
    /// The last byte of the address of the next rebinding, less one.
    host: u8,
    expire_at: Time,
    buffer: Box<[u8]>,
    slabs: Slabs,
    pub(crate) router: Router,
    /// Time spent polling the sockets shortly before a datagram was due.
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
    /// The time that packets may wait for others that share a batch with them.
    grain: Duration,
    /// The time at which packets were last sent.
    last_release: Time,
    /// Datagrams that the system did not take, or for clients that were forgotten.
    pub(crate) unsent: u64,
    /// The delay of packets behind the time that the link sets.
    pub(crate) lateness: Histogram,
}

/// A direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Heading {
    There,
    Back,
}

impl Relay {
    /// Makes a relay of a bound socket.
    pub(crate) fn new(
        listener: UdpSocket,
        server: SocketAddr,
        clients: Clients,
        router: Router,
        spec: &DuplexSpec,
        seed: u64,
    ) -> Self {
        let (there, back) = spec.links(seed);
        Self {
            listener,
            server,
            start: Instant::now(),
            clients,
            there: LinkDirection::new(there, spec.forward.total_delay()),
            back: LinkDirection::new(back, spec.back.total_delay()),
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
        self.there.link.set_max_bytes(bytes);
        self.back.link.set_max_bytes(bytes);
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

    /// Waits for the first datagram of a client, at which all times of the link begin. Returns at once
    /// when `goes_on` returns false, which is called at least every 50 ms.
    pub(crate) fn wait_for_client(&mut self, mut goes_on: impl FnMut() -> bool) {
        while goes_on() {
            let listener = std::iter::once(&self.listener);
            if wait_readable(listener, LONGEST_SLEEP, &mut self.ready) {
                break;
            }
        }
        self.ready.clear();
        self.start = Instant::now();
    }

    /// Relays until `goes_on` returns false. It is called at least every 50 ms.
    ///
    /// # Errors
    /// Returns an error if the listening socket fails, or no socket can be opened for a rebinding.
    pub(crate) fn run(&mut self, mut goes_on: impl FnMut(&Self) -> bool) -> io::Result<()> {
        wake_exactly();
        while goes_on(self) {
            let timeout = self.timeout();
            let sockets = std::iter::once(&self.listener)
                .chain(self.clients.upstreams())
                .chain(&self.clients.retired);
            let before = self.now();
            let is_any = wait_readable(sockets, timeout, &mut self.ready);
            let now = self.now();
            if timeout.is_zero() && !is_any {
                // The rest is time that the system gave to other processes.
                self.spun += (now - before).min(LONGEST_SPIN);
            }
            self.keep_time(now)?;
            self.receive_all()?;
            self.release_due();
        }
        Ok(())
    }

    fn now(&self) -> Time {
        let nanos = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Time::from_nanos(nanos)
    }

    /// Returns the time to sleep: up to shortly before something is due. The rest is spun.
    fn timeout(&self) -> Duration {
        let due = [self.there.due(), self.back.due(), self.rebind_at];
        let next = due.into_iter().flatten().min();
        let left = next.map_or(LONGEST_SLEEP, |next| next - self.now());
        left.saturating_sub(SPIN).min(LONGEST_SLEEP)
    }

    /// Rebinds and forgets clients when that is due.
    fn keep_time(&mut self, now: Time) -> io::Result<()> {
        if let Some(nat) = self.nat
            && self.rebind_at.is_some_and(|at| at <= now)
        {
            self.rebind_at = nat.next_after(now - Time::ZERO).map(|at| Time::ZERO + at);
            // From 127.0.0.2 on: all other programs use 127.0.0.1.
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
        // New clients come after those whose sockets were polled.
        let indexes: Vec<usize> = self.clients.indexes().collect();
        let mut asked = ready.len().saturating_sub(self.clients.retired.len());
        for index in indexes {
            if asked == 0 {
                break;
            }
            asked -= 1;
            if ready.next() == Some(true) {
                self.receive_from_server(index);
            }
        }
        for (socket, is_ready) in self.clients.retired.iter().zip(ready) {
            if is_ready {
                self.late_replies += drained(socket, &mut self.buffer);
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
            let known = self.clients.seen(now, received.peer, received.local)?;
            let Some(index) = known else {
                self.clients.counts.refused_datagrams += received.count() as u64;
                continue;
            };
            let (source, destination) = (received.peer, self.server);
            let all = self.slabs.keep(&self.buffer[..received.len]);
            for payload in datagrams(&received, &all) {
                self.observe(
                    now,
                    ObservationPoint::FromClient,
                    index,
                    received.ecn,
                    &payload,
                );
                enter(
                    &mut self.there.link,
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
                // The server is not running, or not yet. As on a real path, its clients see a loss.
                Err(_) => continue,
            };
            budget.take(received.len);
            let now = self.now();
            self.clients.on_server_sent(now, index, received.len as u64);
            let all = self.slabs.keep(&self.buffer[..received.len]);
            for payload in datagrams(&received, &all) {
                self.observe(
                    now,
                    ObservationPoint::FromServer,
                    index,
                    received.ecn,
                    &payload,
                );
                enter(
                    &mut self.back.link,
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
        for heading in [Heading::There, Heading::Back] {
            let way = self.way(heading);
            if way.due().is_some_and(|due| due <= now) {
                way.last_release = now;
                self.release(heading, now);
            }
        }
    }

    fn release(&mut self, heading: Heading, now: Time) {
        while let Some((at, packet)) = self.way(heading).link.poll_with_time(now) {
            self.way(heading).lateness.record(now - at);
            let address = match heading {
                Heading::There => packet.source,
                Heading::Back => packet.destination,
            };
            let Some(client) = self.clients.find(address) else {
                self.way(heading).unsent += 1;
                continue;
            };
            let place = match heading {
                Heading::There => ObservationPoint::ToServer,
                Heading::Back => ObservationPoint::ToClient,
            };
            self.observe(now, place, client, packet.ecn, &packet.payload);
            let limit = self.listener.gso_segments();
            if !self.batch.add(client, packet.ecn, &packet.payload, limit) {
                self.flush(heading);
                self.batch.add(client, packet.ecn, &packet.payload, limit);
            }
        }
        self.flush(heading);
        while let Some(message) = self.way(heading).link.poll_report(now) {
            self.answer(heading, &message);
        }
    }

    /// Passes a datagram to the observer, if there is one.
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
    fn answer(&mut self, heading: Heading, message: &TooBig) {
        let address = match heading {
            Heading::There => message.packet.source,
            Heading::Back => message.packet.destination,
        };
        let index = self.clients.find(address);
        let Some(client) = index.and_then(|index| self.clients.get(index)) else {
            return;
        };
        let (entrance, source) = match heading {
            Heading::There => (&self.listener, client.address),
            Heading::Back => (&client.upstream, self.server),
        };
        let Ok(mut destination) = entrance.local_addr() else {
            return;
        };
        if let Some(local) = client.local.filter(|_| heading == Heading::There) {
            destination.set_ip(local);
        }
        self.router.tell(source, destination, message);
    }

    fn flush(&mut self, heading: Heading) {
        if self.batch.is_empty() {
            return;
        }
        let index = self.batch.client();
        let Some(client) = self.clients.get(index) else {
            self.batch.clear();
            return;
        };
        let (socket, destination, source) = match heading {
            Heading::There => (&client.upstream, self.server, None),
            Heading::Back => (&self.listener, client.address, client.local),
        };
        let transmit = Transmit {
            destination,
            source,
            ecn: self.batch.ecn(),
            segment_size: self.batch.segment_size(),
            contents: self.batch.contents(),
        };
        let unsent = send(socket, transmit);
        if heading == Heading::There {
            let bytes = self.batch.contents().len() as u64;
            self.clients.on_reached_server(index, bytes);
        }
        self.way(heading).unsent += unsent;
        self.batch.clear();
    }

    fn way(&mut self, heading: Heading) -> &mut LinkDirection {
        match heading {
            Heading::There => &mut self.there,
            Heading::Back => &mut self.back,
        }
    }
}

impl LinkDirection {
    fn new(link: Link, delay: Duration) -> Self {
        Self {
            link,
            grain: (delay / 64).clamp(LEAST_GRAIN, MOST_GRAIN),
            last_release: Time::ZERO,
            unsent: 0,
            lateness: Histogram::new(),
        }
    }

    /// Returns the time of the next batch. It is that of the link, unless it follows the last batch so soon
    /// that each packet of a fast sender would cost a system call of its own.
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

/// Reads and drops datagrams that wait on a socket, one turn's worth of them, and returns their number.
fn drained(socket: &UdpSocket, buffer: &mut [u8]) -> u64 {
    let received = (0..CALLS_AT_ONCE).map_while(|_| socket.try_receive(buffer).ok());
    received.map(|received| received.count() as u64).sum()
}

/// Sends a batch and returns the number of datagrams that were not sent.
fn send(socket: &UdpSocket, mut transmit: Transmit<'_>) -> u64 {
    let mut tries = SEND_TRIES;
    while !transmit.contents.is_empty() {
        match socket.try_send_some(&transmit) {
            Ok(taken) => transmit.contents = &transmit.contents[taken..],
            Err(_) if tries == 0 => break,
            Err(error) => {
                tries -= 1;
                // Other errors may report an earlier datagram, and this one is sent by the next call.
                if classify(&error) == ErrorClass::WouldBlock {
                    wait_writable(socket);
                }
            }
        }
    }
    let size = transmit.segment_size.unwrap_or(transmit.contents.len());
    transmit.contents.len().div_ceil(size.max(1)) as u64
}

/// Sleeping ends this much before something is due: waking takes as long.
const SPIN: Duration = Duration::from_micros(50);

/// The time that packets wait to share a batch: from half of a full batch at 5 Gbit/s to all of it, where
/// that is short beside the delay. It saves a fifth of the CPU time there.
const LEAST_GRAIN: Duration = Duration::from_micros(50);
const MOST_GRAIN: Duration = Duration::from_micros(100);

/// The longest poll of the sockets that counts as spinning; one takes a microsecond or two.
const LONGEST_SPIN: Duration = Duration::from_micros(20);

/// The longest time before a signal to stop is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// The amount received from one socket before other sockets, and packets that are due, have their turn.
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

/// Single datagrams of a sender without offload take a microsecond each.
const CALLS_AT_ONCE: usize = 64;
/// Eight full batches.
const BYTES_AT_ONCE: usize = 512 << 10;

const SEND_TRIES: u32 = 3;

const EXPIRE_EVERY: Duration = Duration::from_secs(1);
