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

use courser::server::OwnResponse;
use courser_base::Mutex;

#[cfg(test)]
pub(crate) use self::line::MAX_LINE;
pub(crate) use self::line::{cut, escape, protocol};
use crate::exchange::{Details, Exchange};
use crate::request_id::RequestId;

/// The format of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// Common Log Format: client, time, request line, status and size.
    Common,
    /// Common Log Format with Referer and User-Agent.
    Combined,
    /// One JSON object per line.
    Json,
}

/// Writes a line for each request on a thread of its own, so that a slow disk delays no request. Lines that do
/// not fit into the queue are dropped and counted (limit K106).
#[derive(Clone, Debug)]
pub struct AccessLog {
    format: LogFormat,
    queue: SyncSender<Order>,
    shared: Arc<LogQueue>,
    /// State of the writing thread, shared with a thread that replaces it.
    thread: Arc<Thread>,
}

/// State of the writing thread. It outlives the thread, so that a replacement can continue after a panic.
#[derive(Debug)]
struct Thread {
    path: Option<PathBuf>,
    orders: Mutex<Receiver<Order>>,
    /// Reports to [`Writer`] that all lines are written.
    done: Sender<()>,
    is_running: AtomicBool,
}

/// Waits for the end of the thread of an [`AccessLog`]; pass it to [`AccessLog::end`] after the last request.
#[derive(Debug)]
pub struct Writer(Receiver<()>);

/// State that requests share with the writing thread through atomics, so that no request waits for the disk.
struct LogQueue {
    /// Total size of the queued lines in bytes.
    queued: AtomicUsize,
    /// Number of the queued lines.
    lines: AtomicU64,
    dropped: AtomicU64,
    has_warned: AtomicBool,
    /// True from a failed write until one succeeds.
    is_failing: AtomicBool,
    /// Set after the file was moved away; the thread then opens the path again.
    reopen_requested: AtomicBool,
    end_requested: AtomicBool,
    /// Receives the warnings that [`AccessLog::open`] lists.
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
    /// Wakes the thread, so that it reads `reopen_requested` and `end_requested`.
    Wake,
    #[cfg(test)]
    Panic,
}

impl AccessLog {
    /// Opens a log that appends to the file `path`, or writes to standard output if it is `None`. `warn` is
    /// called on a thread of its own: when the first line is dropped, when the file cannot be written and when it can
    /// again, and when it cannot be opened again.
    ///
    /// # Errors
    /// The file cannot be opened, or the thread cannot start.
    pub fn open(
        format: LogFormat,
        path: Option<&Path>,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<(Self, Writer)> {
        let target = Target::open(path)?;
        let (queue, orders) = sync_channel(MAX_LINES);
        let (done, ended) = channel();
        let shared = Arc::new(LogQueue {
            queued: AtomicUsize::new(0),
            lines: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            has_warned: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
            reopen_requested: AtomicBool::new(false),
            end_requested: AtomicBool::new(false),
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

    /// Starts the writing thread.
    fn start(&self, target: Target) -> io::Result<()> {
        let (thread, shared) = (self.thread.clone(), self.shared.clone());
        thread.is_running.store(true, Release);
        let running = Running(thread);
        std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || {
                write_all(target, &running.0.orders.lock(), &shared);
                // Fails if `end` has timed out because the disk was too slow.
                let _ = running.0.done.send(());
            })?;
        Ok(())
    }

    /// Starts a new writing thread if none runs, and waits until it ends. Lines are queued meanwhile, up to the
    /// limit.
    ///
    /// # Errors
    /// The thread panicked, it cannot start, or the file cannot be opened.
    pub async fn keep_writing(&self) -> io::Result<()> {
        if !self.thread.is_running.load(Acquire) {
            self.start(Target::open(self.thread.path.as_deref())?)?;
        }
        while self.thread.is_running.load(Acquire) {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
        match self.shared.end_requested.load(Acquire) {
            true => Ok(()),
            false => Err(io::Error::other(
                "the writing thread of the access log panicked",
            )),
        }
    }

    /// Returns true if lines include the ID of the request.
    pub(crate) fn has_request_ids(&self) -> bool {
        self.format == LogFormat::Json
    }

    /// Queues the line of a request that the server answered itself
    /// ([`on_own_response`](courser::server::Server::on_own_response)).
    pub fn record_own(&self, response: &OwnResponse<'_>) {
        let mut details = Details::of_own(response);
        if self.has_request_ids() {
            details.request_id = Some(RequestId::next());
        }
        self.record(&Exchange::of_own(response), &details);
    }

    /// Queues the line of a request.
    pub(crate) fn record(&self, exchange: &Exchange, details: &Details) {
        self.record_line(match self.format {
            LogFormat::Common => line::common(exchange, details),
            LogFormat::Combined => line::combined(exchange, details),
            LogFormat::Json => line::as_json(exchange, details),
        });
    }

    /// Queues a line of another format, without its line break.
    pub(crate) fn record_line(&self, mut line: String) {
        line.push('\n');
        debug_assert!(line.len() <= line::MAX_LINE, "{} bytes", line.len());
        line.shrink_to_fit();
        let len = line.len();
        let before = self.shared.queued.fetch_add(len, Relaxed);
        let fits = before + len <= MAX_BYTES;
        self.shared.lines.fetch_add(1, Relaxed);
        if !fits || self.queue.try_send(Order::Line(line)).is_err() {
            self.shared.queued.fetch_sub(len, Relaxed);
            self.shared.lines.fetch_sub(1, Relaxed);
            self.shared.count_dropped_line();
        }
    }

    /// Returns the number of lines that were dropped because the disk was full, or because the disk or the
    /// reader of standard output was too slow.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }

    /// Requests that the file is opened again after it was moved away. Returns at once.
    pub fn reopen(&self) {
        self.shared.reopen_requested.store(true, Release);
        // If the queue is full, the thread is awake and reads the flag after the next line.
        let _ = self.queue.try_send(Order::Wake);
    }

    /// Writes the queued lines and ends the thread. Gives up after this time if the disk or the reader of standard
    /// output is slow. Returns the number of lines that were lost then.
    pub fn end(self, writer: &Writer, within: Duration) -> u64 {
        self.shared.end_requested.store(true, Release);
        let _ = self.queue.try_send(Order::Wake);
        if writer.0.recv_timeout(within).is_ok() {
            return 0;
        }
        let lost = self.shared.lines.load(Relaxed);
        self.shared.dropped.fetch_add(lost, Relaxed);
        lost
    }
}

/// Clears `is_running` when the thread ends, including by a panic.
struct Running(Arc<Thread>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.is_running.store(false, Release);
    }
}

impl LogQueue {
    /// Counts a line for which the queue has no room, and warns of the first one.
    fn count_dropped_line(self: &Arc<Self>) {
        self.dropped.fetch_add(1, Relaxed);
        if !self.has_warned.swap(true, Relaxed) {
            self.warn(
                "access log lines are dropped: the disk or the reader is too slow \
                 (courser_access_log_dropped_total counts them)"
                    .to_owned(),
            );
        }
    }

    /// Warns of an error, unless the write before has failed too.
    fn on_write_error(self: &Arc<Self>, error: &io::Error) {
        if !self.is_failing.swap(true, Relaxed) {
            self.warn(format!(
                "cannot write the access log: {error}; lines beyond a few are dropped \
                 (courser_access_log_dropped_total counts them)"
            ));
        }
    }

    fn warn(self: &Arc<Self>, text: String) {
        let shared = self.clone();
        // The callback may block, for example on a pipe without a reader, and no request may wait for it.
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

    /// Writes a line and its line break in one call, so that a full disk leaves no partial line.
    fn write(&mut self, line: &str) -> io::Result<()> {
        match self {
            Self::StandardOutput(out) => out.write_all(line.as_bytes()),
            Self::File(_, out) => out.write_all(line.as_bytes()),
        }
    }

    /// Writes what is buffered. Bytes that cannot be written stay in the buffer; lines that do not fit are counted.
    fn flush(&mut self, shared: &Arc<LogQueue>) {
        let Self::File(_, out) = self else {
            return;
        };
        match out.flush() {
            Ok(()) => {
                if shared.is_failing.swap(false, Relaxed) {
                    shared.warn("the access log is written again".to_owned());
                }
            }
            Err(error) => shared.on_write_error(&error),
        }
    }

    fn reopen(&mut self, shared: &Arc<LogQueue>) {
        self.flush(shared);
        let Self::File(path, out) = self else {
            return;
        };
        match append_to(path) {
            Ok(file) => *out = file,
            Err(error) => shared.warn(format!(
                "cannot open the access log {} again: {error}; lines go to the file that was open before",
                path.display()
            )),
        }
    }
}

fn append_to(path: &Path) -> io::Result<BufWriter<File>> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    // To open a pipe for writing only waits for its reader. Lines wait in it otherwise, and are dropped when it is full.
    if is_pipe(path) {
        options.read(true);
    }
    Ok(BufWriter::new(options.open(path)?))
}

#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    std::fs::metadata(path).is_ok_and(|it| it.file_type().is_fifo())
}

#[cfg(not(unix))]
const fn is_pipe(_: &Path) -> bool {
    false
}

/// Writes lines until the server ends.
fn write_all(mut target: Target, orders: &Receiver<Order>, shared: &Arc<LogQueue>) {
    loop {
        let order = orders.recv_timeout(FLUSH_AFTER);
        if shared.reopen_requested.swap(false, Acquire) {
            target.reopen(shared);
        }
        match order {
            Ok(Order::Line(line)) => write_line(&mut target, &line, shared),
            Ok(Order::Wake) => {}
            #[cfg(test)]
            Ok(Order::Panic) => panic!("panic requested by the test"),
            Err(RecvTimeoutError::Timeout) => target.flush(shared),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if shared.end_requested.load(Acquire) {
            for order in orders.try_iter() {
                if let Order::Line(line) = order {
                    write_line(&mut target, &line, shared);
                }
            }
            break;
        }
    }
    target.flush(shared);
}

fn write_line(target: &mut Target, line: &str, shared: &Arc<LogQueue>) {
    let written = target.write(line);
    shared.queued.fetch_sub(line.len(), Relaxed);
    shared.lines.fetch_sub(1, Relaxed);
    if let Err(error) = written {
        shared.dropped.fetch_add(1, Relaxed);
        shared.on_write_error(&error);
    }
}

/// Largest number of queued lines (limit K106): about one second of a busy server.
const MAX_LINES: usize = 65_536;
/// Largest size of the queued lines: [`MAX_LINES`] lines of 128 bytes.
const MAX_BYTES: usize = 8 << 20;
/// Longest time before a line reaches the file.
const FLUSH_AFTER: Duration = Duration::from_millis(200);
/// Interval at which [`AccessLog::keep_writing`] checks that the thread runs.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the path of a new pipe, or `None` if this system has no `mkfifo`.
    #[cfg(unix)]
    fn pipe(name: &str) -> Option<PathBuf> {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        made.is_ok_and(|status| status.success()).then_some(path)
    }

    /// Fault F134.
    #[cfg(unix)]
    #[test]
    fn pipe_without_a_reader_delays_neither_the_start_nor_the_end() {
        let Some(path) = pipe("courser-access-log-unread") else {
            return;
        };
        let (log, writer) =
            AccessLog::open(LogFormat::Common, Some(&path), |_| {}).expect("a pipe");
        let line = "line\n".to_owned();
        log.shared.queued.fetch_add(line.len(), Relaxed);
        log.shared.lines.fetch_add(1, Relaxed);
        log.queue.try_send(Order::Line(line)).expect("room");
        log.reopen();
        assert_eq!(log.end(&writer, Duration::from_secs(20)), 0);
        std::fs::remove_file(&path).expect("a pipe");
    }

    #[cfg(unix)]
    #[test]
    fn reader_that_stalls_does_not_delay_the_end_and_lost_lines_are_counted() {
        let Some(path) = pipe("courser-access-log-fifo") else {
            return;
        };
        // Opened for both, so that opening does not wait for the other end. It is never read.
        let _both = OpenOptions::new().read(true).write(true).open(&path);
        let (log, writer) =
            AccessLog::open(LogFormat::Common, Some(&path), |_| {}).expect("a pipe");
        for _ in 0..2000 {
            let line = "x".repeat(100);
            log.shared.queued.fetch_add(line.len(), Relaxed);
            log.shared.lines.fetch_add(1, Relaxed);
            log.queue
                .try_send(Order::Line(line))
                .expect("there is room");
        }
        let (began, watched) = (std::time::Instant::now(), log.clone());
        let lost = log.end(&writer, Duration::from_millis(300));
        std::fs::remove_file(&path).expect("a pipe");
        assert!(began.elapsed() < Duration::from_secs(5));
        // A pipe holds 64 KiB.
        assert!((1000..2000).contains(&lost), "{lost}");
        assert_eq!(watched.dropped(), lost);
    }

    /// A file whose writes fail, as on a full disk, is reported once; so is a directory that has vanished.
    #[cfg(target_os = "linux")]
    #[test]
    fn file_that_cannot_be_written_or_opened_again_is_reported() {
        let folder = std::env::temp_dir().join(format!("courser-log-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder");
        let path = folder.join("log");
        std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
        let (sender, warnings) = channel();
        let warn = move |text: &str| sender.send(text.to_owned()).expect("a receiver");
        let (log, writer) = AccessLog::open(LogFormat::Common, Some(&path), warn).expect("open");
        let order = |text: &str| {
            log.shared.queued.fetch_add(text.len(), Relaxed);
            log.shared.lines.fetch_add(1, Relaxed);
            let order = Order::Line(text.to_owned());
            log.queue.send(order).expect("the log task runs");
        };
        let warning = || {
            let received = warnings.recv_timeout(Duration::from_secs(20));
            received.expect("a warning")
        };
        order("first\n");
        let text = warning();
        assert!(text.contains("cannot write the access log"), "{text}");
        assert!(text.contains("No space left"), "{text}");
        std::fs::remove_dir_all(&folder).expect("a folder");
        log.reopen();
        let text = warning();
        assert!(text.contains("cannot open the access log"), "{text}");
        std::fs::create_dir(&folder).expect("a folder");
        log.reopen();
        order("second\n");
        let text = warning();
        assert!(text.contains("written again"), "{text}");
        log.end(&writer, Duration::from_secs(5));
        let text = std::fs::read_to_string(&path).expect("a file");
        assert_eq!(text, "second\n");
        std::fs::remove_dir_all(&folder).expect("a folder");
    }

    #[tokio::test]
    async fn thread_that_panics_is_replaced_and_no_line_is_lost() {
        let name = format!("courser-access-log-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let (log, writer) =
            AccessLog::open(LogFormat::Common, Some(&path), |text| panic!("{text}"))
                .expect("a file");
        let line = |text: &str| {
            log.shared.queued.fetch_add(text.len(), Relaxed);
            log.shared.lines.fetch_add(1, Relaxed);
            log.queue
                .send(Order::Line(text.to_owned()))
                .expect("the log task runs");
        };
        line("first\n");
        log.queue.send(Order::Panic).expect("the log task runs");
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
        assert_eq!(log.end(&writer, Duration::from_secs(5)), 0);
        writing.await.expect("no panic").expect("an end");
        assert_eq!(watched.dropped(), 0);
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::remove_file(&path).expect("a file");
        assert_eq!(text, "first\nsecond\nthird\n");
    }
}
