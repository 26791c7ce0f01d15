//! The servers of a soak, the origin behind two of them, and the links in front of each.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::run::helper::Helper;
use crate::run::objects;
use crate::run::process::{Process, Serve, Server, Site, command, loopback};
use crate::run::robustness::PANIC;

/// All processes but the honest clients.
pub(super) struct Servers {
    courser: PathBuf,
    site: Site,
    _origin: Helper,
    origin: String,
    /// A server of files, and a proxy that takes uploads. Both live throughout.
    steady: [Server; 2],
    /// A proxy that is restarted.
    restarted: Restarted,
    links: Vec<Link>,
}

struct Restarted {
    address: SocketAddr,
    state: Life,
    since: Duration,
    restarts: u64,
    /// Servers that did not end by themselves after their time for that.
    killed: u64,
    /// Servers that ended before they were asked to.
    ended: u64,
    cpu: Duration,
}

enum Life {
    Serving(Server),
    /// It was asked to end.
    Draining(Server),
    /// The next one is about to start.
    Ended,
}

/// A process between clients and a server: `courser sim proxy`.
struct Link {
    _process: Process,
    address: SocketAddr,
}

/// Counts of panics and restarts that remain after the servers have ended.
pub(super) struct Left {
    pub(super) panics: u64,
    pub(super) restarts: u64,
    pub(super) killed: u64,
    pub(super) cpu: f64,
    /// Servers that ended although nobody asked them to.
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
                cpu: Duration::ZERO,
            },
            links,
        })
    }

    /// Returns the addresses that clients connect to: three of four lead to the server, one to its
    /// link. A `+` marks servers that take uploads.
    pub(super) fn targets(&self) -> String {
        let addresses = self.addresses();
        let direct = addresses.iter().cycle().take(3 * addresses.len());
        let links = self.links.iter().map(|link| &link.address);
        let with_marks = direct.chain(links).enumerate().map(|(index, address)| {
            let mark = if index % addresses.len() == 0 {
                ""
            } else {
                "+"
            };
            format!("{address}{mark}")
        });
        with_marks.collect::<Vec<_>>().join(",")
    }

    fn addresses(&self) -> [SocketAddr; 3] {
        let [files, proxy] = &self.steady;
        [files.address, proxy.address, self.restarted.address]
    }

    /// The address of one server, counted round and round.
    pub(super) fn address(&self, number: usize) -> SocketAddr {
        let addresses = self.addresses();
        addresses[number % addresses.len()]
    }

    /// Memory of the servers that live throughout, in KiB.
    pub(super) fn rss(&self) -> Vec<u64> {
        self.steady.iter().map(|it| it.process.rss()).collect()
    }

    /// Asks the server to end when its time has come, and starts it anew once it has ended.
    pub(super) fn keep_restarting(&mut self, now: Duration, every: Duration) -> Result<(), String> {
        let age = now.saturating_sub(self.restarted.since);
        let is_running = self.restarted.is_running();
        let state = std::mem::replace(&mut self.restarted.state, Life::Ended);
        self.restarted.state = match state {
            Life::Serving(server) if age >= every || !is_running => {
                self.restarted.ended += u64::from(!is_running);
                self.restarted.cpu += server.process.cpu();
                server.process.ask_to_end();
                self.restarted.since = now;
                Life::Draining(server)
            }
            Life::Draining(server) if age >= DRAIN || !is_running => {
                self.restarted.killed += u64::from(is_running);
                self.restarted.restarts += 1;
                self.restarted.since = now;
                // Its port is free once it is gone.
                drop(server);
                let address = self.restarted.address;
                let url = &self.origin;
                Life::Serving(proxy(&self.courser, &self.site, url, address, "restarted")?)
            }
            state => state,
        };
        Ok(())
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
    /// Ends all processes.
    pub(super) fn finish(mut self) -> Left {
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
        Left {
            panics: text.matches(PANIC).count() as u64,
            restarts: self.restarted.restarts,
            killed: self.restarted.killed,
            cpu: cpu.as_secs_f64(),
            ended,
            metrics: Value::Array(metrics),
        }
    }
}

/// The time after which a server that was asked to end is killed: its own limit, and some more.
const DRAIN: Duration = Duration::from_secs(35);

/// Starts a proxy in front of the origin. The folder of its certificate also holds the secret for
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
    content.push(beside(site, name).into_os_string());
    let serve = Serve {
        courser,
        content,
        listen,
        core: None,
        log: Some(log(site)),
    };
    serve.start()
}

/// A path in the temporary folder that is not served.
fn beside(site: &Site, name: &str) -> PathBuf {
    site.private().join(name)
}

/// Standard error of all servers.
fn log(site: &Site) -> PathBuf {
    beside(site, "log")
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

/// The link each way, and the interval at which clients get other ports.
const LINK: &str = "1%,2ms";
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
