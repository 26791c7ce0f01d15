//! One run of a case between two processes and an emulated link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fs, io};

use courser_base::with_port;
use courser_emulator::{Emulator, ObservationPoint, ObservedDatagram, Observer, Plan};

use crate::capture;
use crate::case::{Case, Check};
use crate::certificates;
use crate::check::Evidence;
use crate::folder::{Folder, OUTPUT};
use crate::outcome::Outcome;
use crate::peer::Peer;
use crate::process::Process;
use crate::test::UNSUPPORTED;
use crate::trace::{KeyLog, Trace};

/// The settings of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) case: &'static Case,
    pub(crate) server: &'a Peer,
    pub(crate) client: &'a Peer,
    /// The client of the competing connection.
    pub(crate) competitor: &'a Peer,
    /// The number of the run among those of its cell, from 1.
    pub(crate) number: u32,
    pub(crate) seed: u64,
    /// The folder for logs that are kept.
    pub(crate) logs: Option<&'a Path>,
}

impl Run<'_> {
    /// Runs the case once.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.try_run() {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Failed(format!("the run could not be made: {error}")),
        }
    }

    fn try_run(&self) -> io::Result<Outcome> {
        let (server, client) = (&self.server.name, &self.client.name);
        let name = format!("{server}_{client}/{}/{}", self.case.name, self.number);
        let mut folder = Folder::new(self.logs, &name)?;
        folder.write_files(self.case, self.seed)?;
        certificates::write(&folder.path("certs"), self.case.chain)
            .map_err(|error| io::Error::other(error.to_string()))?;

        let claimed = ServerAddress::claim(self.case.is_ipv6)?;
        let address = claimed.address;
        let (recorder, datagrams) = Recorder::new();
        let link = Link::start(self.case, address, self.seed, recorder.clone())?;
        // The link to the server's preferred address.
        let second = match self.case.check {
            Check::Migration => Some(Link::start(self.case, address, self.seed, recorder)?),
            _ => None,
        };
        let preferred = second.as_ref().map(|link| link.address);
        let mut server = self.start_server(&folder, address, preferred)?;
        if let Some(outcome) = ready(&mut server, address, &folder) {
            return Ok(outcome);
        }
        let mut client = self.start_client(&folder, link.address, self.client, "downloads")?;
        let competitor = if self.case.has_competitor {
            std::thread::sleep(HEAD_START);
            let other = self.start_client(&folder, link.address, self.competitor, "competitor");
            Some(other?)
        } else {
            None
        };
        let deadline = Instant::now() + self.case.timeout;
        let status = client.wait_until(|| server.status().is_some() || Instant::now() > deadline);
        let ended = ended_server(&mut server, &folder);
        drop(competitor);
        client.stop();
        std::thread::sleep(LAST_PACKETS);
        drop((link, second));
        let datagrams: Vec<ObservedDatagram> = datagrams.try_iter().collect();
        server.stop();
        if self.logs.is_some() {
            write_captures(&folder, &datagrams, address)?;
        }

        if let Some(outcome) = ended {
            return Ok(outcome);
        }
        let Some(status) = status else {
            let limit = self.case.timeout.as_secs();
            return Ok(Outcome::Failed(format!(
                "the client did not end within {limit} s"
            )));
        };
        Ok(match status.code() {
            Some(0) => self.judge(&folder, datagrams),
            Some(code) if code == i32::from(UNSUPPORTED) => Outcome::Unsupported,
            _ => failed_end("client", &status.to_string(), &folder),
        })
    }

    fn start_server(
        &self,
        folder: &Folder,
        listen: SocketAddr,
        preferred: Option<SocketAddr>,
    ) -> io::Result<Process> {
        let mut command = self.server.command("server");
        if let Some(preferred) = preferred {
            command.env("PREFERRED", preferred.to_string());
        }
        command
            .env("TESTCASE", self.case.server_test)
            .env("LISTEN", listen.to_string())
            .env("WWW", folder.path("www"))
            .env("CERTS", folder.path("certs"))
            .env("SSLKEYLOGFILE", folder.path("server").join(KEYS))
            .env("QLOGDIR", folder.path("server").join("qlog"))
            .env_remove("REQUESTS");
        Process::start(command, &folder.path("server").join(OUTPUT))
    }

    fn start_client(
        &self,
        folder: &Folder,
        server: SocketAddr,
        peer: &Peer,
        downloads: &str,
    ) -> io::Result<Process> {
        let urls: Vec<String> = folder
            .files()
            .iter()
            .map(|file| format!("https://{server}/{file}"))
            .collect();
        let logs = match downloads {
            "downloads" => folder.path("client"),
            other => folder.path(other),
        };
        let mut command = peer.command("client");
        match &self.server.protocol {
            Some(protocol) => command.env("PROTOCOL", protocol),
            None => command.env_remove("PROTOCOL"),
        };
        command
            .env("TESTCASE", self.case.client_test)
            .env("REQUESTS", urls.join(" "))
            .env("DOWNLOADS", folder.path(downloads))
            .env("CERTS", folder.path("certs"))
            .env("SSLKEYLOGFILE", logs.join(KEYS))
            .env("QLOGDIR", logs.join("qlog"));
        Process::start(command, &logs.join(OUTPUT))
    }

    /// Compares the files, and checks the packets.
    fn judge(&self, folder: &Folder, datagrams: Vec<ObservedDatagram>) -> Outcome {
        if let Err(reason) = folder.compare() {
            return Outcome::Failed(reason);
        }
        let read = |end| fs::read_to_string(folder.path(end).join(KEYS)).unwrap_or_default();
        let both = KeyLog::parse(&(read("client") + "\n" + &read("server")));
        let evidence = Evidence {
            trace: Trace::new(&datagrams, &both),
            has_keys: !both.is_empty(),
            datagrams,
        };
        match evidence.check(self.case) {
            Ok(rate) => Outcome::Succeeded(rate),
            Err(reason) => Outcome::Failed(reason),
        }
    }
}

/// Writes a capture of each end.
fn write_captures(
    folder: &Folder,
    datagrams: &[ObservedDatagram],
    server: SocketAddr,
) -> io::Result<()> {
    let ends = [
        (
            "client",
            [ObservationPoint::FromClient, ObservationPoint::ToClient],
        ),
        (
            "server",
            [ObservationPoint::ToServer, ObservationPoint::FromServer],
        ),
    ];
    ends.into_iter().try_for_each(|(end, places)| {
        let path = folder.path(end).join(CAPTURE);
        capture::write(&path, datagrams, places, server)
    })
}

/// Waits until a server answers, or returns the outcome of one that has ended.
fn ready(server: &mut Process, address: SocketAddr, folder: &Folder) -> Option<Outcome> {
    let deadline = Instant::now() + START;
    while Instant::now() < deadline {
        if let Some(outcome) = ended_server(server, folder) {
            return Some(outcome);
        }
        // Servers without Version Negotiation get the whole time.
        if answers(address).unwrap_or(false) {
            return None;
        }
    }
    None
}

/// Returns the outcome of a server that has ended.
fn ended_server(server: &mut Process, folder: &Folder) -> Option<Outcome> {
    let status = server.status()?;
    Some(match status.code() {
        Some(code) if code == i32::from(UNSUPPORTED) => Outcome::Unsupported,
        _ => failed_end("server", &status.to_string(), folder),
    })
}

/// Returns true if a server answers a packet of an unknown version. RFC 9000 §6.
fn answers(address: SocketAddr) -> io::Result<bool> {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_read_timeout(Some(PROBE))?;
    let mut probe = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    probe.resize(1200, 0);
    socket.send_to(&probe, address)?;
    let received = socket.recv_from(&mut [0; 1500]);
    if received.is_err() {
        // The system reports a closed port at once.
        std::thread::sleep(PROBE / 4);
    }
    Ok(received.is_ok())
}

fn failed_end(end: &str, status: &str, folder: &Folder) -> Outcome {
    let line = folder.last_line(end).unwrap_or_default();
    Outcome::Failed(format!("the {end} ended with {status}: {line}"))
}

/// An emulated link on its own thread, which ends when it is dropped.
#[derive(Debug)]
struct Link {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Records the datagrams of all links of a run, in order and with the times of one clock.
#[derive(Clone, Debug)]
struct Recorder {
    datagrams: Sender<ObservedDatagram>,
    start: Arc<OnceLock<Instant>>,
}

impl Recorder {
    fn new() -> (Self, Receiver<ObservedDatagram>) {
        let (sender, datagrams) = channel();
        let recorder = Self {
            datagrams: sender,
            start: Arc::default(),
        };
        (recorder, datagrams)
    }
}

impl Observer for Recorder {
    fn on_datagram(&mut self, datagram: &ObservedDatagram) {
        let mut datagram = datagram.clone();
        datagram.at = self.start.get_or_init(Instant::now).elapsed();
        // Without a receiver the run is over.
        let _ = self.datagrams.send(datagram);
    }
}

impl Link {
    fn start(case: &Case, server: SocketAddr, seed: u64, recorder: Recorder) -> io::Result<Self> {
        let link = case
            .link
            .parse()
            .map_err(|error| io::Error::other(format!("{error}")))?;
        let mut emulator = Emulator::bind(Plan {
            listen: with_port(server, 0),
            server,
            link,
            seed,
            max_clients: MAX_CLIENTS,
            idle: Duration::from_secs(600),
            amplification_bytes: 0,
            hold: 64 << 20,
        })
        .map_err(|error| io::Error::other(error.to_string()))?;
        emulator.set_observer(Box::new(recorder));
        let stop = Arc::new(AtomicBool::new(false));
        let address = emulator.local_addr();
        let stopped = stop.clone();
        let run = move || {
            emulator.wait_for_client(|| !stopped.load(Ordering::Relaxed));
            emulator.run(|_| !stopped.load(Ordering::Relaxed))
        };
        let thread = std::thread::Builder::new().name("link".to_owned());
        Ok(Self {
            address,
            stop,
            thread: Some(thread.spawn(run)?),
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A link that failed has lost packets, which the checks report.
            let _ = thread.join();
        }
    }
}

/// An address for a server, which no other run uses while this value exists.
struct ServerAddress {
    address: SocketAddr,
    /// Listens on another port, which stands for this one.
    _claim: TcpListener,
}

impl ServerAddress {
    /// Finds one whose port is below those that the system gives to clients.
    fn claim(is_ipv6: bool) -> io::Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let ip: IpAddr = match is_ipv6 {
            true => Ipv6Addr::LOCALHOST.into(),
            false => Ipv4Addr::LOCALHOST.into(),
        };
        let start = u16::try_from(std::process::id() % 100).unwrap_or(0) * (PORTS / 100);
        for _ in 0..PORTS {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let port = FIRST_PORT + start.wrapping_add(number) % PORTS;
            let claim = TcpListener::bind((Ipv4Addr::LOCALHOST, port + PORTS));
            if let (Ok(_claim), Ok(socket)) = (claim, UdpSocket::bind((ip, port))) {
                let address = socket.local_addr()?;
                return Ok(Self { address, _claim });
            }
        }
        Err(io::Error::other("no port is free for a server"))
    }
}

/// The file with the secrets of an end.
const KEYS: &str = "keys.log";

/// The file with the datagrams of an end.
const CAPTURE: &str = "packets.pcap";

/// The ports of servers. As many behind them stand for them while they are in use.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 6000;

/// The most addresses of clients in a run: one for each connection.
const MAX_CLIENTS: usize = 256;

/// The time in which a server has to answer.
const START: Duration = Duration::from_secs(10);

/// The time between two packets that test whether a server answers.
const PROBE: Duration = Duration::from_millis(200);

/// The time that the measured connection has before its competitor starts.
const HEAD_START: Duration = Duration::from_millis(300);

/// The time that the last packets of a client take to the server.
const LAST_PACKETS: Duration = Duration::from_millis(150);
