//! The path with the shortest round trip that has room.

use courser_base::Time;

use super::choice::{PathChoice, PathDemand, PathScheduler, PathView};

/// Sends on the path with the shortest round trip that has room, whatever is to be sent. Small data may wait for a slow path,
/// and a small receive window for the data that a slow path carries: [`Earliest`](super::Earliest) avoids both.
#[derive(Debug)]
pub struct Fastest;

impl PathScheduler for Fastest {
    fn choose(&mut self, now: Time, paths: &[PathView], _: &PathDemand) -> PathChoice {
        let ready = paths
            .iter()
            .enumerate()
            .filter(|(_, path)| path.is_ready(now));
        let fastest = ready.min_by_key(|(_, path)| path.rtt);
        fastest.map_or(PathChoice::Wait, |(index, _)| PathChoice::Send(index))
    }
}
