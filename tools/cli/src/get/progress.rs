//! Progress bars on a terminal, one for each transfer.

use std::io::IsTerminal as _;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::plan::Verbosity;
use crate::transfer::Destination;

/// The bars of all transfers.
#[derive(Debug)]
pub(crate) struct Bars {
    all: MultiProgress,
    is_shown: bool,
}

impl Bars {
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        let is_shown = verbosity.shows_progress && std::io::stderr().is_terminal();
        Self {
            all: MultiProgress::new(),
            is_shown,
        }
    }

    /// Returns the bar of a transfer. It is hidden if the body is written to the same terminal.
    pub(crate) fn bar(&self, destination: &Destination) -> Bar {
        let shares_terminal = destination.is_stdout() && std::io::stdout().is_terminal();
        Bar((self.is_shown && !shares_terminal).then(|| self.all.add(ProgressBar::no_length())))
    }
}

/// The bar of one transfer, if it is shown.
#[derive(Debug)]
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    /// Shows the start of a body of `expected` bytes, if the length is known.
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
        // The templates are constants. An invalid one would leave the default style.
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
