//! `courser serve`: a folder or another server over HTTP/3, HTTP/2 and HTTP/1.1.

mod announce;
pub(crate) mod args;
mod certificates;
mod files;
mod moves;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use courser::server::{
    BodyRate, Bound, Event, Limits, ReadRate, Server, ServerHandle, shutdown_signal,
};
use courser::telemetry::{SinkFactory, Tee};
use courser::{EarlyDataOptions, QueuedKeyLog, ReplyLimits, TransportConfig, observe};
use courser_measure::{Watch, choices, printable};
use courser_services::admin::{self, Admin, Advice, Guard, Observer};
use courser_services::{
    AccessLog, AddressLists, ListError, ListEvent, ListWatch, Metrics, Proxy, Recorder, Site,
    Writer, read_server_ids, release_memory_of_bursts,
};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use self::announce::Announcement;
use self::args::Arguments;
use crate::error::{Failure, cannot_listen};
use crate::output;
use crate::process::RECORDS;

/// Serves until a signal ends it.
pub(crate) fn main(arguments: &Arguments) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(blocking_threads(courser::default_memory_budget()))
        .build()
        .map_err(|error| Failure::new(format!("cannot start a runtime: {error}")))?;
    runtime.block_on(run(arguments))
}

/// Returns the number of cores that this process may use, and of shards that an endpoint may have if it is less.
fn cores() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.min(256)
}

/// Returns the number of threads that may wait for a disk, for a memory budget.
///
/// Each has a stack of 2 MiB, which counts in full where the address space or data of the process
/// are limited.
fn blocking_threads(memory: u64) -> usize {
    let threads = usize::try_from(memory / MEMORY_PER_BLOCKING_THREAD).unwrap_or(usize::MAX);
    threads.clamp(LEAST_BLOCKING_THREADS, MOST_BLOCKING_THREADS)
}

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let site = site(arguments)?;
    let what = site.name();
    let lists = &arguments.limits;
    let lists = AddressLists::load(lists.block.as_deref(), lists.allow.as_deref())
        .map_err(|error| unusable(&error))?;
    let connections = observe::Metrics::new();
    let observer = Observer::new();
    let sinks = sinks(arguments, &connections, &observer)?;
    let bound = bind(arguments, &lists, sinks)?;
    let handle = bound.handle();
    let (log, writer) = open_log(arguments)?.unzip();
    let counters = || Metrics::new(handle.clone(), &connections, log.clone(), site.files());
    let metrics = arguments.admin.map(|_| counters());
    let guard = guard(arguments)?;
    let admin = metrics.clone().map(|metrics| Admin {
        handle: handle.clone(),
        metrics,
        what: what.clone(),
        began: Instant::now(),
        guard,
        observer,
    });
    let admin_address = open_admin(arguments.admin, &handle, admin).await?;
    let lists = ListWatch::new(lists, handle.clone(), say_lists(arguments.json));
    let reload = Reload {
        handle: handle.clone(),
        log: log.clone(),
        lists,
        as_json: arguments.json,
    };
    let background = background(reload);
    let announcement = Announcement {
        handle: &handle,
        domains: &arguments.domain,
        what: &what,
        has_quic: !arguments.no_quic,
        has_tcp: !arguments.no_tcp,
        admin: admin_address,
        is_dev: !arguments.certificate.is_public(),
        has_early_data: arguments.early_data,
    };
    announcement.say(arguments.json);
    advise(&handle, arguments);
    // Programs read the address from the first line.
    let watched = handle.clone();
    let endpoints = move || watched.endpoints();
    let sockets = Watch::begin(endpoints, &RECORDS, warning(arguments.json));
    let recorder = Recorder {
        log: log.clone(),
        metrics,
    };
    let service = site.into_service(arguments.proxy_compress, recorder);
    let drained = bound.service(service).await;
    background.iter().for_each(JoinHandle::abort);
    if let (Some(log), Some(writer)) = (log, writer) {
        log.end(&writer);
    }
    sockets.end();
    let drained = drained.map_err(|error| Failure::new(error.to_string()))?;
    let early_data = arguments.early_data.then(|| handle.stats());
    announce::say_drained(&drained, early_data.as_ref(), arguments.json);
    Ok(())
}

/// Begins the tasks beside the server, each of which is noticed and begun again if it ends.
fn background(reload: Reload) -> Vec<JoinHandle<()>> {
    let Reload {
        handle, log, lists, ..
    } = reload.clone();
    // Handle signals before the announcement: programs that read it may send them.
    let mut first = Some(hangups());
    let reloading = move || {
        let hangups = first.take().unwrap_or_else(hangups);
        let reload = reload.clone();
        async move {
            reload.on_hangups(hangups).await;
            Ok(())
        }
    };
    let watching = move || {
        let lists = lists.clone();
        async move { Ok(lists.run().await?) }
    };
    let bursts = handle.clone();
    let releasing = move || {
        let releasing = release_memory_of_bursts(bursts.clone());
        async move {
            releasing.await;
            Ok(())
        }
    };
    let mut tasks = vec![
        tokio::spawn(on_second_signal(handle.clone())),
        handle.keep_running("the handler of SIGHUP", reloading),
        handle.keep_running("the watch over address lists", watching),
        handle.keep_running("the release of memory", releasing),
    ];
    if let Some(log) = log {
        tasks.push(handle.keep_running("the access log", move || {
            let log = log.clone();
            async move { Ok(log.keep_writing().await?) }
        }));
    }
    tasks
}

/// Warns of certificates that make handshakes of QUIC slower, and of early data that is of no use.
fn advise(handle: &ServerHandle, arguments: &Arguments) {
    if arguments.no_quic {
        return;
    }
    if arguments.early_data && arguments.certificate.client_ca.is_some() {
        warning(arguments.json)(
            "--early-data saves no round trip with --client-ca: requests wait for the end of the handshake, \
             which proves the client's certificate",
        );
    }
    let certificates = handle.certificates();
    let advice = certificates.iter().filter_map(announce::advice);
    advice.for_each(|text| warning(arguments.json)(&text));
}

/// Opens the access log, if one is asked for.
fn open_log(arguments: &Arguments) -> Result<Option<(AccessLog, Writer)>, Failure> {
    let Some(format) = arguments.access_log else {
        return Ok(None);
    };
    let path = arguments.access_log_file.as_deref();
    let opened = AccessLog::open(format.into(), path, warning(arguments.json));
    opened.map(Some).map_err(|error| {
        let name = path.unwrap_or(Path::new("standard output")).display();
        Failure::new(format!("cannot write the access log to {name}: {error}"))
    })
}

/// Makes the guard of the admin endpoints, with the token from its file.
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
        return Ok(Site::Proxy(Box::new(Proxy::new(
            backend.clone(),
            arguments.proxy_times.times(),
        ))));
    }
    let folder = arguments.folder.as_deref().or(arguments.root.as_deref());
    let folder = folder.unwrap_or(Path::new("."));
    let files = files::open(folder, &arguments.files, !arguments.no_compress)?;
    Ok(Site::Files(files))
}

/// Serves the admin endpoints from now on, if there are some. Returns their address.
async fn open_admin(
    address: Option<SocketAddr>,
    handle: &ServerHandle,
    admin: Option<Admin>,
) -> Result<Option<SocketAddr>, Failure> {
    let (Some(address), Some(admin)) = (address, admin) else {
        return Ok(None);
    };
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| cannot_listen("--admin", address, &error))?;
    let bound = listener.local_addr()?;
    let admin = Arc::new(admin);
    let mut first = Some(listener);
    handle.keep_running(format!("the admin endpoints at {bound}"), move || {
        let (first, admin) = (first.take(), admin.clone());
        async move {
            let listener = match first {
                Some(listener) => listener,
                None => TcpListener::bind(bound).await?,
            };
            Err(admin::serve(listener, admin).await.into())
        }
    });
    Ok(Some(bound))
}

/// Opens the sockets.
fn bind(
    arguments: &Arguments,
    lists: &AddressLists,
    sinks: Option<MakeSinks>,
) -> Result<Bound, Failure> {
    let (first, others) = addresses(arguments);
    let certificates = certificates::open(&arguments.certificate, &arguments.domain)?;
    let as_json = arguments.json;
    let tls = &arguments.certificate;
    let clients =
        choices::client_authentication(tls.client_ca.as_deref(), tls.client_cert_optional);
    let algorithms = choices::cryptography(tls.curves.as_deref(), tls.tls13_ciphers.as_deref());
    let mut server = courser::serve(first, certificates);
    if !arguments.quic_version.is_empty() {
        server = server.quic_versions(arguments.quic_version.iter().copied());
    }
    let mut http3 = courser::h3::Config::new(courser::Side::Server);
    http3.origins.clone_from(&arguments.origin);
    let mut server = server
        .config(http3)
        // Names of the certificate, unless the user has listed others.
        .announce_names(arguments.origin.is_empty())
        .only_names(arguments.only_names)
        .client_authentication(clients?)
        .cryptography(algorithms?)
        .transport(transport(arguments))
        .shards(arguments.shards.map_or_else(cores, usize::from))
        .limits(limits(arguments))
        .reply_limits(shared(arguments.limits.reply_rate, REPLY_SHARES))
        .reset_limits(shared(arguments.limits.reset_rate, RESET_SHARES))
        .address_filter(lists.filter())
        .tls(|config| config.key_log = QueuedKeyLog::environment())
        .drain(shutdown_signal())
        .ready_delay(arguments.drain_delay.unwrap_or_default())
        .deadline(arguments.drain_timeout)
        .interim_responses(arguments.proxy.is_some())
        .on_event(move |event| say(event, as_json));
    for address in others {
        server = server.also_on(address);
    }
    if let Some(sinks) = sinks {
        server = server.sinks(sinks);
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
    server = arguments.moves.apply(without(server, arguments))?;
    server
        .bind()
        .map_err(|error| Failure::new(format!("{error}{}", remedy(&error))))
}

fn limits(arguments: &Arguments) -> Limits {
    let mut limits = Limits::default();
    let given = &arguments.limits;
    limits.max_connections = count(given.max_connections);
    limits.max_connections_per_address = given.max_connections_per_address.map(count);
    limits.connection_rate = given.connection_rate;
    limits.loaded_connection_rate = given.loaded_connection_rate;
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

/// Returns limits for a rate of which each network gets a share.
fn shared(overall: u32, shares: u32) -> ReplyLimits {
    ReplyLimits {
        per_prefix: overall.div_ceil(shares),
        overall,
    }
}

fn remedy(error: &courser::server::Error) -> &'static str {
    if error.is_port_taken() {
        " (--listen)"
    } else {
        ""
    }
}

fn without(mut server: Server, arguments: &Arguments) -> Server {
    if arguments.no_tcp {
        server = server.without_tcp();
    }
    if arguments.no_quic {
        server = server.without_quic();
    }
    if arguments.no_alt_svc {
        server = server.alt_svc(None);
    }
    server
}

/// Returns the addresses to listen on. Without a certificate that other machines trust, the default is
/// this machine only.
fn addresses(arguments: &Arguments) -> (SocketAddr, Vec<SocketAddr>) {
    if let Some((first, others)) = arguments.listen.split_first() {
        return (*first, others.to_vec());
    }
    let port = crate::values::DEFAULT_PORT;
    let everywhere = std::net::Ipv6Addr::UNSPECIFIED;
    if arguments.certificate.acme {
        ((everywhere, HTTPS_PORT).into(), Vec::new())
    } else if arguments.certificate.is_public() {
        ((everywhere, port).into(), Vec::new())
    } else {
        let v6 = (std::net::Ipv6Addr::LOCALHOST, port).into();
        // Machines without IPv6 do not have this address.
        let others = if std::net::UdpSocket::bind("[::1]:0").is_ok() {
            vec![v6]
        } else {
            Vec::new()
        };
        ((std::net::Ipv4Addr::LOCALHOST, port).into(), others)
    }
}

fn transport(arguments: &Arguments) -> TransportConfig {
    let mut transport = TransportConfig {
        congestion: arguments.cc,
        capacity_rise: !arguments.no_capacity_rise,
        max_bidi_streams: REQUESTS_AT_A_TIME,
        ..TransportConfig::default()
    };
    if arguments.remember_paths {
        transport.path_memory = Some(Arc::default());
    }
    transport
}

/// Makes the sinks of the connections that arrive at an address.
type MakeSinks = Box<dyn Fn(SocketAddr) -> Arc<dyn SinkFactory> + Send + Sync>;

/// Returns what makes the sinks of each address, if connections are recorded or counted.
///
/// Sinks cost a little. Only the admin endpoints report what they count.
fn sinks(
    arguments: &Arguments,
    connections: &observe::Metrics,
    observer: &Observer,
) -> Result<Option<MakeSinks>, Failure> {
    let traces: Option<Arc<dyn SinkFactory>> = match &arguments.qlog {
        Some(folder) => Some(RECORDS.traces(folder, None)?),
        None => None,
    };
    if arguments.admin.is_none() {
        let Some(traces) = traces else {
            return Ok(None);
        };
        let make: MakeSinks = Box::new(move |_| traces.clone());
        return Ok(Some(make));
    }
    let (connections, limits) = (connections.clone(), observer.sinks());
    let make: MakeSinks = Box::new(move |address| {
        let connections = connections.sinks_named(&address.to_string());
        let counts = Tee(connections, limits.clone());
        match &traces {
            Some(traces) => Arc::new(Tee(traces.clone(), counts)),
            None => Arc::new(counts),
        }
    });
    Ok(Some(make))
}

fn say(event: &Event, as_json: bool) {
    match (event, as_json) {
        (event, true) => {
            let kind = match event {
                Event::CertificateReplaced => "certificate_replaced",
                Event::CertificateKept(_) => "certificate_kept",
                Event::OcspIgnored(_) => "ocsp_ignored",
                Event::ClientCertificateRefused { .. } => "client_certificate_refused",
                Event::Socket { .. } => "socket",
                Event::AcceptFailed(_) => "accept_failed",
                Event::TaskEnded { .. } => "task_ended",
                Event::TaskResumed { .. } => "task_resumed",
                Event::Draining => "draining",
                _ => "other",
            };
            output::line(json!({"event": kind, "text": event.to_string()}).to_string());
        }
        (event, false) => output::note(printable(&event.to_string())),
    }
}

/// Returns a function that prints warnings.
fn warning(as_json: bool) -> impl Fn(&str) + Send + Sync + 'static {
    move |text| match as_json {
        true => output::line(json!({"event": "warning", "text": text}).to_string()),
        false => output::note(printable(text)),
    }
}

/// Returns a function that prints events of the address lists.
fn say_lists(as_json: bool) -> impl Fn(&ListEvent) + Send + Sync + 'static {
    move |event| {
        let text = match event {
            ListEvent::Replaced { blocked, allowed } => {
                format!("the address lists were replaced: {blocked} blocked, {allowed} allowed")
            }
            ListEvent::Kept(error) => format!("keeping the old address lists: {}", unusable(error)),
        };
        if !as_json {
            return output::note(text);
        }
        let event = match event {
            ListEvent::Replaced { blocked, allowed } => json!({
                "event": "address_lists_replaced",
                "text": text,
                "blocked": blocked,
                "allowed": allowed,
            }),
            ListEvent::Kept(_) => json!({"event": "address_lists_kept", "text": text}),
        };
        output::line(event.to_string());
    }
}

/// Names the flag of a list that cannot be used.
fn unusable(error: &ListError) -> Failure {
    let ListError { kind, path, reason } = error;
    Failure::new(format!("cannot use --{kind} {}: {reason}", path.display()))
}

/// The parts of the server that SIGHUP reads or opens again: the certificate, the address lists, and the access
/// log.
#[derive(Clone)]
struct Reload {
    handle: ServerHandle,
    log: Option<AccessLog>,
    lists: Arc<ListWatch>,
    as_json: bool,
}

impl Reload {
    async fn on_hangups(self, hangups: Option<Hangups>) {
        let Some(mut hangups) = hangups else {
            // There is no such signal.
            return std::future::pending().await;
        };
        while hangups.recv().await.is_some() {
            if let Some(log) = &self.log {
                log.reopen();
            }
            self.lists.reload();
            // An event reports the new certificate.
            if let Err(error) = self.handle.reload() {
                say(&Event::CertificateKept(error), self.as_json);
            }
        }
    }
}

#[cfg(unix)]
type Hangups = tokio::signal::unix::Signal;

#[cfg(unix)]
fn hangups() -> Option<Hangups> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok()
}

/// Other systems have no such signal.
#[cfg(not(unix))]
type Hangups = tokio::sync::mpsc::Receiver<()>;

#[cfg(not(unix))]
fn hangups() -> Option<Hangups> {
    None
}

/// Ends the server without draining at the second signal.
async fn on_second_signal(handle: ServerHandle) {
    shutdown_signal().await;
    shutdown_signal().await;
    handle.cut();
}

/// The number of networks that can use up the rate of replies, and of resets; the same as by default.
const REPLY_SHARES: u32 = 4;
const RESET_SHARES: u32 = 10;

const HTTPS_PORT: u16 = 443;
const REQUESTS_AT_A_TIME: u64 = 256;

/// The memory budget for each thread that may wait for a disk, and bounds on their number (limit K114).
/// tokio's default is 512.
const MEMORY_PER_BLOCKING_THREAD: u64 = 4 << 20;
const LEAST_BLOCKING_THREADS: usize = 4;
const MOST_BLOCKING_THREADS: usize = 512;

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Command;

    #[test]
    fn the_search_for_risen_capacity_has_a_switch() {
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
