//! Prints text, and progress on a terminal.

use std::io::Write;

use courser_measure::printable;
use indicatif::{ProgressBar, ProgressStyle};

use crate::error::Failure;

pub(crate) use courser_units::{binary_size, per_second, rate, size, three_digits, to_f64};

/// Writes a line to standard output. A closed pipe is not an error.
pub(crate) fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Writes a report to standard output. A closed pipe is not an error.
///
/// # Errors
/// Returns an error if the report cannot be written, for example because the disk is full.
pub(crate) fn report(text: impl AsRef<str>) -> Result<(), Failure> {
    let mut stdout = std::io::stdout();
    let written = writeln!(stdout, "{}", text.as_ref()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write the report: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a remark of one line to standard error. It may contain text of a server.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "courser: {}", printable(text.as_ref()));
}

/// The console of `courser qlog`: its lines and remarks go to the standard streams.
#[derive(Debug)]
pub(crate) struct Terminal;

impl courser_trace::Console for Terminal {
    fn line(&mut self, text: &str) {
        line(text);
    }

    fn note(&mut self, text: &str) {
        note(text);
    }
}

/// A progress bar, which is only drawn on a terminal.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Creates a bar on standard error.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new(SCALE);
        // The template is a constant. An invalid one would leave the default style.
        if let Ok(style) = ProgressStyle::with_template("{msg:28} {bar:40} {percent:>3}%") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Resets the bar, and shows the name of the next task.
    pub(crate) fn begin(&self, what: &str) {
        self.0.set_position(0);
        self.0.set_message(what.to_owned());
    }

    /// Shows the completed share of the task, from 0 to 1.
    pub(crate) fn at(&self, share: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 0..=1 first"
        )]
        let position = (share.clamp(0.0, 1.0) * to_f64(SCALE)) as u64;
        self.0.set_position(position);
    }

    /// Writes a line to standard output, above the bar.
    pub(crate) fn line(&self, text: impl AsRef<str>) {
        self.0.suspend(|| line(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

const SCALE: u64 = 1000;
