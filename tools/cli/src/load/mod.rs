//! `courser load`: measures the responses of a server under load.

pub(crate) mod args;
mod flags;
mod target;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use courser_load::{run, text};
use tokio::sync::watch;

use self::args::Style;
use crate::error::Failure;
use crate::output::{self, Progress};
use crate::process::{pin, runtime, stop_signal};

/// Runs the load generator and prints its report. Returns the exit code, which is that of shells for SIGINT if
/// the run was interrupted.
pub(crate) fn main(arguments: &args::Arguments) -> Result<ExitCode, Failure> {
    let flags = &arguments.flags;
    pin(flags.core)?;
    if let (Some(count), Some(pattern)) = (flags.dump_urls, flags::pattern(flags)?) {
        for number in 0..count {
            output::line(pattern.url(number));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let plan = Arc::new(flags::plan(arguments)?);
    let is_h2load = arguments.style == Style::H2load && !flags.json;
    if is_h2load {
        output::line(text::before_h2load(&plan).trim_end());
    }
    let stop = on_interrupt()?;
    let summary = {
        let drawn = Drawn::new(!flags.no_tui && std::io::stderr().is_terminal());
        run(&plan, &stop, |progress| drawn.show(progress))?
    };
    let report = if flags.json {
        courser_load::document(&plan, &summary).to_string()
    } else if is_h2load {
        text::h2load(&summary)
    } else {
        text::oha(&summary)
    };
    output::report(report)?;
    if summary.is_abandoned {
        output::note("the run was abandoned: the server could not be reached for 30 s");
        return Ok(ALL_FAILED.into());
    }
    if !summary.is_interrupted {
        // For oha, each response is a success.
        let has_failed = match arguments.style {
            Style::H2load => summary.succeeded == 0,
            Style::Oha => summary.done == 0,
        };
        return Ok(ExitCode::from(if has_failed { ALL_FAILED } else { 0 }));
    }
    if !flags.json {
        output::line("interrupted: the figures cover the time until then");
    }
    Ok(INTERRUPTED.into())
}

/// Returns a flag that becomes true when the user interrupts the run. The report then covers the time until the
/// interruption.
fn on_interrupt() -> Result<watch::Receiver<bool>, Failure> {
    let (sender, receiver) = watch::channel(false);
    let runtime = runtime()?;
    std::thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(move || {
            runtime.block_on(stop_signal());
            // Fails if the run has ended.
            let _ = sender.send(true);
            // A second signal ends the process at once.
            runtime.block_on(stop_signal());
            std::process::exit(INTERRUPTED.into());
        })
        .map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
    Ok(receiver)
}

/// The exit code if no request succeeded, or if the run was abandoned.
const ALL_FAILED: u8 = 3;
/// The exit code of shells for SIGINT.
const INTERRUPTED: u8 = 130;

/// The progress of the run as drawn on a terminal.
struct Drawn {
    bar: Option<Progress>,
    began: Instant,
}

impl Drawn {
    fn new(is_shown: bool) -> Self {
        Self {
            bar: is_shown.then(Progress::new),
            began: Instant::now(),
        }
    }

    fn show(&self, progress: courser_load::Progress) {
        let Some(bar) = &self.bar else {
            return;
        };
        let responses = progress.responses;
        let seconds = self.began.elapsed().as_secs_f64().max(1e-3);
        let rate = output::per_second(output::to_f64(responses) / seconds);
        bar.begin(&format!("{responses} responses, {rate}"));
        bar.at(progress.share);
    }
}
