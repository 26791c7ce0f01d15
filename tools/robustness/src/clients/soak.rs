//! Long-running honest clients, whose requests and transfers are checked byte for byte.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser::{ClientConfig, Connection, ConnectionError, ConnectionStats, Endpoint, VarInt, h3};
use courser_crypto::Rng;
use courser_measure::CpuClock;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::task::LocalSet;

use super::client::{config, endpoint, label};
use super::options::Options;
use super::statistics::quantile;
use crate::objects::{self, MEDIUM, Object, SHORT};

/// Runs the mode. Its options are:
///
/// - `targets`: `NAME=ADDRESS` separated by commas, with `+` after those that accept uploads
/// - `connections`: their number, distributed over the targets
/// - `time_ms`: the duration
/// - `pause_ms`: the mean pause between requests of a connection
/// - `seed`: the seed of random numbers
pub(super) async fn run(options: &Options) -> Result<(), String> {
    let targets: Vec<Target> = options
        .get::<String>("targets")?
        .split(',')
        .map(Target::parse)
        .collect::<Result<_, _>>()?;
    let connections: usize = options.get("connections")?;
    let time = Duration::from_millis(options.get("time_ms")?);
    let seed: u64 = options.get("seed")?;
    let soak = Rc::new(Soak {
        config: config()?,
        objects: objects::all(),
        pause: Duration::from_millis(options.get("pause_ms")?),
        end: Instant::now() + time,
        open: Cell::new(0),
        tally: RefCell::default(),
    });
    let cpu = CpuClock::Process.seconds();
    let tasks = LocalSet::new();
    for number in 0..connections {
        let soak = Rc::clone(&soak);
        let target = targets[number % targets.len()].clone();
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&(number as u64).to_le_bytes());
        tasks.spawn_local(async move { soak.user(target, Rng::new(bytes)).await });
    }
    let reporter = Rc::clone(&soak);
    tasks.spawn_local(async move { reporter.report_each_minute().await });
    // Transfers in progress at the end may complete.
    let limit = soak.end + PATIENCE + Duration::from_secs(5);
    let _ = tokio::time::timeout_at(limit.into(), tasks).await;
    println!(
        "{}",
        soak.tally
            .borrow()
            .report(CpuClock::Process.seconds() - cpu)
    );
    Ok(())
}

/// A server to which clients connect.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Target {
    name: String,
    address: SocketAddr,
    takes_uploads: bool,
}

impl Target {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, address) = text.split_once('=').unwrap_or(("", text));
        let takes_uploads = address.ends_with('+');
        let address = address.trim_end_matches('+');
        Ok(Self {
            name: name.to_owned(),
            address: address
                .parse()
                .map_err(|_| format!("`{address}` is not an address"))?,
            takes_uploads,
        })
    }
}

/// The longest duration of a request, because attacks and losses make it slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest duration of connecting.
const CONNECT_PATIENCE: Duration = Duration::from_secs(15);

/// The range of connection lifetimes in seconds.
const LIFE: (u64, u64) = (20, 180);

struct Soak {
    config: ClientConfig,
    objects: Arc<[Object]>,
    pause: Duration,
    end: Instant,
    open: Cell<usize>,
    tally: RefCell<Tally>,
}

/// Sums over all clients.
#[derive(Default)]
struct Tally {
    requests: u64,
    downloads: u64,
    uploads: u64,
    bytes: u64,
    /// Responses with wrong bytes.
    wrong: BTreeMap<String, u64>,
    /// Requests without a response that the server had not refused.
    lost: BTreeMap<String, u64>,
    /// Requests that the server reported as unprocessed. They were sent again.
    refused: BTreeMap<String, u64>,
    unconnected: BTreeMap<String, u64>,
    connections: u64,
    /// Connections that ended before the client closed them.
    ended: BTreeMap<String, u64>,
    connects: Vec<f64>,
    times: Vec<f64>,
}

/// A request, which is sent again if the server refuses it.
#[derive(Clone, Copy)]
struct Task {
    object: usize,
    is_upload: bool,
}

/// The reason why a request failed.
enum Failure {
    Wrong(String),
    Lost(String),
    Refused(String),
}

impl Soak {
    /// Runs one client after the other until the end.
    async fn user(&self, target: Target, mut rng: Rng) {
        // Clients start over a period of time. Simultaneous starts are measured elsewhere.
        let start = Duration::from_millis(rng.below(RAMP_MS));
        self.sleep(start).await;
        let mut left = None;
        while !self.is_over() {
            let Some((client, connection)) = self.connect(&target, &mut rng).await else {
                continue;
            };
            self.open.set(self.open.get() + 1);
            let life = Duration::from_secs(LIFE.0 + rng.below(LIFE.1 - LIFE.0));
            let until = Instant::now() + life;
            left = self
                .run_requests(&target, &connection, &mut rng, until, left)
                .await;
            self.open.set(self.open.get() - 1);
            match connection.close_reason() {
                None | Some(ConnectionError::LocallyClosed) => {
                    connection.close(VarInt::from(NO_ERROR), b"");
                }
                Some(reason) => {
                    let reason = end_label(reason);
                    *self.tally.borrow_mut().ended.entry(reason).or_default() += 1;
                }
            }
            client.wait_idle().await;
        }
    }

    async fn connect(&self, target: &Target, rng: &mut Rng) -> Option<(Endpoint, Connection)> {
        let begin = Instant::now();
        let attempt = async {
            let client = endpoint(&self.config)?;
            let connecting = client.connect(target.address, "localhost").map_err(label)?;
            let connection = connecting.await.map_err(label)?;
            Ok((client, connection))
        };
        let result = tokio::time::timeout(CONNECT_PATIENCE, attempt).await;
        let result = result.unwrap_or_else(|_| Err("no connection in time".to_owned()));
        match result {
            Ok(connected) => {
                let mut tally = self.tally.borrow_mut();
                tally.connections += 1;
                tally.connects.push(begin.elapsed().as_secs_f64());
                Some(connected)
            }
            Err(reason) => {
                *self
                    .tally
                    .borrow_mut()
                    .unconnected
                    .entry(reason)
                    .or_default() += 1;
                self.sleep(Duration::from_millis(200 + rng.below(800)))
                    .await;
                None
            }
        }
    }

    /// Sends requests on one connection until its lifetime expires or it ends. Returns a request that
    /// the server refused, for the next connection.
    async fn run_requests(
        &self,
        target: &Target,
        connection: &Connection,
        rng: &mut Rng,
        until: Instant,
        mut task: Option<Task>,
    ) -> Option<Task> {
        let client = h3::Client::new(connection.clone());
        while !self.is_over() && Instant::now() < until {
            let doing = task.take().unwrap_or_else(|| self.choose(target, rng));
            let (begin, before) = (Instant::now(), connection.stats());
            let result = tokio::time::timeout(PATIENCE, self.perform(&client, doing)).await;
            let result =
                result.unwrap_or_else(|_| Err(Failure::Lost("no response in time".to_owned())));
            let took = begin.elapsed();
            if let Err(failure) = result {
                let failure = failure.at(&target.name);
                if let Failure::Lost(reason) = &failure {
                    eprintln!(
                        "  {reason} after {took:.1?}, {}",
                        since(connection, &before)
                    );
                }
                return self.tally.borrow_mut().fail(failure, doing);
            }
            self.tally.borrow_mut().note(doing, &self.objects, took);
            let pause = rng.below(2 * self.pause.as_millis() as u64 + 1);
            tokio::select! {
                () = self.sleep(Duration::from_millis(pause)) => {}
                _ = connection.closed() => return None,
            }
        }
        None
    }

    fn choose(&self, target: &Target, rng: &mut Rng) -> Task {
        let object = match rng.below(1000) {
            0..970 => rng.below(SHORT as u64),
            970..995 => SHORT as u64 + rng.below((MEDIUM - SHORT) as u64),
            _ => MEDIUM as u64 + rng.below((self.objects.len() - MEDIUM) as u64),
        };
        Task {
            object: object as usize,
            is_upload: target.takes_uploads && rng.below(5) == 0,
        }
    }

    async fn perform(&self, client: &h3::Client, task: Task) -> Result<(), Failure> {
        let object = &self.objects[task.object];
        let request = match task.is_upload {
            true => Request::post("https://localhost/hash").body(Full::new(object.bytes.clone())),
            false => Request::get(format!("https://localhost/obj/{}", task.object))
                .body(Full::new(Bytes::new())),
        };
        let request = request.map_err(|error| Failure::Lost(label(error)))?;
        let response = client.send(request).await.map_err(Failure::of)?;
        let body = read(response).await?;
        let expected = format!("{} {}", object.bytes.len(), object.hash);
        let what = match task.is_upload {
            true if body == expected.as_bytes() => return Ok(()),
            false if objects::hash(&body) == object.hash => return Ok(()),
            true => "upload",
            false => "download",
        };
        Err(Failure::Wrong(format!("{what} of object {}", task.object)))
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Sleeps, but at most until the end.
    async fn sleep(&self, time: Duration) {
        let until = (Instant::now() + time).min(self.end);
        tokio::time::sleep_until(until.into()).await;
    }

    async fn report_each_minute(&self) {
        while !self.is_over() {
            self.sleep(Duration::from_secs(60)).await;
            let open = self.open.get();
            eprintln!("  {}", self.tally.borrow().line(open));
        }
    }
}

/// The period in milliseconds over which clients start.
const RAMP_MS: u64 = 10_000;

/// H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: u32 = 0x100;

async fn read(response: Response<h3::Body>) -> Result<Bytes, Failure> {
    let status = response.status();
    if !status.is_success() {
        return Err(Failure::Lost(format!("status {}", status.as_u16())));
    }
    let body = response.into_body().collect().await;
    // The response has begun, so a server that closes now loses a request in progress.
    let body = body.map_err(|error| Failure::Lost(format!("in progress: {}", label(error))))?;
    Ok(body.to_bytes())
}

/// Returns the label under which the end of a connection is counted. Servers choose a new reserved code for each
/// connection (RFC 9114 §8.1), and all of these count as one.
fn end_label(reason: ConnectionError) -> String {
    match &reason {
        ConnectionError::ApplicationClosed { code, .. } => {
            match h3::Code::from_value(VarInt::from(*code).into_inner()).is_no_error() {
                true => "closed by peer without an error".to_owned(),
                false => label(reason),
            }
        }
        _ => label(reason),
    }
}

/// Describes the packets of a connection since `before`, which distinguish a silent server from a client that cannot
/// send.
fn since(connection: &Connection, before: &ConnectionStats) -> String {
    let now = connection.stats();
    format!(
        "{} packets sent, {} received, {} dropped, {} probe timeouts, {} closes received",
        now.packets_sent - before.packets_sent,
        now.packets_received - before.packets_received,
        now.packets_dropped - before.packets_dropped,
        now.ptos - before.ptos,
        now.frames_received.connection_close,
    )
}

impl Failure {
    /// Returns the failure of a request without a response.
    fn of(error: h3::Error) -> Self {
        match error {
            h3::Error::Connection(ConnectionError::Reset) => {
                Self::Refused("stateless reset".to_owned())
            }
            error if error.is_unprocessed() => Self::Refused(label(error)),
            error => Self::Lost(label(error)),
        }
    }

    /// Prefixes a failure with the name of the server.
    fn at(self, server: &str) -> Self {
        match self {
            Self::Wrong(reason) => Self::Wrong(format!("{server}: {reason}")),
            Self::Lost(reason) => Self::Lost(format!("{server}: {reason}")),
            refused @ Self::Refused(_) => refused,
        }
    }
}

impl Tally {
    fn note(&mut self, task: Task, objects: &[Object], time: Duration) {
        self.requests += 1;
        if task.object >= SHORT {
            match task.is_upload {
                true => self.uploads += 1,
                false => self.downloads += 1,
            }
        }
        self.bytes += objects[task.object].bytes.len() as u64;
        self.times.push(time.as_secs_f64());
    }

    /// Counts a failure. Returns the request if it must be sent again.
    fn fail(&mut self, failure: Failure, task: Task) -> Option<Task> {
        let (reasons, reason, again) = match failure {
            Failure::Wrong(reason) => (&mut self.wrong, reason, None),
            Failure::Lost(reason) => (&mut self.lost, reason, None),
            Failure::Refused(reason) => (&mut self.refused, reason, Some(task)),
        };
        *reasons.entry(reason).or_default() += 1;
        again
    }

    fn line(&self, open: usize) -> String {
        format!(
            "{} requests, {} MiB, {open} connections open; wrong {:?}, lost {:?}, refused {:?}, not \
             connected {:?}",
            self.requests,
            self.bytes >> 20,
            self.wrong,
            self.lost,
            self.refused,
            self.unconnected
        )
    }

    fn report(&self, cpu: f64) -> Value {
        let sorted = |times: &[f64]| {
            let mut times = times.to_vec();
            times.sort_by(f64::total_cmp);
            json!({ "p50": quantile(&times, 0.5), "p99": quantile(&times, 0.99) })
        };
        json!({
            "requests": self.requests,
            "downloads": self.downloads,
            "uploads": self.uploads,
            "bytes": self.bytes,
            "wrong": self.wrong,
            "lost": self.lost,
            "refused": self.refused,
            "connections": self.connections,
            "unconnected": self.unconnected,
            "ended": self.ended,
            "connect": sorted(&self.connects),
            "time": sorted(&self.times),
            "cpuSeconds": cpu,
        })
    }
}
