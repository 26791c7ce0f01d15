//! Clients that connect all at once, or at a fixed rate.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use courser::{Endpoint, VarInt, h3};
use courser_measure::CpuClock;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use super::client::{config, endpoint, fetch, label};
use super::options::Options;
use super::statistics::quantile;

/// Runs the mode. Options: `server`, `count`, `interval_us` (0 for all at once), and `limit_ms` for
/// connection and request of each client.
pub(super) async fn run(options: &Options) -> Result<(), String> {
    let server: SocketAddr = options.get("server")?;
    let count: u64 = options.get("count")?;
    let interval = Duration::from_micros(options.get("interval_us")?);
    let limit = Duration::from_millis(options.get("limit_ms")?);
    let config = config()?;
    // Sockets are opened before the measurement, because real machines have them already.
    let clients: Vec<Endpoint> = (0..count)
        .map(|_| endpoint(&config))
        .collect::<Result<_, _>>()?;
    let tally = Rc::new(RefCell::new(Tally::default()));
    let tasks = LocalSet::new();
    let (began, cpu) = (Instant::now(), CpuClock::Process.seconds());
    for (index, client) in (0_u32..).zip(clients) {
        let tally = Rc::clone(&tally);
        tasks.spawn_local(async move {
            let planned = began + interval * index;
            tokio::time::sleep_until(planned.into()).await;
            let result = tokio::time::timeout(limit, visit(&client, server, &tally)).await;
            let result = result.unwrap_or_else(|_| Err("no response in time".to_owned()));
            let mut tally = tally.borrow_mut();
            tally.kernel_drops += client.receive_overflow().unwrap_or(0);
            match result {
                Ok(()) => tally.served.push(planned.elapsed().as_secs_f64()),
                Err(reason) => *tally.failures.entry(reason).or_default() += 1,
            }
            tally.last = began.elapsed();
        });
    }
    tasks.await;
    let cpu = CpuClock::Process.seconds() - cpu;
    println!("{}", tally.borrow().report(cpu));
    Ok(())
}

/// Runs one client, which connects, sends a request, and closes the connection.
async fn visit(
    client: &Endpoint,
    server: SocketAddr,
    tally: &RefCell<Tally>,
) -> Result<(), String> {
    let begin = Instant::now();
    let connecting = client.connect(server, "localhost").map_err(label)?;
    let connection = connecting.await.map_err(|error| match error.is_timeout() {
        true => "handshake timed out".to_owned(),
        false => label(error),
    })?;
    tally
        .borrow_mut()
        .connects
        .push(begin.elapsed().as_secs_f64());
    let requests = h3::Client::new(connection.clone());
    let answer = fetch(&requests).await;
    tally.borrow_mut().probes += connection.stats().ptos;
    connection.close(VarInt::from(NO_ERROR), b"");
    answer
}

/// H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: u32 = 0x100;

#[derive(Default)]
struct Tally {
    /// The time until the handshake was complete, for each client that completed it.
    connects: Vec<f64>,
    /// The time from the planned start until the response was complete.
    served: Vec<f64>,
    failures: BTreeMap<String, u64>,
    /// Probe timeouts of clients, whose packets or acknowledgments were late or lost.
    probes: u64,
    /// Datagrams for clients that the kernel dropped.
    kernel_drops: u64,
    last: Duration,
}

impl Tally {
    fn report(&self, cpu: f64) -> Value {
        json!({
            "connected": self.connects.len(),
            "served": self.served.len(),
            "failures": self.failures,
            "connect": times(&self.connects),
            "answer": times(&self.served),
            "probes": self.probes,
            "kernelDrops": self.kernel_drops,
            "seconds": self.last.as_secs_f64(),
            "cpuSeconds": cpu,
        })
    }
}

fn times(times: &[f64]) -> Value {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    json!({
        "p50": quantile(&sorted, 0.5),
        "p99": quantile(&sorted, 0.99),
        "max": sorted.last().copied().unwrap_or(0.0),
    })
}
