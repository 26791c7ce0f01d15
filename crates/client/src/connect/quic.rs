//! Connection attempts over QUIC.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use courser_base::{ScopedIp, Unreachable};
use courser_http3_tokio as h3;
use courser_quic::{ConnectError, Endpoint, Side};
use tokio::sync::mpsc;

use super::super::core::Core;
use super::super::early_data::is_unfinished;
use super::super::error::{Error, ErrorKind};
use super::super::link::{Established, Facts, Link, Proxied};
use super::super::pool::Key;
use super::super::serves::Serves;
use super::super::timing::TlsSummary;

/// Makes one attempt at an address. `place` has the address and the alternative to which it belongs.
pub(super) async fn attempt(
    core: &Arc<Core>,
    key: &Key,
    (address, alternative): (SocketAddr, Option<Box<str>>),
    may_be_early: bool,
    doubt: Doubt,
) -> Result<Established, Error> {
    let (settings, origin) = (&core.settings, &key.origin);
    let begin = |is_stopped| {
        let interface = settings.interface.as_deref();
        let endpoint = core
            .quic
            .of(settings.local_address, interface, address, is_stopped)?;
        Ok::<_, Error>((
            endpoint.clone(),
            endpoint.connect_with(core.tls.quic.clone(), address, origin.host()),
        ))
    };
    let (mut endpoint, mut connecting) = begin(false)?;
    if matches!(connecting, Err(ConnectError::EndpointStopping)) {
        // The runtime of the endpoint was shut down, so a new endpoint is needed.
        (endpoint, connecting) = begin(true)?;
    }
    let connecting = connecting.map_err(|error| {
        let kind = match error {
            ConnectError::Config(_) => ErrorKind::Config,
            _ => ErrorKind::ConnectQuic,
        };
        Error::new(
            kind,
            format!("cannot start a QUIC connection to {address}: {error}"),
        )
    })?;
    // TCP attempts detect closed ports without a probe.
    let is_alone = !key.version.may_use_tcp();
    let unreachable = connecting.unreachable();
    let remembered = core.early_data.as_ref().filter(|_| may_be_early);
    let remembered = remembered.and_then(|it| it.get(origin.host(), address.port()));
    let connected = async {
        match remembered {
            Some(_) => connecting.early().await,
            None => connecting.await,
        }
    };
    let connected = async {
        let mut connected = std::pin::pin!(connected);
        tokio::select! {
            connected = &mut connected => return connected,
            cause = unreachable => doubt.report(unreachable_error(address, cause, is_alone)),
        }
        // The attempt continues while others do, because ICMP messages can be forged.
        connected.await
    };
    let connection = tokio::select! {
        connected = connected => connected.map_err(|error| {
            let (place, host) = (address.to_string(), origin.host());
            Error::of_quic_handshake(&error, &place, host, &core.tls.quic_offer)
        })?,
        () = port_closed(address), if is_alone => {
            let text = format!("nothing listens on udp {address}");
            return Err(Error::new(ErrorKind::Connect, text));
        }
    };
    if let Some(on_quic) = &core.settings.on_quic {
        on_quic.0(connection.clone());
    }
    let settings = remembered.filter(|_| is_unfinished(&connection));
    let client = match settings {
        Some(settings) => h3::Client::resume(connection, h3::Config::new(Side::Client), settings),
        None => h3::Client::new(connection),
    };
    if let Some(early_data) = &core.early_data {
        early_data.watch(client.clone(), origin.host(), address.port(), settings);
    }
    let serves = Serves::of(origin.clone());
    Ok(established(&endpoint, client, address, alternative, serves))
}

/// Reports to the race that an attempt is unlikely to succeed.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    index: usize,
    reports: mpsc::UnboundedSender<(usize, Error)>,
}

impl Doubt {
    pub(super) fn new(index: usize, reports: mpsc::UnboundedSender<(usize, Error)>) -> Self {
        Self { index, reports }
    }

    fn report(self, error: Error) {
        // Fails if the race has ended.
        let _ = self.reports.send((self.index, error));
    }
}

fn unreachable_error(address: SocketAddr, cause: Unreachable, is_alone: bool) -> Error {
    let kind = match is_alone {
        true => ErrorKind::Connect,
        false => ErrorKind::ConnectQuic,
    };
    let text = match cause {
        Unreachable::Port => format!("nothing listens on udp {address}"),
        _ => format!("cannot reach udp {address}: {cause}"),
    };
    Error::new(kind, text)
}

pub(super) fn established(
    endpoint: &Endpoint,
    client: h3::Client,
    remote: SocketAddr,
    alternative: Option<Box<str>>,
    serves: Serves,
) -> Established {
    // Datagrams carry their local address only if the socket is bound to the unspecified address.
    let bound = endpoint.local_addr().ok();
    let connection = client.quic();
    let reported = connection.local_ip();
    let local = bound.and_then(|bound| match reported {
        Some(ip) => Some(ScopedIp::in_zone_of(ip, remote).with_port(bound.port())),
        None => (!bound.ip().is_unspecified()).then_some(bound),
    });
    let handshake = connection.handshake_data();
    let is_complete = !is_unfinished(connection);
    let facts = Facts {
        version: http::Version::HTTP_3,
        remote,
        local,
        tcp_connected: None,
        tls_complete: None,
        quic_complete: is_complete.then(Instant::now),
        // Until the handshake completes, early data means that a session is being resumed.
        is_resumed: handshake.as_ref().is_none_or(|data| data.resumed),
        tls: handshake
            .filter(|_| is_complete)
            .map(|data| Arc::new(TlsSummary::of_quic(data))),
        proxy: Proxied::No,
        alternative,
        serves,
        was_silent: AtomicBool::new(false),
        is_announced: false,
        is_moved: false,
    };
    Established {
        link: Link::Http3(client),
        facts: Arc::new(facts),
    }
}

/// Completes when the system reports that the port is closed, which it does only for connected sockets.
/// Otherwise it never completes.
async fn port_closed(address: SocketAddr) {
    tokio::time::sleep(BEFORE_PROBE).await;
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let probe = async {
        let socket = tokio::net::UdpSocket::bind((any, 0)).await?;
        socket.connect(address).await?;
        let mut answer = [0; 16];
        for _ in 0..PROBES {
            // Servers silently drop a datagram of one byte, because it is no packet of any version.
            socket.send(&[0]).await?;
            // Routers and hosts rate-limit ICMP messages, so several datagrams are sent.
            if let Ok(received) =
                tokio::time::timeout(BETWEEN_PROBES, socket.recv(&mut answer)).await
            {
                received?;
            }
        }
        // The ICMP message may still arrive on a long path.
        loop {
            socket.recv(&mut answer).await?;
        }
    };
    let result: io::Result<()> = probe.await;
    match result {
        // Windows reports here that an earlier datagram was rejected.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset
            ) => {}
        _ => std::future::pending().await,
    }
}

/// Most handshakes complete within this time, and then no probe is sent.
const BEFORE_PROBE: Duration = Duration::from_millis(300);
const PROBES: u32 = 3;
const BETWEEN_PROBES: Duration = Duration::from_millis(300);
