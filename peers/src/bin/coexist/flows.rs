//! Counters of flows at the bottleneck.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::frame::Flow;

/// The flows so far, shared by the threads of the relay.
#[derive(Debug)]
pub(crate) struct Flows {
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counters: BTreeMap<Flow, Counters>,
    /// The packets in the queue, in order.
    queue: VecDeque<Waiting>,
    /// The time that packets have waited, with the time at which they left.
    waits: Vec<(Instant, Duration)>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    flow: Option<Flow>,
    bytes: usize,
    since: Instant,
}

/// The counters of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) packets: u64,
    pub(crate) dropped: u64,
    /// Bytes that have left the queue, for each tenth of a second.
    tenths: Vec<u64>,
}

impl Flows {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a packet that is about to enter the queue.
    pub(crate) fn enter(&self, flow: Option<Flow>, bytes: usize) {
        let mut state = self.state();
        let since = Instant::now();
        state.queue.push_back(Waiting { flow, bytes, since });
        if let Some(flow) = flow {
            state.counters.entry(flow).or_default().packets += 1;
        }
    }

    /// Notes that the packet which entered last was dropped.
    pub(crate) fn dropped(&self) {
        let mut state = self.state();
        let last = state.queue.pop_back();
        if let Some(flow) = last.and_then(|packet| packet.flow) {
            state.counters.entry(flow).or_default().dropped += 1;
        }
    }

    /// Notes a packet of this size that has left the queue.
    pub(crate) fn left(&self, bytes: usize) {
        let now = Instant::now();
        let tenth = (now - self.began).as_millis() as usize / 100;
        let mut state = self.state();
        // If the tap has missed packets, those before this one have left as well.
        while let Some(packet) = state.queue.pop_front() {
            if let Some(flow) = packet.flow {
                let counters = state.counters.entry(flow).or_default();
                if counters.tenths.len() <= tenth {
                    counters.tenths.resize(tenth + 1, 0);
                }
                counters.tenths[tenth] += packet.bytes as u64;
            }
            if packet.bytes == bytes {
                state.waits.push((now, now - packet.since));
                break;
            }
        }
    }

    /// Returns the counters of a flow.
    pub(crate) fn counters(&self, flow: Flow) -> Counters {
        self.state()
            .counters
            .get(&flow)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the Mbit/s of a flow between two times, in Ethernet frames.
    pub(crate) fn megabits(&self, flow: Flow, from: Instant, to: Instant) -> f64 {
        let tenth = |at: Instant| (at - self.began).as_millis() as usize / 100;
        let counters = self.counters(flow);
        let bytes: u64 = (tenth(from)..tenth(to))
            .filter_map(|tenth| counters.tenths.get(tenth))
            .sum();
        bytes as f64 * 8.0 / 1e6 / (to - from).as_secs_f64()
    }

    /// Returns a quantile of the time that packets waited between two times.
    pub(crate) fn wait(&self, quantile: f64, from: Instant, to: Instant) -> Duration {
        let state = self.state();
        let counts = |(at, _): &&(Instant, Duration)| (from..to).contains(at);
        let mut waits: Vec<_> = state.waits.iter().filter(counts).map(|it| it.1).collect();
        waits.sort_unstable();
        let at = (waits.len() as f64 * quantile) as usize;
        waits.get(at).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Protocol;

    #[test]
    fn packets_are_counted_where_they_leave_or_are_dropped() {
        let flow = |port| Flow {
            protocol: Protocol::Udp,
            port,
        };
        let flows = Flows::new();
        for (port, bytes) in [(1, 1000), (2, 500), (1, 1001), (1, 1002)] {
            flows.enter(Some(flow(port)), bytes);
        }
        flows.dropped();
        flows.left(1000);
        // The tap has missed the one of 500 bytes.
        flows.left(1001);
        let end = Instant::now() + Duration::from_secs(1);
        let one = flows.counters(flow(1));
        assert_eq!((one.packets, one.dropped), (3, 1));
        assert_eq!(one.tenths.iter().sum::<u64>(), 2001);
        assert_eq!(flows.counters(flow(2)).tenths.iter().sum::<u64>(), 500);
        assert_eq!(flows.counters(flow(3)), Counters::default());
        assert!(flows.megabits(flow(1), flows.began, end) > 0.0);
        assert!(flows.wait(0.5, flows.began, end) < Duration::from_secs(1));
    }
}
