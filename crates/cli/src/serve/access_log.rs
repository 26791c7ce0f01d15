//! A line for each request.

mod line;

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

use super::args::LogFormat;
use super::record::Exchange;
use crate::error::Failure;

/// Writes lines in a thread of its own, so that a slow disk holds up no request. What does not fit
/// into the queue is dropped and counted.
#[derive(Clone, Debug)]
pub(super) struct AccessLog {
    format: LogFormat,
    queue: SyncSender<Order>,
    shared: Arc<Shared>,
}

/// To be ended after the last request.
#[derive(Debug)]
pub(super) struct Writer(Receiver<()>);

/// State that requests and the thread share, so that no request waits for the thread.
#[derive(Debug, Default)]
struct Shared {
    /// Bytes of the lines that wait.
    queued: AtomicUsize,
    dropped: AtomicU64,
    has_told: AtomicBool,
    /// The file was moved away: another is begun.
    reopens: AtomicBool,
    ends: AtomicBool,
    as_json: bool,
}

#[derive(Debug)]
enum Order {
    Line(String),
    /// A flag was set.
    Look,
}

impl AccessLog {
    /// To a file, which is appended to, or to standard output. `as_json` is the form of warnings.
    pub(super) fn open(
        format: LogFormat,
        path: Option<&Path>,
        as_json: bool,
    ) -> Result<(Self, Writer), Failure> {
        let target = Target::open(path).map_err(|error| {
            let name = path.unwrap_or(Path::new("standard output")).display();
            Failure::new(format!("cannot write the access log to {name}: {error}"))
        })?;
        let (queue, orders) = sync_channel(MOST_LINES);
        let (done, ended) = channel();
        let shared = Arc::new(Shared {
            as_json,
            ..Shared::default()
        });
        let state = shared.clone();
        std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || {
                write_all(target, &orders, &state);
                // Nobody waits any more if the disk was too slow.
                let _ = done.send(());
            })?;
        let log = Self {
            format,
            queue,
            shared,
        };
        Ok((log, Writer(ended)))
    }

    pub(super) fn note(&self, exchange: &Exchange) {
        let mut line = match self.format {
            LogFormat::Common => line::common(exchange),
            LogFormat::Combined => line::combined(exchange),
            LogFormat::Json => line::as_json(exchange),
        };
        line.push('\n');
        debug_assert!(line.len() <= line::MOST, "{} bytes", line.len());
        line.shrink_to_fit();
        let len = line.len();
        let before = self.shared.queued.fetch_add(len, Relaxed);
        let fits = before + len <= MOST_BYTES;
        if !fits || self.queue.try_send(Order::Line(line)).is_err() {
            self.shared.queued.fetch_sub(len, Relaxed);
            self.shared.drop_one("the disk or the reader is too slow");
        }
    }

    /// Lines that were not written: the disk was full, or the disk or the reader of standard output
    /// was too slow.
    pub(super) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }

    /// Opens the file anew, for those who move it away from time to time. Does not wait for it.
    pub(super) fn reopen(&self) {
        self.shared.reopens.store(true, Release);
        // A thread that has lines to write sees the flag anyway.
        let _ = self.queue.try_send(Order::Look);
    }

    /// Writes what waits, unless the disk takes longer than a few seconds for it.
    pub(super) fn end(self, writer: &Writer) {
        self.shared.ends.store(true, Release);
        let _ = self.queue.try_send(Order::Look);
        let _ = writer.0.recv_timeout(END_WITHIN);
    }
}

impl Shared {
    /// Counts a line that is not written, and warns once.
    fn drop_one(self: &Arc<Self>, reason: &str) {
        self.dropped.fetch_add(1, Relaxed);
        if self.has_told.swap(true, Relaxed) {
            return;
        }
        let text = format!(
            "access log lines are dropped: {reason} (courser_access_log_dropped_total counts them)"
        );
        let as_json = self.as_json;
        // The warning may go where nobody reads, and no request may wait for that.
        let thread = std::thread::Builder::new().name("access-log-warning".to_owned());
        let _ = thread.spawn(move || super::sockets::warn(&text, as_json));
    }
}

enum Target {
    StandardOutput(io::Stdout),
    File(PathBuf, BufWriter<File>),
}

impl Target {
    fn open(path: Option<&Path>) -> io::Result<Self> {
        Ok(match path {
            None => Self::StandardOutput(io::stdout()),
            Some(path) => Self::File(path.to_owned(), append_to(path)?),
        })
    }

    /// Writes a line with its end in one piece: a full disk leaves no half of one behind.
    fn write(&mut self, line: &str) -> io::Result<()> {
        match self {
            Self::StandardOutput(out) => out.write_all(line.as_bytes()),
            Self::File(_, out) => out.write_all(line.as_bytes()),
        }
    }

    fn flush(&mut self) {
        if let Self::File(_, out) = self {
            // What could not be written stays in the buffer; lines that do not fit are counted.
            let _ = out.flush();
        }
    }

    fn reopen(&mut self) {
        self.flush();
        if let Self::File(path, out) = self
            && let Ok(file) = append_to(path)
        {
            *out = file;
        }
    }
}

fn append_to(path: &Path) -> io::Result<BufWriter<File>> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    Ok(BufWriter::new(file))
}

/// Writes lines until the server ends.
fn write_all(mut target: Target, orders: &Receiver<Order>, shared: &Arc<Shared>) {
    loop {
        let order = orders.recv_timeout(FLUSH_AFTER);
        if shared.reopens.swap(false, Acquire) {
            target.reopen();
        }
        match order {
            Ok(Order::Line(line)) => write_line(&mut target, &line, shared),
            Ok(Order::Look) => {}
            Err(RecvTimeoutError::Timeout) => target.flush(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if shared.ends.load(Acquire) {
            for order in orders.try_iter() {
                if let Order::Line(line) = order {
                    write_line(&mut target, &line, shared);
                }
            }
            break;
        }
    }
    target.flush();
}

fn write_line(target: &mut Target, line: &str, shared: &Arc<Shared>) {
    let written = target.write(line);
    shared.queued.fetch_sub(line.len(), Relaxed);
    if let Err(error) = written {
        shared.drop_one(&error.to_string());
    }
}

/// Lines that wait (K106): a second of a busy server.
const MOST_LINES: usize = 65_536;
/// Bytes of the lines that wait: as many lines of 128 bytes.
const MOST_BYTES: usize = 8 << 20;
/// Who follows the file sees lines this late.
const FLUSH_AFTER: Duration = Duration::from_millis(200);
/// A disk that stands does not keep the server from ending.
const END_WITHIN: Duration = Duration::from_secs(5);
