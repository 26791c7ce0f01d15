//! Processes of a run, which end with it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A process that is ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts a program whose output goes to a file.
    pub(crate) fn start(mut command: Command, output: &Path) -> io::Result<Self> {
        let output = File::create(output)?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        command.spawn().map(Self)
    }

    /// Returns the status if the process has ended.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }

    /// Waits for the end of the process, or until `gives_up` returns true. Returns the status if the
    /// process has ended.
    pub(crate) fn wait_until(&mut self, mut gives_up: impl FnMut() -> bool) -> Option<ExitStatus> {
        while !gives_up() {
            if let Some(status) = self.status() {
                return Some(status);
            }
            std::thread::sleep(POLL);
        }
        self.status()
    }

    /// Asks the process to end, and ends it if it does not.
    pub(crate) fn stop(&mut self) {
        if self.status().is_some() {
            return;
        }
        #[cfg(unix)]
        if let Some(id) = i32::try_from(self.0.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            let deadline = Instant::now() + GRACE;
            self.wait_until(|| Instant::now() > deadline);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

const POLL: Duration = Duration::from_millis(10);

/// The time that a process has to write its logs.
const GRACE: Duration = Duration::from_secs(2);
