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
use super::super::origin::Origin;
use super::super::serves::Serves;
use super::super::timing::TlsSummary;

/// Makes one attempt. The second part of the place names the alternative that the address belongs to.
pub(super) async fn attempt(
    core: &Arc<Core>,
    origin: &Origin,
    (address, alternative): (SocketAddr, Option<Box<str>>),
    may_be_early: bool,
    doubt: Doubt,
) -> Result<Established, Error> {
    let settings = &core.settings;
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
        // The runtime on which it was created is gone.
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
    // TCP would detect a closed port on its own.
    let is_alone = !settings.version.may_use_tcp();
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
        // It goes on as long as other attempts do: reports of the network may be wrong.
        connected.await
    };
    let connection = tokio::select! {
        connected = connected => connected.map_err(|error| {
            let (place, host) = (address.to_string(), origin.host());
            Error::of_quic_handshake(&error, &place, host, &core.tls.quic_offer)
        })?,
        () = nobody_listens(address), if is_alone => {
            let text = format!("nothing listens on udp {address}");
            return Err(Error::new(ErrorKind::Connect, text));
        }
    };
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

/// Reports attempts that are unlikely to succeed to the race, which then no longer waits for them.
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
        // The race may be over.
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

fn established(
    endpoint: &Endpoint,
    client: h3::Client,
    remote: SocketAddr,
    alternative: Option<Box<str>>,
    serves: Serves,
) -> Established {
    // The system reports local addresses of datagrams only if the socket is bound to none.
    let bound = endpoint.local_addr().ok();
    let connection = client.quic();
    let told = connection.local_ip();
    let local = bound.and_then(|bound| match told {
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
        // Early data is an attempt to resume.
        is_resumed: handshake.as_ref().is_none_or(|data| data.resumed),
        tls: handshake
            .filter(|_| is_complete)
            .map(|data| Arc::new(TlsSummary::of_quic(data))),
        proxy: Proxied::No,
        alternative,
        serves,
        was_silent: AtomicBool::new(false),
    };
    Established {
        link: Link::Http3(client),
        facts: Arc::new(facts),
    }
}

/// Resolves once the system reports that the port is closed, which it does only for connected
/// sockets. Never resolves otherwise.
async fn nobody_listens(address: SocketAddr) {
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
            // One byte is not a packet of any version: servers drop it silently.
            socket.send(&[0]).await?;
            // Routers answer only some of many datagrams.
            if let Ok(received) =
                tokio::time::timeout(BETWEEN_PROBES, socket.recv(&mut answer)).await
            {
                received?;
            }
        }
        // On a long path the answer may arrive later.
        loop {
            socket.recv(&mut answer).await?;
        }
    };
    let result: io::Result<()> = probe.await;
    match result {
        // Windows reports that an earlier datagram was reset.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset
            ) => {}
        _ => std::future::pending().await,
    }
}

/// Most handshakes are complete by then, so that no probe is sent.
const BEFORE_PROBE: Duration = Duration::from_millis(300);
const PROBES: u32 = 3;
const BETWEEN_PROBES: Duration = Duration::from_millis(300);
