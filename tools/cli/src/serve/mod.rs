//! `courser serve`: a folder or another server over HTTP/3, HTTP/2 and HTTP/1.1.

mod acme;
pub(crate) mod announce;
pub(crate) mod args;
pub(crate) mod certificates;
mod files;
mod flags;
mod inherited;
mod media_types;
pub(crate) mod messages;
mod moves;
#[cfg(target_os = "linux")]
pub(crate) mod notify;
pub(crate) mod open_admin;
pub(crate) mod plan;
#[cfg(target_os = "linux")]
mod upgrade;
#[cfg(not(target_os = "linux"))]
#[path = "without_upgrade.rs"]
mod upgrade;
mod webtransport;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use courser::observe;
use courser::server::{Bound, Cause, Event, OwnResponse, Server, ServerHandle, shutdown_signal};
use courser::telemetry::{SinkFactory, Tee};
use courser_measure::{Watch, printable};
use courser_services::admin::Observer;
use courser_services::webtransport::Echo;
use courser_services::{
    AccessLog, AddressLists, ListEvent, ListWatch, Metrics, MetricsSources, Recorder, SessionProxy,
    Site, Writer, release_memory_of_bursts,
};
use serde_json::json;
use tokio::task::JoinHandle;

use self::announce::Announcement;
use self::args::Arguments;
use self::inherited::Inherited;
#[cfg(target_os = "linux")]
pub(crate) use self::notify::notify;
use self::open_admin::{OpenAdmin, open_admin};
use self::plan::{Listener, LogPlan, Plan, Protocols};
#[cfg(not(target_os = "linux"))]
pub(crate) use self::upgrade::notify;
use crate::error::Failure;
use crate::process::RECORDS;

/// Serves until a signal ends it.
pub(crate) fn main(arguments: &Arguments) -> Result<(), Failure> {
    upgrade::stand_between().map_err(|error| inherited::cannot_take_over(&error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(files::blocking_threads(courser::default_memory_budget()))
        .build()
        .map_err(|error| Failure::new(format!("cannot start a runtime: {error}")))?;
    let ran = runtime.block_on(async {
        let inherited = Inherited::find()?;
        run(flags::plan(arguments, &inherited)?, inherited).await
    });
    messages::end(MIN_FOR_SINKS);
    ran
}

async fn run(plan: Plan, mut inherited: Inherited) -> Result<(), Failure> {
    let Plan {
        site,
        sessions,
        compresses_proxied,
        server,
        plain,
        protocols,
        lists,
        traces,
        log,
        admin,
        warnings,
        listener,
        as_json,
        drain_timeout,
    } = plan;
    let what = site.name();
    let connections = observe::Metrics::new();
    let observer = Observer::new();
    inherited.receive(admin.as_ref().map(|it| it.address))?;
    let (log, writer) = open_log(log, as_json)?.unzip();
    let (echo, later_handle) = (listener.echo.clone(), listener.handle.clone());
    let server = with_listeners(server, log.clone(), listener);
    let server = server.inherit(std::mem::take(&mut inherited.sockets));
    // Only the admin endpoints report what is counted.
    let is_reported = admin.is_some();
    let sinks = sinks(traces, is_reported.then_some(&observer));
    let bound = bind(server, is_reported.then_some(&connections), sinks, &plain)?;
    let handle = bound.handle();
    later_handle.get_or_init(|| handle.clone());
    let sources = sources(log.as_ref(), &site, &handle, sessions.as_ref());
    let metrics = is_reported.then(|| Metrics::new(&connections, sources));
    let opening = admin.zip(metrics.clone()).map(|(plan, metrics)| {
        let socket = inherited.admin.take();
        open_admin(plan, socket, &handle, metrics, what.clone(), observer)
    });
    let admin = opening.transpose()?;
    let admin_address = admin.as_ref().map(|it| it.address);
    let background = background(&handle, log.clone(), lists, admin, as_json);
    let announcement = Announcement {
        redirects: bound.redirect_addrs(),
        admin: admin_address,
        echo: echo.as_ref(),
        sessions: sessions.as_ref(),
        ..Announcement::of(&handle, &protocols, &what)
    };
    announce(&announcement, &warnings, as_json);
    // Programs read the address from the first line.
    let sockets = watch_sockets(handle.clone(), as_json);
    let recorder = Recorder {
        log: log.clone(),
        metrics,
    };
    let service = site
        .into_service(compresses_proxied, recorder)
        .on_refused_session(on_refused_session(as_json));
    if !inherited.on_serving() {
        notify("READY=1");
    }
    let drained = bound
        .service(service.with_echo(echo).with_sessions(sessions))
        .await;
    background.iter().for_each(JoinHandle::abort);
    let took = drained.as_ref().map_or(drain_timeout, |it| it.took);
    end_log(log.zip(writer), drain_timeout.saturating_sub(took));
    sockets.end();
    let drained = drained.map_err(|error| Failure::new(error.to_string()))?;
    let early_data = protocols.has_early_data.then(|| handle.stats());
    announce::print_drained(&drained, early_data.as_ref(), as_json);
    Ok(())
}

/// Opens the sockets of a server.
pub(crate) fn bind(
    server: Server,
    metrics: Option<&observe::Metrics>,
    sinks: Option<MakeSinks>,
    plain: &[SocketAddr],
) -> Result<Bound, Failure> {
    let server = match metrics {
        Some(metrics) => server.metrics(metrics),
        None => server,
    };
    let bound = match sinks {
        Some(sinks) => server.sinks(sinks).bind(),
        None => server.bind(),
    };
    bound.map_err(|error| Failure::new(format!("{error}{}", remedy(&error, plain))))
}

/// Warns of datagrams that the kernel drops.
pub(crate) fn watch_sockets(handle: ServerHandle, as_json: bool) -> Watch {
    let endpoints = move || handle.endpoints();
    Watch::begin(endpoints, &RECORDS, messages::warning(as_json))
}

impl Listener {
    fn on_event(&self, event: &Event) {
        print_event(event, self.as_json);
        match event {
            Event::CertificateReplaced => self.on_certificate(),
            Event::Draining => self.echo.iter().for_each(Echo::drain),
            _ => {}
        }
    }

    fn on_certificate(&self) {
        let warning = messages::warning(self.as_json);
        let warnings = certificates::warnings(&self.certificate_files, SystemTime::now());
        warnings.iter().for_each(|text| warning(text));
        if self.is_dev
            && let Some(facts) = webtransport::certificate(&self.handle)
        {
            announce::print_hashes(&facts, self.as_json);
        }
    }
}

/// Writes the last lines of the access log in the time that is left of --drain-timeout.
pub(crate) fn end_log(log: Option<(AccessLog, Writer)>, left: Duration) {
    let left = left.max(MIN_FOR_SINKS);
    end_within(left + MIN_FOR_SINKS);
    let Some((log, writer)) = log else {
        return;
    };
    let lost = log.end(
        &writer,
        (left - MIN_FOR_SINKS).clamp(MIN_FOR_SINKS, MAX_FOR_SINKS),
    );
    if lost > 0 {
        messages::note(format!(
            "{lost} lines of the access log were not written: the disk or the reader has stalled"
        ));
    }
}

/// Ends the process after this time, even if a disk or the reader of standard error has stalled.
fn end_within(time: Duration) {
    // Without a thread, a sink that stalls keeps the process alive.
    let _ = std::thread::Builder::new()
        .name("exit".to_owned())
        .spawn(move || {
            std::thread::sleep(time);
            std::process::exit(0);
        });
}

/// Prints events of the server, and logs the responses that it makes itself.
fn with_listeners(server: Server, log: Option<AccessLog>, listener: Listener) -> Server {
    let as_json = listener.as_json;
    server
        .on_event(move |event| listener.on_event(event))
        .on_own_response(on_own_response(log, as_json))
}

/// Returns the listener for responses that the server makes itself, which have lines in the access log. Warns once a minute
/// if memory is the reason.
fn on_own_response(
    log: Option<AccessLog>,
    as_json: bool,
) -> impl Fn(&OwnResponse<'_>) + Send + Sync + 'static {
    let rarely = messages::Rarely::default();
    let warning = messages::warning(as_json);
    move |response| {
        if let Some(log) = &log {
            log.record_own(response);
        }
        if response.cause == Cause::Overloaded && rarely.is_due(Instant::now()) {
            warning("requests get 503: the memory for requests in progress is in use (--memory)");
        }
    }
}

/// Returns the listener for sessions that are refused. Warns once a minute: pages learn no reason from their browsers.
fn on_refused_session(as_json: bool) -> impl Fn(&str) + Send + Sync + 'static {
    let rarely = messages::Rarely::default();
    let warning = messages::warning(as_json);
    move |reason| {
        if rarely.is_due(Instant::now()) {
            let hint = match reason.contains("origin") {
                true => " (--webtransport-origin allows the pages of further origins)",
                false => "",
            };
            warning(&format!(
                "a session of WebTransport was refused: {reason}{hint}"
            ));
        }
    }
}

/// Returns the parts of a server that have metrics.
fn sources(
    log: Option<&AccessLog>,
    site: &Site,
    handle: &ServerHandle,
    sessions: Option<&SessionProxy>,
) -> MetricsSources {
    MetricsSources {
        log: log.cloned(),
        files: site.files(),
        upstream: site.proxy(),
        sessions: handle.sessions(),
        session_proxy: sessions.cloned(),
        forward: None,
    }
}

/// Prints the first message, and warnings.
fn announce(announcement: &Announcement<'_>, warnings: &[String], as_json: bool) {
    announcement.print(as_json);
    advise(announcement.handle, announcement.protocols, as_json);
    let warning = messages::warning(as_json);
    warnings.iter().for_each(|text| warning(text));
}

/// Starts the background tasks of the server. A task that ends is restarted.
fn background(
    handle: &ServerHandle,
    log: Option<AccessLog>,
    lists: AddressLists,
    admin: Option<OpenAdmin>,
    as_json: bool,
) -> Vec<JoinHandle<()>> {
    let lists = ListWatch::new(lists, handle.clone(), print_list_events(as_json));
    let reload = Reload {
        handle: handle.clone(),
        log: log.clone(),
        lists: lists.clone(),
        as_json,
    };
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
        tokio::spawn(upgrade::on_signals(handle.clone(), admin, as_json)),
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

/// Warns of certificates that slow down QUIC handshakes, and of early data that saves no round trip.
fn advise(handle: &ServerHandle, protocols: &Protocols, as_json: bool) {
    if !protocols.has_quic {
        return;
    }
    if protocols.has_early_data && protocols.asks_for_certificates {
        messages::warning(as_json)(
            "--early-data saves no round trip with --client-ca: requests wait for the end of the handshake, \
             which proves the client's certificate",
        );
    }
    let certificates = handle.certificates();
    let advice = certificates.iter().filter_map(announce::advice);
    advice.for_each(|text| messages::warning(as_json)(&text));
}

/// Opens the access log of the plan, if there is one.
pub(crate) fn open_log(
    plan: Option<LogPlan>,
    as_json: bool,
) -> Result<Option<(AccessLog, Writer)>, Failure> {
    let Some(LogPlan { format, path }) = plan else {
        return Ok(None);
    };
    let opened = AccessLog::open(format, path.as_deref(), messages::warning(as_json));
    opened.map(Some).map_err(|error| {
        let name = path.as_deref().unwrap_or(Path::new("standard output"));
        let name = name.display();
        Failure::new(format!("cannot write the access log to {name}: {error}"))
    })
}

/// Returns the flag whose port is taken. `plain` has the addresses of plain HTTP.
pub(crate) fn remedy(error: &courser::server::Error, plain: &[SocketAddr]) -> String {
    if !error.is_port_taken() {
        return String::new();
    }
    match error {
        courser::server::Error::Listen { address, .. } if plain.contains(address) => {
            inherited::hint_for_taken_port("--redirect-http")
        }
        _ => inherited::hint_for_taken_port("--listen"),
    }
}

/// Returns the sinks for connections to a local address.
pub(crate) type MakeSinks = Box<dyn Fn(SocketAddr) -> Arc<dyn SinkFactory> + Send + Sync>;

/// Returns the function that creates the sinks of an address; `None` if connections are neither traced nor observed,
/// which saves the cost of events.
pub(crate) fn sinks(
    traces: Option<Arc<dyn SinkFactory>>,
    counts: Option<&Observer>,
) -> Option<MakeSinks> {
    let Some(observer) = counts else {
        let traces = traces?;
        return Some(Box::new(move |_| traces.clone()));
    };
    let limits = observer.sinks();
    Some(Box::new(move |_| match &traces {
        Some(traces) => Arc::new(Tee(traces.clone(), limits.clone())),
        None => limits.clone(),
    }))
}

pub(crate) fn print_event(event: &Event, as_json: bool) {
    if matches!(event, Event::Draining) {
        notify("STOPPING=1");
    }
    match (event, as_json) {
        (event, true) => {
            let kind = match event {
                Event::CertificateReplaced => "certificate_replaced",
                Event::CertificateKept(_) => "certificate_kept",
                Event::CertificateExpires { .. } => "certificate_expires",
                Event::CertificateObtained { .. } => "certificate_obtained",
                Event::CertificateNotObtained { .. } => "certificate_not_obtained",
                Event::AcmeNotice(_) => "acme_notice",
                Event::OcspIgnored(_) => "ocsp_ignored",
                Event::ClientCertificateRefused { .. } => "client_certificate_refused",
                Event::Socket { .. } => "socket",
                Event::AcceptFailed(_) => "accept_failed",
                Event::TaskEnded { .. } => "task_ended",
                Event::TaskResumed { .. } => "task_resumed",
                Event::ClientsRefused(_) => "clients_refused",
                Event::HandlerPanicked { .. } => "handler_panicked",
                Event::Draining => "draining",
                _ => "other",
            };
            messages::line(json!({"event": kind, "text": event.to_string()}).to_string());
        }
        (event, false) => messages::note(printable(&event.to_string())),
    }
}

/// Returns a function that prints events of the address lists.
fn print_list_events(as_json: bool) -> impl Fn(&ListEvent) + Send + Sync + 'static {
    move |event| {
        let text = match event {
            ListEvent::Replaced { blocked, allowed } => {
                format!("the address lists were replaced: {blocked} blocked, {allowed} allowed")
            }
            ListEvent::Kept(error) => {
                format!("keeping the old address lists: {}", flags::unusable(error))
            }
        };
        if !as_json {
            return messages::note(text);
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
        messages::line(event.to_string());
    }
}

/// The state that SIGHUP reloads or reopens: the certificate, the address lists and the access log.
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
            // This system has no SIGHUP.
            return std::future::pending().await;
        };
        while hangups.recv().await.is_some() {
            notify("RELOADING=1");
            if let Some(log) = &self.log {
                log.reopen();
            }
            self.lists.reload();
            // An event reports the new certificate.
            if let Err(error) = self.handle.reload() {
                print_event(&Event::CertificateKept(error), self.as_json);
            }
            notify("READY=1");
        }
    }
}

#[cfg(unix)]
pub(crate) type Hangups = tokio::signal::unix::Signal;

#[cfg(unix)]
pub(crate) fn hangups() -> Option<Hangups> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok()
}

/// A signal that never arrives: other systems have no SIGHUP.
#[cfg(not(unix))]
pub(crate) type Hangups = tokio::sync::mpsc::Receiver<()>;

#[cfg(not(unix))]
pub(crate) fn hangups() -> Option<Hangups> {
    None
}

/// Ends the server without draining at the second signal.
pub(crate) async fn on_second_signal(handle: ServerHandle) {
    shutdown_signal().await;
    shutdown_signal().await;
    handle.cut();
}

/// Least and largest time for log lines and messages that wait at the end for a disk or a reader. The rest of
/// --drain-timeout counts in between.
pub(crate) const MIN_FOR_SINKS: Duration = Duration::from_secs(1);
const MAX_FOR_SINKS: Duration = Duration::from_secs(5);
