//! Sends and receives the datagrams of one direction.

use std::pin::pin;
use std::time::{Duration, Instant};

use courser::DatagramStats;
use courser_measure::Failure;
use tokio::time::{sleep, sleep_until};

use super::arrivals::Arrivals;
use super::header::{HEADER, Header};
use super::message::{Counted, Ended, Start};
use crate::carrier::Carrier;

/// Sends the datagrams of a measurement and waits until they have left. `on_sent` is called with the size
/// of each.
pub(super) async fn send(
    carrier: &impl Carrier,
    start: &Start,
    on_sent: impl Fn(usize),
) -> Result<Ended, Failure> {
    let size = usize::from(start.size).max(HEADER);
    await_size(carrier, size).await?;
    let before = carrier.connection().stats().datagrams;
    let began = Instant::now();
    let deadline = start.time().map(|time| began + time);
    let is_over = |now| deadline.is_some_and(|deadline| now >= deadline);
    let limit = start.number.unwrap_or(u64::MAX);
    let mut pace = Pace::new(start.rate, size, began);
    let mut number = 0;
    while number < limit {
        let now = pace.wait(deadline).await;
        if is_over(now) {
            break;
        }
        let header = Header {
            number,
            sent_at: now - began,
        };
        let sending = carrier.send_datagram(header.datagram(size));
        // A datagram that still waits at the deadline is not sent.
        match deadline {
            Some(deadline) => match tokio::time::timeout_at(deadline.into(), sending).await {
                Ok(sent) => sent?,
                Err(_) => break,
            },
            None => sending.await?,
        }
        on_sent(size);
        number += 1;
    }
    let after = settled(carrier, before, number).await;
    let sent = after.sent - before.sent;
    Ok(Ended {
        sent,
        bytes: sent * size as u64,
        unsent: number.saturating_sub(sent),
        micros: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
    })
}

/// Receives datagrams until `ended` returns the sender's counts, and for a while longer for late ones.
/// `on_received` is called with the size of each.
pub(super) async fn receive(
    carrier: &impl Carrier,
    ended: impl Future<Output = Result<Ended, Failure>>,
    on_received: impl Fn(usize),
) -> Result<(Ended, Counted), Failure> {
    let began = Instant::now();
    let mut arrivals = Arrivals::new();
    let mut ended = pin!(ended);
    let mut end: Option<Ended> = None;
    let mut deadline = began;
    loop {
        if let Some(end) = end
            && arrivals.received() >= end.sent
        {
            return Ok((end, arrivals.counted()));
        }
        tokio::select! {
            biased;
            datagram = carrier.read_datagram() => {
                let datagram = datagram?;
                if let Some(header) = Header::read(&datagram) {
                    arrivals.on_datagram(header, datagram.len(), began.elapsed());
                    on_received(datagram.len());
                }
            }
            counts = &mut ended, if end.is_none() => {
                end = Some(counts?);
                deadline = Instant::now() + late_arrival_limit(carrier);
            }
            () = sleep_until(deadline.into()), if end.is_some() => {
                return Ok((end.unwrap_or_default(), arrivals.counted()));
            }
        }
    }
}

/// Returns the time for which late datagrams are awaited after the sender's counts.
fn late_arrival_limit(carrier: &impl Carrier) -> Duration {
    MIN_LATE_ARRIVAL + 3 * carrier.connection().stats().path.rtt
}

/// Waits until datagrams of this size fit. The search for the MTU of a new connection takes a few round trips.
async fn await_size(carrier: &impl Carrier, size: usize) -> Result<(), Failure> {
    let deadline = Instant::now() + MTU_SEARCH;
    loop {
        match carrier.max_datagram_size() {
            None => return Err(Failure::new("the peer accepts no datagrams")),
            Some(max) if size <= max => return Ok(()),
            Some(max) if Instant::now() >= deadline => {
                return Err(Failure::new(format!(
                    "datagrams of {size} bytes do not fit: at most {max} bytes fit after {} s on this path",
                    MTU_SEARCH.as_secs()
                )));
            }
            Some(_) => sleep(TICK).await,
        }
    }
}

/// Returns the datagrams that were dropped before they were sent.
fn dropped(stats: DatagramStats) -> u64 {
    stats.unsent_dropped + stats.expired
}

/// Waits until `number` datagrams since `before` were sent or dropped, and returns the counters.
async fn settled(carrier: &impl Carrier, before: DatagramStats, number: u64) -> DatagramStats {
    let processed = |stats: DatagramStats| stats.sent + dropped(stats);
    let deadline = Instant::now() + SEND_TIMEOUT;
    loop {
        let stats = carrier.connection().stats().datagrams;
        if processed(stats) - processed(before) >= number || Instant::now() >= deadline {
            return stats;
        }
        sleep(TICK).await;
    }
}

/// Sends datagrams at even intervals.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Time between two datagrams; zero without a rate.
    each: Duration,
    /// The time at which the next datagram is due.
    next: Instant,
}

impl Pace {
    fn new(rate: Option<u64>, size: usize, now: Instant) -> Self {
        let nanos = |rate: u64| size as u64 * 8 * 1_000_000_000 / rate.max(1);
        let each = rate.map_or(Duration::ZERO, |rate| Duration::from_nanos(nanos(rate)));
        Self { each, next: now }
    }

    /// Waits for the next datagram or for the deadline, and returns the time.
    async fn wait(&mut self, deadline: Option<Instant>) -> Instant {
        let now = Instant::now();
        if self.next > now {
            let until = deadline.map_or(self.next, |deadline| deadline.min(self.next));
            sleep_until(until.into()).await;
        }
        let now = Instant::now();
        self.on_due(now);
        now
    }

    /// Schedules the next datagram. A delayed sender catches up by [`CATCH_UP`] at most, so that it does not
    /// exceed the rate by much.
    fn on_due(&mut self, now: Instant) {
        let oldest = now.checked_sub(CATCH_UP).unwrap_or(now);
        self.next = self.next.max(oldest) + self.each;
    }
}

/// The shortest time for which late datagrams are awaited.
const MIN_LATE_ARRIVAL: Duration = Duration::from_millis(250);

/// How long datagrams that do not fit wait for the search for the MTU.
const MTU_SEARCH: Duration = Duration::from_secs(2);

/// Time limit for sending the last datagrams.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The time between two checks: of the size before the first datagram, of the queue after the last one.
const TICK: Duration = Duration::from_millis(2);

/// The time for which a delayed sender catches up.
const CATCH_UP: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_counts_the_content_only() {
        let pace = Pace::new(Some(1_000_000), 1250, Instant::now());
        assert_eq!(pace.each, Duration::from_millis(10));
        assert_eq!(Pace::new(None, 1250, Instant::now()).each, Duration::ZERO);
    }

    #[test]
    fn delayed_sender_catches_up_only_a_little() {
        let began = Instant::now();
        let mut pace = Pace::new(Some(1_000_000), 1250, began);
        pace.on_due(began);
        assert_eq!(pace.next, began + pace.each);
        let late = began + Duration::from_secs(10);
        pace.on_due(late);
        assert_eq!(pace.next, late - CATCH_UP + pace.each);
    }
}
