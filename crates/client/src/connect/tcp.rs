//! Connection attempts over TCP: TCP handshake, proxy, TLS, and HTTP/2 or HTTP/1.1.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use bytes::Bytes;
use courser_quic::rustls::pki_types::ServerName;
use courser_quic::rustls::{ClientConfig, HandshakeKind};
use courser_quic::{CertificateRequests, HandshakeOffer};
use http::{HeaderMap, HeaderValue, Request, Uri, Version};
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

use super::super::core::{Core, Settings};
use super::super::endpoints::local_for;
use super::super::error::{Error, ErrorKind};
use super::super::header_limits::{MAX_HEADER_SIZE, MAX_HEADERS};
use super::super::link::{Established, Facts, Link, Proxied};
use super::super::origin::Origin;
use super::super::pool::Key;
use super::super::proxy::Via;
use super::super::serves::{Serves, is_claim_of};
use super::super::timing::TlsSummary;
use super::super::version::HttpVersion;
use super::interim_frames::{InterimFrames, OnAltSvc};
use super::socks::Socks;

/// A bidirectional byte stream with or without TLS, direct or through a proxy.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

type BoxedStream = Box<dyn Stream>;

/// Makes one attempt at an address of the origin or its proxy.
pub(super) async fn attempt(
    core: &Arc<Core>,
    key: &Key,
    address: SocketAddr,
) -> Result<Established, Error> {
    let stream = open(&core.settings, address).await;
    let stream = stream.map_err(|error| match &key.proxy {
        Some(proxy) => error.through(proxy),
        None => error,
    })?;
    let local = stream.local_addr().ok();
    // Small requests must not wait for acknowledgements. If this fails, they are only slower.
    let _ = stream.set_nodelay(true);
    if let Some(time) = core.settings.tcp.keepalive {
        let keepalive = TcpKeepalive::new().with_time(time).with_interval(time);
        // Without probes, only a dead peer is detected later.
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
    }
    establish(core, key, Box::new(stream), (address, local)).await
}

/// Begins HTTP on a stream to the origin, which passes a proxy.
#[cfg(feature = "masque")]
pub(super) async fn establish_in_tunnel(
    core: &Arc<Core>,
    key: &Key,
    stream: Box<courser_http3_tokio::Upgraded>,
    place: (SocketAddr, Option<SocketAddr>),
) -> Result<Established, Error> {
    let mut direct = key.clone();
    direct.proxy = None;
    establish(core, &direct, stream, place).await
}

/// Connects to a Unix domain socket instead of an origin.
#[cfg(unix)]
pub(super) async fn attempt_unix(
    core: &Arc<Core>,
    key: &Key,
    path: &Path,
) -> Result<Established, Error> {
    let connected = tokio::net::UnixStream::connect(path).await;
    let stream = connected.map_err(|error| {
        let shown = path.display().to_string().replace('\0', "@");
        let text = format!("cannot connect to the Unix domain socket {shown}: {error}");
        Error::new(ErrorKind::Connect, text).with_source(error)
    })?;
    let nowhere = (Ipv4Addr::UNSPECIFIED, 0).into();
    let mut direct = key.clone();
    direct.proxy = None;
    establish(core, &direct, Box::new(stream), (nowhere, None)).await
}

#[cfg(not(unix))]
pub(super) async fn attempt_unix(_: &Arc<Core>, _: &Key, _: &Path) -> Result<Established, Error> {
    let text = "Unix domain sockets are not supported on this system";
    Err(Error::new(ErrorKind::Unsupported, text))
}

/// Begins HTTP on a connected stream, after the proxy and TLS.
async fn establish(
    core: &Arc<Core>,
    key: &Key,
    mut stream: BoxedStream,
    (remote, local): (SocketAddr, Option<SocketAddr>),
) -> Result<Established, Error> {
    let version = key.version;
    if core.settings.tcp.sends_proxy_header {
        let header = proxy_header(remote, local);
        stream.write_all(header.as_bytes()).await.map_err(|error| {
            let text = format!("cannot send the header of the PROXY protocol: {error}");
            Error::new(ErrorKind::Connect, text)
        })?;
    }
    let mut facts = Facts {
        version: match version {
            HttpVersion::Http10 => Version::HTTP_10,
            _ => Version::HTTP_11,
        },
        remote,
        local,
        tcp_connected: Some(Instant::now()),
        tls_complete: None,
        quic_complete: None,
        is_resumed: false,
        tls: None,
        proxy: Proxied::No,
        alternative: None,
        serves: Serves::of(key.origin.clone()),
        was_silent: AtomicBool::new(false),
        is_announced: false,
        is_moved: false,
    };
    if let Some(proxy) = &key.proxy {
        (stream, facts.proxy) = connect_through_proxy(core, stream, proxy, &key.origin).await?;
    }
    let assumes_http2 = version.assumes_http2();
    if !key.origin.is_secure() {
        return match assumes_http2 {
            true => http2_link(stream, facts, Box::new(|_, _| {})).await,
            false => http1_link(stream, facts).await,
        };
    }
    let config = core.tls.tcp.at(key.origin.port(), version);
    let tls = secure(stream, &config, key.origin.host()).await;
    let tls = tls.inspect_err(|error| core.tls.report(error))?;
    facts.tls_complete = Some(Instant::now());
    let (_, session) = tls.get_ref();
    facts.tls = Some(Arc::new(TlsSummary::of_tcp(session)));
    facts.is_resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
    if session.alpn_protocol() == Some(b"h2") || assumes_http2 {
        http2_link(Box::new(tls), facts, on_alt_svc(core, key)).await
    } else {
        http1_link(Box::new(tls), facts).await
    }
}

/// Returns the host and port of a proxy.
pub(super) fn proxy_address(proxy: &Uri) -> Result<(String, u16), Error> {
    if Socks::of(proxy).is_some() {
        let host = proxy.host().unwrap_or_default().trim_matches(['[', ']']);
        return Ok((host.to_owned(), proxy.port_u16().unwrap_or(SOCKS_PORT)));
    }
    let origin = Origin::of(proxy)?;
    let port = proxy.port_u16().unwrap_or(origin.port());
    Ok((origin.host().to_owned(), port))
}

async fn open(settings: &Settings, address: SocketAddr) -> Result<TcpStream, Error> {
    let socket = bound_socket(settings, address).map_err(|error| {
        let text = format!("cannot bind a socket for tcp {address}: {error}");
        Error::new(ErrorKind::Bind, text).with_source(error)
    })?;
    socket.connect(address).await.map_err(|error| {
        let text = match error.kind() {
            io::ErrorKind::ConnectionRefused => format!("nothing listens on tcp {address}"),
            _ => format!("cannot connect to tcp {address}: {error}"),
        };
        Error::new(ErrorKind::Connect, text).with_source(error)
    })
}

/// Returns a socket with the local address, port and interface of the settings.
fn bound_socket(settings: &Settings, address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(interface) = &settings.interface {
        bind_to_interface(&socket, interface)?;
    }
    let local = match (settings.local_address, address) {
        (Some(local), _) => Some(local_for(local, address)),
        (None, _) if settings.tcp.local_ports.is_none() => None,
        (None, SocketAddr::V4(_)) => Some((Ipv4Addr::UNSPECIFIED, 0).into()),
        (None, SocketAddr::V6(_)) => Some((Ipv6Addr::UNSPECIFIED, 0).into()),
    };
    if let Some(local) = local {
        bind(&socket, local, settings.tcp.local_ports.clone())?;
    }
    Ok(socket)
}

/// Binds a socket to an address, with the first free port of a range if there is one.
fn bind(
    socket: &TcpSocket,
    mut local: SocketAddr,
    ports: Option<RangeInclusive<u16>>,
) -> io::Result<()> {
    let Some(ports) = ports else {
        return socket.bind(local);
    };
    let mut result = Err(io::ErrorKind::AddrInUse.into());
    for port in ports {
        local.set_port(port);
        result = socket.bind(local);
        match &result {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            _ => break,
        }
    }
    result
}

/// Returns the header of the PROXY protocol, version 1.
fn proxy_header(remote: SocketAddr, local: Option<SocketAddr>) -> String {
    match (local, remote) {
        (Some(local), remote) if local.is_ipv4() && remote.is_ipv4() => format!(
            "PROXY TCP4 {} {} {} {}\r\n",
            local.ip(),
            remote.ip(),
            local.port(),
            remote.port()
        ),
        (Some(local), remote) if local.is_ipv6() && remote.is_ipv6() => format!(
            "PROXY TCP6 {} {} {} {}\r\n",
            local.ip(),
            remote.ip(),
            local.port(),
            remote.port()
        ),
        _ => "PROXY UNKNOWN\r\n".to_owned(),
    }
}

#[cfg(target_os = "linux")]
fn bind_to_interface(socket: &TcpSocket, interface: &str) -> io::Result<()> {
    socket.bind_device(Some(interface.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_to_interface(_: &TcpSocket, _: &str) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

async fn secure<S: Stream>(
    stream: S,
    config: &Arc<ClientConfig>,
    host: &str,
) -> Result<tokio_rustls::client::TlsStream<S>, Error> {
    let name = ServerName::try_from(host.trim_end_matches('.').to_owned()).map_err(|_| {
        let text = format!("'{host}' is not a valid name for a certificate");
        Error::new(ErrorKind::Url, text)
    })?;
    let connecting = TlsConnector::from(config.clone()).connect(name, stream);
    let (connected, was_requested) = CertificateRequests::watch(connecting).await;
    connected.map_err(|error| {
        let offer = HandshakeOffer::over_tcp(config).certificate_requested(was_requested);
        Error::of_tls(error, host, &offer)
    })
}

/// Returns the receiver of the ALTSVC frames of a connection for the origin of `key`.
fn on_alt_svc(core: &Arc<Core>, key: &Key) -> OnAltSvc {
    // The client owns the connection.
    let (core, key) = (Arc::downgrade(core), key.clone());
    Box::new(move |id, payload| {
        if let Some(value) = announced_for(&key.origin, id, payload)
            && let Some(core) = core.upgrade()
        {
            core.on_alt_svc_frame(&key, value);
        }
    })
}

/// Returns the value of an ALTSVC frame if it is for the origin: on stream 0 it must name it, and on the stream of a
/// request it must not name any (RFC 7838 §4).
fn announced_for<'a>(origin: &Origin, id: u32, payload: &'a [u8]) -> Option<&'a str> {
    let (length, rest) = payload.split_first_chunk()?;
    let length = usize::from(u16::from_be_bytes(*length));
    let (named, value) = rest.split_at_checked(length)?;
    let is_for_origin = match id {
        0 => is_claim_of(std::str::from_utf8(named).ok()?, origin),
        _ => named.is_empty(),
    };
    is_for_origin.then_some(std::str::from_utf8(value).ok()?)
}

async fn http2_link(
    stream: BoxedStream,
    mut facts: Facts,
    on_alt_svc: OnAltSvc,
) -> Result<Established, Error> {
    facts.version = Version::HTTP_2;
    let (send, connection) = http2_builder()
        .handshake(TokioIo::new(InterimFrames::new(stream, on_alt_svc)))
        .await
        .map_err(|error| Error::of_hyper(error, true))?;
    // Its errors are reported to the tasks that wait for responses.
    tokio::spawn(async move { drop(connection.await) });
    Ok(Established {
        link: Link::Http2(send),
        facts: Arc::new(facts),
    })
}

/// Returns the settings of HTTP/2 connections, with large windows from the start.
///
/// hyper's adaptive windows start at 64 KiB, so that a response of 1 MB takes four round trips.
fn http2_builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER_SIZE)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW);
    builder
}

async fn http1_link(stream: BoxedStream, facts: Facts) -> Result<Established, Error> {
    let (send, connection) = http1::Builder::new()
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEADER_SIZE as usize)
        // RFC 9112 §5.2.
        .allow_obsolete_multiline_headers_in_responses(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Error::of_hyper(error, false))?;
    tokio::spawn(async move { drop(connection.await) });
    Ok(Established {
        link: Link::Http1(send),
        facts: Arc::new(facts),
    })
}

/// Connects through a proxy: over TLS if its scheme is https, and with a tunnel to https origins. A SOCKS proxy
/// provides a tunnel to all origins.
async fn connect_through_proxy(
    core: &Arc<Core>,
    mut stream: BoxedStream,
    via: &Via,
    origin: &Origin,
) -> Result<(BoxedStream, Proxied), Error> {
    let proxy = &via.uri;
    if let Some(socks) = Socks::of(proxy) {
        let credentials = via.credentials.as_ref();
        let credentials = credentials.map(|(user, word)| (&**user, &**word));
        let target = socks.target(core, origin).await?;
        socks.connect(&mut stream, &target, credentials).await?;
        return Ok((stream, Proxied::Tunnel));
    }
    let (host, _) = proxy_address(proxy)?;
    let stream: BoxedStream = match proxy.scheme_str() {
        Some("https") => {
            let secured = secure(stream, &core.tls.proxy, &host).await;
            Box::new(secured.map_err(|error| error.through(via))?)
        }
        _ => stream,
    };
    let authorization = via.authorization.clone();
    if !origin.is_secure() {
        let headers = visible_headers(&core.settings.proxy_headers, authorization);
        return Ok((stream, Proxied::Visible(headers)));
    }
    let stream = tunnel(core, stream, via, origin).await?;
    Ok((stream, Proxied::Tunnel))
}

/// Returns the fields that a proxy receives with each request that it reads.
fn visible_headers(
    fields: &HeaderMap,
    authorization: Option<HeaderValue>,
) -> Option<Box<HeaderMap>> {
    let mut fields = fields.clone();
    if let Some(authorization) = authorization {
        fields.insert(http::header::PROXY_AUTHORIZATION, authorization);
    }
    (!fields.is_empty()).then(|| Box::new(fields))
}

/// Requests a tunnel with CONNECT (RFC 9110 §9.3.6).
async fn tunnel(
    core: &Core,
    stream: BoxedStream,
    via: &Via,
    origin: &Origin,
) -> Result<BoxedStream, Error> {
    let refused = |text: String| Error::new(ErrorKind::Proxy, text);
    let broken = |error: hyper::Error| {
        Error::new(
            ErrorKind::Proxy,
            format!("the proxy {via} did not open a tunnel: {error}"),
        )
        .with_source(error)
    };
    let (mut send, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    tokio::spawn(async move { drop(connection.with_upgrades().await) });
    let authority = origin.authority();
    let mut request = Request::connect(&authority).header(http::header::HOST, &authority);
    for (name, value) in &core.settings.proxy_headers {
        request = request.header(name, value);
    }
    if let Some(authorization) = via.authorization.clone() {
        request = request.header(http::header::PROXY_AUTHORIZATION, authorization);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| {
        refused(format!(
            "cannot send a CONNECT request for {authority}: {error}"
        ))
    })?;
    let response = send.send_request(request).await.map_err(broken)?;
    let status = response.status();
    if !status.is_success() {
        let hint = match status {
            http::StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                ": add user name and password to the proxy's URL"
            }
            _ => "",
        };
        let reported = reported(response.headers());
        return Err(refused(format!(
            "the proxy {via} did not open a tunnel to {authority}: it responded with {status}{reported}{hint}"
        )));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
    Ok(Box::new(TokioIo::new(upgraded)))
}

/// Returns the error in the field Proxy-Status (RFC 9209) for people, behind a comma.
#[cfg(feature = "masque")]
fn reported(headers: &http::HeaderMap) -> String {
    let error = courser_masque_tokio::ReportedError::of(headers);
    error.map_or_else(String::new, |error| format!(", {error}"))
}

#[cfg(not(feature = "masque"))]
const fn reported(_: &http::HeaderMap) -> &'static str {
    ""
}

/// Default port of SOCKS proxies (RFC 1928 §3).
const SOCKS_PORT: u16 = 1080;
/// Receive window of a response over HTTP/2 (limit K295).
const HTTP2_STREAM_WINDOW: u32 = 16 << 20;
/// Receive window of an HTTP/2 connection (limit K295). It is larger than that of a response, so that an unread
/// response does not block the others.
const HTTP2_CONNECTION_WINDOW: u32 = 32 << 20;

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[test]
    fn alt_svc_frames_announce_for_their_origin_only() {
        let origin = Origin::https("a.test", 443);
        let frame = |named: &str, value: &str| {
            let length = u16::try_from(named.len()).expect("short").to_be_bytes();
            [&length, named.as_bytes(), value.as_bytes()].concat()
        };
        let own = frame("https://a.test", "clear");
        assert_eq!(announced_for(&origin, 0, &own), Some("clear"));
        assert_eq!(announced_for(&origin, 1, &own), None);
        let unnamed = frame("", "clear");
        assert_eq!(announced_for(&origin, 1, &unnamed), Some("clear"));
        assert_eq!(announced_for(&origin, 0, &unnamed), None);
        let other = frame("https://b.test", "clear");
        assert_eq!(announced_for(&origin, 0, &other), None);
        for length in 0..own.len() - "clear".len() {
            assert_eq!(announced_for(&origin, 0, &own[..length]), None, "{length}");
        }
    }

    /// The windows in the first frames of a client: SETTINGS_INITIAL_WINDOW_SIZE, and the window of the
    /// connection, which WINDOW_UPDATE raises from 65 535 (RFC 9113 §6.5.2, §6.9).
    #[tokio::test]
    async fn http2_windows_are_granted_with_the_first_frames() {
        let (client, mut server) = tokio::io::duplex(4096);
        let handshake =
            http2_builder().handshake::<_, Empty<Bytes>>(TokioIo::new(Box::new(client)));
        let (_send, connection) = handshake.await.expect("a client");
        tokio::spawn(connection);
        let mut preface = [0; 24];
        server.read_exact(&mut preface).await.expect("a preface");
        let (mut stream, mut connection) = (None, 65_535);
        while stream.is_none() || connection == 65_535 {
            let mut head = [0; 9];
            server.read_exact(&mut head).await.expect("a frame");
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            server.read_exact(&mut payload).await.expect("its payload");
            let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
            match head[3] {
                SETTINGS => {
                    let mut entries = payload.chunks_exact(6);
                    // RFC 9113 §8.4: push is off.
                    let push = payload.chunks_exact(6).find(|entry| entry[..2] == [0, 2]);
                    assert_eq!(push.map(|entry| number(&entry[2..])), Some(0));
                    let entry = entries.find(|entry| entry[..2] == INITIAL_WINDOW_SIZE);
                    stream = Some(entry.map_or(65_535, |entry| number(&entry[2..])));
                }
                WINDOW_UPDATE => connection += number(&payload),
                kind => panic!("a frame of type {kind}"),
            }
        }
        assert_eq!((stream, connection), (Some(16 << 20), 32 << 20));
    }

    const SETTINGS: u8 = 4;
    const WINDOW_UPDATE: u8 = 8;
    const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
}
