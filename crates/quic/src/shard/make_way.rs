//! Writers that let other tasks run.
//!
//! A writer that is never refused would keep its thread for a whole window, and neither the driver nor a
//! reader would run on it for milliseconds. It makes way when much was written since the driver's last turn.

/// Bytes that tasks may write between two turns of the driver before one makes way (limit K215), 0.2 ms
/// of work. Without a limit eight uploads on one thread moved 14 Gbit/s, and with it 19; half of it cost
/// single transfers 2 %.
const LONGEST_RUN: usize = 512 * 1024;

/// Bytes that tasks have written on a shard since the driver's last turn, or since a writer made way.
#[derive(Debug, Default)]
pub(crate) struct Run {
    written: usize,
}

impl Run {
    #[inline]
    pub(crate) fn on_written(&mut self, bytes: usize) {
        self.written += bytes;
    }

    /// Begins anew: other tasks had a chance to run.
    pub(crate) fn end(&mut self) {
        self.written = 0;
    }

    fn is_long(&self) -> bool {
        self.written >= LONGEST_RUN
    }
}

/// The part of one writer.
#[derive(Debug, Default)]
pub(crate) struct Way {
    /// It has made way, and its next write is accepted.
    was_made: bool,
}

impl Way {
    /// Returns true if the writer's task has to let others run before it writes.
    pub(crate) fn is_due(&mut self, run: &mut Run) -> bool {
        if std::mem::take(&mut self.was_made) {
            run.end();
            return false;
        }
        self.was_made = run.is_long();
        self.was_made
    }
}
