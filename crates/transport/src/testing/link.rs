//! A link between two endpoints, with settings that tests change while it runs.

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::{Ecn, Rate, Time};
use courser_link::{DuplexSpec, LinkSpec, Packet, Probability, QueueLimit, Reorder, Repeated};

use crate::build::transmit::Transmit;

/// A datagram between two endpoints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Vec<u8>,
}

impl Datagram {
    /// Splits a batch into its datagrams.
    pub(crate) fn split(transmit: &Transmit, bytes: &[u8], from: SocketAddr) -> Vec<Self> {
        let size = transmit.segment_size.unwrap_or(transmit.len);
        let (to, ecn) = (transmit.destination, transmit.ecn);
        bytes
            .chunks(size)
            .map(|bytes| Self {
                from,
                to,
                ecn,
                bytes: bytes.to_vec(),
            })
            .collect()
    }
}

/// The fate of batches of several datagrams, which are sent as one buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BatchFault {
    /// They arrive as sent.
    None,
    /// A device loses them as a whole.
    Lost,
    /// The receiver reads this many bytes of the buffer, so that a truncated packet is lost.
    CutAfter(usize),
}

impl BatchFault {
    /// Returns the number of datagrams of a batch that arrive.
    pub(crate) fn kept(self, batch: &[Datagram]) -> usize {
        match self {
            _ if batch.len() < 2 => batch.len(),
            Self::None => batch.len(),
            Self::Lost => 0,
            Self::CutAfter(bytes) => bytes / batch[0].bytes.len(),
        }
    }
}

/// Decides the fate of each datagram, which it may change. Returns false to drop it.
pub(crate) type Filter = Box<dyn FnMut(usize, &mut Datagram) -> bool>;

/// A link with the same effects in both directions, which tests may change at any time.
pub(crate) struct Link {
    /// The delay each way. Datagrams after a change take another route and may overtake earlier ones.
    pub(crate) delay: Duration,
    /// Lost datagrams in parts of a thousand.
    pub(crate) loss: u32,
    /// Datagrams that are delayed by up to one more delay, in parts of a thousand.
    pub(crate) reorder: u32,
    /// Datagrams that arrive twice, in parts of a thousand.
    pub(crate) duplicate: u32,
    pub(crate) filter: Option<Filter>,
    /// Bytes per second each way, IP and UDP headers included; `None` is unlimited.
    pub(crate) rate: Option<u64>,
    /// Bytes that its queue holds; `None` is unlimited.
    pub(crate) queue: Option<u64>,
    /// The routes with datagrams in transit, the current one last.
    routes: Vec<Route>,
    count: usize,
    seed: u64,
}

/// The links of both directions with the same settings; the one to the server is first.
struct Route {
    spec: LinkSpec,
    directions: [courser_link::Link; 2],
}

impl Link {
    pub(crate) fn new(delay: Duration, seed: u64) -> Self {
        Self {
            delay,
            loss: 0,
            reorder: 0,
            duplicate: 0,
            filter: None,
            rate: None,
            queue: None,
            routes: Vec::new(),
            count: 0,
            seed,
        }
    }

    pub(crate) fn send(&mut self, now: Time, mut datagram: Datagram) {
        self.count += 1;
        let number = self.count;
        if let Some(filter) = &mut self.filter
            && !filter(number, &mut datagram)
        {
            return;
        }
        let direction = usize::from(datagram.from.port() == 4433);
        let packet = Packet {
            source: datagram.from,
            destination: datagram.to,
            ecn: datagram.ecn,
            payload: datagram.bytes.into(),
        };
        self.route(now).directions[direction].send(now, packet);
    }

    /// Returns the route of the present settings.
    fn route(&mut self, now: Time) -> &mut Route {
        let spec = self.spec();
        self.routes
            .retain(|route| route.spec.delay == spec.delay || route.next_time().is_some());
        let last = self.routes.last();
        if last.is_none_or(|route| route.spec.delay != spec.delay) {
            self.seed += 1;
            self.routes.push(Route::new(&spec, self.seed));
        }
        let route = self.routes.last_mut().expect("a route");
        if route.spec != spec {
            route
                .directions
                .iter_mut()
                .for_each(|link| link.set_spec(now, &spec));
            route.spec = spec;
        }
        route
    }

    fn spec(&self) -> LinkSpec {
        let reorder = Reorder {
            probability: thousandths(self.reorder),
            by: self.delay,
        };
        LinkSpec {
            rate: self.rate.map(Rate::from_bytes_per_second),
            queue: Some(QueueLimit::Bytes(self.queue.unwrap_or(u64::MAX))),
            delay: Some(self.delay),
            loss: Some(Repeated::independent(thousandths(self.loss))),
            reorder: Some(reorder),
            duplicate: thousandths(self.duplicate),
            ..LinkSpec::default()
        }
    }

    pub(crate) fn next_arrival(&self) -> Option<Time> {
        self.routes.iter().filter_map(Route::next_time).min()
    }

    pub(crate) fn receive(&mut self, now: Time) -> Option<Datagram> {
        loop {
            let next = self.next_arrival().filter(|next| *next <= now)?;
            let mut directions = self
                .routes
                .iter_mut()
                .flat_map(|route| &mut route.directions);
            if let Some(packet) = directions.find_map(|link| link.poll(next)) {
                return Some(Datagram {
                    from: packet.source,
                    to: packet.destination,
                    ecn: packet.ecn,
                    bytes: packet.payload.into(),
                });
            }
        }
    }
}

impl Route {
    fn new(spec: &LinkSpec, seed: u64) -> Self {
        Self {
            spec: spec.clone(),
            directions: DuplexSpec::symmetric(spec.clone()).links(seed).into(),
        }
    }

    fn next_time(&self) -> Option<Time> {
        self.directions
            .iter()
            .filter_map(courser_link::Link::next_time)
            .min()
    }
}

fn thousandths(parts: u32) -> Probability {
    Probability::from_parts_per_billion(parts * 1_000_000)
}
