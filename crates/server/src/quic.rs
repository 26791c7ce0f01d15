//! HTTP/3: connections over QUIC.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use courser_base::ScopedIp;
use courser_http3_tokio::{self as h3, Code, HttpService};
use courser_quic::hooks::ConnectionHooks;
use courser_quic::{Connection, ConnectionError, EarlyData, Endpoint, Incoming, VarInt};

use super::TooEarly;
use super::body::Body;
use super::certificates::Resolver;
use super::events::{Event, Events};
use super::exchange::{Exchange, Terms};
use super::gate::Gate;
use super::limits::Limits;
use super::misdirected::Names;
use super::origins;
use super::peer::{Addresses, Peer, TlsFacts};
use super::phase::{Part, Phase};
use super::reading::{self, Reading, Sample};
use super::refusals::Refusal;
use super::refused_clients::RefusedClients;
use super::shares::{Share, Shares};
use super::tally::{Open, Record, Tally};

/// The shared state of an endpoint's connections.
#[derive(Debug)]
pub(super) struct QuicContext {
    pub(super) http3: h3::Config,
    /// The certificates whose names are announced to their clients, if any are.
    pub(super) named: Option<Arc<Resolver>>,
    /// The certificates whose names alone are served, if they are.
    pub(super) only: Option<Arc<Resolver>>,
    /// The policy for requests in early data, if it is accepted.
    pub(super) early_requests: Option<TooEarly>,
    pub(super) sends_interim: bool,
    /// True if clients may be asked to validate their address.
    pub(super) may_retry: bool,
    pub(super) limits: Limits,
    pub(super) tally: Arc<Tally>,
    pub(super) gate: Arc<Gate>,
    pub(super) refused_clients: Arc<RefusedClients>,
    pub(super) events: Events,
    /// The port that clients connect to.
    pub(super) port: u16,
}

/// Accepts connections until the server drains.
pub(super) async fn accept<S: HttpService<Body>>(
    endpoint: Endpoint,
    service: S,
    context: Arc<QuicContext>,
    part: Part,
) {
    let mut draining = part.clone().will_reach(Phase::Draining);
    let shares = match context.may_retry {
        true => Shares::new(&context.limits),
        false => Shares::without_validation(&context.limits),
    };
    let mut has_sockets = true;
    loop {
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            event = endpoint.socket_event(), if has_sockets => {
                has_sockets = event.is_some();
                let port = context.port;
                let event = event.map(|event| Event::Socket { port, event });
                event.into_iter().for_each(|event| context.events.tell(event));
                continue;
            }
            () = &mut draining => break,
        };
        let Some(incoming) = incoming else {
            return;
        };
        // The endpoint also counts connections that are closing.
        let address = incoming.remote_address().ip();
        let is_validated = incoming.remote_address_validated();
        let has_room = endpoint.open_connections() < context.limits.max_connections;
        // It may have arrived before the server was switched to busy.
        let admitted = context.gate.admit(address);
        let admitted = admitted.and_then(|()| has_room.then_some(()).ok_or(Refusal::Full));
        if let Err(refusal) = admitted {
            refuse(incoming, refusal, &context);
            continue;
        }
        let share = match shares.take(address, is_validated) {
            Ok(share) => share,
            // Others may have forged its address. They do not count once it has proven the address.
            Err(refusal) if shares.may_retry(refusal, is_validated) => {
                if let Err(error) = incoming.retry() {
                    error.into_incoming().refuse();
                }
                continue;
            }
            Err(refusal) => {
                refuse(incoming, refusal, &context);
                continue;
            }
        };
        let (service, context) = (service.clone(), context.clone());
        tokio::spawn(serve(incoming, service, context, part.clone(), share));
    }
    // Waiting and later clients are refused at once.
    endpoint.set_busy(true);
}

fn refuse(incoming: Incoming, refusal: Refusal, context: &QuicContext) {
    context.tally.on_refused(refusal);
    incoming.refuse();
}

async fn serve<S: HttpService<Body>>(
    incoming: Incoming,
    service: S,
    context: Arc<QuicContext>,
    mut part: Part,
    mut share: Share,
) {
    let address = incoming.remote_address();
    let original = incoming.orig_dst_cid();
    let connection = match context.early_requests {
        Some(_) => accept_early(incoming).await,
        None => incoming.await,
    };
    let connection = match connection {
        Ok(connection) => connection,
        Err(error) => {
            context.refused_clients.on_quic(address, &error);
            context.tally.quic_handshakes_failed.fetch_add(1, Relaxed);
            return;
        }
    };
    // The handshake or a token has validated the address.
    if let Err(refusal) = share.validate() {
        context.tally.on_refused(refusal);
        let code = error_code(Code::EXCESSIVE_LOAD);
        return connection.close(code, b"the address holds its share of connections");
    }
    let peer = connection.remote_address();
    let local = connection.local_ip();
    let local = local.map(|ip| ScopedIp::in_zone_of(ip, peer).with_port(context.port));
    let addresses = Addresses { peer, local };
    let id = context.tally.new_id();
    let peer = Peer::over_quic(&connection, original, addresses, id, facts(&connection));
    let open = Open::new(
        &context.tally,
        peer,
        Arc::default(),
        Some(connection.clone()),
    );
    let open = Arc::new(open.with_share(share));
    let cut = part.clone().will_reach(Phase::Cut);
    let limits = &context.limits;
    let stalled = pin!(stalled(&connection, open.record.clone(), limits));
    let record = open.record.clone();
    let names = context.only.as_ref().and_then(|resolver| {
        let asked = facts(&connection).server_name;
        Names::new(resolver.names_for(asked.as_deref()))
    });
    let terms = Terms::new(open, limits)
        .over_quic(context.early_requests.clone())
        .only(names);
    let exchange = Exchange::new(service, terms);
    let serving = h3::serve(connection.clone(), exchange)
        .config(config(&connection, &context))
        .interim_responses(context.sends_interim)
        .drain(async move { part.reached(Phase::Draining).await });
    tokio::select! {
        // Errors of clients are their own concern.
        _ = serving.into_future() => {}
        () = cut => connection.close(no_error(), b"the server has ended"),
        () = stalled => {
            let code = error_code(Code::EXCESSIVE_LOAD);
            connection.close(code, b"what waits was read too slowly");
        }
        () = record.shed() => {
            let code = error_code(Code::EXCESSIVE_LOAD);
            connection.close(code, b"memory is short, and requests of this connection hold most");
        }
    }
}

/// Returns the settings of HTTP/3 for a connection, with the origins of its certificate.
fn config(connection: &Connection, context: &QuicContext) -> h3::Config {
    let mut config = context.http3.clone();
    if let Some(resolver) = &context.named {
        let asked = facts(connection).server_name;
        let names = resolver.names_for(asked.as_deref());
        let more = origins::of_names(&names, asked.as_deref(), context.port);
        config.origins.extend(more);
    }
    config
}

/// Accepts a client. Returns the connection before its handshake is complete if it has early data, and
/// a token that validates its address.
///
/// Early data from other addresses waits for the end of the handshake, which validates the address:
/// services, logs and upstream servers rely on it (attack A55).
async fn accept_early(incoming: Incoming) -> Result<Connection, ConnectionError> {
    if !incoming.remote_address_validated() {
        return incoming.await;
    }
    let connection = incoming.accept()?.early().await?;
    if connection.early_data() != EarlyData::Accepted {
        connection.authenticated().await?;
    }
    Ok(connection)
}

/// Completes when the client reads none of the waiting data, or reads it too slowly.
///
/// QUIC detects clients that are gone; this detects clients that are present but grant no credit.
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
    let reading = Reading::new(limits.write_timeout, limits.read_rate, sample(), now);
    reading::stalled(reading, sample, || connection.rtt()).await;
}

fn facts(connection: &Connection) -> TlsFacts {
    let Some(data) = connection.handshake_data() else {
        return TlsFacts::default();
    };
    TlsFacts {
        server_name: data.server_name,
        cipher_suite: data.suite.map(|suite| suite_name(suite).to_owned()),
        key_exchange: data.key_exchange,
        is_resumed: data.resumed,
        client_certificates: connection.peer_identity().unwrap_or_default(),
    }
}

/// Returns the name that rustls uses.
const fn suite_name(suite: courser_quic::CipherSuite) -> &'static str {
    match suite {
        courser_quic::CipherSuite::Aes128Gcm => "TLS13_AES_128_GCM_SHA256",
        courser_quic::CipherSuite::Aes256Gcm => "TLS13_AES_256_GCM_SHA384",
        courser_quic::CipherSuite::ChaCha20Poly1305 => "TLS13_CHACHA20_POLY1305_SHA256",
    }
}

pub(super) fn no_error() -> VarInt {
    error_code(Code::NO_ERROR)
}

fn error_code(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}
