//! The servers of a soak, the origin of two of them, and the links in front of each.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::helper::Helper;
use crate::objects;
use crate::process::{PANIC, Process, Serve, Server, Site, command, loopback};

/// All processes except the honest clients.
pub(super) struct Servers {
    courser: PathBuf,
    site: Site,
    _origin: Helper,
    origin: String,
    /// A file server, and a proxy that accepts uploads. Both run throughout.
    steady: [Server; 2],
    /// A proxy that is restarted repeatedly.
    restarted: Restarted,
    links: Vec<Link>,
}

struct Restarted {
    address: SocketAddr,
    state: Life,
    since: Duration,
    restarts: u64,
    /// Servers that did not drain in time and were killed.
    killed: u64,
    /// Servers that ended unexpectedly.
    ended: u64,
    /// Attempts to start the next server that have failed in a row.
    failed_starts: u32,
    cpu: Duration,
}

enum Life {
    Serving(Server),
    /// The server has received SIGTERM.
    Draining(Server),
    /// The next server is about to start.
    Ended,
}

/// A `courser sim proxy` between clients and a server.
struct Link {
    _process: Process,
    address: SocketAddr,
}

/// Counts over all servers after they have ended.
pub(super) struct ServerCounts {
    pub(super) panics: u64,
    pub(super) restarts: u64,
    pub(super) killed: u64,
    pub(super) cpu: f64,
    /// Servers that ended unexpectedly.
    pub(super) ended: u64,
    pub(super) metrics: Value,
}

impl Servers {
    pub(super) fn start(courser: &Path) -> Result<Self, String> {
        let site = Site::make()?;
        objects::write(site.path()).map_err(|error| error.to_string())?;
        let mut origin = Helper::start(None, &["origin".to_owned()])?;
        let address = origin.line()?;
        let address = address["address"].as_str().unwrap_or_default();
        let url = format!("http://{address}");
        let files = Serve {
            log: Some(log(&site)),
            ..Serve::folder(courser, site.path())
        };
        let steady = [
            files.start()?,
            proxy(courser, &site, &url, loopback(), "steady")?,
        ];
        let restarted = proxy(courser, &site, &url, loopback(), "restarted")?;
        let address = restarted.address;
        let targets = [steady[0].address, steady[1].address, address];
        let links = targets
            .iter()
            .zip(1..)
            .map(|(target, seed)| Link::start(courser, *target, seed))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            courser: courser.to_owned(),
            site,
            _origin: origin,
            origin: url,
            steady,
            restarted: Restarted {
                address,
                state: Life::Serving(restarted),
                since: Duration::ZERO,
                restarts: 0,
                killed: 0,
                ended: 0,
                failed_starts: 0,
                cpu: Duration::ZERO,
            },
            links,
        })
    }

    /// Returns the names and addresses to which clients connect. Three of four are those of servers, and
    /// one is that of a link. A `+` marks servers that accept uploads.
    pub(super) fn targets(&self) -> String {
        let servers = ["files", "proxy", "restarted"];
        let direct = servers.into_iter().zip(self.addresses());
        let links = servers.into_iter().zip(&self.links);
        let mut targets = Vec::new();
        for _ in 0..3 {
            targets.extend(direct.clone().map(|(name, it)| (name.to_owned(), it)));
        }
        targets.extend(links.map(|(name, it)| (format!("{name} through a link"), it.address)));
        let with_marks = targets.iter().map(|(name, address)| {
            let mark = if name.starts_with("files") { "" } else { "+" };
            format!("{name}={address}{mark}")
        });
        with_marks.collect::<Vec<_>>().join(",")
    }

    fn addresses(&self) -> [SocketAddr; 3] {
        let [files, proxy] = &self.steady;
        [files.address, proxy.address, self.restarted.address]
    }

    /// Returns the address of a server. Numbers above the last one start again.
    pub(super) fn address(&self, number: usize) -> SocketAddr {
        let addresses = self.addresses();
        addresses[number % addresses.len()]
    }

    /// Returns the memory in KiB of the servers that are never restarted.
    pub(super) fn rss(&self) -> Vec<u64> {
        self.steady.iter().map(|it| it.process.rss()).collect()
    }

    /// Drains the restarted server at its interval, and starts the next one when it has ended.
    pub(super) fn keep_restarting(&mut self, now: Duration, every: Duration) -> Result<(), String> {
        let age = now.saturating_sub(self.restarted.since);
        let is_running = self.restarted.is_running();
        let state = std::mem::replace(&mut self.restarted.state, Life::Ended);
        self.restarted.state = match state {
            Life::Serving(server) if age >= every || !is_running => {
                self.restarted.ended += u64::from(!is_running);
                self.restarted.cpu += server.process.cpu();
                server.process.terminate();
                self.restarted.since = now;
                Life::Draining(server)
            }
            Life::Draining(server) if age >= DRAIN || !is_running => {
                self.restarted.killed += u64::from(is_running);
                self.restarted.restarts += 1;
                self.restarted.since = now;
                // The port is free after the process has ended.
                drop(server);
                self.start_again()?
            }
            Life::Ended => self.start_again()?,
            state => state,
        };
        Ok(())
    }
}

impl Servers {
    /// Starts the next server at the address of the last one. Another program may have taken the port
    /// meanwhile, so this is tried again a few times, once for each call.
    fn start_again(&mut self) -> Result<Life, String> {
        let address = self.restarted.address;
        match proxy(
            &self.courser,
            &self.site,
            &self.origin,
            address,
            "restarted",
        ) {
            Ok(server) => {
                self.restarted.failed_starts = 0;
                Ok(Life::Serving(server))
            }
            Err(error) if self.restarted.failed_starts < MAX_FAILED_STARTS => {
                eprintln!("  the server at {address} did not start: {error}");
                self.restarted.failed_starts += 1;
                Ok(Life::Ended)
            }
            Err(error) => Err(error),
        }
    }
}

impl Restarted {
    fn is_running(&mut self) -> bool {
        match &mut self.state {
            Life::Serving(server) | Life::Draining(server) => server.process.is_running(),
            Life::Ended => false,
        }
    }
}

impl Servers {
    /// Ends all processes and returns their counts.
    pub(super) fn finish(mut self) -> ServerCounts {
        let metrics: Vec<Value> = self.steady.iter().map(metrics).collect();
        let mut ended = self.restarted.ended;
        let mut cpu = self.restarted.cpu;
        for server in &mut self.steady {
            ended += u64::from(!server.process.is_running());
            cpu += server.process.cpu();
        }
        if let Life::Serving(server) = &self.restarted.state {
            cpu += server.process.cpu();
        }
        let log = log(&self.site);
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        ServerCounts {
            panics: text.matches(PANIC).count() as u64,
            restarts: self.restarted.restarts,
            killed: self.restarted.killed,
            cpu: cpu.as_secs_f64(),
            ended,
            metrics: Value::Array(metrics),
        }
    }
}

/// The time after which a draining server is killed, a little longer than its own limit.
const DRAIN: Duration = Duration::from_secs(35);

/// The number of attempts to start a server, one per second, after which the soak ends with an error.
const MAX_FAILED_STARTS: u32 = 20;

/// Starts a proxy in front of the origin. The folder of its certificate also contains the secret for
/// stateless resets.
fn proxy(
    courser: &Path,
    site: &Site,
    origin: &str,
    listen: SocketAddr,
    name: &str,
) -> Result<Server, String> {
    let mut content = vec!["--proxy".into(), origin.into()];
    content.push("--tls-dev-dir".into());
    content.push(private_path(site, name).into_os_string());
    let serve = Serve {
        courser,
        command: "serve",
        content,
        listen,
        core: None,
        log: Some(log(site)),
    };
    serve.start()
}

/// Returns a path in the private folder.
fn private_path(site: &Site, name: &str) -> PathBuf {
    site.private().join(name)
}

/// Returns the path of the file with standard error of all servers.
fn log(site: &Site) -> PathBuf {
    private_path(site, "log")
}

impl Link {
    fn start(courser: &Path, server: SocketAddr, seed: u64) -> Result<Self, String> {
        let mut command = command(courser.as_os_str(), None);
        command
            .args(["sim", "proxy", "--json", "--listen", "127.0.0.1:0"])
            .args(["--to", &server.to_string(), "--seed", &seed.to_string()])
            .args(["--link", LINK, "--rebind-every", REBIND])
            .args(["--max-clients", "900", "--idle", "45"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Process::spawn(command)?;
        let output = process.child().stdout.take();
        let mut output = BufReader::new(output.expect("standard output is piped"));
        let mut line = String::new();
        output
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        let announced: Value = serde_json::from_str(&line).unwrap_or_default();
        let address = announced["address"].as_str();
        let address = address.and_then(|address| address.parse().ok());
        Ok(Self {
            _process: process,
            address: address.ok_or_else(|| format!("`courser sim proxy` printed `{line}`"))?,
        })
    }
}

/// The link in each direction.
const LINK: &str = "1%,2ms";
/// The interval in seconds at which clients get other ports.
const REBIND: &str = "30";

fn metrics(server: &Server) -> Value {
    let metrics = server.metrics();
    let names = [
        "quic_handshakes_total",
        "quic_handshakes_failed_total",
        "quic_retries_sent_total",
        "quic_refused_total",
        "quic_refused_for_memory_total",
        "quic_closed_for_memory_total",
        "connections_refused_total",
        "quic_datagrams_dropped_total",
        "udp_dropped_datagrams_total",
        "http_responses_incomplete_total",
    ];
    let values = names
        .iter()
        .map(|name| ((*name).to_owned(), json!(metrics.get(name))));
    Value::Object(values.collect())
}
