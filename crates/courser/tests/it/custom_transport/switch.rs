//! A network in memory as a transport of endpoints. It adds a header to every datagram.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use courser::Capabilities;
use courser::runtime::{Ecn, Received, Transmit, UdpSocket};

/// The header before each datagram.
const HEADER: &[u8] = b"RELAY7";
/// The largest number of packets that wait for one port.
const ROOM: usize = 24;
/// The largest datagram that fits after the header.
pub const LARGEST: usize = 1300;
/// The largest number of datagrams in a batch.
const SEGMENTS: usize = 7;

/// Connects ports.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<Mutex<Inside>>);

#[derive(Debug, Default)]
struct Inside {
    queues: HashMap<SocketAddr, Queue>,
    stats: Stats,
}

#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<(SocketAddr, Ecn, Vec<u8>)>,
    reader: Option<Waker>,
    writers: Vec<Waker>,
}

/// Counters of a switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Datagrams delivered.
    pub datagrams: u64,
    /// The largest of them.
    pub largest: usize,
    /// Batches of more than one datagram of which only a part fitted.
    pub partial: u64,
    /// Received batches of more than one datagram.
    pub merged: u64,
    /// Datagrams with an ECN mark.
    pub marked: u64,
}

impl Switch {
    /// Returns a port with an address.
    pub fn port(&self, address: &str) -> Port {
        let address = address.parse().expect("an address");
        let mut inside = self.0.lock().expect("no panic");
        inside.queues.insert(address, Queue::default());
        Port {
            switch: self.clone(),
            address,
            full: Mutex::default(),
        }
    }

    pub fn stats(&self) -> Stats {
        self.0.lock().expect("no panic").stats
    }
}

/// A transport: one port of a switch.
#[derive(Debug)]
pub struct Port {
    switch: Switch,
    address: SocketAddr,
    /// The port that had no room for the last batch.
    full: Mutex<Option<SocketAddr>>,
}

impl UdpSocket for Port {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        let mut inside = self.switch.0.lock().expect("no panic");
        let Inside { queues, stats } = &mut *inside;
        let queue = queues.get_mut(&self.address).expect("registered");
        let Some(&(peer, ecn, ref first)) = queue.packets.front() else {
            queue.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let segment_size = first.len() - HEADER.len();
        let (mut len, mut count) = (0, 0);
        while let Some((from, mark, packet)) = queue.packets.front() {
            let datagram = packet.strip_prefix(HEADER).expect("every packet has one");
            let fits = len + datagram.len() <= buffer.len();
            let is_alike = (*from, *mark) == (peer, ecn) && datagram.len() <= segment_size;
            if !fits || !is_alike || len % segment_size != 0 {
                break;
            }
            buffer[len..len + datagram.len()].copy_from_slice(datagram);
            len += datagram.len();
            count += 1;
            queue.packets.pop_front();
        }
        stats.merged += u64::from(count > 1);
        let writers = std::mem::take(&mut queue.writers);
        drop(inside);
        writers.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(Received {
            len,
            segment_size,
            peer,
            local: None,
            ecn,
            truncated: false,
        }))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        let mut inside = self.switch.0.lock().expect("no panic");
        let Inside { queues, stats } = &mut *inside;
        let Some(queue) = queues.get_mut(&transmit.destination) else {
            return Err(io::ErrorKind::HostUnreachable.into());
        };
        let len = transmit.contents.len();
        let segment = transmit.segment_size.unwrap_or(len);
        let count = len.div_ceil(segment);
        assert!(count <= SEGMENTS, "{count} datagrams in a batch");
        let room = ROOM - queue.packets.len();
        if room == 0 {
            *self.full.lock().expect("no panic") = Some(transmit.destination);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        stats.partial += u64::from(room < count);
        let mut taken = 0;
        for datagram in transmit.contents.chunks(segment).take(room) {
            let packet = [HEADER, datagram].concat();
            queue
                .packets
                .push_back((self.address, transmit.ecn, packet));
            taken += datagram.len();
            stats.datagrams += 1;
            stats.largest = stats.largest.max(datagram.len());
            stats.marked += u64::from(transmit.ecn != Ecn::NotEct);
        }
        let reader = queue.reader.take();
        drop(inside);
        reader.into_iter().for_each(Waker::wake);
        Ok(taken)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let full = *self.full.lock().expect("no panic");
        let mut inside = self.switch.0.lock().expect("no panic");
        match full.and_then(|full| inside.queues.get_mut(&full)) {
            Some(queue) if queue.packets.len() == ROOM => {
                queue.writers.push(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn interface_mtu(&self, _: SocketAddr) -> Option<u32> {
        // The headers of IPv4 and UDP are counted, although there are none.
        u32::try_from(LARGEST + 28).ok()
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.gso_segments = SEGMENTS;
        capabilities.ecn = true;
        capabilities
    }
}
