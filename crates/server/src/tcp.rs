//! HTTP/2 and HTTP/1.1 over TCP, implemented by hyper.

mod exchange;
mod heads;
mod http1;
pub(crate) mod listen;
pub(crate) mod socket;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::time::Duration;

use courser_http3_tokio::HttpService;
use courser_tls::rustls;
use http::StatusCode;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use self::exchange::Exchange;
use self::http1::{FirstRead, Http1Stream, InterimQueue};
use self::socket::Socket;
use crate::alt_svc::AltSvcHeader;
use crate::cause::Cause;
use crate::certificates::chosen::Chooser;
use crate::events::Event;
use crate::exchange::RequestSettings;
use crate::exchange::body::Body;
use crate::exchange::handler::Handler;
use crate::exchange::marks::Marks;
use crate::http2::budgets::Refusing;
use crate::http2::executor::Executor;
use crate::http2::gather::gather;
use crate::http2::held::HeldContent;
use crate::http2::inspector::Inspector;
use crate::http2::interim::Http2Interim;
use crate::limits::Limits;
use crate::limits::buffers::{
    CONNECTION, HTTP2_BUFFER, HTTP2_CONNECTION, HeaderBlock, ReadBuffers,
};
use crate::limits::descriptors;
use crate::limits::holders::Holder;
use crate::limits::rate::Rate;
use crate::limits::read_monitor::{self, ReadMonitor, Sample};
use crate::limits::shares::Shares;
use crate::limits::uploads::{UploadMemory, UploadWindow};
use crate::own_response::{OwnResponse, first_line};
use crate::peer::{Addresses, Peer, Protocol, TlsFacts};
use crate::phase::{Part, Phase};
use crate::rare::Rare;
use crate::site::Site;
use crate::tally::{Open, Record};

/// The settings of HTTP/2 and HTTP/1.1 that all addresses share.
#[derive(Debug)]
pub(super) struct TcpContext {
    pub(super) site: Arc<Site>,
    pub(super) tls: Arc<rustls::ServerConfig>,
    /// The configuration for connections that only validate a name (RFC 8737).
    pub(super) challenge: Option<Arc<rustls::ServerConfig>>,
    /// Chooses the certificates if an async function was given.
    pub(super) chooser: Option<Chooser>,
    pub(super) uploads: Arc<UploadMemory>,
    /// Largest number of connections of each address.
    pub(super) max_connections: usize,
}

impl TcpContext {
    /// Creates the settings of a server with this memory budget.
    pub(super) fn new(
        site: Arc<Site>,
        tls: Arc<rustls::ServerConfig>,
        challenge: Option<Arc<rustls::ServerConfig>>,
        memory: u64,
        addresses: usize,
    ) -> Self {
        Self {
            max_connections: max_connections(&site, addresses),
            chooser: site.resolver.choice().cloned().map(Chooser::new),
            uploads: Arc::new(UploadMemory::of_budget(memory)),
            site,
            tls,
            challenge,
        }
    }
}

/// Returns the largest number of TCP connections of each of these addresses: the limit, or as many as memory and
/// descriptors allow.
fn max_connections(site: &Site, addresses: usize) -> usize {
    let by_memory = site.tally.holders.max_connections(CONNECTION);
    let by_descriptors = descriptors::max_connections().map(|all| (all / addresses.max(1)).max(1));
    let limits = [site.limits.max_connections, by_memory];
    let limits = limits.into_iter().chain(by_descriptors);
    limits.min().unwrap_or(1)
}

/// An address at which TCP clients are accepted.
#[derive(Clone, Debug)]
pub(super) struct TcpAddress {
    pub(super) context: Arc<TcpContext>,
    pub(super) alt_svc: Option<AltSvcHeader>,
    pub(super) part: Part,
}

/// Accepts connections until the socket fails permanently. Returns its error.
pub(super) async fn accept<S: HttpService<Body>>(
    listener: Arc<TcpListener>,
    service: S,
    at: TcpAddress,
) -> io::Error {
    let site = &at.context.site;
    let shares = Shares::new(&Limits {
        max_connections: at.context.max_connections,
        ..site.limits.clone()
    });
    let mut rate = Rate::new(&site.limits);
    let mut last_report: Option<Instant> = None;
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if concerns_one_connection(&error) => continue,
            Err(error) if is_permanent(&error) => return error,
            Err(error) => {
                // The error recurs ten times a second until a file descriptor is free.
                if last_report.is_none_or(|last_report| last_report.elapsed() >= REPORT_AGAIN) {
                    last_report = Some(Instant::now());
                    site.events.report(Event::AcceptFailed(error));
                }
                // Connections that end meanwhile free file descriptors.
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let admitted = site.gate.admit(peer.ip());
        let admitted = admitted.and_then(|()| rate.admit(peer));
        let share = match admitted.and_then(|()| shares.take(peer, true)) {
            Ok(share) => share,
            Err(refusal) => {
                site.tally.on_refused(refusal);
                continue;
            }
        };
        let opened = site.tally.holders.open(peer, CONNECTION);
        let holder = match opened {
            Ok(holder) => holder,
            Err(refusal) => {
                site.tally.on_refused(refusal);
                continue;
            }
        };
        let pace = site.limits.reader_pace();
        // Small responses are complete, so the system must not wait for more data.
        let _ = stream.set_nodelay(true);
        let addresses = Addresses {
            peer,
            local: stream.local_addr().ok(),
        };
        let tally = site.tally.clone();
        let end = end(at.part.clone(), site.gate.blocks(peer.ip()), holder.clone());
        let buffers = ReadBuffers::new(holder, site.limits.max_header_bytes.into());
        let socket = Socket::new(stream, tally, end, pace, share, buffers);
        let (service, at) = (service.clone(), at.clone());
        let queued = rate.on_queued();
        tokio::spawn(async move {
            queued.on_started();
            serve(socket, addresses, service, at).await;
        });
    }
}

/// Completes when the server aborts its connections, the client's address becomes blocked, or the connection must
/// end because of memory.
fn end(
    part: Part,
    blocked: impl Future<Output = ()> + Send + 'static,
    holder: Arc<Holder>,
) -> Rare<dyn Future<Output = ()> + Send> {
    let cut = part.will_reach(Phase::Cut);
    Rare::new(Box::pin(async move {
        tokio::select! {
            () = cut => {}
            () = blocked => {}
            () = holder.closing() => {}
        }
    }))
}

/// Returns true if an error concerns only one connection, which ended before it was accepted.
pub(crate) fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// Returns true for errors of a socket that will never accept a connection again.
pub(crate) fn is_permanent(error: &io::Error) -> bool {
    #[cfg(windows)]
    const ERRORS: [i32; 3] = [10_009, 10_022, 10_038]; // WSAEBADF, WSAEINVAL, WSAENOTSOCK
    #[cfg(target_os = "linux")]
    const ERRORS: [i32; 3] = [9, 22, 88]; // EBADF, EINVAL, ENOTSOCK
    #[cfg(not(any(windows, target_os = "linux")))]
    const ERRORS: [i32; 3] = [9, 22, 38]; // EBADF, EINVAL, ENOTSOCK
    error
        .raw_os_error()
        .is_some_and(|code| ERRORS.contains(&code))
}

async fn serve<S: HttpService<Body>>(
    socket: Socket,
    addresses: Addresses,
    service: S,
    at: TcpAddress,
) {
    if let Some(serving) = establish(socket, addresses, service, at).await {
        // The task of the handshake is larger than the one that follows.
        tokio::spawn(serving);
    }
}

/// Completes the TLS handshake. Returns the future that serves the requests, unless the connection has ended.
///
/// That future is boxed, and so is hyper's part of it, so that the task of an idle connection is small: a future has
/// room for all its variables, and for both places of one that moves.
async fn establish<S: HttpService<Body>>(
    socket: Socket,
    addresses: Addresses,
    service: S,
    mut at: TcpAddress,
) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
    let (traffic, holder) = (socket.traffic().clone(), socket.holder().clone());
    let site = &at.context.site;
    let secured = tokio::select! {
        secured = handshake(socket, &at.context, addresses.peer) => secured,
        () = tokio::time::sleep(site.limits.handshake_timeout) => Err(io::ErrorKind::TimedOut.into()),
        () = holder.closing() => return None,
        // The client has sent no request yet.
        () = at.part.reached(Phase::Draining) => return None,
    };
    let stream = match secured {
        Ok(stream) => stream?,
        Err(error) => {
            site.refused_clients.on_tcp(addresses.peer, &error);
            site.tally.tcp_handshakes_failed.fetch_add(1, Relaxed);
            return None;
        }
    };
    let tls = stream.get_ref().1;
    let protocol = match tls.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    let peer = Peer::new(addresses, protocol, site.tally.new_id(), facts(tls));
    let open = Arc::new(Open::new(&site.tally, peer, traffic, holder, None));
    Some(serve_secured(stream, open, service, at))
}

fn serve_secured<S: HttpService<Body>>(
    mut stream: Box<TlsStream<Socket>>,
    open: Arc<Open>,
    service: S,
    at: TcpAddress,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let TcpAddress {
        context,
        alt_svc,
        part,
    } = at;
    let site = &context.site;
    stream.get_mut().0.keep(open.clone());
    let names = site.names_for(
        stream.get_ref().1.server_name(),
        open.record.peer.local_address(),
    );
    let settings = RequestSettings::new(open.clone(), &site.limits).only(names);
    let marks = Marks::default();
    let service = Handler::new(service, open.record.clone());
    let exchange =
        Exchange::new(service, settings, alt_svc, marks.clone()).adding_interim(site.sends_interim);
    match open.record.peer.protocol() {
        Protocol::Http2 => serve_http2(*stream, exchange, marks, &context, open, part),
        _ => serve_http1(*stream, exchange, marks, &context, open, part),
    }
}

fn serve_http1<S: HttpService<Body>>(
    stream: TlsStream<Socket>,
    exchange: Exchange<S>,
    marks: Marks,
    context: &TcpContext,
    open: Arc<Open>,
    part: Part,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let limits = &context.site.limits;
    let first = FirstRead::default();
    let interim = context.site.sends_interim.then(InterimQueue::default);
    let exchange = exchange.refusing_version(first.clone());
    let exchange = match interim.clone() {
        Some(interim) => exchange.with_interim(Arc::new(interim)),
        None => exchange,
    };
    let stream = Http1Stream::new(stream, first.clone(), interim, marks);
    let connection = http1_builder(limits).serve_connection(TokioIo::new(stream), exchange);
    let mut connection = Box::pin(connection.with_upgrades());
    let record = open.record.clone();
    // hyper drops a connection whose next header section is late without close_notify, so idle ones end before.
    let latest = limits.header_read_timeout / 8 * 7;
    let idle = idle(open, limits.idle_timeout.min(latest));
    let site = context.site.clone();
    Box::pin(async move {
        // hyper flushes each response as a whole.
        let send = |_: &mut Context<'_>| {};
        let end = |it: Pin<&mut _>| {
            hyper::server::conn::http1::UpgradeableConnection::graceful_shutdown(it)
        };
        let on_error = |error: &hyper::Error| report_error(error, &first, &record, &site);
        tokio::select! {
            () = run(connection.as_mut(), send, end, idle, part, on_error) => {}
            () = Rare::new(Box::pin(record.shed())) => {}
        }
    })
}

fn serve_http2<S: HttpService<Body>>(
    mut stream: TlsStream<Socket>,
    exchange: Exchange<S>,
    marks: Marks,
    context: &Arc<TcpContext>,
    open: Arc<Open>,
    part: Part,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let record = open.record.clone();
    if !record.holder().grow(HTTP2_CONNECTION) {
        return Box::pin(std::future::ready(()));
    }
    let window = context.uploads.reserve();
    let max_buffered = HTTP2_BUFFER.max(window.uncounted().into());
    stream.get_mut().0.set_max_buffered(max_buffered);
    let executor = Executor::default();
    let held = HeldContent::default();
    let refusing = Refusing::default();
    let context = context.clone();
    let limits = &context.site.limits;
    let (stream, gatherer) = gather(
        stream,
        executor.clone(),
        held.clone(),
        refusing.clone(),
        Inspector::new(marks, limits.max_header_bytes),
    );
    gatherer.count_header_blocks(HeaderBlock::new(
        record.holder().clone(),
        limits.max_header_bytes,
    ));
    let exchange = exchange.holding(held).refusing(refusing);
    let exchange = match context
        .site
        .sends_interim
        .then(|| Http2Interim::new(&gatherer))
        .flatten()
    {
        Some(interim) => exchange.with_interim(Arc::new(interim)),
        None => exchange,
    };
    let mut builder = http2(limits, &window, executor.clone());
    if context.site.http2_connect {
        builder
            .enable_connect_protocol()
            .max_send_buf_size(TUNNEL_BUFFER);
    }
    let mut connection = Box::pin(builder.serve_connection(TokioIo::new(stream), exchange));
    let idle = idle(open, limits.idle_timeout);
    Box::pin(async move {
        let _window = window;
        let send = |cx: &mut Context<'_>| {
            executor.pause();
            gatherer.poll_send(cx);
        };
        let end = |it: Pin<&mut _>| hyper::server::conn::http2::Connection::graceful_shutdown(it);
        let stalled = stalled(|| gatherer.credit(), &record, &context.site.limits);
        let stalled = Rare::new(Box::pin(stalled));
        let serving = async {
            // Errors end streams or the connection, and get no response.
            let on_error = |_: &hyper::Error| {};
            run(connection.as_mut(), send, end, idle, part, on_error).await;
            gatherer.close_if_exhausted().await;
        };
        tokio::select! {
            () = serving => {}
            () = stalled => {}
            () = Rare::new(Box::pin(record.shed())) => {}
        }
    })
}

/// Completes the TLS handshake. Returns `None` for connections that only validate a name.
///
/// Each step is boxed, because clients may stop in any of them, and the task would have room for all.
async fn handshake(
    mut socket: Socket,
    context: &TcpContext,
    client: SocketAddr,
) -> io::Result<Option<Box<TlsStream<Socket>>>> {
    let plain = Box::pin(socket.answer_to_plain_http()).await?;
    if let Some(answer) = plain {
        context.site.tally.own.report(&OwnResponse {
            cause: Cause::PlainHttp,
            status: StatusCode::BAD_REQUEST,
            client,
            peer: None,
            head: None,
            first_line: first_line(&answer.request),
        });
        socket.write_all(&answer.response).await?;
        socket.shutdown().await?;
        let reason = "the client sent HTTP without TLS";
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    let acceptor = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), socket);
    let mut start = Box::new(Box::pin(acceptor).await?);
    let first = start.io.take_first();
    if first.is_some_and(|records| courser_tls::offers_quic(&records)) {
        start.io.write_all(&UNSUPPORTED_EXTENSION).await?;
        start.io.shutdown().await?;
        let reason = "the client sent QUIC transport parameters over TCP";
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    if let Some(challenge) = &context.challenge {
        let hello = start.client_hello();
        let is_challenge = hello.alpn().into_iter().flatten().eq([ACME_TLS_ALPN]);
        if is_challenge {
            let mut stream = Box::pin(start.into_stream(challenge.clone())).await?;
            stream.shutdown().await?;
            return Ok(None);
        }
    }
    let stream = match &context.chooser {
        Some(chooser) => Box::pin(chooser.accept(*start, &context.tls)).await?,
        None => Box::pin(start.into_stream(context.tls.clone())).await?,
    };
    Ok(Some(Box::new(stream)))
}

/// The record with the fatal alert unsupported_extension (RFC 8446 §6), with which a server responds to QUIC
/// transport parameters over TCP (RFC 9001 §8.2). rustls ignores them.
const UNSUPPORTED_EXTENSION: [u8; 7] = [21, 3, 3, 0, 2, 2, 110];

fn facts(tls: &rustls::ServerConnection) -> TlsFacts {
    let group = tls.negotiated_key_exchange_group();
    TlsFacts {
        version: match tls.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => Some("TLSv1.2"),
            Some(rustls::ProtocolVersion::TLSv1_3) => Some("TLSv1.3"),
            _ => None,
        },
        server_name: tls.server_name().map(str::to_owned),
        cipher_suite: tls
            .negotiated_cipher_suite()
            .map(|suite| format!("{:?}", suite.suite())),
        key_exchange: group.map(|group| format!("{:?}", group.name())),
        is_resumed: tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        client_certificates: tls.peer_certificates().unwrap_or_default().to_vec(),
    }
}

fn http1_builder(limits: &Limits) -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_read_timeout)
        .max_headers(limits.max_header_fields as usize)
        // hyper requires at least this size.
        .max_buf_size(
            usize::try_from(limits.max_header_bytes)
                .map_or(MIN_BUFFER, |limit| limit.max(MIN_BUFFER)),
        );
    builder
}

fn http2(
    limits: &Limits,
    window: &UploadWindow,
    executor: Executor,
) -> hyper::server::conn::http2::Builder<Executor> {
    let mut builder = hyper::server::conn::http2::Builder::new(executor);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.max_http2_streams)
        .max_header_list_size(limits.max_header_bytes)
        // A browser that leaves a page cancels all its requests at once, some of them before they reach the
        // service.
        .max_pending_accept_reset_streams(limits.max_http2_streams as usize)
        .max_local_error_reset_streams(MAX_FAILED)
        .initial_stream_window_size(window.stream())
        .initial_connection_window_size(window.connection())
        // Detects clients that have vanished.
        .keep_alive_interval(limits.idle_timeout)
        .keep_alive_timeout(HTTP2_PING_TIMEOUT);
    builder
}

/// Drives a connection to its end: after its requests if the server drains, and at once if it is aborted. Calls
/// `send` after each poll to send the bytes that were written, and `on_error` if the connection fails.
async fn run<C>(
    mut connection: Pin<&mut C>,
    send: impl Fn(&mut Context<'_>),
    end: impl Fn(Pin<&mut C>),
    idle: impl Future<Output = ()>,
    mut part: Part,
    on_error: impl Fn(&hyper::Error),
) where
    C: Future<Output = Result<(), hyper::Error>>,
{
    let mut cut = part.clone().will_reach(Phase::Cut);
    let ending = Rare::new(Box::pin(async move {
        tokio::select! {
            () = idle => {}
            () = part.reached(Phase::Draining) => {}
        }
    }));
    let drive = |connection: Pin<&mut C>, cx: &mut Context<'_>| {
        let polled = connection.poll(cx).map(|ended| {
            if let Err(error) = &ended {
                on_error(error);
            }
        });
        send(cx);
        polled
    };
    tokio::select! {
        () = poll_fn(|cx| drive(connection.as_mut(), cx)) => return,
        () = ending => {}
    }
    end(connection.as_mut());
    tokio::select! {
        () = poll_fn(|cx| drive(connection.as_mut(), cx)) => {}
        () = &mut cut => {}
    }
}

/// Reports the response of hyper to a request that it cannot parse, or that does not arrive in time.
#[cold]
fn report_error(error: &hyper::Error, first: &FirstRead, record: &Record, site: &Site) {
    // Other errors of clients need no report.
    let Some(cause) = Cause::of_connection(error) else {
        return;
    };
    let status = match cause {
        // The connection was idle.
        Cause::HeaderTimeout if !first.is_inside_request() => return,
        Cause::HeaderTimeout => StatusCode::REQUEST_TIMEOUT,
        _ => first.refusal().unwrap_or(StatusCode::BAD_REQUEST),
    };
    // The first line belongs to another request if there were several.
    let is_first = record.requests() == 0;
    site.tally.own.report(&OwnResponse {
        cause,
        status,
        client: record.peer.current_address(),
        peer: Some(&record.peer),
        head: None,
        first_line: if is_first { first.line() } else { &[] },
    });
}

/// Completes when responses wait for credit and the client grants none, or too little.
///
/// [`Socket`] detects a client that does not read its socket. This detects clients that read the connection and
/// answer PING frames, but grant no credit.
async fn stalled(credit: impl Fn() -> (bool, u64), record: &Record, limits: &Limits) {
    let sample = || {
        let (is_blocked, taken) = credit();
        Sample {
            taken,
            // Data with credit is sent at once, and then waits in the socket.
            waiting: 0,
            is_blocked,
            ended: record.ended(),
        }
    };
    let monitor = ReadMonitor::new(
        limits.write_timeout,
        limits.read_rate,
        sample(),
        Instant::now(),
    );
    read_monitor::stalled(monitor, sample, || Duration::ZERO).await;
}

/// Completes when there was no request for this long, or for up to a quarter less.
async fn idle(open: Arc<Open>, timeout: Duration) {
    let requests = || open.record.requests();
    let mut before = None;
    let mut unchanged = 0;
    loop {
        let now = open.record.is_idle().then(requests);
        if now.is_none() || now != before {
            unchanged = 0;
        } else if unchanged + 2 == IDLE_CHECKS {
            return;
        } else {
            unchanged += 1;
        }
        before = now;
        tokio::time::sleep(timeout / IDLE_CHECKS).await;
    }
}

/// Number of times that a connection is examined within the time limit for idle ones.
const IDLE_CHECKS: u32 = 4;

/// The ALPN name of connections that validate a name (RFC 8737 §6.2).
const ACME_TLS_ALPN: &[u8] = b"acme-tls/1";

/// Pause before accepting again when file descriptors ran out.
const PAUSE: Duration = Duration::from_millis(100);
/// Least time between two events of the same kind.
const REPORT_AGAIN: Duration = Duration::from_secs(60);

const MIN_BUFFER: usize = 8192;

/// Number of requests of an HTTP/2 connection that may be reset for errors of the client (limit K271). They
/// count for the lifetime of a connection, which a gateway may share among many clients.
const MAX_FAILED: usize = 16_384;

/// Bytes of a tunnel that hyper takes before its client does (limit K665). Its default of 400 KiB is of use to a single
/// response at a time, while each tunnel may wait for its client.
const TUNNEL_BUFFER: usize = 64 * 1024;

/// Time within which a client must answer a PING.
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);
