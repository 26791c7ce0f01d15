//! Clients that connect, send one request and leave, in closed loops or at a fixed rate.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use courser::{ClientConfig, VarInt, h3};
use courser_measure::CpuClock;
use serde_json::json;
use tokio::task::LocalSet;

use super::client::{config, endpoint, fetch, label};
use super::options::Options;
use super::statistics::quantile;

/// Runs the mode. Options: `server`, `time_ms`, and either `at_once` for closed loops or
/// `interval_us` for a fixed rate.
///
/// Counts the clients that are served within the time. Each waits for at most [`PATIENCE`].
pub(super) async fn run(options: &Options) -> Result<(), String> {
    let server: SocketAddr = options.get("server")?;
    let time = Duration::from_millis(options.get("time_ms")?);
    let visitors = Visitors {
        server,
        config: config()?,
        end: Instant::now() + time,
        tally: RefCell::default(),
    };
    let visitors = Rc::new(visitors);
    let cpu = CpuClock::Process.seconds();
    let tasks = LocalSet::new();
    match options.get::<u32>("at_once") {
        Ok(at_once) => {
            for _ in 0..at_once {
                let visitors = Rc::clone(&visitors);
                tasks.spawn_local(async move {
                    while Instant::now() < visitors.end {
                        visitors.visit().await;
                    }
                });
            }
        }
        Err(_) => {
            let interval = Duration::from_micros(options.get("interval_us")?);
            let visitors = Rc::clone(&visitors);
            tasks.spawn_local(open_loop(visitors, interval));
        }
    }
    // Clients that still wait at the end were not served in time.
    let _ = tokio::time::timeout_at(visitors.end.into(), tasks).await;
    let tally = visitors.tally.borrow();
    let mut times = tally.times.clone();
    times.sort_by(f64::total_cmp);
    let report = json!({
        "started": tally.started,
        "served": times.len(),
        "perSecond": times.len() as f64 / time.as_secs_f64(),
        "failures": tally.failures,
        "answer": { "p50": quantile(&times, 0.5), "p99": quantile(&times, 0.99) },
        "cpuSeconds": CpuClock::Process.seconds() - cpu,
    });
    println!("{report}");
    Ok(())
}

/// Starts a client after each interval. Late ones start immediately.
async fn open_loop(visitors: Rc<Visitors>, interval: Duration) {
    let began = Instant::now();
    for index in 0_u32.. {
        let planned = began + interval * index;
        if planned >= visitors.end {
            return;
        }
        tokio::time::sleep_until(planned.into()).await;
        let visitors = Rc::clone(&visitors);
        tokio::task::spawn_local(async move { visitors.visit().await });
    }
}

/// H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: u32 = 0x100;

/// The time that a client waits, which is the connect timeout of most clients.
const PATIENCE: Duration = Duration::from_secs(10);

struct Visitors {
    server: SocketAddr,
    config: ClientConfig,
    end: Instant,
    tally: RefCell<Tally>,
}

#[derive(Default)]
struct Tally {
    started: u64,
    times: Vec<f64>,
    failures: BTreeMap<String, u64>,
}

impl Visitors {
    /// Connects, sends one request and leaves.
    async fn visit(&self) {
        self.tally.borrow_mut().started += 1;
        let begin = Instant::now();
        let result = tokio::time::timeout(PATIENCE, self.connect()).await;
        let result = result.unwrap_or_else(|_| Err("handshake timed out".to_owned()));
        let mut tally = self.tally.borrow_mut();
        match result {
            Ok(()) => tally.times.push(begin.elapsed().as_secs_f64()),
            Err(reason) => *tally.failures.entry(reason).or_default() += 1,
        }
    }

    async fn connect(&self) -> Result<(), String> {
        let client = endpoint(&self.config)?;
        let connecting = client.connect(self.server, "localhost").map_err(label)?;
        let connection = connecting.await.map_err(label)?;
        // A client completes the handshake before the server does. Only a response proves that
        // both have.
        let answer = fetch(&h3::Client::new(connection.clone())).await;
        connection.close(VarInt::from(NO_ERROR), b"");
        answer
    }
}
