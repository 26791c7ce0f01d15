//! Writers that yield to other tasks.
//!
//! A writer that is never refused would keep its thread for a whole window, and neither the driver nor a
//! reader would run on it for milliseconds. It yields when much was written since the driver's last turn.

/// Bytes that tasks may write between two turns of the driver before a writer yields (limit K215), 0.2 ms
/// of work. Without a limit eight uploads on one thread moved 14 Gbit/s, and with it 19; half of it cost
/// single transfers 2 %.
const LONGEST_RUN: usize = 512 * 1024;

/// The bytes that tasks have written on a shard since the driver's last turn, or since a writer yielded.
#[derive(Debug, Default)]
pub(crate) struct WriteRun {
    written: usize,
}

impl WriteRun {
    #[inline]
    pub(crate) fn on_written(&mut self, bytes: usize) {
        self.written += bytes;
    }

    /// Starts over, because other tasks could run.
    pub(crate) fn end(&mut self) {
        self.written = 0;
    }

    fn is_long(&self) -> bool {
        self.written >= LONGEST_RUN
    }
}

/// The decision of one writer whether to yield.
#[derive(Debug, Default)]
pub(crate) struct Yielding {
    /// The writer has yielded, and its next write is accepted.
    has_yielded: bool,
}

impl Yielding {
    /// Returns true if the task of the writer must let others run before it writes.
    pub(crate) fn is_due(&mut self, run: &mut WriteRun) -> bool {
        if std::mem::take(&mut self.has_yielded) {
            run.end();
            return false;
        }
        self.has_yielded = run.is_long();
        self.has_yielded
    }
}
