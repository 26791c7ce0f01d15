//! A link with delay, loss, reordering and duplication, all derived from one seed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use courser_base::{Ecn, Time};

use crate::build::transmit::Transmit;
use crate::rng::Rng;

/// A datagram on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Vec<u8>,
}

impl Datagram {
    /// Splits a batch into datagrams.
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

/// Decides the fate of each datagram: true lets it pass. It may change the datagram.
pub(crate) type Filter = Box<dyn FnMut(usize, &mut Datagram) -> bool>;

/// A link whose directions have equal properties.
pub(crate) struct Link {
    pub(crate) delay: Duration,
    /// Datagrams lost, in thousandths.
    pub(crate) loss: u64,
    /// Datagrams delayed by up to one delay more, in thousandths.
    pub(crate) reorder: u64,
    /// Datagrams that arrive twice, in thousandths.
    pub(crate) duplicate: u64,
    pub(crate) filter: Option<Filter>,
    /// Bytes per second in each direction; `None` is unlimited.
    pub(crate) rate: Option<u64>,
    under_way: BTreeMap<(Time, u64), Datagram>,
    busy_until: [Time; 2],
    count: u64,
    rng: Rng,
    pub(crate) lost: u64,
}

impl Link {
    pub(crate) fn new(delay: Duration, seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_be_bytes());
        Self {
            delay,
            loss: 0,
            reorder: 0,
            duplicate: 0,
            filter: None,
            rate: None,
            under_way: BTreeMap::new(),
            busy_until: [Time::ZERO; 2],
            count: 0,
            rng: Rng::new(key),
            lost: 0,
        }
    }

    pub(crate) fn send(&mut self, now: Time, mut datagram: Datagram) {
        self.count += 1;
        let number = usize::try_from(self.count).expect("fits");
        if let Some(filter) = &mut self.filter
            && !filter(number, &mut datagram)
        {
            self.lost += 1;
            return;
        }
        if self.rng.below(1000) < self.loss {
            self.lost += 1;
            return;
        }
        let mut at = self.leave_at(now, &datagram) + self.delay;
        if self.rng.below(1000) < self.reorder {
            let nanos = u64::try_from(self.delay.as_nanos()).expect("short");
            at += Duration::from_nanos(self.rng.below(nanos.max(1)));
        }
        if self.rng.below(1000) < self.duplicate {
            self.count += 1;
            self.under_way.insert((at, self.count), datagram.clone());
        }
        self.count += 1;
        self.under_way.insert((at, self.count), datagram);
    }

    fn leave_at(&mut self, now: Time, datagram: &Datagram) -> Time {
        let Some(rate) = self.rate else { return now };
        let direction = usize::from(datagram.from.port() == 4433);
        let nanos = datagram.bytes.len() as u64 * 1_000_000_000 / rate;
        let start = self.busy_until[direction].max(now);
        self.busy_until[direction] = start + Duration::from_nanos(nanos);
        self.busy_until[direction]
    }

    pub(crate) fn next_arrival(&self) -> Option<Time> {
        self.under_way.first_key_value().map(|((at, _), _)| *at)
    }

    pub(crate) fn receive(&mut self, now: Time) -> Option<Datagram> {
        let first = self.under_way.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}
