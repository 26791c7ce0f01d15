//! Lines and numbers for humans, and progress on a terminal.

use std::io::Write;

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use courser_units::{
    binary_size, per_second, rate, seconds, size, three_digits, to_f64,
};

/// Writes a line to standard output. Who closes the pipe does not want to know.
pub(crate) fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Writes a remark to standard error.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "courser: {}", text.as_ref());
}

/// What is under way, drawn on a terminal; nothing anywhere else.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Draws on standard error if that is a terminal.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new(SCALE);
        // The template is a constant; with a broken one the default look would do.
        if let Ok(style) = ProgressStyle::with_template("{msg:28} {bar:40} {percent:>3}%") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Something else is under way.
    pub(crate) fn begin(&self, what: &str) {
        self.0.set_position(0);
        self.0.set_message(what.to_owned());
    }

    /// How much of it is done, from 0 to 1.
    pub(crate) fn at(&self, share: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 0..=1 first"
        )]
        let position = (share.clamp(0.0, 1.0) * to_f64(SCALE)) as u64;
        self.0.set_position(position);
    }

    /// Writes a line to standard output, above what is drawn.
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
