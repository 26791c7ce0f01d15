//! Translates the flags of `courser proxy` into a plan.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser::masque;
use courser::server::{AltSvc, Limits, Server, shutdown_signal};
use courser::telemetry::SinkFactory;
use courser::{QueuedKeyLog, Side, TransportConfig, h3};
use courser_measure::choices;
use courser_services::admin::{Advice, Guard};
use courser_services::forward::{Credentials, ForwardSettings};

use super::args::Arguments;
use crate::error::Failure;
use crate::process::RECORDS;
use crate::serve::certificates;
use crate::serve::plan::{AdminPlan, LogPlan, Protocols};
use crate::values::DEFAULT_PORT;

/// A forward proxy, independent of the command line.
pub(super) struct Plan {
    pub(super) server: Server,
    pub(super) settings: ForwardSettings,
    /// The addresses without TLS.
    pub(super) plain: Vec<SocketAddr>,
    pub(super) protocols: Protocols,
    /// The targets, for people.
    pub(super) targets: String,
    pub(super) traces: Option<Arc<dyn SinkFactory>>,
    pub(super) log: Option<LogPlan>,
    pub(super) admin: Option<AdminPlan>,
    pub(super) warnings: Vec<String>,
    pub(super) as_json: bool,
    pub(super) drain_timeout: Duration,
}

/// Returns the plan of a proxy. `inherited` is the address of a socket that a service manager has opened.
pub(super) fn plan(arguments: &Arguments, inherited: Option<SocketAddr>) -> Result<Plan, Failure> {
    let logging = &arguments.logging;
    let listen = addresses(arguments, inherited);
    check_open(arguments, &listen)?;
    let admin = admin(arguments)?;
    let warnings = warnings(arguments, admin.as_ref());
    let traces: Option<Arc<dyn SinkFactory>> = match &logging.qlog {
        Some(folder) => Some(RECORDS.traces(folder, None)?),
        None => None,
    };
    Ok(Plan {
        settings: settings(arguments)?,
        server: server(arguments, &listen)?,
        plain: arguments.plain.clone(),
        protocols: Protocols {
            domains: arguments.domain.clone(),
            has_quic: !arguments.no_quic,
            has_tcp: !arguments.only_http3,
            is_dev: !arguments.certificate.is_public(),
            has_early_data: false,
            asks_for_certificates: arguments.certificate.client_ca.is_some(),
        },
        targets: targets(arguments),
        traces,
        log: logging.access_log.map(|format| LogPlan {
            format: format.into(),
            path: logging.access_log_file.clone(),
        }),
        admin,
        warnings,
        as_json: logging.json,
        drain_timeout: arguments.limits.drain_timeout,
    })
}

fn settings(arguments: &Arguments) -> Result<ForwardSettings, Failure> {
    let credentials = match &arguments.clients.auth {
        None => None,
        Some(path) => Some(Credentials::read(path).map_err(|error| {
            let path = path.display();
            Failure::new(format!("cannot use --auth {path}: {error}"))
        })?),
    };
    let given = &arguments.limits;
    let limits = masque::Limits {
        tunnels: count(given.tunnels),
        tunnels_per_client: count(given.tunnels_per_client),
        idle: given.udp_idle,
        ..masque::Limits::default()
    };
    // Neither means both.
    let is_both = arguments.tcp == arguments.udp;
    Ok(ForwardSettings {
        policy: arguments.rules.policy(),
        credentials,
        serves_tcp: arguments.tcp || is_both,
        serves_udp: arguments.udp || is_both,
        limits,
        connect: given.connect_timeout.unwrap_or(ForwardSettings::CONNECT),
        tcp_idle: given.tcp_idle.unwrap_or(ForwardSettings::TCP_IDLE),
    })
}

fn count(given: u32) -> usize {
    usize::try_from(given).unwrap_or(usize::MAX)
}

/// Returns the addresses to listen on, at least one.
fn addresses(arguments: &Arguments, inherited: Option<SocketAddr>) -> Vec<SocketAddr> {
    match (arguments.listen.as_slice(), inherited) {
        ([], Some(address)) => vec![address],
        ([], None) => {
            let v6 = (Ipv6Addr::LOCALHOST, DEFAULT_PORT).into();
            let has_v6 = std::net::UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
            let v4 = (Ipv4Addr::LOCALHOST, DEFAULT_PORT).into();
            std::iter::once(v4).chain(has_v6.then_some(v6)).collect()
        }
        (listen, _) => listen.to_vec(),
    }
}

/// Refuses a proxy that everybody on a network may use, unless the operator asks for it.
fn check_open(arguments: &Arguments, listen: &[SocketAddr]) -> Result<(), Failure> {
    let clients = &arguments.clients;
    let is_closed =
        clients.auth.is_some() || clients.open || arguments.certificate.requires_client();
    let reachable = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
    let mut plain = arguments.plain.iter().filter(reachable);
    let mut all = listen.iter().filter(reachable).chain(plain.clone());
    if !is_closed && let Some(address) = all.next() {
        return Err(Failure::new(format!(
            "{address} can be reached from other machines, and everybody there could use the proxy: name its clients \
             with --auth FILE or --client-ca FILE, or serve everybody with --open"
        )));
    }
    // Certificates of clients do not protect the address without TLS.
    if clients.auth.is_none()
        && !clients.open
        && let Some(address) = plain.next()
    {
        return Err(Failure::new(format!(
            "--plain {address} has no certificates of clients: name its clients with --auth FILE, or serve everybody \
             with --open"
        )));
    }
    Ok(())
}

fn warnings(arguments: &Arguments, admin: Option<&AdminPlan>) -> Vec<String> {
    let mut all = certificates::warnings(&arguments.certificate.cert, SystemTime::now());
    all.extend(arguments.rules.warning());
    let is_reachable = |it: &&SocketAddr| !it.ip().to_canonical().is_loopback();
    if let Some(address) = arguments.plain.iter().find(is_reachable) {
        all.push(format!(
            "--plain {address} can be reached from other machines: networks in between can read credentials and \
             targets"
        ));
    }
    if admin.is_some_and(AdminPlan::is_exposed) {
        all.push(
            "--admin listens on an address that other machines can reach, without --admin-token-file: whoever \
             connects can read the addresses of clients"
                .to_owned(),
        );
    }
    all
}

/// Describes the targets for people.
fn targets(arguments: &Arguments) -> String {
    let rules = arguments.rules.text();
    match (rules.is_empty(), arguments.rules.allows_others()) {
        (true, _) => "public addresses".to_owned(),
        (false, true) => format!("{rules}, then public addresses"),
        (false, false) => rules,
    }
}

fn admin(arguments: &Arguments) -> Result<Option<AdminPlan>, Failure> {
    let logging = &arguments.logging;
    let guard = Guard::new(&logging.admin_host).with_advice(Advice {
        token: "the token of --admin-token-file",
        set_token: "start with --admin-token-file",
        add_name: "start with --admin-host NAME",
    });
    let guard = match &logging.admin_token_file {
        None => guard,
        Some(path) => {
            let wrong = |why: &dyn std::fmt::Display| {
                let path = path.display();
                Failure::new(format!("cannot use --admin-token-file {path}: {why}"))
            };
            let token = std::fs::read(path).map_err(|error| wrong(&error))?;
            guard.with_token(&token).map_err(|error| wrong(&error))?
        }
    };
    let address = logging.admin;
    Ok(address.map(|address| AdminPlan { address, guard }))
}

/// Returns the settings of the server.
fn server(arguments: &Arguments, listen: &[SocketAddr]) -> Result<Server, Failure> {
    let tls = &arguments.certificate;
    let certificates = certificates::open(tls, &arguments.domain)?;
    let clients =
        choices::client_authentication(tls.client_ca.as_deref(), tls.client_cert_optional);
    let algorithms = choices::cryptography(tls.curves.as_deref(), tls.tls13_ciphers.as_deref());
    let (first, others) = listen
        .split_first()
        .ok_or_else(|| Failure::new("there is no address to listen on"))?;
    let mut http3 = h3::Config::new(Side::Server);
    masque::enable(&mut http3, Side::Server);
    let mut server = courser::serve(*first, certificates)
        .config(http3)
        .http2_extended_connect(true)
        // Requests for other hosts are what a proxy is for.
        .only_names(false)
        .announce_names(false)
        .client_authentication(clients?)
        .cryptography(algorithms?)
        .transport(transport())
        .shards(shards(arguments))
        .limits(limits())
        .tls(|config| config.key_log = QueuedKeyLog::environment())
        .drain(shutdown_signal())
        .deadline(arguments.limits.drain_timeout)
        .alt_svc(None::<AltSvc>);
    for address in others {
        server = server.also_on(*address);
    }
    for address in &tls.acme.redirect_http {
        server = server.redirect_http(address);
    }
    if arguments.only_http3 {
        server = server.without_tcp();
    }
    if arguments.no_quic {
        server = server.without_quic();
    }
    Ok(server)
}

fn shards(arguments: &Arguments) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let shards = arguments.shards.map_or_else(cores, usize::from);
    shards.min(256)
}

/// Returns the limits of connections. A tunnel may be idle in either direction, and --tcp-idle bounds for how long.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.read_rate = None;
    limits
}

fn transport() -> TransportConfig {
    TransportConfig {
        max_bidi_streams: TUNNELS_OF_A_CONNECTION,
        ..masque::transport_config(TransportConfig::default())
    }
}

/// Tunnels that a connection can open at a time.
const TUNNELS_OF_A_CONNECTION: u64 = 256;
