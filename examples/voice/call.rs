//! A call in one direction: a frame each 20 ms, which is useless after 60 ms.

use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use courser::{Connection, DatagramOptions, SendDatagramError, runtime};

/// The time between two frames.
pub const FRAME: Duration = Duration::from_millis(20);
/// The time by which the listener delays the first frame, so that later ones may be that late.
pub const BUFFER: Duration = Duration::from_millis(60);
/// Bytes of sound: 64 kbit/s.
const SOUND: usize = 160;
/// A number and a time in microseconds.
const HEADER: usize = 12;

/// Sends `frames` frames and returns the number of those that expired before they left.
pub async fn speak(connection: &Connection, frames: u32) -> Result<u64, SendDatagramError> {
    let (begin, mut ticks) = (runtime::now(), runtime::interval(FRAME));
    for number in 0..frames {
        ticks.tick().await;
        let mut frame = BytesMut::with_capacity(HEADER + SOUND);
        frame.put_u32(number);
        frame.put_u64(micros(runtime::now() - begin));
        frame.resize(HEADER + SOUND, 0x55);
        connection.send_datagram_with(frame.freeze(), DatagramOptions::new().max_age(BUFFER))?;
    }
    // The last ones are on their way.
    runtime::sleep(5 * BUFFER).await;
    Ok(connection.stats().datagrams.expired)
}

/// What the listener has heard.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Quality {
    /// Frames that arrived in time, and too late to be played.
    pub played: u32,
    pub late: u32,
    /// The number after that of the newest frame.
    pub expected: u32,
    /// RFC 3550 §6.4.1, from the times that the speaker put into its frames.
    pub jitter: Duration,
    /// The same without these times, from [`courser::DatagramStats`].
    pub arrival_jitter: Duration,
    /// Packets of the speaker that did not arrive, from [`courser::ConnectionStats`].
    pub packets_missing: u64,
}

impl Quality {
    /// Returns the frames that did not arrive.
    pub fn lost(&self) -> u32 {
        self.expected - self.played - self.late
    }
}

/// Plays frames until the speaker hangs up.
pub async fn listen(connection: &Connection) -> Quality {
    let (mut quality, mut first, mut previous) = (Quality::default(), None, None);
    while let Ok(frame) = connection.read_datagram().await {
        let now = runtime::now();
        let Some((number, sent)) = parse(&frame) else {
            continue;
        };
        let (first_number, start) = *first.get_or_insert((number, now + BUFFER));
        let due = start + FRAME * number.saturating_sub(first_number);
        match now <= due {
            true => quality.played += 1,
            false => quality.late += 1,
        }
        quality.expected = quality.expected.max(number + 1);
        if let Some((arrived, before)) = previous.replace((now, sent)) {
            let moved = deviation(now, arrived, sent, before);
            quality.jitter = quality.jitter * 15 / 16 + moved / 16;
        }
    }
    let stats = connection.stats();
    quality.arrival_jitter = stats.datagrams.arrival_jitter;
    quality.packets_missing = stats.packets_missing;
    quality
}

/// Returns by how much the transit time of a frame differs from that of the one before.
fn deviation(now: Instant, arrived: Instant, sent: Duration, before: Duration) -> Duration {
    let gap = now - arrived;
    match sent.checked_sub(before) {
        Some(interval) => gap.abs_diff(interval),
        None => gap + (before - sent),
    }
}

fn parse(frame: &Bytes) -> Option<(u32, Duration)> {
    let number = u32::from_be_bytes(*frame.first_chunk()?);
    let micros = u64::from_be_bytes(*frame.get(4..)?.first_chunk()?);
    Some((number, Duration::from_micros(micros)))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
