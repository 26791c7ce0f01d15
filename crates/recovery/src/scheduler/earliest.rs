//! The path on which data arrives first.

use std::time::Duration;

use courser_base::Time;

use super::choice::{PathChoice, PathDemand, PathScheduler, PathView};

/// Sends each batch on the path on which it arrives first, and leaves slow paths unused as long as they would only delay the end
/// of what is to be sent.
///
/// - Without room on the path on which data arrives first, another one is used if the batch arrives there no later than the
///   first path could deliver everything that waits. Large transfers thus take all paths, and small ones the fastest.
/// - A slow path is not used while the receiver permits fewer bytes than the others send until data arrives on it: they would
///   have to wait behind the gap.
#[derive(Debug, Default)]
pub struct Earliest(());

impl Earliest {
    /// Creates the scheduler of a connection.
    pub fn new() -> Self {
        Self(())
    }
}

impl PathScheduler for Earliest {
    fn choose(&mut self, now: Time, paths: &[PathView], demand: &PathDemand) -> PathChoice {
        let arrival = |path: &PathView| delay_until_ready(now, path) + transit(path);
        let all = || paths.iter().enumerate();
        let Some((first, best)) = all().min_by_key(|(_, path)| arrival(path)) else {
            return PathChoice::Wait;
        };
        if best.is_ready(now) {
            return PathChoice::Send(first);
        }
        // The time at which the best path alone would have delivered everything.
        let alone = transit(best) + best.time_to_send(demand.bytes);
        let others = all().filter(|(_, path)| path.is_ready(now));
        let in_time =
            others.filter(|(_, path)| transit(path) <= alone && !fills_gap(best, path, demand));
        let next = in_time.min_by_key(|(_, path)| transit(path));
        next.map_or(PathChoice::Wait, |(index, _)| PathChoice::Send(index))
    }
}

/// Returns the time that a datagram takes to arrive once it may be sent.
fn transit(path: &PathView) -> Duration {
    path.rtt / 2 + path.time_to_send(path.size.into())
}

/// Returns the time until the path permits a datagram.
fn delay_until_ready(now: Time, path: &PathView) -> Duration {
    let paced = path.ready_at.saturating_since(now);
    match path.room >= u64::from(path.size) {
        true => paced,
        false => paced.max(path.time_to_send(path.size.into())),
    }
}

/// Returns true if the best path would use up the credit while data is on its way on the other path.
fn fills_gap(best: &PathView, path: &PathView, demand: &PathDemand) -> bool {
    let longer = path.rtt.saturating_sub(best.rtt);
    demand.credit < best.sent_in(longer).min(demand.bytes)
}
