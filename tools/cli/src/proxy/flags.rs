//! Translates the flags of `courser proxy` into a plan.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser::masque::{self, Prefix};
use courser::server::{AltSvc, Limits, Server, shutdown_signal};
use courser::telemetry::SinkFactory;
use courser::{QueuedKeyLog, Side, TransportConfig, h3};
use courser_measure::choices;
use courser_services::admin::{Advice, Guard};
use courser_services::forward::{Credentials, ForwardSettings};

use super::args::Arguments;
use super::network;
use crate::error::Failure;
use crate::process::RECORDS;
use crate::serve::certificates;
use crate::serve::plan::{AdminPlan, LogPlan, Protocols};
use crate::values::DEFAULT_PORT;

/// A forward proxy, independent of the command line.
pub(super) struct Plan {
    pub(super) server: Server,
    pub(super) settings: ForwardSettings,
    /// The addresses of clients of IP tunnels, and the name of their interface. None without addresses.
    pub(super) pool: Vec<Prefix>,
    pub(super) tun: Option<String>,
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
        pool: arguments.ip.ip.clone(),
        tun: arguments.ip.tun.clone(),
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
    // None means TCP and UDP.
    let has_ip = !arguments.ip.ip.is_empty();
    let is_default = !(arguments.tcp || arguments.udp || has_ip);
    Ok(ForwardSettings {
        policy: arguments.rules.policy(),
        credentials,
        serves_tcp: arguments.tcp || is_default,
        serves_udp: arguments.udp || is_default,
        limits,
        connect: given.connect_timeout.unwrap_or(ForwardSettings::CONNECT),
        tcp_idle: tcp_idle(arguments),
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
            let all: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            let exists = |it: &&IpAddr| std::net::UdpSocket::bind((**it, 0)).is_ok();
            let found: Vec<_> = all.iter().filter(exists).collect();
            // With none, the first is the one that the error names.
            let found = if found.is_empty() {
                vec![&all[0]]
            } else {
                found
            };
            let port = |it: &IpAddr| SocketAddr::from((*it, DEFAULT_PORT));
            found.into_iter().map(port).collect()
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
    all.extend(arguments.rules.warnings());
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
        .interim_responses(true)
        // Requests for other hosts are what a proxy is for.
        .only_names(false)
        .announce_names(false)
        .client_authentication(clients?)
        .cryptography(algorithms?)
        .transport(transport(arguments))
        .shards(shards(arguments))
        .limits(limits(arguments))
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

/// Returns the limits of connections. A tunnel may be idle in either direction, and --tcp-idle bounds for how long: a client
/// that reads nothing from one of its tunnels keeps the others of its connection.
fn limits(arguments: &Arguments) -> Limits {
    let mut limits = Limits::default();
    limits.read_rate = None;
    limits.write_timeout = limits.write_timeout.max(Some(tcp_idle(arguments)));
    limits
}

fn tcp_idle(arguments: &Arguments) -> Duration {
    let given = arguments.limits.tcp_idle;
    given.unwrap_or(ForwardSettings::TCP_IDLE)
}

fn transport(arguments: &Arguments) -> TransportConfig {
    let base = match arguments.ip.ip.is_empty() {
        true => TransportConfig::default(),
        false => network::transport(),
    };
    TransportConfig {
        max_bidi_streams: TUNNELS_OF_A_CONNECTION,
        ..masque::transport_config(base)
    }
}

/// Tunnels that a connection can open at a time.
const TUNNELS_OF_A_CONNECTION: u64 = 256;
