//! Resident memory of the server per client, for several kinds of clients.

use std::path::Path;
use std::time::{Duration, Instant};

use courser_adversary::attacks::{Crowd, LARGE, Progress};
use courser_adversary::{Attack, Attacker, Connection, Fate, Hooks, Pace, PacketToSend, Sockets};
use courser_adversary::{client_tls, http};
use courser_base::Time;
use courser_crypto::Space;
use courser_wire::{Frame, TransportParameters};
use serde_json::json;

use super::figure::{Figure, Verdict};
use super::machine;
use super::setup::Setup;
use super::storm::{arrivals, median};
use crate::helper::Helper;
use crate::process::{Serve, Server, loopback};

/// Measures the memory of handshakes that stop after the first flight of the server.
pub(super) fn half_open(setup: &Setup) -> Result<Vec<Figure>, String> {
    let count = if setup.is_quick { 1000 } else { 4000 };
    let mut attack = HoldHalfOpen { left: count };
    let held = hold(setup, &mut attack, u64::from(count), Duration::from_secs(9))?;
    let admitted = held.handshakes.max(1);
    let each = held.kib() / admitted as f64;
    Ok(vec![Figure {
        id: "memory-half-open".to_owned(),
        title: "memory of a half-open handshake".to_owned(),
        aim: "8 KiB of RSS".to_owned(),
        measured: format!("{each:.1} KiB ({admitted} of {count} admitted)"),
        verdict: Verdict::all(&[each <= 8.0, held.handshakes == u64::from(count)]),
        method: format!("{count} clients that never send Finished; growth of RSS"),
        cpu: [held.server_cpu, 0.0],
        detail: held.json(),
    }])
}

/// Measures the memory of connections of courser's own client after one request.
pub(super) fn idle(setup: &Setup) -> Result<Vec<Figure>, String> {
    let rounds = if setup.is_quick { 1 } else { 3 };
    let each = |courser: &Path| -> Result<f64, String> {
        let rounds: Result<Vec<f64>, String> =
            (0..rounds).map(|_| idle_round(setup, courser)).collect();
        Ok(median(rounds?))
    };
    let now = each(&setup.courser)?;
    let before = setup.before.as_deref().map(each).transpose()?;
    let (aim, verdict) = match before {
        None => ("as before or less".to_owned(), Verdict::NoAim),
        Some(before) => (
            format!("{before:.1} KiB, as before, or less"),
            // One percent is noise of the allocator.
            Verdict::all(&[now <= before * 1.01]),
        ),
    };
    Ok(vec![Figure {
        id: "memory-idle".to_owned(),
        title: "memory of an idle connection".to_owned(),
        aim,
        measured: format!("{now:.1} KiB of RSS"),
        verdict,
        method: format!(
            "{IDLE} connections of courser's client after one request each; growth of RSS, median of \
             {rounds} rounds"
        ),
        cpu: [0.0, 0.0],
        detail: json!({ "kib": now, "beforeKib": before }),
    }])
}

/// The number of connections of the row `idle`.
const IDLE: u32 = 2000;

fn idle_round(setup: &Setup, courser: &Path) -> Result<f64, String> {
    let server = serve(setup, courser)?;
    let before = server.process.rss();
    let settings = [
        ("server", server.address.to_string()),
        ("count", IDLE.to_string()),
    ];
    let mut clients = Helper::clients(Some(setup.client_core), "idle", &settings)?;
    clients.line()?;
    std::thread::sleep(SETTLE);
    let grown = server.process.rss().saturating_sub(before);
    let end = clients.finish()?;
    if end["open"] != IDLE {
        return Err(format!("{} of {IDLE} connections are open", end["open"]));
    }
    Ok(grown as f64 / f64::from(IDLE))
}

/// The pause in which the last acknowledgments and timers complete.
const SETTLE: Duration = Duration::from_secs(2);

/// Measures the memory of clients that request a large file repeatedly and read nothing.
pub(super) fn unread(setup: &Setup) -> Result<Vec<Figure>, String> {
    let mut details = serde_json::Map::new();
    let mut worst = (0.0, "");
    let mut cpu = 0.0;
    for (name, hooks) in READERS {
        let mut crowd = Crowd::new(CROWD, requests)
            .with_setup(|connection, _| {
                http::preface(connection);
            })
            .with_hooks(*hooks)
            .with_pause(Duration::from_millis(500));
        let held = hold(setup, &mut crowd, u64::MAX, Duration::from_secs(6))?;
        let each = held.peak_kib() / CROWD as f64;
        if each > worst.0 {
            worst = (each, *name);
        }
        cpu += held.server_cpu;
        details.insert((*name).to_owned(), held.json());
    }
    let (each, name) = worst;
    Ok(vec![Figure {
        id: "memory-unread".to_owned(),
        title: "memory of a client that reads nothing".to_owned(),
        aim: "512 KiB of RSS".to_owned(),
        measured: format!("{each:.0} KiB ({name})"),
        verdict: Verdict::all(&[each <= 512.0]),
        method: format!(
            "{CROWD} clients, up to {REQUESTS} requests each for 64 MiB; highest growth of RSS; the \
             worst of: no credit, small windows that never grow, nothing acknowledged"
        ),
        cpu: [cpu, 0.0],
        detail: details.into(),
    }])
}

/// The number of clients of the row `unread`.
const CROWD: usize = 100;

/// Requests of each client, as far as the server permits.
const REQUESTS: u64 = 250;

type MakeHooks = fn() -> Box<dyn Hooks>;

const READERS: &[(&str, MakeHooks)] = &[
    ("no credit", || {
        Box::new(Window {
            connection: 0,
            stream: 0,
        })
    }),
    ("small windows", || {
        Box::new(Window {
            connection: 1 << 20,
            stream: 64 << 10,
        })
    }),
    ("no acknowledgements", || Box::new(NoAcks)),
];

fn requests(connection: &mut Connection, progress: &mut Progress, _now: Time) {
    let initial = connection
        .peer_parameters()
        .map_or(0, |parameters| parameters.initial_max_streams_bidi);
    let permitted = initial.max(connection.seen().max_streams_bidi);
    let end = permitted.min(REQUESTS).min(progress.streams + PER_BURST);
    while progress.streams < end {
        let id = http::request_stream(progress.streams);
        progress.streams += 1;
        let request = http::request(http::Method::Get, LARGE);
        connection.push_bytes(http::stream(id, 0, &request, true));
    }
    // Prevents the idle timeout.
    connection.push(&Frame::Ping);
}

/// Requests in one burst, so that those of all clients fit into the buffer of the socket.
const PER_BURST: u64 = 50;

/// Grants flow control windows that never grow.
struct Window {
    connection: u64,
    stream: u64,
}

impl Hooks for Window {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        parameters.initial_max_data = self.connection;
        parameters.initial_max_stream_data_bidi_local = self.stream;
    }
}

/// Grants unlimited credit but acknowledges only handshake packets.
struct NoAcks;

impl Hooks for NoAcks {
    fn acknowledge(
        &mut self,
        _now: Time,
        space: Space,
        received: &courser_base::RangeSet,
    ) -> Option<courser_base::RangeSet> {
        (space != Space::Application).then(|| received.clone())
    }
}

/// Starts a number of handshakes and abandons each before its Finished.
struct HoldHalfOpen {
    left: u32,
}

/// Handshakes started in one turn. Together with [`PAUSE`], this is half the capacity of a core.
const BURST: u32 = 2;
/// The pause between two turns.
const PAUSE: Duration = Duration::from_millis(2);

impl Attack for HoldHalfOpen {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for _ in 0..BURST.min(self.left) {
            attacker.connect(0, Box::new(NoFinished));
            self.left -= 1;
        }
        Pace::At(now + PAUSE)
    }
}

/// Drops all packets but Initials.
struct NoFinished;

impl Hooks for NoFinished {
    fn on_packet(&mut self, _now: Time, packet: &mut PacketToSend) -> Fate {
        match packet.space {
            Space::Initial => Fate::Send,
            Space::Handshake | Space::Application => Fate::Drop,
        }
    }
}

/// The result of holding hostile clients.
struct Held {
    /// RSS in KiB before, while the clients are held, and at its peak.
    rss: [u64; 3],
    handshakes: u64,
    server_cpu: f64,
    closes: serde_json::Value,
}

impl Held {
    fn kib(&self) -> f64 {
        self.rss[1].saturating_sub(self.rss[0]) as f64
    }

    fn peak_kib(&self) -> f64 {
        self.rss[2].saturating_sub(self.rss[0]) as f64
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "rssKib": { "before": self.rss[0], "held": self.rss[1], "peak": self.rss[2] },
            "handshakes": self.handshakes,
            "closes": self.closes,
        })
    }
}

/// Runs hostile clients against a new server until `handshakes` are complete on their side, for at
/// most `time`. That is below the server's limit for a handshake, so that none has expired.
fn hold(
    setup: &Setup,
    attack: &mut dyn Attack,
    handshakes: u64,
    time: Duration,
) -> Result<Held, String> {
    let server = serve(setup, &setup.courser)?;
    let (before, cpu) = (server.process.rss(), server.process.cpu());
    let mut attacker = Attacker::new(server.address, client_tls(b"h3"), [9; 32]);
    attack.start(&mut attacker);
    let mut sockets = Sockets::bind(loopback()).map_err(|error| error.to_string())?;
    machine::pin(&[setup.client_core])?;
    let end = Instant::now() + time;
    let mut result = Ok(());
    while result.is_ok() && attacker.counts().handshakes < handshakes && Instant::now() < end {
        result = sockets.run(&mut attacker, attack, STEP);
    }
    machine::pin(&[setup.server_core, setup.client_core])?;
    result.map_err(|error| error.to_string())?;
    let counts = attacker.counts();
    Ok(Held {
        rss: [before, server.process.rss(), server.process.peak_rss()],
        handshakes: counts.handshakes,
        server_cpu: server.process.cpu().saturating_sub(cpu).as_secs_f64(),
        closes: json!(counts.closes),
    })
}

/// The interval at which the number of handshakes is checked.
const STEP: Duration = Duration::from_millis(100);

/// Starts a server and serves a few clients, so that one-time allocations are not counted.
fn serve(setup: &Setup, courser: &Path) -> Result<Server, String> {
    let serve = Serve {
        core: Some(setup.server_core),
        ..Serve::folder(courser, setup.site())
    };
    let server = serve.start()?;
    arrivals(setup, &server, 20, Duration::from_millis(5))?.finish()?;
    std::thread::sleep(Duration::from_millis(300));
    Ok(server)
}
