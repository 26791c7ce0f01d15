//! The access log: a line for each request.

mod line;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use courser_base::Mutex;

use crate::exchange::{Details, Exchange};

/// The format of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// Common Log Format.
    Common,
    /// Common Log Format with Referer and User-Agent.
    Combined,
    /// One JSON object.
    Json,
}

/// Writes a line for each request, in a thread of its own, so that a slow disk delays no request. Lines
/// that do not fit into the queue are dropped and counted (limit K106).
#[derive(Clone, Debug)]
pub struct AccessLog {
    format: LogFormat,
    queue: SyncSender<Order>,
    shared: Arc<LogQueue>,
    /// Starts a thread that writes.
    thread: Arc<Thread>,
}

/// The state of the thread that writes, kept for the one that takes its place if it panics.
#[derive(Debug)]
struct Thread {
    path: Option<PathBuf>,
    orders: Mutex<Receiver<Order>>,
    /// Sent to by a thread that has written everything.
    done: Sender<()>,
    is_running: AtomicBool,
}

/// The thread of an [`AccessLog`], to be ended after the last request.
#[derive(Debug)]
pub struct Writer(Receiver<()>);

/// State that requests and the thread share, so that no request waits for the thread.
struct LogQueue {
    /// Bytes of the lines that wait.
    queued: AtomicUsize,
    dropped: AtomicU64,
    has_told: AtomicBool,
    /// Set when the file was moved away, so that another one is opened.
    reopens: AtomicBool,
    ends: AtomicBool,
    /// Called once, when the first line is dropped.
    warn: Box<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for LogQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogQueue")
            .field("queued", &self.queued)
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Order {
    Line(String),
    /// Reads the flags.
    Look,
    #[cfg(test)]
    Panic,
}

impl AccessLog {
    /// Opens a log that appends to a file, or writes to standard output without one. `warn` is called on
    /// a thread of its own when the first line is dropped.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread cannot start.
    pub fn open(
        format: LogFormat,
        path: Option<&Path>,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<(Self, Writer)> {
        let target = Target::open(path)?;
        let (queue, orders) = sync_channel(MOST_LINES);
        let (done, ended) = channel();
        let shared = Arc::new(LogQueue {
            queued: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            has_told: AtomicBool::new(false),
            reopens: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            warn: Box::new(warn),
        });
        let thread = Arc::new(Thread {
            path: path.map(Path::to_owned),
            orders: Mutex::new(orders),
            done,
            is_running: AtomicBool::new(false),
        });
        let log = Self {
            format,
            queue,
            shared,
            thread,
        };
        log.start(target)?;
        Ok((log, Writer(ended)))
    }

    /// Starts the thread that writes.
    fn start(&self, target: Target) -> io::Result<()> {
        let (thread, shared) = (self.thread.clone(), self.shared.clone());
        thread.is_running.store(true, Release);
        let running = Running(thread);
        std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || {
                write_all(target, &running.0.orders.lock(), &shared);
                // Fails if the receiver has given up because the disk was too slow.
                let _ = running.0.done.send(());
            })?;
        Ok(())
    }

    /// Starts another thread that writes, if there is none, and waits for its end. Lines wait meanwhile, as many
    /// as fit.
    ///
    /// # Errors
    /// When the thread has ended too early, when it cannot start, or when the file cannot be opened.
    pub async fn keep_writing(&self) -> io::Result<()> {
        if !self.thread.is_running.load(Acquire) {
            self.start(Target::open(self.thread.path.as_deref())?)?;
        }
        while self.thread.is_running.load(Acquire) {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        match self.shared.ends.load(Acquire) {
            true => Ok(()),
            false => Err(io::Error::other("the thread that writes it has panicked")),
        }
    }

    /// Queues the line of a request.
    pub(crate) fn note(&self, exchange: &Exchange, details: &Details) {
        let mut line = match self.format {
            LogFormat::Common => line::common(exchange, details),
            LogFormat::Combined => line::combined(exchange, details),
            LogFormat::Json => line::as_json(exchange, details),
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

    /// Returns the number of lines that were not written, because the disk was full or because the disk or
    /// the reader of standard output was too slow.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }

    /// Opens the file again, after it was moved away. Returns at once.
    pub fn reopen(&self) {
        self.shared.reopens.store(true, Release);
        // A thread with lines to write reads the flag anyway.
        let _ = self.queue.try_send(Order::Look);
    }

    /// Writes the lines that wait, unless the disk takes longer than a few seconds for them.
    pub fn end(self, writer: &Writer) {
        self.shared.ends.store(true, Release);
        let _ = self.queue.try_send(Order::Look);
        let _ = writer.0.recv_timeout(END_WITHIN);
    }
}

/// Notes the end of the thread, whatever its cause.
struct Running(Arc<Thread>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.is_running.store(false, Release);
    }
}

impl LogQueue {
    /// Counts a line that is not written, and warns once.
    fn drop_one(self: &Arc<Self>, reason: &str) {
        self.dropped.fetch_add(1, Relaxed);
        if self.has_told.swap(true, Relaxed) {
            return;
        }
        let text = format!(
            "access log lines are dropped: {reason} (courser_access_log_dropped_total counts them)"
        );
        let shared = self.clone();
        // The warning may go where nothing reads it, and no request may wait for that.
        let thread = std::thread::Builder::new().name("access-log-warning".to_owned());
        let _ = thread.spawn(move || (shared.warn)(&text));
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

    /// Writes a line with its end in one piece, so that a full disk leaves no half of one behind.
    fn write(&mut self, line: &str) -> io::Result<()> {
        match self {
            Self::StandardOutput(out) => out.write_all(line.as_bytes()),
            Self::File(_, out) => out.write_all(line.as_bytes()),
        }
    }

    fn flush(&mut self) {
        if let Self::File(_, out) = self {
            // Bytes that cannot be written stay in the buffer; lines that do not fit are counted.
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
fn write_all(mut target: Target, orders: &Receiver<Order>, shared: &Arc<LogQueue>) {
    loop {
        let order = orders.recv_timeout(FLUSH_AFTER);
        if shared.reopens.swap(false, Acquire) {
            target.reopen();
        }
        match order {
            Ok(Order::Line(line)) => write_line(&mut target, &line, shared),
            Ok(Order::Look) => {}
            #[cfg(test)]
            Ok(Order::Panic) => panic!("asked to"),
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

fn write_line(target: &mut Target, line: &str, shared: &Arc<LogQueue>) {
    let written = target.write(line);
    shared.queued.fetch_sub(line.len(), Relaxed);
    if let Err(error) = written {
        shared.drop_one(&error.to_string());
    }
}

/// Largest number of lines that wait (K106): a second of a busy server.
const MOST_LINES: usize = 65_536;
/// Largest number of bytes of the lines that wait: as many lines of 128 bytes.
const MOST_BYTES: usize = 8 << 20;
/// Lines reach the file this late at most.
const FLUSH_AFTER: Duration = Duration::from_millis(200);
/// Time between two looks at the thread that writes.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// Time limit for writing the last lines: a disk that hangs does not keep the server from ending.
const END_WITHIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_that_panics_is_replaced_and_no_line_is_lost() {
        let name = format!("courser-access-log-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let (log, writer) =
            AccessLog::open(LogFormat::Common, Some(&path), |text| panic!("{text}"))
                .expect("a file");
        let line = |text: &str| {
            log.shared.queued.fetch_add(text.len(), Relaxed);
            log.queue.send(Order::Line(text.to_owned())).expect("room");
        };
        line("first\n");
        log.queue.send(Order::Panic).expect("room");
        line("second\n");
        let error = log.keep_writing().await.expect_err("it panics");
        assert!(error.to_string().contains("panicked"), "{error}");
        line("third\n");
        let again = log.clone();
        let writing = tokio::spawn(async move { again.keep_writing().await });
        while !log.thread.is_running.load(Acquire) {
            tokio::task::yield_now().await;
        }
        let watched = log.clone();
        log.end(&writer);
        writing.await.expect("no panic").expect("an end");
        assert_eq!(watched.dropped(), 0);
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::remove_file(&path).expect("a file");
        assert_eq!(text, "first\nsecond\nthird\n");
    }
}
