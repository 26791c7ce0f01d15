//! HTTP/2 and HTTP/1.1 over TCP, implemented by hyper.

mod exchange;
pub(crate) mod listen;
pub(crate) mod socket;

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::time::Duration;

use courser_http3_tokio::HttpService;
use courser_tls::rustls;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use self::exchange::Exchange;
use self::socket::Socket;
use crate::alt_svc::AltSvcHeader;
use crate::certificates::chosen::Chooser;
use crate::events::Event;
use crate::exchange::RequestSettings;
use crate::exchange::body::Body;
use crate::http2::budgets::Refusing;
use crate::http2::executor::Executor;
use crate::http2::gather::gather;
use crate::http2::held::HeldContent;
use crate::limits::Limits;
use crate::limits::rate::Rate;
use crate::limits::read_monitor::{self, ReadMonitor, Sample};
use crate::limits::shares::Shares;
use crate::limits::uploads::{UploadMemory, UploadWindow};
use crate::peer::{Addresses, Peer, Protocol, TlsFacts};
use crate::phase::{Part, Phase};
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
    let shares = Shares::new(&site.limits);
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
        let pace = site.limits.reader_pace();
        // Small responses are complete, so the system must not wait for more data.
        let _ = stream.set_nodelay(true);
        let addresses = Addresses {
            peer,
            local: stream.local_addr().ok(),
        };
        let tally = site.tally.clone();
        let end = end(at.part.clone(), site.gate.blocks(peer.ip()));
        let socket = Socket::new(stream, tally, end, pace, share);
        let (service, at) = (service.clone(), at.clone());
        let queued = rate.on_queued();
        tokio::spawn(async move {
            queued.on_started();
            serve(socket, addresses, service, at).await;
        });
    }
}

/// Completes when the server aborts its connections, or the client's address becomes blocked.
fn end(
    part: Part,
    blocked: impl Future<Output = ()> + Send + 'static,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let cut = part.will_reach(Phase::Cut);
    Box::pin(async move {
        tokio::select! {
            () = cut => {}
            () = blocked => {}
        }
    })
}

/// Returns true if an error concerns only one connection, which ended before it was accepted.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// Returns true for errors of a socket that will never accept a connection again.
fn is_permanent(error: &io::Error) -> bool {
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
    let TcpAddress {
        context,
        alt_svc,
        mut part,
    } = at;
    let (context, site) = (&*context, &context.site);
    let traffic = socket.traffic().clone();
    let secured = tokio::select! {
        secured = handshake(socket, context) => secured,
        () = tokio::time::sleep(site.limits.handshake_timeout) => Err(io::ErrorKind::TimedOut.into()),
        // The client has sent no request yet.
        () = part.reached(Phase::Draining) => return,
    };
    let mut stream = match secured {
        Ok(Some(stream)) => stream,
        Ok(None) => return,
        Err(error) => {
            site.refused_clients.on_tcp(addresses.peer, &error);
            site.tally.tcp_handshakes_failed.fetch_add(1, Relaxed);
            return;
        }
    };
    let tls = stream.get_ref().1;
    let protocol = match tls.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    let peer = Peer::new(addresses, protocol, site.tally.new_id(), facts(tls));
    let open = Arc::new(Open::new(&site.tally, peer, traffic, None));
    stream.get_mut().0.keep(open.clone());
    let names = site.names_for(stream.get_ref().1.server_name());
    let settings = RequestSettings::new(open.clone(), &site.limits)
        .over_tcp(site.sends_interim)
        .only(names);
    let exchange = Exchange::new(service, settings, alt_svc);
    let limits = &site.limits;
    let record = open.record.clone();
    let idle = idle(open, limits.idle_timeout);
    match protocol {
        Protocol::Http2 => serve_http2(stream, exchange, context, &record, idle, part).await,
        _ => {
            let connection = http1(limits).serve_connection(TokioIo::new(stream), exchange);
            let connection = pin!(connection.with_upgrades());
            // hyper flushes each response as a whole.
            let send = |_: &mut Context<'_>| {};
            let serving = run(connection, send, |it| it.graceful_shutdown(), idle, part);
            tokio::select! {
                () = serving => {}
                () = record.shed() => {}
            }
        }
    }
}

async fn serve_http2<S: HttpService<Body>>(
    stream: TlsStream<Socket>,
    exchange: Exchange<S>,
    context: &TcpContext,
    record: &Record,
    idle: impl Future<Output = ()>,
    part: Part,
) {
    let executor = Executor::default();
    let held = HeldContent::default();
    let refusing = Refusing::default();
    let (stream, gatherer) = gather(stream, executor.clone(), held.clone(), refusing.clone());
    let exchange = exchange.holding(held).refusing(refusing);
    let window = context.uploads.reserve();
    let builder = http2(&context.site.limits, &window, executor.clone());
    let connection = pin!(builder.serve_connection(TokioIo::new(stream), exchange));
    let send = |cx: &mut Context<'_>| {
        executor.pause();
        gatherer.poll_send(cx);
    };
    let stalled = stalled(|| gatherer.credit(), record, &context.site.limits);
    let serving = async {
        run(connection, send, |it| it.graceful_shutdown(), idle, part).await;
        gatherer.close_if_exhausted().await;
    };
    tokio::select! {
        () = serving => {}
        () = stalled => {}
        () = record.shed() => {}
    }
}

/// Completes the TLS handshake. Returns `None` for connections that only validate a name.
async fn handshake(socket: Socket, context: &TcpContext) -> io::Result<Option<TlsStream<Socket>>> {
    let mut start = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), socket).await?;
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
            let mut stream = start.into_stream(challenge.clone()).await?;
            stream.shutdown().await?;
            return Ok(None);
        }
    }
    match &context.chooser {
        Some(chooser) => chooser.accept(start, &context.tls).await.map(Some),
        None => start.into_stream(context.tls.clone()).await.map(Some),
    }
}

/// The record with the fatal alert unsupported_extension (RFC 8446 §6), with which a server responds to QUIC
/// transport parameters over TCP (RFC 9001 §8.2). rustls ignores them.
const UNSUPPORTED_EXTENSION: [u8; 7] = [21, 3, 3, 0, 2, 2, 110];

fn facts(tls: &rustls::ServerConnection) -> TlsFacts {
    let group = tls.negotiated_key_exchange_group();
    TlsFacts {
        server_name: tls.server_name().map(str::to_owned),
        cipher_suite: tls
            .negotiated_cipher_suite()
            .map(|suite| format!("{:?}", suite.suite())),
        key_exchange: group.map(|group| format!("{:?}", group.name())),
        is_resumed: tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        client_certificates: tls.peer_certificates().unwrap_or_default().to_vec(),
    }
}

fn http1(limits: &Limits) -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_read_timeout)
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
/// `send` after each poll to send the bytes that were written.
async fn run<C, E>(
    mut connection: Pin<&mut C>,
    send: impl Fn(&mut Context<'_>),
    end: impl Fn(Pin<&mut C>),
    idle: impl Future<Output = ()>,
    mut part: Part,
) where
    C: Future<Output = Result<(), E>>,
{
    let mut cut = part.clone().will_reach(Phase::Cut);
    let drive = |connection: Pin<&mut C>, cx: &mut Context<'_>| {
        // Errors of clients need no report.
        let polled = connection.poll(cx).map(drop);
        send(cx);
        polled
    };
    tokio::select! {
        () = poll_fn(|cx| drive(connection.as_mut(), cx)) => return,
        () = idle => {}
        () = part.reached(Phase::Draining) => {}
    }
    end(connection.as_mut());
    tokio::select! {
        () = poll_fn(|cx| drive(connection.as_mut(), cx)) => {}
        () = &mut cut => {}
    }
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

/// Completes when there was no request for this long.
async fn idle(open: Arc<Open>, timeout: Duration) {
    let requests = || open.record.requests();
    let mut before = None;
    loop {
        // Checking twice per timeout detects the end within half a timeout.
        let now = open.record.is_idle().then(requests);
        if now.is_some() && now == before {
            return;
        }
        before = now;
        tokio::time::sleep(timeout / 2).await;
    }
}

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

/// Time within which a client must answer a PING.
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);
