//! Transfers over a link that fails for seconds and then works again, with the same addresses.

use crate::common::lab::*;
use courser_recovery::Algorithm;

/// The seconds of an outage, which begins a second after the start.
const OUTAGES: [u32; 6] = [1, 2, 4, 8, 16, 25];

/// 20 MB at 50 Mbit/s, less the headers of IP, UDP and QUIC.
const BYTES: u64 = 20_000_000;

#[derive(Clone, Copy, Debug)]
enum Direction {
    Up,
    Down,
}

/// Returns the time of a transfer beyond that without an outage, and beyond the outage.
fn lost_time(direction: Direction, algorithm: Algorithm, outage: Option<u32>) -> f64 {
    let rate = "50mbit,rtt=60ms,queue=1bdp";
    let link = match outage {
        Some(seconds) => format!("{rate},blackhole=1s:{seconds}s;{rate},blackhole=1s:{seconds}s"),
        None => rate.to_owned(),
    };
    let setup = controlled(&link, algorithm);
    let (_, time) = match direction {
        Direction::Up => transfer_up(1, setup, BYTES, SECOND * 120),
        Direction::Down => transfer_down(1, setup, BYTES, SECOND * 120),
    };
    time.as_secs_f64() - f64::from(outage.unwrap_or(0))
}

/// The end that waits for content sends a PING every few hundred milliseconds, and the sender resumes when it
/// receives one: an outage costs its own time, a slow start, and little more. Without the PING the sender
/// would detect the end of the outage after up to twice its length.
#[test]
fn transfer_resumes_soon_after_an_outage() {
    for direction in [Direction::Up, Direction::Down] {
        for algorithm in [Algorithm::Cubic, Algorithm::Bbr] {
            let whole = lost_time(direction, algorithm, None);
            for outage in OUTAGES {
                let lost = lost_time(direction, algorithm, Some(outage)) - whole;
                assert!(
                    lost <= 1.2,
                    "{direction:?} {algorithm} {outage} s: {lost:.2} s"
                );
            }
        }
    }
}
