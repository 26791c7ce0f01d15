//! Further processes of this program that report in lines of JSON.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdin, ChildStdout, Stdio};

use serde_json::Value;

use super::process::{Process, command};

/// A running helper process, which is killed on drop.
pub(super) struct Helper {
    pub(super) process: Process,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Helper {
    /// Starts this program with these arguments, on one core if `core` is set.
    pub(super) fn start(core: Option<usize>, words: &[String]) -> Result<Self, String> {
        Self::start_with(core, words, None)
    }

    /// Starts this program, with standard error of its own if `errors` is set.
    pub(super) fn start_with(
        core: Option<usize>,
        words: &[String],
        errors: Option<Stdio>,
    ) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = command(program.as_os_str(), core);
        command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(errors) = errors {
            command.stderr(errors);
        }
        let mut process = Process::spawn(command)?;
        let child = process.child();
        let input = child.stdin.take();
        let output = child.stdout.take().expect("standard output is piped");
        Ok(Self {
            process,
            input,
            output: BufReader::new(output),
        })
    }

    /// Starts honest clients in a mode of `clients`.
    pub(super) fn clients(
        core: Option<usize>,
        mode: &str,
        settings: &[(&str, String)],
    ) -> Result<Self, String> {
        let settings = settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let words: Vec<String> = ["clients".to_owned(), mode.to_owned()]
            .into_iter()
            .chain(settings)
            .collect();
        Self::start(core, &words)
    }

    /// Waits for the next line.
    pub(super) fn line(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        serde_json::from_str(&line).map_err(|_| format!("a helper printed `{}`", line.trim()))
    }

    /// Closes its standard input to end it, and returns its next line.
    pub(super) fn finish(mut self) -> Result<Value, String> {
        drop(self.input.take());
        self.line()
    }
}
