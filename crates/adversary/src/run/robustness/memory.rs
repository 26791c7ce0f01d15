//! Resident memory of the server for one client of a kind.

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
use super::storm::{arrivals, median};
use super::{Setup, machine};
use crate::run::helper::Helper;
use crate::run::process::{Serve, Server, loopback};

/// Handshakes that stop after the first flight of the server.
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

/// Connections of courser's own client after one request.
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
            // A hundredth is noise of the allocator.
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

/// Connections of the idle row.
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

/// Time in which acknowledgements and timers come to rest.
const SETTLE: Duration = Duration::from_secs(2);

/// Clients that ask for a large file again and again and read nothing.
pub(super) fn unread(setup: &Setup) -> Result<Vec<Figure>, String> {
    let mut details = serde_json::Map::new();
    let mut worst = (0.0, "");
    let mut cpu = 0.0;
    for (name, hooks) in READERS {
        let mut crowd = Crowd::new(CROWD, requests)
            .with_begin(|connection, _| {
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

/// Clients of the unread row.
const CROWD: usize = 100;

/// Requests that each of them sends, as far as the server permits.
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
    // A connection that is idle would be forgotten.
    connection.push(&Frame::Ping);
}

/// Requests in one burst: as many as fit the socket's buffer with all clients at once.
const PER_BURST: u64 = 50;

/// Windows that never grow.
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

/// All the credit there is, and no acknowledgement of what comes.
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

/// Starts handshakes until there are enough, and leaves each before its Finished.
struct HoldHalfOpen {
    left: u32,
}

/// Handshakes started in one turn, and the pause until the next: half of what a core serves.
const BURST: u32 = 2;
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
    /// RSS in KiB before, while they are held, and at most.
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

/// Runs hostile clients against a fresh server until so many handshakes are complete on their side,
/// for a time at most. It is below the server's limit for a handshake, so that none has expired.
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

/// Between two looks at how far the handshakes are.
const STEP: Duration = Duration::from_millis(100);

/// A server that has served a few clients: what a process needs once is not theirs.
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
