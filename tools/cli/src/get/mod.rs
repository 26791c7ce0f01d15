//! `courser get`: transfers URLs as curl does, also over HTTP/3.

pub(crate) mod args;
mod config;
mod content;
pub(crate) mod content_flags;
mod cookie_argument;
pub(crate) mod cookies;
mod curl_flags;
mod date;
mod destination;
mod dump;
pub(crate) mod exit;
mod facts;
mod flags;
mod form;
mod hsts;
mod links;
mod message;
mod netrc;
mod paths;
pub(crate) mod pins;
mod plan;
mod prepared;
mod progress;
mod protocols;
mod report;
mod setup;
mod speed;
mod stderr_file;
mod target;
mod trace;
mod transfer;
mod verbose;
pub(crate) mod words;
mod write_out;
mod zones;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::client::ErrorKind;
use courser_measure::{Mover, Moves, MovesTotal, sockets};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::args::Arguments;
use self::cookies::Cookies;
use self::dump::Dump;
use self::exit::{Failed, NO_CONNECTION, TIMED_OUT};
use self::facts::Facts;
use self::hsts::Hsts;
use self::message::Message;
use self::paths::Opened;
use self::plan::{Job, Plan, TokenFile};
use self::progress::{Bar, Bars};
use self::transfer::{Context, Done};
use self::verbose::Details;
use crate::transfer::Backoff;

/// Runs all transfers and reports errors. Returns an exit code of curl.
pub(crate) fn main(arguments: &Arguments) -> ExitCode {
    let stderr = arguments.output.stderr.as_deref();
    let opened = stderr.map_or(Ok(()), stderr_file::redirect);
    let code = match opened.and_then(|()| begin(arguments)) {
        Ok(code) => code,
        Err(failed) => {
            if flags::verbosity(&arguments.output).shows_errors {
                eprintln!("courser: {failed}");
            }
            failed.code
        }
    };
    ExitCode::from(code)
}

/// Runs the command lines one after the other. Returns the exit code of the last one.
fn begin(arguments: &Arguments) -> Result<u8, Failed> {
    let runtime = crate::process::runtime()
        .map_err(|failure| Failed::new(exit::FAILED_INIT, failure.to_string()))?;
    let code = runtime.block_on(async {
        let mut code = run(flags::plan(arguments)?).await?;
        // As in curl, the flag applies to all command lines.
        let mut all = std::iter::once(arguments).chain(&arguments.next);
        let fails_early = all.any(|arguments| arguments.transfer.fail_early);
        for arguments in &arguments.next {
            if code != 0 && fails_early {
                break;
            }
            code = run(flags::plan(arguments)?).await?;
        }
        Ok(code)
    });
    // A name lookup of the system cannot be cancelled, so that the runtime does not wait for it.
    runtime.shutdown_background();
    code
}

/// Runs a plan. Returns the exit code of the last transfer, or that of the last failure if transfers run in
/// parallel.
async fn run(plan: Plan) -> Result<u8, Failed> {
    let dump = Dump::open(plan.dump.as_deref())?;
    let details = Details::open(plan.trace.as_ref(), plan.transfer.verbosity)?;
    let hsts = plan.hsts.as_deref().map(Hsts::load).transpose()?;
    let opened = Opened::default();
    let client = paths::opening(plan.client, &plan.links, &opened, &details);
    let client = client.build().map_err(|error| match error.kind() {
        // As with curl, an unsupported proxy counts as unreachable.
        ErrorKind::Unsupported => Failed::new(NO_CONNECTION, error.to_string()),
        _ => Failed::of(&error),
    })?;
    let set_up = plan.began.elapsed();
    let pause = plan.rebind_every;
    let moves = pause.map(|_| Moves::new(MovesTotal::new(plan.began)));
    let mover = pause.zip(moves.clone()).map(|(pause, moves)| {
        let client = client.clone();
        Mover::start(pause, moves, move || client.endpoints())
    });
    let context = Arc::new(Context {
        cookies: Cookies::load(&plan.cookies, plan.transfer.verbosity, details.clone()),
        details,
        plan: plan.transfer,
        client,
        set_up,
        dump,
        hsts,
        moves,
        opened,
    });
    if plan.prepares_early_data {
        prepare_early_data(&context, &plan.jobs).await;
    }
    let code = match plan.parallel {
        None => in_turn(&context, plan.jobs, plan.stops_at_failure, plan.interval).await,
        Some(most) => in_parallel(&context, plan.jobs, most, plan.stops_at_failure).await,
    };
    drop(mover);
    context.cookies.save();
    if let Some(hsts) = &context.hsts {
        hsts.save()?;
    }
    warn(&context);
    // Closes the connections, so that they do not time out at the servers.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, context.client.close()).await;
    context
        .client
        .save_alt_svc()
        .map_err(|error| Failed::of(&error))?;
    if let Some(TokenFile { path, store }) = plan.tokens
        && let Err(error) = store.save()
    {
        let path = path.display();
        crate::output::note(format!("cannot write the tokens to {path}: {error}"));
    }
    Ok(code)
}

/// Connects to each server once, to get sessions that permit early data.
async fn prepare_early_data(context: &Context, jobs: &[Job]) {
    let message = |job: &Job| Message::new(&context.plan.request, &job.url, None);
    // The transfers report invalid URLs.
    let uris = jobs.iter().filter_map(|job| Some(message(job).ok()?.uri));
    let notes = crate::transfer::prepare_early_data(&context.client, uris).await;
    notes.iter().for_each(|text| context.details.note(text));
}

/// Reports the moves, and warns about datagrams that the kernel dropped. With --verbose, also warns about
/// sockets that may drop datagrams.
fn warn(context: &Context) {
    let verbosity = context.plan.verbosity;
    if let Some(moves) = context.moves.as_ref().filter(|_| verbosity.shows_notes) {
        crate::output::note(format!("moves: {}", moves.report(Instant::now())));
    }
    let endpoints = context.client.endpoints();
    if !context.details.are_hidden() {
        let small = sockets::warnings(&endpoints);
        small.iter().for_each(|text| context.details.note(text));
    }
    if verbosity.shows_notes
        && let Some(text) = sockets::drop_warning(&endpoints)
    {
        eprintln!("courser: {text}");
    }
}

/// Runs one transfer after the other. Returns the exit code of the last one.
async fn in_turn(
    context: &Context,
    jobs: Vec<Job>,
    stops_at_failure: bool,
    interval: Option<Duration>,
) -> u8 {
    let bars = Bars::new(context.plan.verbosity);
    let mut code = 0;
    let mut starts = interval.map(tokio::time::interval);
    for job in jobs {
        if let Some(starts) = &mut starts {
            starts.tick().await;
        }
        let bar = bars.bar(&job.destination);
        code = run_job(context, &job, &bar).await;
        if code != 0 && stops_at_failure {
            break;
        }
    }
    code
}

/// Runs at most `most` transfers at a time. Returns the exit code of the last failure.
async fn in_parallel(
    context: &Arc<Context>,
    jobs: Vec<Job>,
    most: u16,
    stops_at_failure: bool,
) -> u8 {
    let bars = Arc::new(Bars::new(context.plan.verbosity));
    let permits = Arc::new(Semaphore::new(usize::from(most)));
    let mut running = JoinSet::new();
    for job in jobs {
        let (context, permits, bars) = (context.clone(), permits.clone(), bars.clone());
        running.spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire().await.ok();
            let bar = bars.bar(&job.destination);
            run_job(&context, &job, &bar).await
        });
    }
    let mut code = 0;
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok(0) => {}
            Ok(failed) => code = failed,
            Err(_) => code = exit::FAILED_INIT,
        }
        if code != 0 && stops_at_failure {
            break;
        }
    }
    code
}

/// Runs one transfer with its retries, and prints its reports. Returns its exit code.
async fn run_job(context: &Context, job: &Job, bar: &Bar) -> u8 {
    let plan = &context.plan;
    let mut facts = repeat(context, job, bar).await;
    facts.moves = context
        .moves
        .as_ref()
        .map(|moves| moves.report(Instant::now()));
    let paths = facts
        .timing
        .iter()
        .flat_map(|it| paths::lines(&it.paths, &context.opened));
    paths.for_each(|line| context.details.note(&line));
    facts.is_on_stdout = job.destination.is_stdout();
    if let Some(failed) = &facts.failed
        && plan.verbosity.shows_errors
    {
        eprintln!("courser: {failed}");
    }
    let code = facts.failed.as_ref().map_or(0, |failed| failed.code);
    if let Some(format) = &plan.write_out {
        write_out::write(format, &facts);
    }
    if let Some(form) = plan.steps {
        report::show(&facts, form);
    }
    code
}

async fn repeat(context: &Context, job: &Job, bar: &Bar) -> Facts {
    let retry = context.plan.retries;
    let began = Instant::now();
    let mut backoff = Backoff::new(retry.delay);
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
        let is_time_left = retry.max_time.is_none_or(|limit| began.elapsed() < limit);
        let may_retry = retries < retry.most && is_time_left;
        let result = transfer::run(context, job, &mut facts, bar, may_retry).await;
        let (why, retry_after) = match result {
            Ok(Done::Done) => return facts,
            Ok(Done::Later(status, retry_after)) => {
                (format!("status {}", status.as_u16()), retry_after)
            }
            Err(failed) => {
                let is_passing = retry.after_all
                    || failed.code == TIMED_OUT
                    || (failed.code == NO_CONNECTION && retry.if_refused);
                if !may_retry || !is_passing {
                    facts.failed = Some(failed);
                    return facts;
                }
                (failed.to_string(), None)
            }
        };
        let wait = backoff.next(retry_after);
        retries += 1;
        if context.plan.verbosity.shows_notes {
            let left = retry.most - retries;
            eprintln!("courser: {why}; retrying in {wait:?}, {left} retries left");
        }
        tokio::time::sleep(wait).await;
    }
}

/// The time limit for closing the connections: enough for a CONNECTION_CLOSE to each server and its
/// retransmission.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
