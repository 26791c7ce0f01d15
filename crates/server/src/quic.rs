//! HTTP/3: connections over QUIC.

pub(crate) mod origins;
pub(crate) mod path_settings;
pub(crate) mod settings;
pub(crate) mod sinks;
pub(crate) mod socket;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use courser_base::ScopedIp;
use courser_http3_tokio::{self as h3, Code, HttpService, hooks};
use courser_quic::hooks::{ConnectionHooks, EndpointHooks as _};
use courser_quic::{
    Connection, ConnectionError, EarlyData, Endpoint, Incoming, SocketEvent, VarInt,
};

use crate::events::{Event, Events};
use crate::exchange::RequestSettings;
use crate::exchange::body::Body;
use crate::exchange::early_data::TooEarly;
use crate::exchange::handler::Handler;
use crate::limits::Limits;
use crate::limits::read_monitor::{self, ReadMonitor, Sample};
use crate::limits::refusals::Refusal;
use crate::limits::shares::{Share, Shares};
use crate::peer::{Addresses, Peer, TlsFacts};
use crate::phase::{Part, Phase};
use crate::site::Site;
use crate::tally::{Open, Record, Tally};
use crate::tasks::Task;

/// The settings of HTTP/3 that all addresses share.
#[derive(Debug)]
pub(super) struct QuicContext {
    pub(super) site: Arc<Site>,
    pub(super) http3: h3::Config,
    /// True if the names of a certificate are announced to its clients.
    pub(super) announces_names: bool,
    /// The policy for requests in early data, if it is accepted.
    pub(super) early_requests: Option<TooEarly>,
    /// True if clients may be asked to validate their address.
    pub(super) may_retry: bool,
}

/// An address at which QUIC clients are accepted.
#[derive(Clone, Debug)]
pub(super) struct QuicAddress {
    pub(super) context: Arc<QuicContext>,
    /// The port of the socket.
    pub(super) port: u16,
    /// The port in the origins that are announced, to which clients connect.
    pub(super) announced_port: u16,
    pub(super) part: Part,
}

/// Accepts connections until the endpoint fails. Returns the reason.
///
/// If some shards of an endpoint have stopped, it continues, and ends when it has no connections left. The next
/// endpoint has all shards again.
pub(super) async fn accept<S: HttpService<Body>>(
    endpoint: &Endpoint,
    service: S,
    at: QuicAddress,
    shards: &Task,
) -> String {
    let site = at.context.site.clone();
    let sockets = SocketReports {
        endpoint,
        events: &site.events,
        port: at.port,
    };
    let accepting = async {
        tokio::select! {
            () = accept_all(endpoint, service, at) => {
                let (_, reason) = endpoint.stopped_shards();
                reason.map_or_else(|| "its endpoint was closed".to_owned(), |it| it.to_string())
            }
            () = last_without_shards(sockets, shards) => {
                "some of its shards had stopped, and it has no connections left".to_owned()
            }
        }
    };
    sockets.during(accepting).await
}

/// Reports the socket events of an endpoint.
#[derive(Clone, Copy, Debug)]
struct SocketReports<'a> {
    endpoint: &'a Endpoint,
    events: &'a Events,
    port: u16,
}

impl SocketReports<'_> {
    /// Reports events until `work` completes, and those that are available then: the last event is usually the
    /// cause of the end and occurs at the same moment.
    async fn during<T>(self, work: impl Future<Output = T>) -> T {
        let result = tokio::select! {
            biased;
            result = work => result,
            never = self.report_all() => match never {},
        };
        self.report_present().await;
        result
    }

    async fn report_all(self) -> Infallible {
        while let Some(event) = self.endpoint.socket_event().await {
            self.report(event);
        }
        std::future::pending().await
    }

    /// Reports the events that are already available.
    async fn report_present(self) {
        loop {
            tokio::select! {
                biased;
                event = self.endpoint.socket_event() => match event {
                    Some(event) => self.report(event),
                    None => return,
                },
                () = std::future::ready(()) => return,
            }
        }
    }

    fn report(self, event: SocketEvent) {
        let port = self.port;
        self.events.report(Event::Socket { port, event });
    }
}

/// Reports that some shards have stopped. Completes when the endpoint has no connections left.
async fn last_without_shards(sockets: SocketReports<'_>, task: &Task) {
    let (endpoint, events) = (sockets.endpoint, sockets.events);
    task.on_running(events);
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let (stopped, reason) = endpoint.stopped_shards();
        if stopped == 0 || stopped == endpoint.shard_count() {
            continue;
        }
        if !task.is_stopped() {
            sockets.report_present().await;
            let reason = reason.map_or_else(String::new, |it| it.to_string());
            let all = endpoint.shard_count();
            task.on_ended(events, format!("{stopped} of {all}: {reason}"), None);
        }
        if endpoint.open_connections() == 0 {
            return;
        }
    }
}

async fn accept_all<S: HttpService<Body>>(endpoint: &Endpoint, service: S, at: QuicAddress) {
    let (context, site) = (&at.context, &at.context.site);
    let shares = match context.may_retry {
        true => Shares::new(&site.limits),
        false => Shares::without_validation(&site.limits),
    };
    while let Some(incoming) = endpoint.accept().await {
        // The endpoint's count includes connections that are closing.
        let address = incoming.remote_address();
        let is_validated = incoming.remote_address_validated();
        let has_room = endpoint.open_connections() < site.limits.max_connections;
        // The client may have arrived before the server was switched to busy.
        let admitted = site.gate.admit(address.ip());
        let admitted = admitted.and_then(|()| has_room.then_some(()).ok_or(Refusal::Full));
        if let Err(refusal) = admitted {
            refuse(incoming, refusal, &site.tally);
            continue;
        }
        let share = match shares.take(address, is_validated) {
            Ok(share) => share,
            // The other connections of the address may be forged. They do not count once it is validated.
            Err(refusal) if shares.may_retry(refusal, is_validated) => {
                if let Err(error) = incoming.retry() {
                    error.into_incoming().refuse();
                }
                continue;
            }
            Err(refusal) => {
                refuse(incoming, refusal, &site.tally);
                continue;
            }
        };
        tokio::spawn(serve(incoming, service.clone(), at.clone(), share));
    }
}

fn refuse(incoming: Incoming, refusal: Refusal, tally: &Tally) {
    tally.on_refused(refusal);
    incoming.refuse();
}

async fn serve<S: HttpService<Body>>(
    incoming: Incoming,
    service: S,
    at: QuicAddress,
    mut share: Share,
) {
    let QuicAddress {
        context,
        port,
        announced_port,
        mut part,
    } = at;
    let site = &context.site;
    let address = incoming.remote_address();
    let original = incoming.orig_dst_cid();
    let connection = match context.early_requests {
        Some(_) => accept_early(incoming, &site.tally).await,
        None => incoming.await,
    };
    let connection = match connection {
        Ok(connection) => connection,
        Err(error) => {
            site.refused_clients.on_quic(address, &error);
            site.tally.quic_handshakes_failed.fetch_add(1, Relaxed);
            return;
        }
    };
    // The handshake or a token has validated the address.
    if let Err(refusal) = share.validate() {
        site.tally.on_refused(refusal);
        let code = error_code(Code::EXCESSIVE_LOAD);
        return connection.close(code, b"the address holds its share of connections");
    }
    let peer = connection.remote_address();
    let local = connection.local_ip();
    let local = local.map(|ip| ScopedIp::in_zone_of(ip, peer).with_port(port));
    let addresses = Addresses { peer, local };
    let id = site.tally.new_id();
    let peer = Peer::over_quic(&connection, original, addresses, id, facts(&connection));
    // The endpoint counts the memory of the connection itself.
    let holder = site.tally.holders.open_over_quic(address);
    let connected = Some(connection.clone());
    let open = Open::new(&site.tally, peer, Arc::default(), holder, connected);
    let open = Arc::new(open.with_share(share));
    let cut = part.clone().will_reach(Phase::Cut);
    let limits = &site.limits;
    let stalled = pin!(stalled(&connection, open.record.clone(), limits));
    let record = open.record.clone();
    let gone = pin!(gone_in_drain(&connection, part.clone()));
    // The names are needed only if hosts are restricted.
    let requested = site
        .only_names
        .then(|| facts(&connection).server_name)
        .flatten();
    let names = site.names_for(requested.as_deref(), local);
    let settings = RequestSettings::new(open, limits)
        .over_quic(context.early_requests.clone())
        .only(names);
    let service = Handler::new(service, record.clone());
    let serve = hooks::serve(connection.clone(), service)
        .config(config(&connection, &context, announced_port))
        .interim_responses(site.sends_interim)
        .drain(async move { part.reached(Phase::Draining).await });
    let serving = hooks::serve_admitted(serve, settings);
    tokio::select! {
        // Errors of clients need no report.
        _ = serving => {}
        () = cut => connection.close(no_error(), b"the server has ended"),
        () = stalled => {
            let code = error_code(Code::EXCESSIVE_LOAD);
            connection.close(code, b"the client reads waiting data too slowly");
        }
        () = gone => connection.close(no_error(), b"the server is shutting down"),
        () = record.shed() => {
            let code = error_code(Code::EXCESSIVE_LOAD);
            connection.close(code, b"memory limit reached, and requests of this connection hold the most");
        }
    }
}

/// Returns the settings of HTTP/3 for a connection, with the origins of its certificate.
fn config(connection: &Connection, context: &QuicContext, port: u16) -> h3::Config {
    let mut config = context.http3.clone();
    if context.announces_names {
        let requested = facts(connection).server_name;
        let names = context.site.resolver.names_for(requested.as_deref());
        let more = origins::of_names(&names, requested.as_deref(), port);
        config.origins.extend(more);
    }
    config
}

/// Accepts a client. Returns the connection before its handshake completes if it has early data and a token that
/// validates its address.
///
/// Early data from other addresses waits for the handshake, which validates the address, because services, logs
/// and upstream servers rely on the address (attack A55).
async fn accept_early(incoming: Incoming, tally: &Tally) -> Result<Connection, ConnectionError> {
    if !incoming.remote_address_validated() {
        let connection = incoming.await?;
        if connection.early_data() == EarlyData::Accepted {
            tally.early_data_without_token.fetch_add(1, Relaxed);
        }
        return Ok(connection);
    }
    let connection = incoming.accept()?.early().await?;
    if connection.early_data() != EarlyData::Accepted {
        connection.authenticated().await?;
    }
    Ok(connection)
}

/// Completes when the client reads none of the waiting data for too long, or reads it too slowly.
///
/// QUIC detects clients that are gone. This detects clients that are present but grant no credit.
async fn stalled(connection: &Connection, record: Arc<Record>, limits: &Limits) {
    let sample = || {
        let undelivered = connection.undelivered();
        Sample {
            taken: undelivered.acked,
            waiting: undelivered.bytes,
            is_blocked: undelivered.has_blocked_writer,
            ended: record.ended(),
        }
    };
    let now = tokio::time::Instant::now();
    let monitor = ReadMonitor::new(limits.write_timeout, limits.read_rate, sample(), now);
    read_monitor::stalled(monitor, sample, || connection.rtt()).await;
}

/// Completes when the server drains and the path of this client has been silent for some time. A client that has
/// crashed would hold the drain until the idle timeout of its connection. An interruption of the path, such as a change of
/// network, is shorter and costs no request.
async fn gone_in_drain(connection: &Connection, mut part: Part) {
    part.reached(Phase::Draining).await;
    // Boxed, so that connections of servers that do not drain have no room for it.
    Box::pin(silent_for_long(connection)).await;
}

async fn silent_for_long(connection: &Connection) {
    loop {
        // Nothing else may be in flight that would show that the client does not answer.
        let probe = async {
            let _ = connection.ping().await;
            tokio::time::sleep(PROBE_INTERVAL).await;
        };
        tokio::select! {
            _ = connection.path_silent() => {}
            () = probe => continue,
        }
        tokio::select! {
            _ = connection.path_responsive() => {}
            () = tokio::time::sleep(LONGEST_SILENCE) => return,
        }
        if connection.close_reason().is_some() {
            // The serving of the connection ends with it.
            return std::future::pending().await;
        }
    }
}

fn facts(connection: &Connection) -> TlsFacts {
    let Some(data) = connection.handshake_data() else {
        return TlsFacts::default();
    };
    TlsFacts {
        version: Some("TLSv1.3"),
        server_name: data.server_name,
        cipher_suite: data.suite.map(|suite| suite_name(suite).to_owned()),
        key_exchange: data.key_exchange,
        is_resumed: data.resumed,
        client_certificates: connection.peer_identity().unwrap_or_default(),
    }
}

/// Returns the name of a cipher suite as in rustls.
const fn suite_name(suite: courser_quic::CipherSuite) -> &'static str {
    match suite {
        courser_quic::CipherSuite::Aes128Gcm => "TLS13_AES_128_GCM_SHA256",
        courser_quic::CipherSuite::Aes256Gcm => "TLS13_AES_256_GCM_SHA384",
        courser_quic::CipherSuite::ChaCha20Poly1305 => "TLS13_CHACHA20_POLY1305_SHA256",
    }
}

/// Time between two checks whether a client is still there, during a drain.
const PROBE_INTERVAL: Duration = Duration::from_secs(3);

/// Silence after which a client counts as gone, during a drain (limit K545).
const LONGEST_SILENCE: Duration = Duration::from_secs(10);

/// Interval between checks of the shards of an endpoint.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn no_error() -> VarInt {
    error_code(Code::NO_ERROR)
}

fn error_code(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}

#[cfg(test)]
mod tests;
