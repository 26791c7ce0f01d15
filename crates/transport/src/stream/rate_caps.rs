//! Limits on the send rates of individual streams.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use courser_base::{Rate, Time};
use courser_wire::StreamId;

/// The limits on the send rates of the streams of one connection.
///
/// A stream may send at once as much as its rate allows for [`BURST`]. Then it pauses until that time has
/// passed, so the timer fires at most once per burst. A stream that could not send, because it waited for
/// its turn, the network or its writer, may catch up on at most [`CATCH_UP`].
#[derive(Debug, Default)]
pub(super) struct RateCaps {
    by_stream: BTreeMap<StreamId, Cap>,
    paused: BTreeSet<(Time, StreamId)>,
}

#[derive(Debug)]
struct Cap {
    rate: Rate,
    /// The time at which the stream has not sent more than its rate allows.
    even_at: Time,
    is_paused: bool,
}

impl RateCaps {
    /// Sets the limit of a stream, at least one byte per second. Replaces an earlier limit, and ends a pause.
    pub(super) fn set(&mut self, now: Time, id: StreamId, rate: Rate) {
        self.remove(id);
        let cap = Cap {
            rate: rate.max(Rate::from_bytes_per_second(1)),
            even_at: now,
            is_paused: false,
        };
        self.by_stream.insert(id, cap);
    }

    /// Removes the limit of a stream, if there is one.
    pub(super) fn remove(&mut self, id: StreamId) {
        if let Some(cap) = self.by_stream.remove(&id) {
            self.paused.remove(&(cap.even_at, id));
        }
    }

    /// Returns true while a stream pauses.
    pub(super) fn is_paused(&self, id: StreamId) -> bool {
        self.by_stream.get(&id).is_some_and(|cap| cap.is_paused)
    }

    /// Counts new bytes of a stream. Returns true if it has to pause.
    pub(super) fn on_sent(&mut self, now: Time, id: StreamId, len: u64) -> bool {
        let Some(cap) = self.by_stream.get_mut(&id) else {
            return false;
        };
        cap.even_at = cap.even_at.max(now.saturating_sub(CATCH_UP)) + cap.rate.time_for(len);
        cap.is_paused = cap.even_at >= now + BURST;
        if cap.is_paused {
            self.paused.insert((cap.even_at, id));
        }
        cap.is_paused
    }

    /// Returns the end of the earliest pause.
    pub(super) fn next(&self) -> Option<Time> {
        self.paused.first().map(|(at, _)| *at)
    }

    /// Ends a pause that is over, and returns its stream.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<StreamId> {
        let entry = *self.paused.first().filter(|(at, _)| *at <= now)?;
        self.paused.remove(&entry);
        let (_, id) = entry;
        if let Some(cap) = self.by_stream.get_mut(&id) {
            cap.is_paused = false;
        }
        Some(id)
    }
}

/// The time whose bytes a stream may send at once. A pause takes as long, or longer after a packet for which
/// the rate needs more time: at most a hundred timers per second.
const BURST: Duration = Duration::from_millis(10);

/// The time for which a stream that could not send may catch up. A turn of another stream takes 16 ms at
/// 1 MB/s; without catching up, a stream would stay below its rate while others send.
const CATCH_UP: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use courser_base::Side;
    use courser_wire::Direction;

    use super::*;

    fn id(number: u64) -> StreamId {
        StreamId::new(Side::Client, Direction::Unidirectional, number)
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Sends packets of 1000 bytes for a second and returns their bytes and the number of pauses.
    fn send_for_a_second(caps: &mut RateCaps, begin: Time) -> (u64, u32) {
        let (mut now, mut bytes, mut pauses) = (begin, 0, 0);
        while now < begin + Duration::from_secs(1) {
            bytes += 1000;
            if caps.on_sent(now, id(0), 1000) {
                pauses += 1;
                now = caps.next().expect("a pause");
                assert_eq!(caps.pop_due(now), Some(id(0)));
            }
        }
        (bytes, pauses)
    }

    #[test]
    fn stream_reaches_rate_with_few_pauses() {
        for (rate, most) in [(50_000, 50), (1_000_000, 101), (100_000_000, 101)] {
            let mut caps = RateCaps::default();
            caps.set(at(0), id(0), Rate::from_bytes_per_second(rate));
            let (bytes, pauses) = send_for_a_second(&mut caps, at(0));
            let burst = rate / 100 + 1000;
            assert!((rate..=rate + burst).contains(&bytes), "{rate}: {bytes}");
            assert!(pauses <= most, "{rate}: {pauses}");
        }
    }

    #[test]
    fn pause_of_writer_allows_only_short_catch_up() {
        let mut caps = RateCaps::default();
        caps.set(at(0), id(0), Rate::from_bytes_per_second(100_000));
        assert!(!caps.on_sent(at(0), id(0), 100));
        let (bytes, _) = send_for_a_second(&mut caps, at(60_000));
        assert!((110_000..=112_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn streams_without_limit_never_pause() {
        let mut caps = RateCaps::default();
        caps.set(at(0), id(0), Rate::from_bytes_per_second(0));
        assert!(!caps.on_sent(at(0), id(1), 1 << 40));
        assert!(caps.on_sent(at(0), id(0), 1));
        assert_eq!(caps.next(), Some(at(1000)), "a byte per second");
        assert!(caps.is_paused(id(0)) && !caps.is_paused(id(1)));
        caps.remove(id(0));
        assert_eq!(caps.next(), None);
        assert!(!caps.is_paused(id(0)));
    }

    #[test]
    fn new_limit_ends_pause() {
        let mut caps = RateCaps::default();
        caps.set(at(0), id(0), Rate::from_bytes_per_second(1));
        assert!(caps.on_sent(at(0), id(0), 1000));
        caps.set(at(0), id(0), Rate::from_bytes_per_second(1_000_000));
        assert_eq!((caps.next(), caps.is_paused(id(0))), (None, false));
        assert_eq!(caps.pop_due(at(10_000_000)), None);
    }
}
