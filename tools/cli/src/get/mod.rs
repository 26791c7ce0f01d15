//! `courser get`: transfers like those of curl, also over HTTP/3.

pub(crate) mod args;
pub(crate) mod config;
mod content;
mod cookie_argument;
pub(crate) mod cookies;
mod destination;
mod dump;
mod exit;
mod facts;
mod form;
mod message;
mod prepared;
mod progress;
mod report;
mod setup;
mod transfer;
mod verbose;
mod write_out;
mod zones;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_measure::{Mover, Moves, MovesTotal, sockets};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::args::{Arguments, EarlyDataUse};
use self::cookies::Cookies;
use self::destination::destination;
use self::dump::Dump;
use self::exit::{Failed, NO_CONNECTION, TIMED_OUT, URL_MALFORMED};
use self::facts::Facts;
use self::message::Message;
use self::prepared::Prepared;
use self::progress::{Bar, Bars};
use self::transfer::{Context, Done, Job};
use self::zones::Zones;
use crate::transfer::{Backoff, ExpandedUrl, expand_url};

/// Runs all transfers and reports errors. Returns an exit code of curl.
pub(crate) fn main(arguments: &Arguments) -> ExitCode {
    let is_told = !arguments.output.silent || arguments.output.show_error;
    let code = match begin(arguments) {
        Ok(code) => code,
        Err(failed) => {
            if is_told {
                eprintln!("courser: {failed}");
            }
            failed.code
        }
    };
    ExitCode::from(code)
}

fn begin(arguments: &Arguments) -> Result<u8, Failed> {
    let mut zones = Zones::default();
    let jobs = jobs(arguments, &mut zones)?;
    let format = match &arguments.output.write_out {
        Some(format) => Some(write_out::load(format)?),
        None => None,
    };
    let prepared = Prepared::of(&arguments.request)?;
    let dump = Dump::open(arguments.output.dump_header.as_deref())?;
    let runtime = crate::process::runtime()
        .map_err(|failure| Failed::new(exit::FAILED_INIT, failure.to_string()))?;
    let code = runtime.block_on(async {
        let began = Instant::now();
        let tokens = setup::tokens(arguments);
        let client = setup::client(arguments, &zones, tokens.as_ref())?;
        let pause = arguments.connection.rebind_every;
        let moves = pause.map(|_| Moves::new(MovesTotal::new(began)));
        let mover = pause.zip(moves.clone()).map(|(pause, moves)| {
            let client = client.clone();
            Mover::start(pause, moves, move || client.endpoints())
        });
        let context = Arc::new(Context {
            arguments: arguments.clone(),
            client,
            set_up: began.elapsed(),
            dump,
            prepared,
            cookies: Cookies::load(arguments),
            moves,
        });
        prepare_early_data(&context, &jobs).await;
        let code = run(&context, jobs, format).await;
        drop(mover);
        context.cookies.save();
        warn(&context);
        // Closes the connections, so that servers need not wait for their timeouts.
        let _ = tokio::time::timeout(FAREWELL, context.client.close()).await;
        context
            .client
            .save_alt_svc()
            .map_err(|error| Failed::of(&error))?;
        if let Some((path, tokens)) = arguments.connection.token_file.as_ref().zip(tokens)
            && let Err(error) = tokens.save()
        {
            let path = path.display();
            crate::output::note(format!("cannot write the tokens to {path}: {error}"));
        }
        Ok(code)
    });
    // A name lookup of the system cannot be cancelled, and need not be awaited.
    runtime.shutdown_background();
    code
}

/// Connects to each server once before the transfers, if that is asked for.
async fn prepare_early_data(context: &Context, jobs: &[Job]) {
    let arguments = &context.arguments;
    if arguments.connection.early_data == Some(EarlyDataUse::First) {
        let message = |job: &Job| Message::new(arguments, &context.prepared, &job.url);
        // The transfers report mistakes.
        let uris = jobs.iter().filter_map(|job| Some(message(job).ok()?.uri));
        let notes = crate::transfer::prepare_early_data(&context.client, uris).await;
        if arguments.output.verbose {
            notes.iter().for_each(|text| verbose::note(text));
        }
    }
}

/// Reports the moves, warns of datagrams that the kernel dropped, and with --verbose of sockets that may lose some.
fn warn(context: &Context) {
    let output = &context.arguments.output;
    if let Some(moves) = context.moves.as_ref().filter(|_| !output.silent) {
        crate::output::note(format!("moves: {}", moves.report(Instant::now())));
    }
    let endpoints = context.client.endpoints();
    if output.verbose {
        let small = sockets::warnings(&endpoints);
        small.iter().for_each(|text| verbose::note(text));
    }
    if !output.silent
        && let Some(text) = sockets::drop_warning(&endpoints)
    {
        eprintln!("courser: {text}");
    }
}

/// Returns the transfers of all URLs and patterns.
fn jobs(arguments: &Arguments, zones: &mut Zones) -> Result<Vec<Job>, Failed> {
    let mut jobs = Vec::new();
    for (index, pattern) in arguments.all_urls().enumerate() {
        let all = match arguments.request.globoff {
            true => vec![ExpandedUrl::plain(pattern)],
            false => expand_url(pattern)
                .map_err(|error| Failed::new(URL_MALFORMED, error.to_string()))?,
        };
        for expanded in all {
            let url = zones.take_from(expanded.url.clone())?;
            let path = path_of(&url);
            let name = |template: &str| expanded.name(template);
            let destination = destination(&arguments.output, index, path, name)?;
            jobs.push(Job {
                number: jobs.len(),
                url,
                destination,
            });
        }
    }
    Ok(jobs)
}

/// Returns the path of a URL, for file names.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    rest.find('/').map_or("/", |slash| &rest[slash..])
}

/// Runs all transfers. Returns the exit code of the last one, or of the last failure if they run in
/// parallel.
async fn run(context: &Arc<Context>, jobs: Vec<Job>, format: Option<String>) -> u8 {
    let bars = Arc::new(Bars::new(&context.arguments.output));
    let transfer = &context.arguments.transfer;
    let mut code = 0;
    if !transfer.parallel {
        for job in jobs {
            let bar = bars.bar(&job.destination);
            code = one(context, &job, &bar, format.as_deref()).await;
            if code != 0 && transfer.fail_early {
                break;
            }
        }
        return code;
    }
    let places = Arc::new(Semaphore::new(usize::from(transfer.parallel_max)));
    let mut running = JoinSet::new();
    for job in jobs {
        let (context, places, bars, format) = (
            context.clone(),
            places.clone(),
            bars.clone(),
            format.clone(),
        );
        running.spawn(async move {
            // The semaphore is never closed.
            let _place = places.acquire().await.ok();
            let bar = bars.bar(&job.destination);
            one(&context, &job, &bar, format.as_deref()).await
        });
    }
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok(0) => {}
            Ok(failed) => code = failed,
            Err(_) => code = exit::FAILED_INIT,
        }
        if code != 0 && transfer.fail_early {
            break;
        }
    }
    code
}

/// Runs one transfer with its retries and reports it. Returns its exit code.
async fn one(context: &Context, job: &Job, bar: &Bar, format: Option<&str>) -> u8 {
    let output = &context.arguments.output;
    let mut facts = repeat(context, job, bar).await;
    facts.moves = context
        .moves
        .as_ref()
        .map(|moves| moves.report(Instant::now()));
    facts.is_on_stdout = job.destination.is_stdout();
    if let Some(failed) = &facts.failed
        && (!output.silent || output.show_error)
    {
        eprintln!("courser: {failed}");
    }
    let mut code = facts.failed.as_ref().map_or(0, |failed| failed.code);
    if let Some(format) = format
        && let Err(failed) = write_out::write(format, &facts)
    {
        code = failed.code;
    }
    if output.timing || output.json {
        report::show(&facts, output.json);
    }
    code
}

async fn repeat(context: &Context, job: &Job, bar: &Bar) -> Facts {
    let flags = &context.arguments.transfer;
    let began = Instant::now();
    let mut backoff = Backoff::new(flags.retry_delay);
    let mut retries = 0;
    loop {
        let mut facts = Facts {
            url: job.url.clone(),
            number: job.number,
            retries,
            set_up: match (job.number, retries) {
                (0, 0) => context.set_up,
                _ => Duration::ZERO,
            },
            ..Facts::default()
        };
        let is_time_left = flags
            .retry_max_time
            .is_none_or(|limit| began.elapsed() < limit);
        let may_retry = retries < flags.retry && is_time_left;
        let result = transfer::run(context, job, &mut facts, bar, may_retry).await;
        let (why, asked) = match result {
            Ok(Done::Done) => return facts,
            Ok(Done::Later(status, asked)) => (format!("status {}", status.as_u16()), asked),
            Err(failed) => {
                let is_passing = flags.retry_all_errors
                    || failed.code == TIMED_OUT
                    || (failed.code == NO_CONNECTION && flags.retry_connrefused);
                if !may_retry || !is_passing {
                    facts.failed = Some(failed);
                    return facts;
                }
                (failed.to_string(), None)
            }
        };
        let wait = backoff.next(asked);
        retries += 1;
        if !context.arguments.output.silent {
            let left = flags.retry - retries;
            eprintln!("courser: {why}; retrying in {wait:?}, {left} retries left");
        }
        tokio::time::sleep(wait).await;
    }
}

/// The time for the last datagram to each server and its repetition.
const FAREWELL: Duration = Duration::from_millis(500);
