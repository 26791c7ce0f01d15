//! A peer program under way.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use peers::Failure;
use peers::process::CpuTime;
use serde::de::DeserializeOwned;

use super::host;

/// A process whose lines of output come one by one.
///
/// Dropped before [`Program::finish`], it may end in order, for it may have children of its own, and
/// is killed if it does not: none outlives the runner's errors.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Program {
    /// Starts `command` on `core`, or wherever the system likes.
    pub(crate) fn start(
        name: &'static str,
        mut command: Command,
        core: Option<usize>,
    ) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let spawned = match core {
            Some(core) => host::on_core(core, || command.spawn())?,
            None => command.spawn(),
        };
        let mut child = spawned.map_err(|error| format!("cannot start the {name}: {error}"))?;
        let stdin = child.stdin.take();
        let output = child.stdout.take().ok_or("no standard output")?;
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            name,
            child,
            stdin,
            lines,
        })
    }

    /// Waits for the next line and reads it.
    pub(crate) fn line<T: DeserializeOwned>(&self, timeout: Duration) -> Result<T, Failure> {
        let line = self
            .lines
            .recv_timeout(timeout)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => {
                    format!("the {} said nothing in {timeout:?}", self.name)
                }
                RecvTimeoutError::Disconnected => format!("the {} ended without a word", self.name),
            })?;
        serde_json::from_str(&line)
            .map_err(|error| format!("{}: {error}: {line}", self.name).into())
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the program to end as Ctrl-C would.
    pub(crate) fn terminate(&self) -> Result<(), Failure> {
        let id = i32::try_from(self.child.id())?;
        Ok(kill(Pid::from_raw(id), Signal::SIGTERM)?)
    }

    /// Tells the program that no more is wanted of it.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Reaps the program, which has said its last line, and returns the CPU time of its life.
    pub(crate) fn finish(mut self) -> Result<CpuTime, Failure> {
        // Its output ends with it; one that stays is not waited for.
        match self.lines.recv_timeout(END_TIMEOUT) {
            Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("the {} does not end", self.name).into());
            }
            Ok(line) => return Err(format!("the {} went on: {line}", self.name).into()),
        }
        let before = CpuTime::of_children()?;
        let status = self.child.wait()?;
        if !status.success() {
            return Err(format!("the {} ended with {status}", self.name).into());
        }
        Ok(CpuTime::of_children()?.since(before))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let turns = match self.stdin.take() {
            Some(_) => DROP_TURNS,
            // It was asked before, and had its time.
            None => 0,
        };
        for _ in 0..turns {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(DROP_TURN),
                Ok(Some(_)) | Err(_) => break,
            }
        }
        // Both are without effect on a child that was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that has said its last line has nothing left to do.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// A program that is given up has ten seconds to end after its standard input.
const DROP_TURNS: u32 = 1000;
const DROP_TURN: Duration = Duration::from_millis(10);
