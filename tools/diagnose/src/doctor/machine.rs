//! The files and programs of a machine, real or recorded.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use courser_udp::ClockState;

use crate::finding::Finding;

/// A view of a machine: its files below a root directory, the output of its programs, and its clock.
///
/// Checks use nothing else, so that tests can run them on a simulated `/proc`.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    programs: Programs,
    clock: Option<ClockState>,
    now: SystemTime,
    cores: usize,
}

/// The source of a program's output.
#[derive(Debug)]
enum Programs {
    /// Programs run on this machine.
    Started,
    /// The output by command line. Other programs count as not installed.
    Recorded(BTreeMap<String, String>),
}

/// The reason why a check cannot observe its subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unseen {
    /// The file or the program does not exist.
    Absent(String),
    /// This process lacks the privilege to read it.
    Forbidden(String),
    /// Another error, described in a sentence.
    Failed(String),
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(what) => write!(f, "{what} does not exist here"),
            Self::Forbidden(what) => write!(f, "{what} may only be read by root"),
            Self::Failed(what) => f.write_str(what),
        }
    }
}

impl Unseen {
    /// Returns the finding of a check that could not observe its subject.
    pub(crate) fn finding(&self, check: &str) -> Finding {
        let found = Finding::unknown(check, format!("not visible: {self}"));
        match self {
            Self::Forbidden(_) => found.fix("run courser doctor as root to see it"),
            _ => found,
        }
    }
}

impl Machine {
    /// Returns a view of the machine that this program runs on.
    pub fn this() -> Self {
        Self {
            root: PathBuf::from("/"),
            programs: Programs::Started,
            clock: courser_udp::clock_state(),
            now: SystemTime::now(),
            cores: thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Returns a machine with the files below `root`, without programs and with one core.
    pub fn recorded(root: impl Into<PathBuf>, now: SystemTime) -> Self {
        Self {
            root: root.into(),
            programs: Programs::Recorded(BTreeMap::new()),
            clock: None,
            now,
            cores: 1,
        }
    }

    /// Adds the output of a program to a recorded machine.
    #[must_use]
    pub fn with_output(mut self, command: &str, output: &str) -> Self {
        if let Programs::Recorded(outputs) = &mut self.programs {
            outputs.insert(command.to_owned(), output.to_owned());
        }
        self
    }

    /// Sets the state of the clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Option<ClockState>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the number of cores.
    #[must_use]
    pub fn with_cores(mut self, cores: usize) -> Self {
        self.cores = cores;
        self
    }

    /// Returns the time of day.
    pub fn now(&self) -> SystemTime {
        self.now
    }

    /// Returns the number of cores that this process may use.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Returns the state of the kernel's clock, if the system reports it.
    pub fn clock(&self) -> Option<ClockState> {
        self.clock
    }

    /// Reads a file, whose path begins with `/`.
    ///
    /// # Errors
    /// Returns the reason if the file cannot be read.
    pub fn read(&self, path: &str) -> Result<String, Unseen> {
        let named = |error: io::Error| unseen(path, &error);
        let mut text = Vec::new();
        let file = File::open(self.place(path)).map_err(named)?;
        file.take(MAX_BYTES).read_to_end(&mut text).map_err(named)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads a file that contains one number.
    ///
    /// # Errors
    /// Returns the reason if the file cannot be read, or its text if it is not a number.
    pub fn number(&self, path: &str) -> Result<u64, Unseen> {
        let text = self.read(path)?;
        let text = text.trim();
        let wrong = |_| Unseen::Failed(format!("{path} contains '{text}', which is not a number"));
        text.parse().map_err(wrong)
    }

    /// Returns the names in a directory in order.
    ///
    /// # Errors
    /// Returns the reason if the directory cannot be read.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Unseen> {
        let entries = std::fs::read_dir(self.place(path)).map_err(|error| unseen(path, &error))?;
        let names = entries.flatten().take(MAX_ENTRIES);
        let mut names: Vec<_> = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Returns the target of a symbolic link.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.place(path)).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// Runs a program without input, and returns its standard output.
    ///
    /// # Errors
    /// Returns an error if the program is not installed, lacks a privilege, fails, or takes longer than 3 seconds.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String, Unseen> {
        let mut line = program.to_owned();
        for argument in arguments {
            line.push(' ');
            line.push_str(argument);
        }
        match &self.programs {
            Programs::Recorded(outputs) => match outputs.get(&line) {
                Some(output) => Ok(output.clone()),
                None => Err(Unseen::Absent(format!("the program {program}"))),
            },
            Programs::Started => start(program, arguments, &line),
        }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root
            .join(Path::new(path).strip_prefix("/").unwrap_or(Path::new(path)))
    }
}

fn unseen(what: &str, error: &io::Error) -> Unseen {
    match error.kind() {
        io::ErrorKind::NotFound => Unseen::Absent(what.to_owned()),
        io::ErrorKind::PermissionDenied => Unseen::Forbidden(what.to_owned()),
        _ => Unseen::Failed(format!("cannot read {what}: {error}")),
    }
}

fn start(program: &str, arguments: &[&str], line: &str) -> Result<String, Unseen> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Unseen::Absent(format!("the program {program}")),
        // Also returned if this user may not read a directory in PATH.
        io::ErrorKind::PermissionDenied => {
            Unseen::Failed(format!("this user may not run {program}"))
        }
        _ => Unseen::Failed(format!("cannot run '{line}': {error}")),
    };
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // Reads both pipes while the program runs, because a full pipe would block it.
    let output = child.stdout.take().map(reader);
    let errors = child.stderr.take().map(reader);
    let deadline = Instant::now() + MAX_RUN_TIME;
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                let limit = MAX_RUN_TIME.as_secs();
                return Err(Unseen::Failed(format!("'{line}' took more than {limit} s")));
            }
        }
    };
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader.and_then(|it| it.join().ok()).unwrap_or_default()
    };
    let (output, errors) = (text(output), text(errors));
    if status.success() {
        return Ok(output);
    }
    let message = errors.lines().next().unwrap_or_default().trim().to_owned();
    let lower = message.to_ascii_lowercase();
    match lower.contains("permission denied") || lower.contains("not permitted") {
        true => Err(Unseen::Forbidden(format!("the output of '{line}'"))),
        false => Err(Unseen::Failed(format!("'{line}' failed: {message}"))),
    }
}

fn reader(mut pipe: impl io::Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.by_ref().take(MAX_BYTES).read_to_end(&mut bytes);
        // Reads the rest of the output, because the program would fail otherwise.
        let _ = io::copy(&mut pipe, &mut io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The largest number of bytes that are read from a file or from the output of a program (K233).
const MAX_BYTES: u64 = 1 << 20;

/// The largest number of entries that are read from a directory (K233).
const MAX_ENTRIES: usize = 65_536;

/// The time limit of a program (K233).
const MAX_RUN_TIME: Duration = Duration::from_secs(3);

const POLL_INTERVAL: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
