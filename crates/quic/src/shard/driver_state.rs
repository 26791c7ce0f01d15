//! The state that the driver's task shares with the tasks of the application.

use std::task::Waker;

use courser_base::Time;
use courser_base::foreign::ForeignWaker;

use crate::shard::yielding::WriteRun;

/// The state that the driver's task and other tasks share.
#[derive(Debug, Default)]
pub(crate) struct DriverState {
    waker: Option<ForeignWaker>,
    call: Call,
    /// When its alarm will ring.
    pub(crate) alarm: Option<Time>,
    /// Clients that the application may still accept before the driver's next turn.
    pub(crate) accepts_left: usize,
    pub(crate) run: WriteRun,
    turn: u32,
    /// A task has sent since the driver's last turn, because it was about to wait.
    has_task_sent: bool,
}

/// A call for the driver to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Call {
    /// The driver has nothing left to do.
    #[default]
    None,
    /// The driver is to be woken when the lock is released.
    Wanted,
    /// The driver was woken and has not run since.
    Given,
}

impl DriverState {
    /// Has the driver run after the lock is released.
    #[inline]
    pub(crate) fn call(&mut self) {
        if self.call == Call::None {
            self.call = Call::Wanted;
        }
    }

    /// Records that the driver runs, and processes all that other tasks left for it.
    ///
    /// `waker` is taken if there is none from an earlier run, or one of another task.
    pub(crate) fn on_running(&mut self, waker: &mut Option<ForeignWaker>) {
        self.call = Call::None;
        self.turn = self.turn.wrapping_add(1);
        self.has_task_sent = false;
        let is_known = match (&self.waker, &waker) {
            (Some(known), Some(waker)) => known.as_waker().will_wake(waker.as_waker()),
            (known, None) => known.is_some(),
            (None, Some(_)) => false,
        };
        if !is_known {
            std::mem::swap(&mut self.waker, waker);
        }
    }

    /// Returns the number of the driver's latest turn, from 1. Without another turn nothing has arrived and no timer
    /// has expired.
    pub(crate) fn turn(&self) -> u32 {
        self.turn.max(1)
    }

    /// Returns true once between two turns: a task that is about to wait may send.
    pub(crate) fn take_send(&mut self) -> bool {
        !std::mem::replace(&mut self.has_task_sent, true)
    }

    /// Returns the driver's waker if the driver has to run and was not woken yet.
    pub(crate) fn take_wakeup(&mut self) -> Option<Waker> {
        if self.call != Call::Wanted {
            return None;
        }
        self.call = Call::Given;
        // The driver brings another one when it runs.
        self.waker.take().map(ForeignWaker::into_inner)
    }
}
