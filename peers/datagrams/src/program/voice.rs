//! A conference: the frames of six speakers on one connection, and perhaps a stream beside them.
//!
//! As in the example of a call, a frame has 160 bytes of sound, leaves each 20 ms and is useless after 60 ms.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use courser::{Connection, DatagramOptions};
use peers_common::Failure;
use peers_common::process::CpuTime;
use peers_common::settings::CHUNK_SIZE;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use super::results::{Began, Client, Delays, Server};
use super::{Options, now_us};
use crate::stack;

/// Sends the frames of all speakers, and the stream as long.
pub(super) async fn speak(connection: &Connection, options: &Options) -> Result<Client, Failure> {
    // Slow start of the stream, and the search for the size of datagrams, are not measured.
    let bulk = options
        .bulk
        .then(|| tokio::spawn(write(connection.clone())));
    sleep(BEFORE).await;
    peers_common::print(&Began { began_us: now_us() })?;
    let (before, counted) = (CpuTime::of_self()?, stack::counts(connection));
    let frames = (options.seconds / FRAME.as_secs_f64()) as u32;
    let mut speakers = JoinSet::new();
    for speaker in 0..SPEAKERS {
        speakers.spawn(frames_of(connection.clone(), speaker, frames));
    }
    while let Some(result) = speakers.join_next().await {
        result??;
    }
    let cpu = CpuTime::of_self()?.since(before).total();
    let counts = stack::counts(connection).since(counted);
    if let Some(bulk) = bulk {
        bulk.abort();
    }
    sleep(REST).await;
    Ok(Client {
        sent: u64::from(frames) * SPEAKERS as u64,
        last_size: connection.max_datagram_size().unwrap_or(0),
        cpu,
        counts,
        ..Client::default()
    })
}

/// Sends the frames of a speaker. Speakers begin one after another in the time of a frame.
async fn frames_of(connection: Connection, speaker: usize, frames: u32) -> Result<(), Failure> {
    sleep(FRAME * u32::try_from(speaker)? / u32::try_from(SPEAKERS)?).await;
    let mut ticks = interval(FRAME);
    for _ in 0..frames {
        ticks.tick().await;
        let mut frame = BytesMut::with_capacity(HEADER + SOUND);
        frame.put_u8(u8::try_from(speaker)?);
        frame.put_u64(now_us());
        frame.resize(HEADER + SOUND, 0x55);
        let options = DatagramOptions::new().max_age(BUFFER);
        connection.send_datagram_with(frame.freeze(), options)?;
    }
    Ok(())
}

/// Writes as fast as the connection takes it.
async fn write(connection: Connection) -> Result<(), Failure> {
    let mut stream = connection.open_uni().await?;
    let chunk = Bytes::from(vec![0; CHUNK_SIZE]);
    loop {
        stream.write_chunk(chunk.clone()).await?;
    }
}

/// Receives frames, and perhaps a stream, until the connection is over.
pub(super) async fn listen(connection: Connection) -> Server {
    let bulk = Arc::new(AtomicU64::new(0));
    tokio::spawn(read(connection.clone(), Arc::clone(&bulk)));
    let mut bulk_before = 0;
    let mut result = Server::default();
    let mut before = CpuTime::default();
    let (mut delays, mut speakers) = (Vec::new(), [Flow::default(); SPEAKERS]);
    while let Ok(frame) = connection.read_datagram().await {
        let now = now_us();
        let Some((speaker, sent)) = parse(&frame) else {
            continue;
        };
        if result.received == 0 {
            before = CpuTime::of_self().unwrap_or_default();
            result.first_us = now;
            bulk_before = bulk.load(Relaxed);
        }
        result.received += 1;
        result.last_us = now;
        result.bulk = bulk.load(Relaxed) - bulk_before;
        let after = CpuTime::of_self().unwrap_or_default();
        result.cpu = after.since(before).total();
        delays.push(now.saturating_sub(sent));
        if let Some(flow) = speakers.get_mut(usize::from(speaker)) {
            flow.on_frame(now.saturating_sub(sent));
        }
    }
    result.delay = Delays::of(delays);
    let jitter: f64 = speakers.iter().map(|flow| flow.jitter_us).sum();
    result.jitter_ms = jitter / speakers.len() as f64 / 1e3;
    result.counts = stack::counts(&connection);
    result
}

/// Reads a stream and counts its bytes.
async fn read(connection: Connection, bytes: Arc<AtomicU64>) {
    let Ok(mut stream) = connection.accept_uni().await else {
        return;
    };
    let mut buffer = vec![0; CHUNK_SIZE];
    while let Ok(Some(len)) = stream.read(&mut buffer).await {
        bytes.fetch_add(len as u64, Relaxed);
    }
}

/// The frames of a speaker so far.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    transit_us: Option<u64>,
    jitter_us: f64,
}

impl Flow {
    fn on_frame(&mut self, transit_us: u64) {
        if let Some(before) = self.transit_us.replace(transit_us) {
            let moved = transit_us.abs_diff(before) as f64;
            self.jitter_us += (moved - self.jitter_us) / 16.0;
        }
    }
}

fn parse(frame: &Bytes) -> Option<(u8, u64)> {
    let (&speaker, rest) = frame.split_first()?;
    Some((speaker, u64::from_be_bytes(*rest.first_chunk()?)))
}

const SPEAKERS: usize = 6;
const FRAME: Duration = Duration::from_millis(20);
const BUFFER: Duration = Duration::from_millis(60);
/// Bytes of sound in a frame: 64 kbit/s.
const SOUND: usize = 160;
/// A speaker and a time.
const HEADER: usize = 9;
const BEFORE: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_millis(500);
