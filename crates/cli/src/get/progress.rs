//! Bars on a terminal, one for each transfer.

use std::io::IsTerminal as _;

use courser_transfer::Destination;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::args::OutputArguments;

/// All bars.
#[derive(Debug)]
pub(crate) struct Bars {
    all: MultiProgress,
    is_shown: bool,
}

impl Bars {
    pub(crate) fn new(output: &OutputArguments) -> Self {
        let is_shown =
            !output.silent && !output.no_progress_meter && std::io::stderr().is_terminal();
        Self {
            all: MultiProgress::new(),
            is_shown,
        }
    }

    /// The bar of a transfer; none where the body itself is shown.
    pub(crate) fn bar(&self, destination: &Destination) -> Bar {
        let is_in_the_way = destination.is_stdout() && std::io::stdout().is_terminal();
        Bar((self.is_shown && !is_in_the_way).then(|| self.all.add(ProgressBar::no_length())))
    }
}

/// One of them, if there is one.
#[derive(Debug)]
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    /// A body begins.
    pub(crate) fn begin(&self, url: &str, expected: Option<u64>) {
        let Some(bar) = &self.0 else {
            return;
        };
        let template = match expected {
            Some(_) => {
                "{msg:30!} {bar:30} {bytes:>10}/{total_bytes:10} {bytes_per_sec:>12} {eta:>5}"
            }
            None => "{msg:30!} {spinner} {bytes:>10} {bytes_per_sec:>12} {elapsed:>5}",
        };
        // The templates are constants; with a broken one the default look would do.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if let Some(expected) = expected {
            bar.set_length(expected);
        }
        bar.set_message(url.to_owned());
        bar.set_position(0);
    }

    pub(crate) fn at(&self, received: u64) {
        if let Some(bar) = &self.0 {
            bar.set_position(received);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
