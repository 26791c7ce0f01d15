//! A key log for the analysis of captures, written without delaying handshakes.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use courser_base::Mutex;
use courser_telemetry::{BackgroundWriter, Output};
use rustls::KeyLog;

/// A key log (RFC 9850) that a background thread writes.
///
/// rustls logs secrets during the handshake, where its own `KeyLogFile` waits for the disk. This
/// key log queues each line instead. Lines that do not fit into the queue are dropped and counted,
/// and a comment with their number precedes the next line that fits. Call [`QueuedKeyLog::flush`]
/// before the process ends.
pub struct QueuedKeyLog {
    /// The file, or `None` if the log is disabled.
    file: Option<LogFile>,
    dropped: AtomicU64,
    error: Arc<Mutex<Option<io::Error>>>,
}

struct LogFile {
    writer: BackgroundWriter,
    output: Mutex<Pending>,
}

struct Pending {
    output: Output,
    /// Lines dropped since the last line that was queued.
    missing: u64,
}

impl QueuedKeyLog {
    /// Returns the key log of the process. It writes to the file that the environment variable
    /// `SSLKEYLOGFILE` names at the first call, and logs nothing if the variable is not set.
    pub fn environment() -> Arc<Self> {
        static LOG: OnceLock<Arc<QueuedKeyLog>> = OnceLock::new();
        let open = || {
            let path = std::env::var_os("SSLKEYLOGFILE").filter(|path| !path.is_empty());
            let log = path.map_or_else(|| Ok(Self::off()), |path| Self::append_to(path.into()));
            Arc::new(log.unwrap_or_else(Self::failed))
        };
        LOG.get_or_init(open).clone()
    }

    /// Returns a key log that appends to a file. The background thread opens the file;
    /// [`QueuedKeyLog::take_error`] returns the reason if it cannot be written.
    ///
    /// # Errors
    /// Fails if the system cannot start a thread.
    pub fn append_to(path: PathBuf) -> io::Result<Self> {
        let writer = BackgroundWriter::new("key-log")?;
        Ok(Self::with_output(writer, move || {
            private(OpenOptions::new().append(true).create(true)).open(path)
        }))
    }

    fn with_output<W: Write + Send + 'static>(
        writer: BackgroundWriter,
        open: impl FnOnce() -> io::Result<W> + Send + 'static,
    ) -> Self {
        let error = Arc::new(Mutex::new(None));
        let kept = error.clone();
        let output = writer.output(open, move |error| {
            *kept.lock() = Some(error);
        });
        let output = Mutex::new(Pending { output, missing: 0 });
        Self {
            file: Some(LogFile { writer, output }),
            dropped: AtomicU64::new(0),
            error,
        }
    }

    fn off() -> Self {
        Self {
            file: None,
            dropped: AtomicU64::new(0),
            error: Arc::default(),
        }
    }

    fn failed(error: io::Error) -> Self {
        Self {
            error: Arc::new(Mutex::new(Some(error))),
            ..Self::off()
        }
    }

    /// Waits until the lines logged so far are written, at most for 5 seconds. Returns false after
    /// that time.
    ///
    /// Blocks the thread, so call it at the end of the process.
    pub fn flush(&self) -> bool {
        let written = |file: &LogFile| file.writer.flush(FLUSH_TIMEOUT);
        self.file.as_ref().is_none_or(written)
    }

    /// Returns the number of lines dropped because the disk was too slow.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns the error of opening or writing the file, if there was one, and clears it.
    pub fn take_error(&self) -> Option<io::Error> {
        let mut kept = self.error.lock();
        kept.take()
    }
}

/// Lets only the owner read a new file, because it decrypts captures.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

impl KeyLog for QueuedKeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let Some(file) = &self.file else { return };
        let mut pending = file.output.lock();
        let mut line = Vec::with_capacity(256);
        // Writing into memory cannot fail.
        if pending.missing > 0 {
            let _ = writeln!(line, "# {} lines were dropped here", pending.missing);
        }
        let _ = writeln!(line, "{label} {} {}", Hex(client_random), Hex(secret));
        match pending.output.write_all(&line) {
            Ok(()) => pending.missing = 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                pending.missing += 1;
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
            // `take_error` returns it.
            Err(_) => {}
        }
    }

    fn will_log(&self, _: &str) -> bool {
        self.file.is_some()
    }
}

impl fmt::Debug for QueuedKeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedKeyLog")
            .field("is_on", &self.file.is_some())
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Maximum time that a flush waits, so that a stalled disk does not keep the process from ending.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
