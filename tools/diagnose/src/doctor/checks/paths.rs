//! The optimisations of courser that a path may fail without an error: batches, ECN marks and large datagrams.
//!
//! A connection sends some data over the path, and its counters show which of them it has given up. See
//! `docs/FAULTS.md`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use courser::telemetry::{EcnState, Record, Sink, SinkFactory};
use courser::{
    ClientConfig, Connection, Endpoint, Incoming, RecvStream, ServerConfig, Side, TransportConfig,
};
use courser_base::{Mutex, Time};
use courser_measure::tls::{self, Identity, Trust};
use courser_measure::{Failure, target};
use courser_wire::ConnectionId;
use tokio::time::{Instant, sleep, timeout};

use crate::doctor::report::counted;
use crate::finding::Finding;

/// The path that was tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Path {
    /// Loopback, to a server in this process.
    Loopback,
    /// The path to a host that the user names.
    Host,
}

/// The findings of a connection about its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trial {
    /// The most datagrams that the system takes in one call.
    pub(crate) segments: usize,
    /// Datagrams sent, and the calls that sent them.
    pub(crate) sent: (u64, u64),
    /// Packets that count as lost.
    pub(crate) lost: u64,
    /// The state of batches.
    pub(crate) batches: Feature,
    /// The state of ECN marks.
    pub(crate) marks: Feature,
    /// The state of ECN validation at the end (RFC 9000 §13.4.2).
    pub(crate) validation: Option<EcnState>,
    /// UDP payload of full datagrams at the end.
    pub(crate) datagram: u16,
}

/// The state of an optional feature at the end of a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Feature {
    /// The system refuses it, or does not have it.
    Refused,
    /// It was given up, because the path lost packets with it while others arrived.
    GivenUp,
    /// It was given up, and a later trial has arrived.
    Restored,
    /// It is in use.
    Used,
}

impl Feature {
    fn new(is_refused: bool, is_withheld: bool, given_up: u64) -> Self {
        match (is_refused, is_withheld, given_up) {
            (true, _, _) => Self::Refused,
            (false, true, _) => Self::GivenUp,
            (false, false, 1..) => Self::Restored,
            (false, false, 0) => Self::Used,
        }
    }
}

/// Sends data over loopback, to a server of this process.
pub(crate) fn loopback(ip: IpAddr) -> Result<Trial, Failure> {
    block_on(async {
        let identity = Identity::in_memory()?;
        let config = ServerConfig::with_rustls(tls::server(identity, OWN_PROTOCOL)?);
        let builder = Endpoint::builder().server(config);
        let bound = builder.bind(SocketAddr::from((ip, 0)));
        let server = bound.map_err(|error| Failure::new(error.to_string()))?;
        let address = server.local_addr()?;
        let accepting = tokio::spawn(serve(server));
        let trial = connect(address, "localhost", OWN_PROTOCOL).await;
        accepting.abort();
        trial
    })
}

/// Sends data to a server of HTTP/3.
pub(crate) fn towards(peer: SocketAddr, name: &str) -> Result<Trial, Failure> {
    block_on(connect(peer, name, b"h3"))
}

fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build()?.block_on(work)
}

/// Reads and discards the data of the only client.
async fn serve(server: Endpoint) {
    if let Some(incoming) = server.accept().await {
        drain(incoming).await.unwrap_or_default();
    }
}

async fn drain(incoming: Incoming) -> Option<()> {
    let connection = incoming.accept().ok()?.await.ok()?;
    let mut stream: RecvStream = connection.accept_uni().await.ok()?;
    while stream.read_chunk(usize::MAX).await.ok()?.is_some() {}
    connection.closed().await;
    Some(())
}

async fn connect(peer: SocketAddr, name: &str, protocol: &[u8]) -> Result<Trial, Failure> {
    let validation = Validation::default();
    let transport = TransportConfig {
        handshake_timeout: PATIENCE,
        sinks: Some(Arc::new(validation.clone())),
        ..TransportConfig::default()
    };
    // Nothing secret is sent, and a certificate says nothing about a path.
    let config = ClientConfig::with_rustls(Arc::new(tls::client(&Trust::Anybody, protocol)?));
    let config = config.transport_config(transport);
    let endpoint = Endpoint::client(SocketAddr::from((target::local_ip_for(peer.ip()), 0)))
        .map_err(|error| Failure::new(error.to_string()))?;
    let connecting = endpoint.connect_with(config, peer, name)?;
    let connection = tokio::select! {
        connected = connecting => connected.map_err(|error| Failure::new(error.to_string()))?,
        () = target::nobody_listens(peer) => {
            return Err(Failure::new("nothing listens on this UDP port"));
        }
    };
    // What was not sent or acknowledged by then is not waited for.
    let _ = timeout(PATIENCE, load(&connection)).await;
    let trial = Trial::of(&endpoint, &connection, validation.state());
    connection.close(NO_ERROR.into(), b"the check is done");
    drop(connection);
    let _ = timeout(CLOSING, endpoint.wait_idle()).await;
    Ok(trial)
}

/// Sends enough data for batches on streams of a reserved type, which servers of HTTP/3 ignore
/// (RFC 9114 §6.2.3). Returns when nothing more leaves.
async fn load(connection: &Connection) {
    tokio::select! {
        () = send_bursts(connection) => until_quiet(connection).await,
        () = until_quiet(connection) => {}
    }
}

/// Sends bursts, each on a stream of its own, because servers may stop such a stream at once.
async fn send_bursts(connection: &Connection) {
    let mut data = vec![0; BURST];
    data[0] = RESERVED_STREAM;
    for _ in 0..BURSTS {
        let Ok(mut stream) = connection.open_uni().await else {
            return;
        };
        // What was sent until the stream is stopped counts.
        if stream.write_all(&data).await.is_ok() {
            let _ = stream.finish();
        }
        loop {
            sleep(BETWEEN_LOOKS).await;
            if connection.stats().path.bytes_in_flight == 0 {
                break;
            }
        }
    }
}

/// Returns once nothing was sent or in flight for some round trips.
async fn until_quiet(connection: &Connection) {
    let (mut sent, mut since) = (0, Instant::now());
    while connection.close_reason().is_none() {
        let stats = connection.stats();
        if stats.packets_sent != sent || stats.path.bytes_in_flight > 0 {
            (sent, since) = (stats.packets_sent, Instant::now());
        }
        if since.elapsed() > QUIET.max(stats.path.rtt.saturating_mul(3)) {
            return;
        }
        sleep(BETWEEN_LOOKS).await;
    }
}

impl Trial {
    fn of(endpoint: &Endpoint, connection: &Connection, validation: Option<EcnState>) -> Self {
        let (stats, counters) = (connection.stats(), endpoint.socket_counters());
        let capabilities = endpoint.capabilities();
        let (withheld, given_up) = (stats.path.withheld, stats.fallbacks);
        let no_batches = capabilities.gso_segments == 1 || counters.gso_fallbacks > 0;
        let no_marks = !capabilities.ecn || counters.mark_fallbacks > 0;
        Self {
            segments: capabilities.gso_segments,
            sent: (counters.sent_datagrams, counters.send_calls),
            lost: stats.packets_lost,
            batches: Feature::new(no_batches, withheld.batches, given_up.batches),
            marks: Feature::new(no_marks, withheld.ecn, given_up.ecn),
            validation,
            datagram: stats.path.mtu,
        }
    }
}

/// Keeps the last state of ECN validation.
#[derive(Clone, Debug, Default)]
struct Validation(Arc<Mutex<Option<EcnState>>>);

impl Validation {
    fn state(&self) -> Option<EcnState> {
        *self.0.lock()
    }
}

impl SinkFactory for Validation {
    fn sink(&self, _: &ConnectionId, _: Side) -> Option<Box<dyn Sink>> {
        Some(Box::new(self.clone()))
    }
}

impl Sink for Validation {
    fn record(&mut self, _: Time, record: &Record) {
        if let Record::EcnStateUpdated(updated) = record {
            *self.0.lock() = Some(updated.new);
        }
    }
}

/// Turns the outcome of a trial into findings.
pub(crate) fn check(path: Path, trial: &Result<Trial, Failure>) -> Vec<Finding> {
    let named = |what: &str| match path {
        Path::Loopback => format!("{what} over loopback"),
        Path::Host => format!("{what} on the route"),
    };
    let trial = match trial {
        Ok(trial) => trial,
        Err(error) => {
            let saw = format!("no connection: {error}");
            return vec![match path {
                Path::Loopback => Finding::bad(
                    &named("QUIC"),
                    saw,
                    "a firewall drops datagrams of this machine to itself, or an optimisation has no way back",
                )
                .fix(RULES),
                Path::Host => Finding::fact(
                    &named("QUIC"),
                    saw).because("without a server of HTTP/3 there, only its interface on this machine was seen")
                .fix("courser probe HOST:PORT"),
            }];
        }
    };
    vec![
        batches(&named("batches"), path, trial),
        marks(&named("ECN marks"), trial),
        datagrams(&named("datagrams"), trial),
    ]
}

fn batches(check: &str, path: Path, trial: &Trial) -> Finding {
    let (datagrams, calls) = trial.sent;
    let saw = format!(
        "{datagrams} datagrams sent in {}",
        counted(usize::try_from(calls).unwrap_or(usize::MAX), "call")
    );
    match trial.batches {
        Feature::Refused => Finding::fact(
            check,
            "the system takes one datagram a call").because("courser sends single datagrams; see GSO"),
        Feature::GivenUp => Finding::weak(
            check,
            format!(
                "lost without an error, {} in all; given up for single datagrams",
                counted(usize::try_from(trial.lost).unwrap_or(usize::MAX), "packet")
            ),
            "courser gives them up on each path by itself, after a timeout at most, and then each datagram costs a system call",
        )
        .fix(match path {
            Path::Loopback => RULES,
            Path::Host => "ethtool -K INTERFACE tx-udp-segmentation off",
        }),
        Feature::Restored => Finding::fact(
            check,
            format!("{saw}; lost once, and then they arrived")).because("courser had given them up for a while"),
        Feature::Used if calls < datagrams => Finding::good(check, saw),
        Feature::Used => Finding::fact(
            check,
            format!("not tried: {saw}")).because("the server takes too little data for a batch"),
    }
}

fn marks(check: &str, trial: &Trial) -> Finding {
    let why = "courser sends without marks by itself; routers that mark packets instead of dropping them cannot reach the sender (RFC 9000 §13.4)";
    match (trial.marks, trial.validation) {
        (Feature::Refused, _) => Finding::fact(check, "the system refuses them").because(why),
        (Feature::GivenUp, _) => Finding::weak(
            check,
            "marked packets are lost, others arrive; given up",
            "courser sends without marks by itself; each new connection may wait for a timeout before",
        )
        .fix(RULES),
        (_, Some(EcnState::Failed)) => Finding::fact(
            check,
            "they are lost, changed on the way or not reported by the peer; given up").because(why),
        (Feature::Restored, _) => Finding::fact(
            check,
            "lost once, and then they arrived").because("courser had given them up for a while"),
        (Feature::Used, Some(EcnState::Capable)) => {
            Finding::good(check, "they arrive, and the peer reports them")
        }
        (Feature::Used, _) => Finding::fact(
            check,
            "not confirmed").because("too few packets were sent and acknowledged"),
    }
}

fn datagrams(check: &str, trial: &Trial) -> Finding {
    let saw = format!("datagrams of up to {} bytes arrive", trial.datagram);
    match trial.datagram {
        ..=SMALLEST => Finding::fact(
            check,
            format!("no datagram of more than {SMALLEST} bytes has arrived"),
        )
        .because("courser goes on with the smallest size of QUIC by itself, and sends more packets")
        .fix("raise the MTU of the tunnel or link on the way: courser probe HOST shows its size"),
        _ => Finding::good(check, saw),
    }
}

/// The protocol of a connection of this process to itself.
const OWN_PROTOCOL: &[u8] = b"courser-doctor";
/// The smallest payload of full datagrams (RFC 9000 §14).
const SMALLEST: u16 = 1200;
/// A stream type of the form 0x1f * N + 0x21 (RFC 9114 §6.2.3).
const RESERVED_STREAM: u8 = 0x21;
/// H3_NO_ERROR, RFC 9114 §8.1.
const NO_ERROR: u32 = 0x100;
/// Bytes of a burst (limit K330): more than the first congestion window, of which a batch is made.
const BURST: usize = 16 << 10;
/// Bursts that are sent over a path (limit K330): more than a feature needs to be given up.
const BURSTS: usize = 8;
/// The time for a handshake, and for what follows it (limit K330).
const PATIENCE: Duration = Duration::from_secs(5);
/// The time without packets after which nothing more is expected.
const QUIET: Duration = Duration::from_millis(100);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
const CLOSING: Duration = Duration::from_millis(50);
const RULES: &str =
    "nft list ruleset | grep -i -e length -e ecn -e dscp   # remove the rule that drops them";

#[cfg(test)]
mod tests;
