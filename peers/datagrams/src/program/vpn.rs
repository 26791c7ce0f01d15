//! The hosts at both ends of the example's tunnel.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use courser::Connection;
use peers_common::Failure;
use peers_common::process::CpuTime;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::packets::{number_of, numbered};
use super::results::{Began, Client, Server};
use super::tunnel::{self, Device, INNER_MTU};
use super::{Options, now_us};
use crate::stack;

/// Sends a packet each 10 ms while the path is measured, and then the load.
pub(super) async fn near(connection: &Connection, options: &Options) -> Result<Client, Failure> {
    let sizes = Sizes::watch(connection);
    let (host, device) = Device::pair();
    let tunnel = tokio::spawn(tunnel::run(connection.clone(), device));
    let mut ticks = interval(10 * TICK);
    for _ in 0..SEARCH_PACKETS {
        ticks.tick().await;
        host.other.send(numbered(SEARCH, INNER_MTU)).await?;
    }
    sleep(10 * TICK).await;
    peers_common::print(&Began { began_us: now_us() })?;
    let (before, counted) = (CpuTime::of_self()?, stack::counts(connection));
    let sent = load(&host, options).await?;
    sleep(REST).await;
    let cpu = CpuTime::of_self()?.since(before).total();
    let counts = stack::counts(connection).since(counted);
    let last_size = connection.max_datagram_size().unwrap_or(0);
    // The tunnel ends when its host has gone.
    drop(host);
    Ok(Client {
        sent,
        halved: tunnel.await?.halved.into(),
        fits_ms: sizes.first_of(INNER_MTU + 1),
        sizes: sizes.all(),
        last_size,
        cpu,
        counts,
    })
}

/// Sends packets of the load, all in time or as fast as the tunnel takes them, and returns their number.
async fn load(host: &Device, options: &Options) -> Result<u64, Failure> {
    let end = Instant::now() + Duration::from_secs_f64(options.seconds);
    let mut sent = 0;
    let Some(rate) = options.rate else {
        while Instant::now() < end {
            sent += 1;
            host.other.send(numbered(LOAD, INNER_MTU)).await?;
        }
        return Ok(sent);
    };
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    while Instant::now() < end {
        ticks.tick().await;
        for _ in 0..rate {
            sent += 1;
            host.other.send(numbered(LOAD, INNER_MTU)).await?;
        }
    }
    Ok(sent)
}

/// Counts packets until the connection is over.
pub(super) async fn far(connection: Connection) -> Server {
    let (mut host, device) = Device::pair();
    tokio::spawn(tunnel::run(connection.clone(), device));
    let mut result = Server::default();
    let mut before = CpuTime::default();
    while let Some(packet) = host.packets.recv().await {
        if number_of(&packet) != Some(LOAD) {
            continue;
        }
        let now = now_us();
        if result.received == 0 {
            before = CpuTime::of_self().unwrap_or_default();
            result.first_us = now;
        } else if now - result.last_us > result.gap_us {
            result.gap_us = now - result.last_us;
            result.gap_from_us = result.last_us;
        }
        result.received += 1;
        result.last_us = now;
    }
    let after = CpuTime::of_self().unwrap_or_default();
    result.cpu = after.since(before).total();
    result.counts = stack::counts(&connection);
    result
}

/// The sizes of the largest datagram, each with the microseconds since the handshake.
struct Sizes(Arc<Mutex<Vec<(u64, usize)>>>);

impl Sizes {
    /// Looks each millisecond until the connection is over.
    fn watch(connection: &Connection) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sizes, connection, begin) = (Arc::clone(&seen), connection.clone(), now_us());
        tokio::spawn(async move {
            let mut last = None;
            loop {
                let size = connection.max_datagram_size();
                if size != last {
                    last = size;
                    let entry = (now_us() - begin, size.unwrap_or(0));
                    sizes
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(entry);
                }
                if timeout(TICK, connection.closed()).await.is_ok() {
                    return;
                }
            }
        });
        Self(seen)
    }

    fn all(&self) -> Vec<(u64, usize)> {
        let sizes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.clone()
    }

    /// Returns the milliseconds until a datagram of `len` bytes fitted.
    fn first_of(&self, len: usize) -> Option<f64> {
        let sizes = self.all();
        let first = sizes.iter().find(|(_, size)| *size >= len);
        first.map(|(micros, _)| *micros as f64 / 1e3)
    }
}

const TICK: Duration = Duration::from_millis(1);
/// The last packets, and what recovers, are on their way.
const REST: Duration = Duration::from_millis(500);
/// A second and a half of them.
const SEARCH_PACKETS: u32 = 150;
/// Numbers of packets before and in the load.
const SEARCH: u32 = 0;
const LOAD: u32 = 1;
