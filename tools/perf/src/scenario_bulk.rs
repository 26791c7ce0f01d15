//! The bulk scenario: bytes in one direction or both.

use std::sync::Arc;
use std::time::Instant;

use courser_measure::Failure;

use crate::bench::{Bench, Outcome, run_all};
use crate::link::Link;
use crate::meter::{Amount, Meter};
use crate::plan::Direction;
use crate::session::Session;
use crate::transfer::Until;

/// Transfers bytes on `streams` streams in each direction on each of `connections` connections.
pub(crate) async fn run(
    bench: &mut Bench<'_>,
    direction: Direction,
    connections: u64,
    streams: u64,
) -> Result<Outcome, Failure> {
    let mut session = Session::open(bench.remote, connections).await?;
    let count = connections * streams;
    let both = direction == Direction::Both;
    let lanes = session
        .lanes(bench.remote, if both { 2 * count } else { count })
        .await?;
    let meter = session.meter();
    let start = bench.start(session.io()).await;
    let (began, work) = (Instant::now(), bench.work);
    let tasks = lanes.into_iter().zip(0..).map(|(lane, index)| {
        let until = match work {
            Amount::Time(time) => Until::At(began + time),
            Amount::Number(bytes) => Until::Bytes(share(bytes, count, index % count)),
        };
        let uploads = match direction {
            Direction::Upload => true,
            Direction::Download => false,
            Direction::Both => index < count,
        };
        transfer(lane, uploads, until, meter.clone())
    });
    let finished = bench
        .run(
            start,
            run_all(tasks),
            &meter,
            || session.io(),
            Some(&session),
        )
        .await?;
    Ok(bench.outcome(finished, Some(session), &meter).await)
}

async fn transfer(
    mut lane: Link,
    uploads: bool,
    until: Until,
    meter: Arc<Meter>,
) -> Result<(), Failure> {
    match (until, uploads) {
        (Until::Bytes(0), _) => Ok(()),
        (until, true) => lane.upload(until, &meter).await,
        (until, false) => lane.download(until, &meter).await,
    }
}

/// Returns the share of one of `count` streams in `bytes`. The shares add up to `bytes`.
fn share(bytes: u64, count: u64, index: u64) -> u64 {
    bytes / count + u64::from(index < bytes % count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (bytes, count) in [(10, 3), (2, 5), (9, 9), (0, 2), (1_000_000_007, 16)] {
            let sum: u64 = (0..count).map(|index| share(bytes, count, index)).sum();
            assert_eq!(sum, bytes, "{bytes} over {count}");
        }
    }
}
