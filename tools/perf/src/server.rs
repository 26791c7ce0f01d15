//! The server of the perf protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use bytes::{Bytes, BytesMut};
use courser::{
    BindError, Connection, ConnectionError, EarlyData, EarlyDataOptions, Endpoint, Incoming,
    QuicVersion, ServerConfig, TransportConfig, h3,
};
use courser_base::with_port;
use courser_measure::tls::{self, Identity};
use courser_measure::{CpuClock, Failure, IoCounters};

use crate::carrier::{Carrier, Receiving as _, Sending as _, Unsent};
use crate::context::Context;
use crate::datagram::{self, DATAGRAM_REQUEST};
use crate::event::{Event, Events, Moved};
use crate::quic::send_filler;
use crate::server_report::ServerReport;
use crate::tcp::TcpServer;
use crate::web_transport::WebSession;
use crate::wire::{
    DATAGRAM_BYTES, DATAGRAMS, HeaderReader, MAX_PATHS, MAX_STREAMS, PROTOCOL, REPORT_REQUEST,
};

/// The settings of a server.
#[derive(Debug)]
pub struct ServerOptions {
    /// The address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The certificate chain and the private key, for both transports.
    pub identity: Identity,
    /// Transport settings of QUIC connections.
    pub transport: TransportConfig,
    /// Versions of QUIC that are accepted, the preferred one first, to which the server upgrades clients.
    /// `None` accepts all, and keeps the version that each client chose.
    pub versions: Option<Vec<QuicVersion>>,
    /// True to accept early data (0-RTT).
    pub early_data: bool,
    /// True to also serve TLS over TCP, on the same port.
    pub tcp: bool,
    /// True to also serve sessions of WebTransport, to QUIC clients that choose HTTP/3.
    pub webtransport: bool,
    /// The number of shards of the endpoint, see [`courser::EndpointBuilder::shards`]. Several shards need a
    /// runtime with several threads.
    pub shards: usize,
    /// The clock for the CPU time of the server.
    pub clock: CpuClock,
}

/// A perf server with open sockets.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    tcp: Option<TcpServer>,
    context: Arc<Context>,
}

impl Server {
    /// Opens the sockets. Clients are served once [`run`](Self::run) is called. `on_event` is called when a
    /// client disconnects or fails.
    ///
    /// # Errors
    /// Returns an error if the certificate cannot be used, or the address cannot be listened on.
    pub async fn bind(
        options: ServerOptions,
        on_event: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        let tls = tls::server(options.identity, PROTOCOL)?;
        let congestion = options.transport.congestion;
        let transport = TransportConfig {
            max_bidi_streams: MAX_STREAMS,
            max_uni_streams: MAX_STREAMS,
            datagram_receive_queue: DATAGRAMS,
            datagram_receive_buffer_size: Some(DATAGRAM_BYTES),
            // Of clients that ask for it.
            max_paths: MAX_PATHS,
            ..options.transport
        };
        let mut of_quic = tls.clone();
        if options.webtransport {
            let protocols = &mut Arc::make_mut(&mut of_quic).alpn_protocols;
            protocols.push(h3::ALPN.as_bytes().to_vec());
        }
        let mut config = ServerConfig::with_rustls(of_quic).transport_config(transport);
        if let Some(versions) = options.versions {
            config = config.versions(versions);
        }
        if options.early_data {
            config = config.early_data(EarlyDataOptions::default());
        }
        let context = Arc::new(Context {
            clock: options.clock,
            early_data: options.early_data,
            events: Events::new(on_event),
        });
        // The system chooses a port that is free for UDP, but it may be in use for TCP.
        let mut tries = if options.tcp && options.listen.port() == 0 {
            PORT_TRIES
        } else {
            1
        };
        loop {
            tries -= 1;
            let endpoint = bind_quic(config.clone(), options.listen, options.shards)?;
            if !options.tcp {
                return Ok(Self {
                    endpoint,
                    tcp: None,
                    context,
                });
            }
            let address = with_port(options.listen, endpoint.local_addr()?.port());
            match TcpServer::bind(address, tls.clone(), congestion).await {
                Ok(tcp) => {
                    return Ok(Self {
                        endpoint,
                        tcp: Some(tcp),
                        context,
                    });
                }
                Err(error) if tries == 0 => {
                    return Err(Failure::cannot_listen(address, "tcp", &error));
                }
                Err(_) => {}
            }
        }
    }

    /// Returns the endpoint of QUIC.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the address of QUIC, and that of TCP if there is one.
    ///
    /// # Errors
    /// Returns an error if the system does not report an address.
    pub fn addresses(&self) -> Result<(SocketAddr, Option<SocketAddr>), Failure> {
        let tcp = self.tcp.as_ref().map(TcpServer::local_addr).transpose()?;
        Ok((self.endpoint.local_addr()?, tcp))
    }

    /// Serves until `stop` resolves, then closes all connections.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let tcp = self
            .tcp
            .map(|tcp| tokio::spawn(tcp.run(self.context.clone())));
        let accept = async {
            while let Some(incoming) = self.endpoint.accept().await {
                let (endpoint, context) = (self.endpoint.clone(), self.context.clone());
                tokio::spawn(serve(incoming, endpoint, context));
            }
        };
        tokio::select! {
            () = accept => {}
            () = stop => {}
        }
        if let Some(tcp) = tcp {
            tcp.abort();
        }
        self.endpoint.close(0_u32.into(), b"server stops");
        self.endpoint.wait_idle().await;
    }
}

fn bind_quic(
    config: ServerConfig,
    address: SocketAddr,
    shards: usize,
) -> Result<Endpoint, Failure> {
    let builder = Endpoint::builder().server(config).shards(shards);
    builder.bind(address).map_err(|error| match error {
        BindError::Io(error) => Failure::cannot_listen(address, "udp", &error),
        error => Failure::new(error.to_string()),
    })
}

/// Serves one client from the handshake to the close.
async fn serve(incoming: Incoming, endpoint: Endpoint, context: Arc<Context>) {
    let peer = incoming.remote_address();
    let connection = match accept(incoming, context.early_data).await {
        Ok(connection) => connection,
        Err(error) => return context.events.failed("quic", peer, &error),
    };
    let data = connection.handshake_data();
    let protocol = data.and_then(|data| data.protocol);
    if protocol.as_deref() == Some(h3::ALPN.as_bytes()) {
        return WebSession::serve(connection, move |session| {
            serve_client(session, endpoint.clone(), context.clone())
        })
        .await;
    }
    serve_client(connection, endpoint, context).await;
}

/// Serves a connection or a session until it ends.
async fn serve_client<C: Carrier>(carrier: C, endpoint: Endpoint, context: Arc<Context>) {
    let peer = carrier.connection().remote_address();
    let client = Arc::new(Client {
        carrier,
        endpoint,
        context,
        moved: MovedBytes::default(),
        measures_datagrams: AtomicBool::new(false),
    });
    let uni = tokio::spawn(serve_uni(client.clone()));
    while let Ok((send, receive)) = client.carrier.accept_bi().await {
        let client = client.clone();
        tokio::spawn(async move {
            let result = client.answer(send, receive).await;
            client.note(result);
        });
    }
    uni.abort();
    let moved = client.moved.total();
    client.context.events.closed("quic", peer, moved);
}

/// Accepts a client. A connection with early data is returned before its handshake completes.
async fn accept(incoming: Incoming, early_data: bool) -> Result<Connection, ConnectionError> {
    if !early_data {
        return incoming.await;
    }
    let connection = incoming.accept()?.early().await?;
    if connection.early_data() != EarlyData::Accepted {
        connection.authenticated().await?;
    }
    Ok(connection)
}

/// Answers requests on unidirectional streams, on streams of the server.
async fn serve_uni<C: Carrier>(client: Arc<Client<C>>) {
    while let Ok(receive) = client.carrier.accept_uni().await {
        let client = client.clone();
        tokio::spawn(async move {
            let result = client.answer_uni(receive).await;
            client.note(result);
        });
    }
}

/// The state that the requests of one client share.
#[derive(Debug)]
struct Client<C> {
    carrier: C,
    endpoint: Endpoint,
    context: Arc<Context>,
    moved: MovedBytes,
    /// True while a measurement of datagrams runs on the connection.
    measures_datagrams: AtomicBool,
}

/// A request of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Request {
    /// A response of this length, or `None` if the request has ended before its header.
    Bytes(Option<u64>),
    /// A measurement of datagrams, with the bytes that follow the header.
    Datagrams(Bytes),
}

#[derive(Debug, Default)]
struct MovedBytes {
    received: AtomicU64,
    sent: AtomicU64,
}

impl MovedBytes {
    fn total(&self) -> Moved {
        Moved {
            received: self.received.load(Relaxed),
            sent: self.sent.load(Relaxed),
        }
    }
}

/// The reason why a request cannot be answered. Its stream is reset.
#[derive(Debug)]
struct Refused(String);

impl<E: std::error::Error> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl<C: Carrier> Client<C> {
    async fn answer(&self, mut send: C::Sending, mut receive: C::Receiving) -> Result<(), Refused> {
        let response_len = match self.read_request(&mut receive).await? {
            Request::Bytes(response_len) => response_len,
            Request::Datagrams(start) => {
                // Boxed, so that it does not enlarge the futures of other requests.
                return Box::pin(self.measure_datagrams(send, receive, &start)).await;
            }
        };
        match response_len {
            Some(REPORT_REQUEST) => {
                let sent = send.write_all(&self.report().to_json()).await;
                sent.map_err(Failure::from)?;
            }
            Some(response_len) => self.respond(&mut send, response_len).await?,
            None => {
                send.reset(NO_HEADER)?;
                return Err(Refused("a request without a header".to_owned()));
            }
        }
        Ok(send.finish()?)
    }

    /// Measures datagrams. Refuses a second measurement on the connection at the same time.
    async fn measure_datagrams(
        &self,
        mut send: C::Sending,
        receive: C::Receiving,
        start: &[u8],
    ) -> Result<(), Refused> {
        if self.measures_datagrams.swap(true, Relaxed) {
            send.reset(BUSY)?;
            return Err(Refused(
                "another measurement of datagrams runs on this connection".to_owned(),
            ));
        }
        let count = |moved: &AtomicU64, size: usize| {
            moved.fetch_add(size as u64, Relaxed);
        };
        let on_sent = |size| count(&self.moved.sent, size);
        let on_received = |size| count(&self.moved.received, size);
        let carrier = &self.carrier;
        let result = datagram::serve(carrier, send, receive, start, on_sent, on_received).await;
        self.measures_datagrams.store(false, Relaxed);
        Ok(result?)
    }

    async fn answer_uni(&self, mut receive: C::Receiving) -> Result<(), Refused> {
        let Request::Bytes(Some(response_len)) = self.read_request(&mut receive).await? else {
            return Err(Refused("a request without a header".to_owned()));
        };
        let mut send = self.carrier.open_uni().await?;
        self.respond(&mut send, response_len).await?;
        Ok(send.finish()?)
    }

    /// Reads a request to its end. Of a request for datagrams, reads the header only.
    async fn read_request(&self, receive: &mut C::Receiving) -> Result<Request, Failure> {
        let mut header = HeaderReader::default();
        let mut chunks = [const { Bytes::new() }; CHUNKS_AT_ONCE];
        while let Some(count) = receive.read_chunks(&mut chunks).await? {
            let mut received = 0;
            let mut start = BytesMut::new();
            for chunk in &mut chunks[..count] {
                let used = header.on_bytes(chunk);
                if header.response_len() == Some(DATAGRAM_REQUEST) {
                    start.extend_from_slice(&chunk[used..]);
                }
                received += chunk.len() as u64;
                // Frees the buffer, which is reused for bytes that arrive meanwhile.
                *chunk = Bytes::new();
            }
            self.moved.received.fetch_add(received, Relaxed);
            if header.response_len() == Some(DATAGRAM_REQUEST) {
                return Ok(Request::Datagrams(start.freeze()));
            }
        }
        Ok(Request::Bytes(header.response_len()))
    }

    async fn respond(&self, send: &mut C::Sending, response_len: u64) -> Result<(), Failure> {
        match send_filler(send, response_len, None).await {
            Ok(()) => {
                self.moved.sent.fetch_add(response_len, Relaxed);
                Ok(())
            }
            // The client has received enough: downloads with a time limit end in this way.
            Err(Unsent::Stopped(_)) => Ok(()),
            Err(Unsent::Failed(failure)) => Err(failure),
        }
    }

    fn report(&self) -> ServerReport {
        ServerReport {
            io: IoCounters::of_endpoint(&self.endpoint),
            connection: Some(self.carrier.connection().stats().into()),
            ..self.context.report()
        }
    }

    fn note(&self, result: Result<(), Refused>) {
        // Streams that end with their connection are not reported.
        if let Err(Refused(reason)) = result
            && self.carrier.connection().close_reason().is_none()
        {
            let peer = self.carrier.connection().remote_address();
            self.context.events.failed("quic", peer, &reason);
        }
    }
}

/// The number of chunks in one read, as many as one turn of the driver receives.
const CHUNKS_AT_ONCE: usize = 16;

/// Application error code: a stream ended before its header was complete.
const NO_HEADER: u32 = 1;

/// Application error code: another measurement of datagrams runs on the connection.
const BUSY: u32 = 2;

const PORT_TRIES: u32 = 10;
