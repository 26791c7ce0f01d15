//! Connections through a MASQUE proxy: over QUIC in CONNECT-UDP (RFC 9298), and over TCP in CONNECT, on one connection of
//! HTTP/3 to the proxy.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_http3_tokio as h3;
use courser_masque_tokio::{self as masque, Ended, OpenError, Target, Template, UdpClient};
use courser_quic::{Connection, Endpoint, Side, VarInt};
use http::{HeaderMap, Request, StatusCode};
use tokio::task::JoinSet;

use super::super::core::Core;
use super::super::error::{Error, ErrorKind};
use super::super::link::{Established, Proxied};
use super::super::masque_links::{MasqueLink, State};
use super::super::pool::Key;
use super::super::proxy::Via;
use super::super::race::Transport;
use super::super::serves::Serves;
use super::super::timing::{Attempt, Outcome, Timing};
use super::{quic, tcp};

/// The result of a connection through a MASQUE proxy.
pub(super) enum Through {
    Connected(Established),
    /// The proxy is not reached over QUIC. It may be over TCP.
    Unreachable(Error),
}

/// Opens a connection for requests to `key` through a MASQUE proxy.
pub(super) async fn connect(
    core: &Arc<Core>,
    key: &Key,
    (via, template): (&Via, &str),
    timing: &mut Timing,
) -> Result<Through, Error> {
    let link = match link(core, key, via).await {
        Ok(link) => link,
        Err(error) if key.version.may_use_tcp() => return Ok(Through::Unreachable(error)),
        Err(error) => return Err(error),
    };
    let (host, port) = core.settings.destination(&key.origin);
    let target = match core.settings.is_overridden(&host, port) {
        // The user has chosen an address. Other names are resolved by the proxy.
        true => core.lookup(&host, port).await?[0].to_string(),
        false if host.contains(':') => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    let way = Way {
        core,
        key,
        via,
        link: &link,
        target: &target,
    };
    let template = Template::new(template);
    let template = template.map_err(|error| Error::new(ErrorKind::Config, error.to_string()))?;
    way.race(template, timing).await.map(Through::Connected)
}

/// The way to a server.
#[derive(Clone, Copy)]
struct Way<'a> {
    core: &'a Arc<Core>,
    key: &'a Key,
    via: &'a Via,
    link: &'a MasqueLink,
    target: &'a str,
}

impl Way<'_> {
    /// Connects over QUIC, and over TCP if that fails or takes longer than a head start.
    async fn race(self, template: Template, timing: &mut Timing) -> Result<Established, Error> {
        let (core, key) = (self.core, self.key);
        let may_use_tcp = key.version.may_use_tcp();
        if !core.may_use_quic(key) {
            let begun = self.begin(Transport::Tcp, timing);
            return self.ended(begun, self.over_tcp().await, timing);
        }
        let mut over_quic = pin!(self.over_quic(template));
        let head_start = match may_use_tcp {
            true => core.settings.attempt_delay + 2 * self.link.client.quic().rtt(),
            false => FOREVER,
        };
        let first = self.begin(Transport::Quic, timing);
        let failure = tokio::select! {
            result = &mut over_quic => match self.ended(first, result, timing) {
                Err(error) if may_use_tcp => Some(error),
                result => return result,
            },
            () = tokio::time::sleep(head_start) => None,
        };
        let second = self.begin(Transport::Tcp, timing);
        let mut over_tcp = pin!(self.over_tcp());
        if let Some(failure) = failure {
            let result = self.ended(second, over_tcp.await, timing);
            return result.map_err(|error| error.after(&failure));
        }
        tokio::select! {
            result = &mut over_quic => match self.ended(first, result, timing) {
                Ok(established) => Ok(established),
                Err(failure) => {
                    let result = self.ended(second, over_tcp.await, timing);
                    result.map_err(|error| error.after(&failure))
                }
            },
            result = &mut over_tcp => match self.ended(second, result, timing) {
                Ok(established) => Ok(established),
                Err(failure) => {
                    let result = self.ended(first, over_quic.await, timing);
                    result.map_err(|error| failure.after(&error))
                }
            },
        }
    }

    fn begin(&self, transport: Transport, timing: &mut Timing) -> usize {
        timing.attempts.push(Attempt {
            transport,
            address: self.link.remote,
            began: timing.elapsed(),
            ended: None,
            outcome: Outcome::Overtaken,
        });
        timing.attempts.len() - 1
    }

    fn ended(
        &self,
        index: usize,
        result: Result<Established, Error>,
        timing: &mut Timing,
    ) -> Result<Established, Error> {
        let elapsed = timing.elapsed();
        let attempt = &mut timing.attempts[index];
        attempt.ended = Some(elapsed);
        attempt.outcome = match &result {
            Ok(_) => Outcome::Won,
            Err(error) => Outcome::Failed(error.to_string()),
        };
        result
    }

    async fn over_quic(self, template: Template) -> Result<Established, Error> {
        let (core, origin) = (self.core, &self.key.origin);
        let client = UdpClient::over(self.link.client.clone(), template)
            .with_headers(headers(core, self.via));
        let socket = client.open_target(self.parsed()?).await;
        let socket = socket.map_err(|error| self.failed("CONNECT-UDP", error))?;
        let (ended, end) = (socket.clone(), socket.end());
        let transport = socket.into_transport();
        let peer = transport.peer_addr();
        let failed = |error: &dyn std::fmt::Display| {
            let text = format!("cannot start a QUIC connection in a tunnel: {error}");
            Error::new(ErrorKind::ConnectQuic, text)
        };
        let endpoint = Endpoint::builder()
            .grease_quic_bit(core.settings.greases_quic_bit)
            .transport(transport)
            .map_err(|error| failed(&error))?;
        let connecting = endpoint.connect_with(core.tls.quic.clone(), peer, origin.host());
        let connecting = connecting.map_err(|error| failed(&error))?;
        let connection = tokio::select! {
            connected = connecting => connected.map_err(|error| {
                let place = format!("{} through the proxy {}", self.target, self.via);
                Error::of_quic_handshake(&error, &place, origin.host(), &core.tls.quic_offer)
            })?,
            end = ended.closed() => {
                let (via, target) = (self.via, self.target);
                let text = format!("the proxy {via} has ended the tunnel to udp {target}: {end}");
                return Err(Error::new(ErrorKind::ConnectQuic, text));
            }
        };
        // The transport has another handle.
        drop(ended);
        close_with(&connection, end);
        let client = h3::Client::new(connection);
        let serves = Serves::of(origin.clone());
        let remote = self.link.remote;
        Ok(quic::established(&endpoint, client, remote, None, serves).proxied(Proxied::Tunnel))
    }

    async fn over_tcp(self) -> Result<Established, Error> {
        // The target is checked here, and written as it is.
        self.parsed()?;
        let mut request = Request::connect(self.target).body(()).map_err(|error| {
            let text = format!("cannot send a CONNECT request for {}: {error}", self.target);
            Error::new(ErrorKind::Proxy, text)
        })?;
        *request.headers_mut() = headers(self.core, self.via);
        let response = self.link.client.connect(request).await;
        let response = response.map_err(|error| self.failed("CONNECT", error.into()))?;
        let stream = Box::new(response.into_body());
        let place = (self.link.remote, None);
        let established = tcp::establish_in_tunnel(self.core, self.key, stream, place).await?;
        Ok(established.proxied(Proxied::Tunnel))
    }

    fn parsed(&self) -> Result<Target, Error> {
        self.target.parse().map_err(|error| {
            let text = format!("'{}' is no target for a proxy: {error}", self.target);
            Error::new(ErrorKind::Url, text)
        })
    }

    /// Describes a tunnel that was not opened: the proxy has refused it, or its connection has failed.
    fn failed(&self, what: &str, error: OpenError) -> Error {
        let (via, target) = (self.via, self.target);
        let text = match error.status() {
            Some(status) => {
                let reported = error.reported().map(|it| format!(", {it}"));
                let hint = match status {
                    StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                        ": add user name and password, or a field proxy-authorization"
                    }
                    _ => "",
                };
                let reported = reported.unwrap_or_default();
                format!("the proxy {via} refused {what} to {target}: {status}{reported}{hint}")
            }
            None => format!("the proxy {via} did not open a tunnel to {target}: {error}"),
        };
        Error::new(ErrorKind::Proxy, text).with_source(error)
    }
}

/// Closes a connection when its tunnel ends, such as with the connection to the proxy. It would notice only by its idle
/// timeout, and requests would wait for that long on a connection that is lost.
fn close_with(connection: &Connection, end: impl Future<Output = Ended> + Send + 'static) {
    let connection = connection.downgrade();
    tokio::spawn(async move {
        // The end of the connection is one of the tunnel too.
        end.await;
        if let Some(connection) = connection.upgrade() {
            connection.close(NO_ERROR, b"the tunnel has ended");
        }
    });
}

/// Returns the fields of requests to a proxy.
fn headers(core: &Core, via: &Via) -> HeaderMap {
    let mut headers = core.settings.proxy_headers.clone();
    if let Some(authorization) = &via.authorization {
        let mut value = authorization.clone();
        value.set_sensitive(true);
        headers.insert(http::header::PROXY_AUTHORIZATION, value);
    }
    headers
}

/// Returns the connection to a proxy, which is opened if there is none.
async fn link(core: &Arc<Core>, key: &Key, via: &Via) -> Result<MasqueLink, Error> {
    let slot = core.masque.slot(via);
    let mut state = slot.lock().await;
    if let State::Open(link) = &*state
        && link.is_usable()
    {
        return Ok(link.clone());
    }
    let may_use_tcp = key.version.may_use_tcp();
    if may_use_tcp && let Some(reason) = state.is_unreachable() {
        return Err(Error::new(ErrorKind::ConnectQuic, &**reason));
    }
    let limit = match may_use_tcp {
        true => PATIENCE,
        false => core.settings.connect_timeout,
    };
    let opened = match tokio::time::timeout(limit, open(core, via)).await {
        Ok(opened) => opened,
        Err(_) => {
            let text = format!("the proxy {via} does not answer over QUIC within {limit:?}");
            Err(Error::new(ErrorKind::ConnectQuic, text))
        }
    };
    *state = match &opened {
        Ok(link) => State::Open(link.clone()),
        Err(error) => State::Unreachable(Instant::now(), error.to_string().into()),
    };
    opened
}

/// Connects to the addresses of a proxy, each a short while after the one before.
async fn open(core: &Arc<Core>, via: &Via) -> Result<MasqueLink, Error> {
    let (host, port) = tcp::proxy_address(&via.uri)?;
    let addresses = core.lookup(&host, port).await.map_err(|error| {
        let text = format!("the proxy {via} is not reachable: {error}");
        Error::new(ErrorKind::ResolveProxy, text)
    })?;
    let mut waiting = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut failure = None;
    loop {
        let next = waiting.next();
        let has_more = next.is_some();
        if let Some(address) = next {
            let (core, host) = (core.clone(), host.clone());
            attempts.spawn(async move { attempt(&core, &host, address).await });
        }
        tokio::select! {
            Some(attempted) = attempts.join_next() => match attempted {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(error)) => failure = Some(error),
                // The task panicked, or the runtime is shutting down.
                Err(_) => {}
            },
            () = tokio::time::sleep(core.settings.attempt_delay), if has_more => {}
            else => break,
        }
    }
    let failure = failure.unwrap_or_else(|| Error::new(ErrorKind::Connect, "it has no address"));
    Err(failure.through(via))
}

async fn attempt(core: &Arc<Core>, host: &str, address: SocketAddr) -> Result<MasqueLink, Error> {
    let settings = &core.settings;
    let interface = settings.interface.as_deref();
    let endpoint = core
        .quic
        .of(settings.local_address, interface, address, false)?;
    let connecting = endpoint.connect_with(core.tls.proxy_quic.clone(), address, host);
    let connecting = connecting.map_err(|error| {
        let text = format!("cannot start a QUIC connection to {address}: {error}");
        Error::new(ErrorKind::ConnectQuic, text)
    })?;
    let unreachable = connecting.unreachable();
    let connection = tokio::select! {
        connected = connecting => connected.map_err(|error| {
            Error::of_quic_handshake(&error, &address.to_string(), host, &core.tls.quic_offer)
        })?,
        cause = unreachable => {
            let text = format!("cannot reach udp {address}: {cause}");
            return Err(Error::new(ErrorKind::ConnectQuic, text));
        }
    };
    let mut config = h3::Config::new(Side::Client);
    masque::enable(&mut config, Side::Client);
    Ok(MasqueLink {
        client: h3::Client::with_config(connection, config),
        remote: address,
    })
}

/// Time for the QUIC connection to a proxy before TCP is tried (limit K653).
const PATIENCE: Duration = Duration::from_secs(3);

/// H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

const FOREVER: Duration = Duration::from_secs(86_400);
