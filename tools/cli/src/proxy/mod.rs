//! `courser proxy`: a forward proxy for TCP, UDP and IP.

pub(crate) mod args;
mod flags;
mod network;
mod prefixes;
mod rows;
mod rules;

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::observe;
use courser::server::{Drained, Event, ListeningSockets, Server, ServerHandle, shutdown_signal};
use courser_services::admin::Observer;
use courser_services::forward::{Credentials, Forward, new_token};
use courser_services::{
    AccessLog, Metrics, MetricsSources, PlainListener, release_memory_of_bursts,
};
use tokio::task::JoinHandle;

use self::args::Arguments;
use self::flags::Plan;
use crate::error::{Failure, cannot_listen};
use crate::output;
use crate::serve::announce::{self, Announcement};
use crate::serve::open_admin::{OpenAdmin, open_admin};
use crate::serve::plan::AdminPlan;
use crate::serve::{self, messages};

/// Serves until a signal ends it, or prints a token.
pub(crate) fn main(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(name) = &arguments.clients.make_token {
        let made = new_token(name);
        let (token, line) = made.map_err(|error| Failure::new(format!("--make-token: {error}")))?;
        // The line goes to the file, and the token to the operator.
        output::note(format!("the token of {name} is {token}"));
        return output::report(line);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start a runtime: {error}")))?;
    let ran = runtime.block_on(async {
        let sockets = inherited()?;
        let plan = flags::plan(arguments, sockets.first().map(|it| it.address))?;
        run(plan, sockets).await
    });
    messages::end(serve::MIN_FOR_SINKS);
    // Tasks of tunnels that were cut.
    runtime.shutdown_timeout(Duration::from_millis(200));
    ran
}

async fn run(plan: Plan, sockets: Vec<ListeningSockets>) -> Result<(), Failure> {
    let Plan {
        server,
        settings,
        pool,
        tun,
        plain,
        protocols,
        targets,
        traces,
        log,
        admin,
        mut warnings,
        as_json,
        drain_timeout,
    } = plan;
    let format = log.as_ref().map(|it| it.format);
    let (log, writer) = serve::open_log(log, as_json)?.unzip();
    let credentials = settings.credentials.clone();
    let (connections, observer) = (observe::Metrics::new(), Observer::new());
    let is_reported = admin.is_some();
    let sinks = serve::sinks(traces, is_reported.then_some(&observer));
    let server = with_listeners(server, log.clone(), as_json);
    let server = server.inherit(sockets);
    let bound = serve::bind(server, is_reported.then_some(&connections), sinks, &[])?;
    let handle = bound.handle();
    let listeners = open_plain(&plain)?;
    let mut proxied = rows::Facts::of(&settings, &pool, targets, &listeners);
    let network = (pool, tun.as_deref());
    let (forward, of_network) = network::forward(settings, network, log.clone().zip(format))?;
    warnings.extend(of_network);
    let sources = MetricsSources {
        log: log.clone(),
        forward: Some(forward.clone()),
        ..MetricsSources::default()
    };
    let metrics = Metrics::new(&connections, sources);
    let admin = open(admin, &handle, metrics, observer, proxied.what())?;
    let what = proxied.what();
    let mut announcement = Announcement {
        redirects: bound.redirect_addrs(),
        admin: admin.as_ref().map(|it| it.address),
        ..Announcement::of(&handle, &protocols, &what)
    };
    proxied.is_dev = protocols.is_dev;
    announcement.forward = Some(proxied.rows(&announcement.authority()));
    let mut background = background(&handle, credentials, log.clone(), as_json);
    background.push(tokio::spawn(drain(forward.clone())));
    announcement.print(as_json);
    let warning = messages::warning(as_json);
    warnings.iter().for_each(|text| warning(text));
    let watch = serve::watch_sockets(handle.clone(), as_json);
    serve::notify("READY=1");
    let plain = start_plain(listeners, &forward, as_json);
    let drained = bound.service(forward.clone()).await;
    let took = drained.as_ref().map_or(drain_timeout, |it| it.took);
    let rest = drain_timeout.saturating_sub(took);
    finish_plain(&forward, plain, rest).await;
    // Their records are written before the log ends.
    forward.cut();
    finish(&forward, serve::MIN_FOR_SINKS).await;
    background.iter().for_each(JoinHandle::abort);
    watch.end();
    let drained: Drained = drained.map_err(|error| Failure::new(error.to_string()))?;
    announce::print_drained(&drained, None, as_json);
    serve::end_log(log.zip(writer), rest);
    Ok(())
}

/// Ends idle tunnels once a signal ends the proxy.
async fn drain(forward: Forward) {
    shutdown_signal().await;
    forward.drain();
}

/// Returns the sockets of a service manager.
fn inherited() -> Result<Vec<ListeningSockets>, Failure> {
    #[cfg(target_os = "linux")]
    return ListeningSockets::from_service_manager()
        .map_err(|error| Failure::new(error.to_string()));
    #[cfg(not(target_os = "linux"))]
    Ok(Vec::new())
}

fn open_plain(addresses: &[std::net::SocketAddr]) -> Result<Vec<PlainListener>, Failure> {
    let opened = addresses.iter().map(|address| {
        PlainListener::bind(*address).map_err(|error| cannot_listen("--plain", *address, &error))
    });
    opened.collect()
}

/// Serves clients without TLS until a signal ends it.
fn start_plain(
    listeners: Vec<PlainListener>,
    forward: &Forward,
    as_json: bool,
) -> Vec<JoinHandle<()>> {
    let start = |listener: PlainListener| {
        let end = shutdown_signal();
        let on_failure = move |error| serve::print_event(&Event::AcceptFailed(error), as_json);
        tokio::spawn(listener.serve(forward.clone(), end, on_failure))
    };
    listeners.into_iter().map(start).collect()
}

fn open(
    plan: Option<AdminPlan>,
    handle: &ServerHandle,
    metrics: Arc<Metrics>,
    observer: Observer,
    what: String,
) -> Result<Option<OpenAdmin>, Failure> {
    let opened = plan.map(|plan| open_admin(plan, None, handle, metrics, what, observer));
    opened.transpose()
}

/// Prints events of the server, and logs the responses that it makes itself.
fn with_listeners(server: Server, log: Option<AccessLog>, as_json: bool) -> Server {
    server
        .on_event(move |event| serve::print_event(event, as_json))
        .on_own_response(move |response| {
            if let Some(log) = &log {
                log.record_own(response);
            }
        })
}

/// Waits until listeners without TLS and their tunnels have ended, for at most this time.
async fn finish_plain(forward: &Forward, plain: Vec<JoinHandle<()>>, within: Duration) {
    if plain.is_empty() {
        return;
    }
    let until = Instant::now() + within;
    while Instant::now() < until && (forward.open() > 0 || plain.iter().any(|it| !it.is_finished()))
    {
        tokio::time::sleep(STEP).await;
    }
}

/// Waits until tunnels and requests have ended, for at most this time.
async fn finish(forward: &Forward, within: Duration) {
    let until = Instant::now() + within;
    while Instant::now() < until && forward.open() > 0 {
        tokio::time::sleep(STEP).await;
    }
}

/// Starts the background tasks of the proxy. A task that ends is restarted.
fn background(
    handle: &ServerHandle,
    credentials: Option<Credentials>,
    log: Option<AccessLog>,
    as_json: bool,
) -> Vec<JoinHandle<()>> {
    let mut first = Some(serve::hangups());
    let (reloaded, logged) = (handle.clone(), log.clone());
    let reloading = move || {
        let hangups = first.take().unwrap_or_else(serve::hangups);
        let (handle, credentials, log) = (reloaded.clone(), credentials.clone(), logged.clone());
        async move {
            reload(hangups, &handle, credentials, log, as_json).await;
            Ok(())
        }
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
        tokio::spawn(serve::on_second_signal(handle.clone())),
        handle.keep_running("the handler of SIGHUP", reloading),
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

/// Reads certificates and clients again, and reopens the access log, at each SIGHUP.
async fn reload(
    hangups: Option<serve::Hangups>,
    handle: &ServerHandle,
    credentials: Option<Credentials>,
    log: Option<AccessLog>,
    as_json: bool,
) {
    let Some(mut hangups) = hangups else {
        // This system has no SIGHUP.
        return std::future::pending().await;
    };
    while hangups.recv().await.is_some() {
        serve::notify("RELOADING=1");
        if let Some(log) = &log {
            log.reopen();
        }
        if let Some(credentials) = &credentials {
            match credentials.reload() {
                Ok(()) => messages::event(
                    as_json,
                    "clients_replaced",
                    &format!("the clients were read again: {} lines", credentials.len()),
                ),
                Err(error) => messages::event(
                    as_json,
                    "clients_kept",
                    &format!("keeping the old clients of --auth: {error}"),
                ),
            }
        }
        if let Err(error) = handle.reload() {
            serve::print_event(&Event::CertificateKept(error), as_json);
        }
        serve::notify("READY=1");
    }
}

/// Interval at which open tunnels are counted at the end.
const STEP: Duration = Duration::from_millis(50);
