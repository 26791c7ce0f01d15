//! `courser load`: many requests to one server, and how it answers them.

pub(crate) mod args;
mod flags;
mod report;
mod target;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

use courser_load::run;
use tokio::sync::watch;

use self::args::Style;
use crate::error::Failure;
use crate::output::{self, Progress};
use crate::process::{pin, runtime, stop_signal};

/// Runs it.
pub(crate) fn main(arguments: &args::Arguments) -> Result<(), Failure> {
    let flags = &arguments.flags;
    pin(flags.core)?;
    if let (Some(count), Some(pattern)) = (flags.dump_urls, flags::pattern(flags)?) {
        for number in 0..count {
            output::line(pattern.url(number));
        }
        return Ok(());
    }
    let plan = Arc::new(flags::plan(arguments)?);
    let is_h2load = arguments.style == Style::H2load && !flags.json;
    if is_h2load {
        output::line(report::before_h2load(&plan).trim_end());
    }
    let stop = on_interrupt()?;
    let summary = {
        let drawn = Drawn::new(!flags.no_tui && std::io::stderr().is_terminal());
        run(&plan, &stop, |progress| drawn.show(progress))?
    };
    if flags.json {
        output::line(courser_load::document(&plan, &summary).to_string());
    } else if is_h2load {
        output::line(report::text_h2load(&summary));
    } else {
        output::line(report::text_oha(&summary));
    }
    Ok(())
}

/// True once the user has had enough; what was measured until then is told.
fn on_interrupt() -> Result<watch::Receiver<bool>, Failure> {
    let (sender, receiver) = watch::channel(false);
    let runtime = runtime()?;
    std::thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(move || {
            runtime.block_on(stop_signal());
            // Nobody listens when the run is over.
            let _ = sender.send(true);
            // A second signal ends the process, whatever still runs.
            runtime.block_on(stop_signal());
            std::process::exit(INTERRUPTED);
        })
        .map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
    Ok(receiver)
}

/// What shells make of SIGINT.
const INTERRUPTED: i32 = 130;

/// How far it is, on a terminal.
struct Drawn {
    bar: Option<Progress>,
    began: Instant,
}

impl Drawn {
    fn new(is_wanted: bool) -> Self {
        Self {
            bar: is_wanted.then(Progress::new),
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
