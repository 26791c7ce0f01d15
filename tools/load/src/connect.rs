//! Opens connections to the server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use courser::{
    Algorithm, CertificateRequests, EarlyData, Endpoint, HandshakeOffer, Side, TransportConfig, h3,
};
use courser_measure::target::{local_ip_for, port_closed, transport};
use courser_measure::{Cause, Failure, IoCounters, Mover, Moves, MovesTotal};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::HandshakeKind;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::counts::{Agreed, AgreedTls, QuicRecord};
use crate::label::{self, REFUSED, TIMED_OUT};
use crate::metered::{Metered, Traffic};
use crate::plan::{Plan, Protocols};
use crate::request::HttpVersion;
use crate::sender::Sender;
use crate::sessions::Sessions;

/// An established connection, ready for requests.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) sender: Sender,
    pub(crate) agreed: Agreed,
    pub(crate) carrier: Carrier,
}

/// The transport below HTTP, for its counters.
#[derive(Debug)]
pub(crate) enum Carrier {
    Tcp {
        traffic: Arc<Traffic>,
        is_resumed: bool,
    },
    Quic {
        connection: courser::Connection,
        endpoint: Endpoint,
        /// Moves the connection to new sockets until it is dropped.
        mover: Option<Mover>,
    },
}

/// The reason why a connection could not be opened.
#[derive(Debug)]
pub(crate) struct ConnectFailure {
    /// The label under which reports count the error.
    pub(crate) label: String,
    /// The complete failure, which is reported if no connection can be opened at all.
    pub(crate) failure: Failure,
}

/// Opens the connections of one run.
#[derive(Debug)]
pub(crate) struct Connector {
    plan: Arc<Plan>,
    /// The index of the server's address that answered last.
    chosen: AtomicUsize,
    /// The moves of all connections, if they move.
    moves: Option<Arc<MovesTotal>>,
}

impl Connector {
    pub(crate) fn new(plan: Arc<Plan>, moves: Option<Arc<MovesTotal>>) -> Self {
        Self {
            plan,
            chosen: AtomicUsize::new(0),
            moves,
        }
    }

    pub(crate) const fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Returns an empty store of sessions for a new client.
    pub(crate) fn sessions(&self) -> Sessions {
        Sessions::new(&self.plan, settings(&self.plan))
    }

    /// Connects to the first of the server's addresses that answers.
    pub(crate) async fn connect(&self, sessions: &Sessions) -> Result<Link, ConnectFailure> {
        let addresses = &self.plan.target.addresses;
        let first = self.chosen.load(Relaxed);
        let mut failure = None;
        for step in 0..addresses.len() {
            let index = (first + step) % addresses.len();
            let address = addresses[index];
            let result = match self.plan.protocols {
                Protocols::Quic => self.quic(address, sessions).await,
                _ => self.tcp(address, sessions).await,
            };
            match result {
                Ok(link) => {
                    self.chosen.store(index, Relaxed);
                    return Ok(link);
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| ConnectFailure {
            label: "no address".to_owned(),
            failure: Failure::new("the server has no address"),
        }))
    }

    async fn quic(&self, address: SocketAddr, sessions: &Sessions) -> Result<Link, ConnectFailure> {
        let plan = &*self.plan;
        let peer = plan.target.peer(address);
        let local = SocketAddr::from((local_ip_for(address.ip()), 0));
        // Each connection has its own socket, as with separate clients: servers distribute connections by
        // address and port.
        let endpoint = Endpoint::client(local).map_err(|error| ConnectFailure {
            label: "no socket".to_owned(),
            failure: Failure::new(format!("cannot open a socket: {error}")),
        })?;
        endpoint.set_segmentation_offload(plan.segmentation_offload);
        let connecting = endpoint
            .connect_with(sessions.quic.clone(), address, &plan.target.server_name)
            .map_err(|error| ConnectFailure {
                label: "cannot connect".to_owned(),
                failure: error.into(),
            })?;
        let remembered = sessions.settings;
        let connected = async {
            match remembered {
                Some(_) => connecting.early().await,
                None => connecting.await,
            }
        };
        let connection = tokio::select! {
            result = connected => result.map_err(|error| ConnectFailure {
                label: label::of_quic(&error),
                failure: if error.is_protocol_mismatch() {
                    self.protocol_mismatch()
                } else {
                    peer.quic_failure(&error, &self.offer(), plan.connect_timeout)
                },
            })?,
            () = port_closed(address) => return Err(ConnectFailure {
                label: REFUSED.to_owned(),
                failure: peer.not_listening("udp"),
            }),
        };
        let is_early = connection.early_data() == EarlyData::Offered;
        let client = match remembered.filter(|_| is_early) {
            Some(remembered) => {
                let config = h3::Config::new(Side::Client);
                h3::Client::resume(connection.clone(), config, remembered)
            }
            None => h3::Client::new(connection.clone()),
        };
        let handshake = connection.handshake_data().unwrap_or_default();
        let moves = self.moves.clone().map(Moves::new);
        let mover = moves.clone().zip(plan.rebind_every);
        let moved = endpoint.clone();
        Ok(Link {
            sender: Sender::Http3(client, moves),
            agreed: Agreed {
                version: HttpVersion::Http3,
                quic: Some(connection.stats().version),
                tls: Some(AgreedTls {
                    version: "TLSv1.3",
                    cipher: handshake.suite.map(|suite| suite.to_string()),
                    group: handshake.key_exchange,
                }),
            },
            carrier: Carrier::Quic {
                connection,
                endpoint,
                mover: mover
                    .map(|(moves, pause)| Mover::start(pause, moves, move || vec![moved.clone()])),
            },
        })
    }

    async fn tcp(&self, address: SocketAddr, sessions: &Sessions) -> Result<Link, ConnectFailure> {
        let limit = self.plan.connect_timeout;
        match tokio::time::timeout(limit, self.tcp_unlimited(address, sessions)).await {
            Ok(result) => result,
            Err(_) => Err(ConnectFailure {
                label: TIMED_OUT.to_owned(),
                failure: self.plan.target.peer(address).no_answer("tcp", limit),
            }),
        }
    }

    async fn tcp_unlimited(
        &self,
        address: SocketAddr,
        sessions: &Sessions,
    ) -> Result<Link, ConnectFailure> {
        let plan = &*self.plan;
        let failed = |error: io::Error| self.tcp_failure(address, &error, &self.offer());
        let stream = TcpStream::connect(address).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let clear = |version| Agreed {
            version,
            quic: None,
            tls: None,
        };
        match &plan.protocols {
            Protocols::Clear1 => self.over(stream, clear(HttpVersion::Http1), false).await,
            Protocols::Clear2 => self.over(stream, clear(HttpVersion::Http2), false).await,
            _ => {
                let name = ServerName::try_from(plan.target.server_name.clone());
                let name = name.map_err(|_| ConnectFailure {
                    label: "name".to_owned(),
                    failure: Failure::new(format!(
                        "'{}' is not a valid server name for TLS",
                        plan.target.server_name
                    )),
                })?;
                let connecting = TlsConnector::from(sessions.tls.clone()).connect(name, stream);
                let (connected, was_requested) = CertificateRequests::watch(connecting).await;
                let stream = connected.map_err(|error| {
                    let offer = self.offer().certificate_requested(was_requested);
                    self.tcp_failure(address, &error, &offer)
                })?;
                let session = stream.get_ref().1;
                let version = match session.alpn_protocol() {
                    Some(b"h2") => HttpVersion::Http2,
                    // Without ALPN, the protocol is HTTP/1.1.
                    Some(b"http/1.1") | None => HttpVersion::Http1,
                    Some(_) => return Err(self.no_protocol()),
                };
                let offered = match &plan.protocols {
                    Protocols::Tls(list) => {
                        list.iter().any(|name| name == version.name().as_bytes())
                    }
                    _ => true,
                };
                if !offered {
                    return Err(self.no_protocol());
                }
                let agreed = Agreed {
                    version,
                    quic: None,
                    tls: Some(agreed_tls(session)),
                };
                let is_resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
                self.over(stream, agreed, is_resumed).await
            }
        }
    }

    async fn over<S>(
        &self,
        stream: S,
        agreed: Agreed,
        is_resumed: bool,
    ) -> Result<Link, ConnectFailure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let traffic = Arc::new(Traffic::default());
        let io = TokioIo::new(Metered::new(stream, traffic.clone()));
        let failed = |error: hyper::Error| ConnectFailure {
            label: error.to_string(),
            failure: Failure::new(format!("cannot start HTTP: {error}")),
        };
        let sender = if agreed.version == HttpVersion::Http2 {
            let (sender, connection) = self.http2().handshake(io).await.map_err(failed)?;
            // The requests of the connection report its errors.
            tokio::spawn(async move { drop(connection.await) });
            Sender::Http2(sender)
        } else {
            let (sender, connection) = http1::handshake::<_, Full<Bytes>>(io)
                .await
                .map_err(failed)?;
            tokio::spawn(async move { drop(connection.await) });
            Sender::Http1(sender)
        };
        Ok(Link {
            sender,
            agreed,
            carrier: Carrier::Tcp {
                traffic,
                is_resumed,
            },
        })
    }

    fn http2(&self) -> http2::Builder<TokioExecutor> {
        let plan = &*self.plan;
        let streams = usize::try_from(plan.streams).unwrap_or(usize::MAX);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(plan.stream_window.unwrap_or(WINDOW))
            .initial_connection_window_size(plan.connection_window.unwrap_or(WINDOW))
            .initial_max_send_streams(streams);
        builder
    }

    /// Returns the values that handshakes offer, for messages.
    fn offer(&self) -> HandshakeOffer {
        match self.plan.protocols {
            Protocols::Quic => HandshakeOffer::of_tls13(&self.plan.tls),
            _ => HandshakeOffer::over_tcp(&self.plan.tls),
        }
    }

    fn tcp_failure(
        &self,
        address: SocketAddr,
        error: &io::Error,
        offer: &HandshakeOffer,
    ) -> ConnectFailure {
        let peer = self.plan.target.peer(address);
        ConnectFailure {
            label: label::of_io(error),
            failure: match error.kind() {
                io::ErrorKind::ConnectionRefused => peer.not_listening("tcp"),
                _ => peer.tcp_failure(error, offer, self.plan.connect_timeout),
            },
        }
    }

    fn no_protocol(&self) -> ConnectFailure {
        ConnectFailure {
            label: "no common protocol (ALPN)".to_owned(),
            failure: self.protocol_mismatch(),
        }
    }

    fn protocol_mismatch(&self) -> Failure {
        let offered = match &self.plan.protocols {
            Protocols::Tls(list) => {
                let names = list.iter().map(|name| String::from_utf8_lossy(name));
                names.collect::<Vec<_>>().join(" or ")
            }
            _ => "h3".to_owned(),
        };
        let url = &self.plan.target.url;
        Failure::with_cause(
            format!("{url}: the server does not support {offered} (ALPN)"),
            Cause::Protocol,
        )
    }
}

impl Carrier {
    /// Returns the bytes of HTTP received and sent, and the counters of QUIC if it is used.
    pub(crate) fn counters(&self) -> (u64, u64, Option<QuicRecord>) {
        match self {
            Self::Tcp { traffic, .. } => {
                let (read, written) = (&traffic.read, &traffic.written);
                (read.load(Relaxed), written.load(Relaxed), None)
            }
            Self::Quic {
                connection,
                endpoint,
                ..
            } => {
                let stats = connection.stats();
                let record = QuicRecord {
                    min_rtt: stats.path.min_rtt,
                    smoothed_rtt: stats.path.rtt,
                    packets_sent: stats.packets_sent,
                    packets_received: stats.packets_received,
                    packets_lost: stats.packets_lost,
                    io: IoCounters::of_endpoint(endpoint),
                };
                (stats.data_received, stats.data_sent, Some(record))
            }
        }
    }

    /// Waits for the tickets and settings that the next connection needs to send early data. They may arrive
    /// after the response to an early request. Returns the settings.
    pub(crate) async fn settings(&self, sender: &Sender) -> Option<h3::Settings> {
        let (Sender::Http3(client, _), Self::Quic { connection, .. }) = (sender, self) else {
            return None;
        };
        let learn = async {
            connection.authenticated().await.ok()?;
            let settings = client.settings().await?;
            // Servers send tickets before HANDSHAKE_DONE, or with it.
            while connection.stats().frames_received.handshake_done == 0 {
                connection.close_reason().is_none().then_some(())?;
                tokio::time::sleep(TICKET_POLL).await;
            }
            Some(settings)
        };
        // Without tickets, the next connection performs a full handshake.
        tokio::time::timeout(TICKET_TIMEOUT, learn)
            .await
            .ok()
            .flatten()
    }

    /// Returns whether the handshake resumed a session, and the fate of early data.
    pub(crate) fn resumption(&self) -> (bool, EarlyData) {
        match self {
            Self::Tcp { is_resumed, .. } => (*is_resumed, EarlyData::None),
            Self::Quic { connection, .. } => {
                let handshake = connection.handshake_data();
                // Early data is an attempt to resume.
                let is_resumed = handshake.is_none_or(|it| it.resumed);
                (is_resumed, connection.early_data())
            }
        }
    }

    /// Returns the duration of the handshake, if the connection was used before its end.
    pub(crate) fn handshake_time(&self) -> Option<Duration> {
        match self {
            Self::Quic { connection, .. } if connection.early_data() != EarlyData::None => {
                connection.stats().handshake_time
            }
            _ => None,
        }
    }

    /// Returns the reason if the server refused the client after the handshakes of TCP and TLS.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Self::Tcp { traffic, .. } => traffic.refusal(),
            // Over QUIC, requests fail with the reason.
            Self::Quic { .. } => None,
        }
    }

    /// Resolves when the server's machine reports that the port is closed, which QUIC itself treats as loss.
    /// Never resolves over TCP.
    pub(crate) async fn port_closed(&self) {
        let Self::Quic { endpoint, .. } = self else {
            return std::future::pending().await;
        };
        let refusals = || {
            let counters = endpoint.socket_counters();
            counters
                .path_errors
                .saturating_sub(counters.packets_too_big)
        };
        let before = refusals();
        loop {
            tokio::time::sleep(CLOSED_PORT_POLL).await;
            if refusals() > before {
                return;
            }
        }
    }

    /// Closes the connection without waiting for responses.
    pub(crate) async fn close(self) {
        if let Self::Quic {
            connection,
            endpoint,
            mover,
        } = self
        {
            drop(mover);
            let no_error = courser::VarInt::from_u32(0x100);
            connection.close(no_error, b"");
            drop(connection);
            // Waits until the CONNECTION_CLOSE frame is sent.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, endpoint.wait_idle()).await;
        }
    }
}

fn settings(plan: &Plan) -> TransportConfig {
    let default = transport(Algorithm::Cubic, plan.mtu);
    let window = plan
        .stream_window
        .map_or(default.stream_receive_window, u64::from);
    let connection_window = plan
        .connection_window
        .map_or(default.receive_window, u64::from);
    TransportConfig {
        handshake_timeout: plan.connect_timeout,
        max_idle_timeout: Some(plan.inactivity_timeout),
        // A running server answers long before the timeout. The system reports a closed port only after a packet
        // was sent to it.
        keep_alive_interval: Some(KEEP_ALIVE.min(plan.inactivity_timeout / 3)),
        stream_receive_window: window,
        stream_receive_window_max: window.max(default.stream_receive_window_max),
        receive_window: connection_window,
        receive_window_max: connection_window.max(default.receive_window_max),
        sinks: plan.sinks.clone(),
        ..default
    }
}

fn agreed_tls(session: &rustls::ClientConnection) -> AgreedTls {
    let suite = session.negotiated_cipher_suite();
    let group = session.negotiated_key_exchange_group();
    AgreedTls {
        version: match session.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLSv1.3",
        },
        cipher: suite.and_then(|suite| suite.suite().as_str().map(suite_name)),
        group: group.map(|group| format!("{:?}", group.name())),
    }
}

/// Returns the name in the registry of IANA, such as `TLS_AES_128_GCM_SHA256`, for a name of rustls, such as
/// `TLS13_AES_128_GCM_SHA256`.
fn suite_name(name: &str) -> String {
    name.replacen("TLS13_", "TLS_", 1)
}

/// The default window of h2load for HTTP/2, which never limits a transfer.
const WINDOW: u32 = (1 << 30) - 1;

/// The interval at which a connection that waits for a slow response probes the server.
const KEEP_ALIVE: Duration = Duration::from_millis(500);

const CLOSED_PORT_POLL: Duration = Duration::from_millis(100);
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// The time limit for tickets, and the time between two checks for them.
const TICKET_TIMEOUT: Duration = Duration::from_secs(2);
const TICKET_POLL: Duration = Duration::from_millis(1);
