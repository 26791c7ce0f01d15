//! Checks optimisations that a path may break without an error: batches, ECN marks and large datagrams.
//!
//! A connection sends data over the path, and its counters show which of them it has stopped using. See
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

/// The path that was tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Path {
    /// Loopback, to a server in this process.
    Loopback,
    /// The path to the host that the user specified.
    Host,
}

/// The observations of a connection about its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trial {
    /// The largest number of datagrams that the system sends in one call.
    pub(crate) segments: usize,
    /// The number of datagrams sent, and of the calls that sent them.
    pub(crate) sent: (u64, u64),
    /// Packets that were declared lost.
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
    /// The system rejects the feature or lacks it.
    Refused,
    /// The feature was turned off, because the path lost packets with it while others arrived.
    GivenUp,
    /// The feature was turned off, and a later attempt succeeded.
    Restored,
    /// The feature is in use.
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
        handshake_timeout: STEP_TIMEOUT,
        sinks: Some(Arc::new(validation.clone())),
        ..TransportConfig::default()
    };
    // The data is not secret, and the certificate does not matter for the path.
    let config = ClientConfig::with_rustls(Arc::new(tls::client(&Trust::AnyServer, protocol)?));
    let config = config.transport_config(transport);
    let endpoint = Endpoint::client(SocketAddr::from((target::local_ip_for(peer.ip()), 0)))
        .map_err(|error| Failure::new(error.to_string()))?;
    let connecting = endpoint.connect_with(config, peer, name)?;
    let connection = tokio::select! {
        connected = connecting => connected.map_err(|error| Failure::new(error.to_string()))?,
        () = target::port_closed(peer) => {
            return Err(Failure::new("no program listens on this UDP port"));
        }
    };
    // Does not wait for data that is neither sent nor acknowledged by then.
    let _ = timeout(STEP_TIMEOUT, load(&connection)).await;
    let trial = Trial::of(&endpoint, &connection, validation.state());
    connection.close(NO_ERROR.into(), b"the check is done");
    drop(connection);
    let _ = timeout(CLOSE_TIMEOUT, endpoint.wait_idle()).await;
    Ok(trial)
}

/// Sends enough data for batches on streams of a reserved type, which HTTP/3 servers ignore
/// (RFC 9114 §6.2.3). Returns when the connection is idle.
async fn load(connection: &Connection) {
    tokio::select! {
        () = send_bursts(connection) => wait_until_idle(connection).await,
        () = wait_until_idle(connection) => {}
    }
}

/// Sends bursts, each on its own stream, because servers may stop such a stream at once.
async fn send_bursts(connection: &Connection) {
    let mut data = vec![0; BURST];
    data[0] = RESERVED_STREAM;
    for _ in 0..BURSTS {
        let Ok(mut stream) = connection.open_uni().await else {
            return;
        };
        // Data that was sent before the stream was stopped counts.
        if stream.write_all(&data).await.is_ok() {
            let _ = stream.finish();
        }
        loop {
            sleep(POLL_INTERVAL).await;
            if connection.stats().path.bytes_in_flight == 0 {
                break;
            }
        }
    }
}

/// Waits until the connection has sent nothing and has nothing in flight for some round trips.
async fn wait_until_idle(connection: &Connection) {
    let (mut sent, mut since) = (0, Instant::now());
    while connection.close_reason().is_none() {
        let stats = connection.stats();
        if stats.packets_sent != sent || stats.path.bytes_in_flight > 0 {
            (sent, since) = (stats.packets_sent, Instant::now());
        }
        if since.elapsed() > IDLE.max(stats.path.rtt.saturating_mul(3)) {
            return;
        }
        sleep(POLL_INTERVAL).await;
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

/// Stores the last state of ECN validation.
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

/// Converts the outcome of a trial to findings.
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
                    "a firewall drops datagrams of this machine to itself, or an optimisation fails without a fallback",
                )
                .fix(RULES),
                Path::Host => Finding::fact(
                    &named("QUIC"),
                    saw).because("without an HTTP/3 server there, only the interface of this machine was checked")
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
            "the system sends one datagram per call").because("courser sends single datagrams; see GSO"),
        Feature::GivenUp => Finding::weak(
            check,
            format!(
                "lost without an error, {} in all; courser switched to single datagrams",
                counted(usize::try_from(trial.lost).unwrap_or(usize::MAX), "packet")
            ),
            "courser stops using them on such a path after a timeout at most, and then each datagram costs a system call",
        )
        .fix(match path {
            Path::Loopback => RULES,
            Path::Host => "ethtool -K INTERFACE tx-udp-segmentation off",
        }),
        Feature::Restored => Finding::fact(
            check,
            format!("{saw}; lost at first, arrived later")).because("courser had stopped using them for a while"),
        Feature::Used if calls < datagrams => Finding::good(check, saw),
        Feature::Used => Finding::fact(
            check,
            format!("not tried: {saw}")).because("the server accepts too little data for a batch"),
    }
}

fn marks(check: &str, trial: &Trial) -> Finding {
    let why = "courser sends without marks; routers that mark packets instead of dropping them cannot signal congestion to the sender (RFC 9000 §13.4)";
    match (trial.marks, trial.validation) {
        (Feature::Refused, _) => Finding::fact(check, "the system rejects them").because(why),
        (Feature::GivenUp, _) => Finding::weak(
            check,
            "marked packets are lost while others arrive; turned off",
            "courser then sends without marks; each new connection may wait for a timeout first",
        )
        .fix(RULES),
        (_, Some(EcnState::Failed)) => Finding::fact(
            check,
            "they are lost, changed on the path or not reported by the peer; turned off",
        )
        .because(why),
        (Feature::Restored, _) => Finding::fact(check, "lost at first, arrived later")
            .because("courser had stopped using them for a while"),
        (Feature::Used, Some(EcnState::Capable)) => {
            Finding::good(check, "they arrive, and the peer reports them")
        }
        (Feature::Used, _) => Finding::fact(check, "not confirmed")
            .because("too few packets were sent and acknowledged"),
    }
}

fn datagrams(check: &str, trial: &Trial) -> Finding {
    let saw = format!("datagrams of up to {} bytes arrive", trial.datagram);
    match trial.datagram {
        ..=SMALLEST => Finding::fact(
            check,
            format!("no datagram of more than {SMALLEST} bytes has arrived"),
        )
        .because(
            "courser continues with the smallest datagram size of QUIC, and sends more packets",
        )
        .fix("raise the MTU of the tunnel or link on the path: courser probe HOST shows its size"),
        _ => Finding::good(check, saw),
    }
}

/// The application protocol of the connection of this process to itself.
const OWN_PROTOCOL: &[u8] = b"courser-doctor";
/// The smallest payload of full datagrams (RFC 9000 §14).
const SMALLEST: u16 = 1200;
/// A stream type of the form 0x1f * N + 0x21 (RFC 9114 §6.2.3).
const RESERVED_STREAM: u8 = 0x21;
/// The code H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: u32 = 0x100;
/// Bytes of a burst (limit K330): more than the initial congestion window, so that batches are sent.
const BURST: usize = 16 << 10;
/// Bursts that are sent over a path (limit K330): enough for the connection to turn a broken feature off.
const BURSTS: usize = 8;
/// The time limit of the handshake, and of the transfer after it (limit K330).
const STEP_TIMEOUT: Duration = Duration::from_secs(5);
/// The time without packets after which the connection counts as idle.
const IDLE: Duration = Duration::from_millis(100);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const CLOSE_TIMEOUT: Duration = Duration::from_millis(50);
const RULES: &str =
    "nft list ruleset | grep -i -e length -e ecn -e dscp   # remove the rule that drops them";

#[cfg(test)]
mod tests;
