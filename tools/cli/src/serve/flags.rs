//! Translates the flags into the plan of a server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use courser::server::{AltSvc, BodyRate, Limits, ReadRate, Server, shutdown_signal};
use courser::telemetry::SinkFactory;
use courser::{AddressObservations, EarlyDataOptions, QueuedKeyLog, ReplyLimits, TransportConfig};
use courser_measure::choices;
use courser_services::admin::{Advice, Guard};
use courser_services::{AddressLists, ListError, Proxy, Site, open_files_limit, read_server_ids};

use super::args::Arguments;
use super::inherited::Inherited;
use super::plan::{AdminPlan, Listener, LogPlan, Plan, Protocols};
use super::{certificates, files, messages};
use crate::error::Failure;
use crate::process::RECORDS;

/// Returns the plan of a server. Reads certificates, address lists and tokens, and opens the folder.
pub(super) fn plan(arguments: &Arguments, inherited: &Inherited) -> Result<Plan, Failure> {
    let site = site(arguments)?;
    let lists = &arguments.limits;
    let lists = AddressLists::load(lists.block.as_deref(), lists.allow.as_deref())
        .map_err(|error| unusable(&error))?;
    let traces: Option<Arc<dyn SinkFactory>> = match &arguments.qlog {
        Some(folder) => Some(RECORDS.traces(folder, None)?),
        None => None,
    };
    let admin = admin(arguments)?;
    let listen = addresses(arguments, &inherited.addresses(arguments));
    let mut warnings = warnings(arguments, listen.first, admin.as_ref());
    warnings.extend(inherited.warnings(arguments, shards(arguments)));
    let is_dev = !arguments.certificate.is_public();
    let handle = Arc::new(OnceLock::new());
    let listener = Listener {
        certificate_files: arguments.certificate.cert.clone(),
        is_dev,
        echo: arguments.webtransport.echo(is_dev, &handle)?,
        handle,
        as_json: arguments.json,
    };
    let sessions = arguments.webtransport.proxy(
        arguments.proxy_times.times(),
        arguments.proxy_messages.keeps_underscores,
        messages::warning(arguments.json),
    )?;
    Ok(Plan {
        site,
        sessions,
        compresses_proxied: arguments.proxy_compress,
        server: server(arguments, &listen, &lists)?,
        plain: arguments.certificate.acme.redirect_http.clone(),
        protocols: Protocols {
            domains: arguments.domain.clone(),
            has_quic: !arguments.no_quic,
            has_tcp: !arguments.no_tcp,
            is_dev,
            has_early_data: arguments.early_data,
            asks_for_certificates: arguments.certificate.client_ca.is_some(),
        },
        lists,
        traces,
        log: arguments.access_log.map(|format| LogPlan {
            format: format.into(),
            path: arguments.access_log_file.clone(),
        }),
        warnings,
        listener,
        admin,
        as_json: arguments.json,
        drain_timeout: arguments.drain_timeout,
    })
}

/// Returns warnings of certificates, ports and addresses that will not do what the operator expects.
fn warnings(arguments: &Arguments, https: SocketAddr, admin: Option<&AdminPlan>) -> Vec<String> {
    let mut all = certificates::warnings(&arguments.certificate.cert, SystemTime::now());
    if arguments.webtransport.has_sessions() {
        all.extend(certificates::session_warnings(&arguments.certificate.cert));
    }
    all.extend(arguments.certificate.acme.port_warning(https));
    if admin.is_some_and(AdminPlan::is_exposed) {
        all.push(
            "--admin listens on an address that other machines can reach, without --admin-token-file: \
             whoever connects can read the addresses of clients"
                .to_owned(),
        );
    }
    all
}

fn admin(arguments: &Arguments) -> Result<Option<AdminPlan>, Failure> {
    // An unusable token file is an error even without --admin.
    let guard = guard(arguments)?;
    let address = arguments.admin;
    Ok(address.map(|address| AdminPlan { address, guard }))
}

/// Returns the guard of the admin endpoints, with the token from its file.
fn guard(arguments: &Arguments) -> Result<Guard, Failure> {
    let guard = Guard::new(&arguments.admin_host).with_advice(Advice {
        token: "the token of --admin-token-file",
        set_token: "start with --admin-token-file",
        add_name: "start with --admin-host NAME",
    });
    let Some(path) = &arguments.admin_token_file else {
        return Ok(guard);
    };
    let wrong = |why: &dyn std::fmt::Display| {
        let path = path.display();
        Failure::new(format!("cannot use --admin-token-file {path}: {why}"))
    };
    let token = std::fs::read(path).map_err(|error| wrong(&error))?;
    guard.with_token(&token).map_err(|error| wrong(&error))
}

fn site(arguments: &Arguments) -> Result<Site, Failure> {
    if let Some(backend) = &arguments.proxy {
        let limits = arguments.proxy_limits.limits(open_files_limit());
        let messages = &arguments.proxy_messages;
        let proxy = Proxy::with_limits(backend.clone(), arguments.proxy_times.times(), limits)
            .with_upgrades(messages.upgrades.iter().cloned())
            .with_underscores(messages.keeps_underscores)
            .on_failure(messages::warning(arguments.json));
        return Ok(Site::Proxy(Box::new(proxy)));
    }
    let folder = arguments.folder.as_deref().or(arguments.root.as_deref());
    let folder = folder.unwrap_or(Path::new("."));
    let files = files::open(folder, &arguments.files, !arguments.no_compress)?;
    Ok(Site::Files(files))
}

/// Returns the number of shards: that of --shards, or of the cores that this process may use, at most the number that an
/// endpoint may have.
fn shards(arguments: &Arguments) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let shards = arguments.shards.map_or_else(cores, usize::from);
    shards.min(256)
}

/// Returns the settings of the server.
fn server(arguments: &Arguments, listen: &Listen, lists: &AddressLists) -> Result<Server, Failure> {
    let certificates = certificates::open(&arguments.certificate, &arguments.domain)?;
    let tls = &arguments.certificate;
    let clients =
        choices::client_authentication(tls.client_ca.as_deref(), tls.client_cert_optional);
    let algorithms = choices::cryptography(tls.curves.as_deref(), tls.tls13_ciphers.as_deref());
    let mut server = courser::serve(listen.first, certificates);
    for address in &tls.acme.redirect_http {
        server = server.redirect_http(address);
    }
    if !arguments.quic_version.is_empty() {
        server = server.quic_versions(arguments.quic_version.iter().copied());
    }
    let mut http3 = courser::h3::Config::new(courser::Side::Server);
    http3.origins.clone_from(&arguments.origin);
    let mut server = arguments
        .webtransport
        .apply(server)?
        .config(http3)
        .announce_names(announces_names(arguments))
        .only_names(only_names(arguments))
        .client_authentication(clients?)
        .cryptography(algorithms?)
        .transport(transport(arguments))
        .shards(shards(arguments))
        .limits(limits(arguments))
        .reply_limits(shared(arguments.limits.reply_rate, REPLY_SHARES))
        .reset_limits(shared(arguments.limits.reset_rate, RESET_SHARES))
        .address_filter(lists.filter())
        .tls(|config| config.key_log = QueuedKeyLog::environment())
        .drain(shutdown_signal())
        .ready_delay(arguments.drain_delay.unwrap_or_default())
        .deadline(arguments.drain_timeout)
        .interim_responses(arguments.proxy.is_some());
    for address in &listen.others {
        server = server.also_on(*address);
    }
    if let Some(file) = &arguments.connection_ids {
        let generator = read_server_ids(file);
        let generator = generator.map_err(|error| Failure::new(error.to_string()))?;
        server = server.connection_ids(Arc::new(generator));
    }
    if arguments.early_data {
        server = server.early_data(EarlyDataOptions::default());
    }
    if let Some(bytes) = arguments.memory {
        server = server.memory_budget(bytes);
    }
    arguments.moves.apply(disable_protocols(server, arguments))
}

fn limits(arguments: &Arguments) -> Limits {
    let mut limits = Limits::default();
    let given = &arguments.limits;
    limits.max_connections = count(given.max_connections);
    limits.max_connections_per_address = given.max_connections_per_address.map(count);
    limits.connection_rate = given.connection_rate;
    limits.loaded_connection_rate = given.loaded_connection_rate;
    limits.max_header_bytes = given.max_header_size;
    limits.max_header_fields = given.max_header_fields;
    limits.body_rate = (arguments.body_rate > 0).then_some(BodyRate {
        bytes_per_second: arguments.body_rate,
        grace: arguments.body_grace,
    });
    limits.read_rate = (arguments.read_rate > 0).then_some(ReadRate {
        bytes_per_second: arguments.read_rate,
        grace: arguments.read_grace,
    });
    limits
}

fn count(given: u32) -> usize {
    usize::try_from(given).unwrap_or(usize::MAX)
}

/// Returns limits for a rate of which each network gets at most one part in `shares`.
fn shared(overall: u32, shares: u32) -> ReplyLimits {
    ReplyLimits {
        per_prefix: overall.div_ceil(shares),
        overall,
    }
}

fn disable_protocols(mut server: Server, arguments: &Arguments) -> Server {
    if arguments.no_tcp {
        server = server.without_tcp();
    }
    if arguments.no_quic {
        server = server.without_quic();
    }
    if arguments.no_alt_svc {
        return server.alt_svc(None);
    }
    let mut alt_svc = AltSvc::default();
    alt_svc.port = arguments.alt_svc_port;
    alt_svc.max_age = arguments.alt_svc_max_age;
    server.alt_svc(alt_svc)
}

/// Returns true if the names of the certificate are announced: unless the user has listed others, or wants sessions.
/// Clients of wtransport 0.7 do not skip the content of frames that they do not know, such as ORIGIN.
fn announces_names(arguments: &Arguments) -> bool {
    arguments.origin.is_empty() && !arguments.webtransport.has_sessions()
}

/// Returns true if hosts that the certificate does not name are refused. Clients cannot verify a generated certificate,
/// so its names mean nothing.
fn only_names(arguments: &Arguments) -> bool {
    arguments.only_names || (arguments.certificate.is_public() && !arguments.any_host)
}

/// The addresses to listen on.
struct Listen {
    first: SocketAddr,
    others: Vec<SocketAddr>,
}

/// Returns the addresses to listen on. The default is those of `inherited` sockets. Without them, and without a
/// certificate that other machines trust, it is this machine only.
fn addresses(arguments: &Arguments, inherited: &[SocketAddr]) -> Listen {
    let listen = match arguments.listen.is_empty() {
        true => inherited.to_vec(),
        false => without_covered(&arguments.listen),
    };
    if let Some((first, others)) = listen.split_first() {
        return Listen {
            first: *first,
            others: others.to_vec(),
        };
    }
    let port = crate::values::DEFAULT_PORT;
    // Machines without IPv6 have neither of these addresses.
    let has = |address: Ipv6Addr| std::net::UdpSocket::bind((address, 0)).is_ok();
    let everywhere = match has(Ipv6Addr::UNSPECIFIED) {
        true => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        false => IpAddr::from(Ipv4Addr::UNSPECIFIED),
    };
    let (ip, port) = if arguments.certificate.acme.is_on {
        (everywhere, HTTPS_PORT)
    } else if arguments.certificate.is_public() {
        (everywhere, port)
    } else {
        (Ipv4Addr::LOCALHOST.into(), port)
    };
    // `[::1]` beside 127.0.0.1, if there is one.
    let v6 = ip.is_loopback() && has(Ipv6Addr::LOCALHOST);
    Listen {
        first: (ip, port).into(),
        others: v6
            .then(|| (Ipv6Addr::LOCALHOST, port).into())
            .into_iter()
            .collect(),
    }
}

/// Leaves out 0.0.0.0 beside `[::]` with the same port, which accepts IPv4 as well. nginx needs both.
fn without_covered(listen: &[SocketAddr]) -> Vec<SocketAddr> {
    let covers = |address: &SocketAddr| {
        let everywhere = (Ipv6Addr::UNSPECIFIED, address.port()).into();
        address.ip() == Ipv4Addr::UNSPECIFIED && listen.contains(&everywhere)
    };
    listen.iter().copied().filter(|it| !covers(it)).collect()
}

fn transport(arguments: &Arguments) -> TransportConfig {
    let mut transport = TransportConfig {
        congestion: arguments.cc,
        capacity_rise: !arguments.no_capacity_rise,
        max_bidi_streams: REQUESTS_AT_A_TIME,
        max_paths: arguments.paths,
        ..TransportConfig::default()
    };
    if arguments.observe_addresses {
        transport.address_observations = AddressObservations::Provide;
    }
    if arguments.remember_paths {
        transport.path_memory = Some(Arc::default());
    }
    transport
}

/// Returns the error for an unusable address list; it names the flag.
pub(super) fn unusable(error: &ListError) -> Failure {
    let ListError { kind, path, reason } = error;
    Failure::new(format!("cannot use --{kind} {}: {reason}", path.display()))
}

/// The number of networks that can use up the rate of replies, and of resets; the same as by default.
const REPLY_SHARES: u32 = 4;
const RESET_SHARES: u32 = 10;

const HTTPS_PORT: u16 = 443;
const REQUESTS_AT_A_TIME: u64 = 256;

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Command;

    #[test]
    fn ipv4_beside_a_socket_for_both_is_left_out() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts
                .iter()
                .map(|it| it.parse().expect("an address"))
                .collect()
        };
        for (given, expected) in [
            (&["[::]:443", "0.0.0.0:443"][..], &["[::]:443"][..]),
            (&["0.0.0.0:443", "[::]:443"], &["[::]:443"]),
            (&["[::]:443", "0.0.0.0:8443"], &["[::]:443", "0.0.0.0:8443"]),
            (&["0.0.0.0:443", "[::1]:443"], &["0.0.0.0:443", "[::1]:443"]),
        ] {
            assert_eq!(without_covered(&addresses(given)), addresses(expected));
        }
    }

    #[test]
    fn no_capacity_rise_disables_the_search() {
        for (flag, expected) in [(None, true), (Some("--no-capacity-rise"), false)] {
            let words = ["courser", "serve"].into_iter().chain(flag);
            let arguments = crate::args::Arguments::try_parse_from(words);
            let Some(Command::Serve(serve)) = arguments.expect("a command line").command else {
                panic!("another command");
            };
            assert_eq!(transport(&serve).capacity_rise, expected);
        }
    }
}
