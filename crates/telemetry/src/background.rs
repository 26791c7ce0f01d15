//! Files that a background thread writes.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, PoisonError};
use std::time::Duration;

use courser_base::Mutex;

/// Writes files on a background thread, so that producers of data never wait for a disk.
///
/// An [`Output`] is the handle of one file. Data that does not fit into the queue is dropped and
/// counted in [`BackgroundWriter::dropped`]. Clones share the thread. The thread ends once all
/// clones and outputs are dropped and all queued data is written. Call [`BackgroundWriter::flush`]
/// before the process ends.
///
/// ```
/// use std::io::Write as _;
/// use std::time::Duration;
/// use courser_telemetry::BackgroundWriter;
///
/// # fn main() -> std::io::Result<()> {
/// let writer = BackgroundWriter::new("traces")?;
/// let mut output = writer.output(|| Ok(std::io::sink()), |error| eprintln!("{error}"));
/// output.write_all(b"does not wait")?;
/// assert!(writer.flush(Duration::from_secs(5)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct BackgroundWriter(Arc<Handle>);

/// Amount of data that did not fit into the queue of a [`BackgroundWriter`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DroppedWrites {
    /// Number of calls of [`Output::write`] that were refused.
    pub writes: u64,
    /// Number of bytes in those calls.
    pub bytes: u64,
}

impl BackgroundWriter {
    /// Starts the thread with a queue of [`QUEUE_BYTES`].
    ///
    /// # Errors
    /// Fails if the system cannot start another thread.
    pub fn new(name: &str) -> io::Result<Self> {
        Self::with_capacity(name, QUEUE_BYTES)
    }

    /// Starts the thread with a queue of `capacity` bytes. A write larger than the queue is always
    /// dropped.
    ///
    /// # Errors
    /// Fails if the system cannot start another thread.
    pub fn with_capacity(name: &str, capacity: usize) -> io::Result<Self> {
        let shared = Arc::new(WriterState {
            capacity,
            queue: Mutex::default(),
            has_work: Condvar::new(),
            has_progress: Condvar::new(),
            dropped_writes: AtomicU64::new(0),
            dropped_bytes: AtomicU64::new(0),
        });
        let state = shared.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&state))?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// Adds a file. The thread calls `open` before the first write. If `open` or a write fails, the
    /// thread calls `on_error` with the error and the output accepts no more data.
    pub fn output<W: Write + Send + 'static>(
        &self,
        open: impl FnOnce() -> io::Result<W> + Send + 'static,
        on_error: impl FnOnce(io::Error) + Send + 'static,
    ) -> Output {
        let state = Arc::new(OutputState::default());
        let opener = Opener {
            open: Box::new(move || open().map(|target| Box::new(target) as Box<dyn Write + Send>)),
            on_error: Box::new(on_error),
            state: state.clone(),
        };
        Output {
            writer: self.clone(),
            file: OutputFile::Unopened(Box::new(opener)),
            state,
        }
    }

    /// Waits until all data queued so far is written, at most for `within`. Returns false if that
    /// time has passed.
    pub fn flush(&self, within: Duration) -> bool {
        let shared = &self.0.0;
        let queue = shared.queue.lock();
        let target = queue.accepted;
        let is_pending = |queue: &mut Queue| queue.performed < target && !queue.is_abandoned;
        let (queue, _) = shared
            .has_progress
            .wait_timeout_while(queue, within, is_pending)
            .unwrap_or_else(PoisonError::into_inner);
        queue.performed >= target
    }

    /// Returns the amount of data dropped so far.
    pub fn dropped(&self) -> DroppedWrites {
        let shared = &self.0.0;
        DroppedWrites {
            writes: shared.dropped_writes.load(Ordering::Relaxed),
            bytes: shared.dropped_bytes.load(Ordering::Relaxed),
        }
    }
}

/// A file of a [`BackgroundWriter`].
///
/// [`Write::write`] queues all bytes or none, and never waits. If the queue is full, it returns
/// [`io::ErrorKind::WouldBlock`] and counts the bytes as dropped. After the file has failed, it
/// returns [`io::ErrorKind::BrokenPipe`]. [`Write::flush`] does nothing.
#[derive(Debug)]
pub struct Output {
    writer: BackgroundWriter,
    file: OutputFile,
    state: Arc<OutputState>,
}

#[derive(Debug)]
enum OutputFile {
    /// No data was queued yet.
    Unopened(Box<Opener>),
    /// Data was queued. The number identifies the file in the queue.
    Opened(u64),
    /// A transient state while the output changes from unopened to opened.
    Taken,
}

#[derive(Debug, Default)]
struct OutputState {
    has_failed: AtomicBool,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.state.has_failed.load(Ordering::Relaxed) {
            let message = "an earlier write to this file failed";
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, message));
        }
        let shared = &self.writer.0.0;
        // Allocated before the lock is taken, so that the lock is held briefly.
        let copy = bytes.to_vec();
        let mut queue = shared.queue.lock();
        let cost = cost_of(bytes.len());
        if queue.is_abandoned || queue.bytes.saturating_add(cost) > shared.capacity {
            drop(queue);
            shared.dropped_writes.fetch_add(1, Ordering::Relaxed);
            let len = bytes.len() as u64;
            shared.dropped_bytes.fetch_add(len, Ordering::Relaxed);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let file = match std::mem::replace(&mut self.file, OutputFile::Taken) {
            OutputFile::Opened(file) => file,
            OutputFile::Unopened(opener) => {
                queue.files += 1;
                let file = queue.files;
                queue.push(file, Work::Open(opener));
                file
            }
            OutputFile::Taken => unreachable!("Taken is replaced before the lock is released"),
        };
        self.file = OutputFile::Opened(file);
        queue.bytes += cost;
        queue.push(file, Work::Write(copy));
        drop(queue);
        shared.has_work.notify_one();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // The thread closes the file, because closing may block as well. A full queue accepts this
        // entry too, because there are at most as many as open files.
        if let OutputFile::Opened(file) = self.file {
            let shared = &self.writer.0.0;
            shared.queue.lock().push(file, Work::Close);
            shared.has_work.notify_one();
        }
    }
}

/// Ends the thread when the last clone is dropped.
#[derive(Debug)]
struct Handle(Arc<WriterState>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.queue.lock().is_over = true;
        self.0.has_work.notify_one();
    }
}

/// State shared by the thread and its writers. The lock is never held during I/O.
#[derive(Debug)]
struct WriterState {
    capacity: usize,
    queue: Mutex<Queue>,
    has_work: Condvar,
    has_progress: Condvar,
    dropped_writes: AtomicU64,
    dropped_bytes: AtomicU64,
}

impl WriterState {
    /// Waits for the next entry of the queue. Returns `None` if the queue is empty and all handles
    /// are dropped.
    fn next(&self) -> Option<(u64, Work)> {
        let waits = |queue: &mut Queue| queue.entries.is_empty() && !queue.is_over;
        let queue = self.has_work.wait_while(self.queue.lock(), waits);
        queue
            .unwrap_or_else(PoisonError::into_inner)
            .entries
            .pop_front()
    }

    fn on_performed(&self, cost: usize) {
        let mut queue = self.queue.lock();
        queue.bytes -= cost;
        queue.performed += 1;
        drop(queue);
        self.has_progress.notify_all();
    }
}

#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<(u64, Work)>,
    /// Cost in bytes of the writes that are queued or in progress.
    bytes: usize,
    /// Number of the newest file; files count from 1.
    files: u64,
    accepted: u64,
    performed: u64,
    /// All handles are dropped, so no more work can arrive.
    is_over: bool,
    /// The thread has ended. An output can observe this only after the writer of a file panicked.
    is_abandoned: bool,
}

impl Queue {
    fn push(&mut self, file: u64, work: Work) {
        self.accepted += 1;
        self.entries.push_back((file, work));
    }
}

enum Work {
    Open(Box<Opener>),
    Write(Vec<u8>),
    Close,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Bytes stay out of logs, because they may be secrets.
        f.write_str(match self {
            Self::Open(_) => "Open",
            Self::Write(_) => "Write",
            Self::Close => "Close",
        })
    }
}

struct Opener {
    open: Box<dyn FnOnce() -> io::Result<Box<dyn Write + Send>> + Send>,
    on_error: Box<dyn FnOnce(io::Error) + Send>,
    state: Arc<OutputState>,
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").finish_non_exhaustive()
    }
}

/// A file that the thread has opened.
struct Target {
    out: Box<dyn Write + Send>,
    on_error: Box<dyn FnOnce(io::Error) + Send>,
    state: Arc<OutputState>,
}

impl Target {
    fn open(opener: Opener) -> Option<Self> {
        match (opener.open)() {
            Ok(out) => Some(Self {
                out,
                on_error: opener.on_error,
                state: opener.state,
            }),
            Err(error) => {
                opener.state.has_failed.store(true, Ordering::Relaxed);
                (opener.on_error)(error);
                None
            }
        }
    }

    fn write(mut self, bytes: &[u8]) -> Option<Self> {
        let written = self.out.write_all(bytes);
        match written.and_then(|()| self.out.flush()) {
            Ok(()) => Some(self),
            Err(error) => {
                self.state.has_failed.store(true, Ordering::Relaxed);
                (self.on_error)(error);
                None
            }
        }
    }
}

/// Runs the thread: performs the work in the queue until all handles are dropped and the queue is
/// empty.
fn run(shared: &WriterState) {
    let _abandon = AbandonOnDrop(shared);
    let mut targets = HashMap::new();
    while let Some((file, work)) = shared.next() {
        let mut cost = 0;
        let target = match work {
            Work::Open(opener) => Target::open(*opener),
            Work::Write(bytes) => {
                cost = cost_of(bytes.len());
                let target: Option<Target> = targets.remove(&file);
                target.and_then(|target| target.write(&bytes))
            }
            Work::Close => {
                targets.remove(&file);
                None
            }
        };
        if let Some(target) = target {
            targets.insert(file, target);
        }
        shared.on_performed(cost);
    }
}

/// Marks the thread as ended and wakes all waiting flushes on drop, also after a panic.
struct AbandonOnDrop<'a>(&'a WriterState);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.is_abandoned = true;
        queue.entries.clear();
        drop(queue);
        self.0.has_progress.notify_all();
    }
}

/// Returns the part of the queue's capacity, in bytes, that a write of `len` bytes takes.
const fn cost_of(len: usize) -> usize {
    len.saturating_add(WRITE_OVERHEAD)
}

/// Default capacity of the queue in bytes (limit K90): the trace of a connection at 1 Gbit/s for a
/// third of a second.
pub const QUEUE_BYTES: usize = 16 << 20;
/// Cost of a queue entry and its allocation in bytes, so that many small writes are bounded as
/// well.
const WRITE_OVERHEAD: usize = 128;

#[cfg(test)]
mod tests;
