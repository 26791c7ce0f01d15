//! The wait for a socket that accepts no more, while a batch is kept for it.

use std::task::{Context, Poll};
use std::time::Duration;

use courser_base::Time;
use courser_transport::SocketId;

use crate::runtime::Writability;
use crate::shard::socket_event::SocketCall;
use crate::shard::state::ShardState;

/// Time between two checks of connections that cannot send because a batch waits for its socket (limit
/// K194). Their timers are set when they have sent, which is soon, or never if the socket is broken or
/// a transport accepts nothing.
const BLOCKED_UPKEEP: Duration = Duration::from_millis(100);

/// Waits until the socket of the kept batch is writable, and runs the timers of connections meanwhile.
#[derive(Debug, Default)]
pub(crate) struct BlockedSocket {
    writability: Writability,
    /// The socket whose writability is watched.
    socket: SocketId,
    /// When connections that cannot send are checked next.
    next_check: Option<Time>,
}

impl BlockedSocket {
    /// Tries to send the kept batch. Returns `Ready` when no batch is kept, and otherwise arranges to be woken.
    pub(crate) fn poll_resume(
        &mut self,
        state: &mut ShardState,
        now: Time,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        while state.outbox.timing.is_blocked() {
            if state.outbox.health.is_lost() {
                return Poll::Pending;
            }
            let Some((id, socket)) = state.outbox.blocked_socket() else {
                state.outbox.resume(now);
                continue;
            };
            if std::mem::replace(&mut self.socket, id) != id {
                self.reset();
            }
            match self.writability.poll(&socket, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {
                    state.outbox.resume(now);
                }
                Poll::Ready(Err(error)) => {
                    // No notification will come, for example for lack of descriptors. The next attempt
                    // is made with the next check of blocked connections.
                    self.reset();
                    let health = &mut state.outbox.health;
                    health.note_error(now, SocketCall::Send, &error);
                    if !state.outbox.resume(now) {
                        state.after_errors();
                        return Poll::Pending;
                    }
                }
            }
        }
        Poll::Ready(())
    }

    /// Runs the timers of connections that cannot send, if their check is due.
    pub(crate) fn run_timers(&mut self, state: &mut ShardState, now: Time) {
        if !state.outbox.timing.is_blocked() {
            self.next_check = None;
            return;
        }
        if self.next_check.is_some_and(|due| due <= now) {
            state.settle_senders(now);
            self.next_check = None;
        }
        self.next_check.get_or_insert(now + BLOCKED_UPKEEP);
    }

    /// Returns when connections that cannot send are checked next.
    pub(crate) fn next_check(&self) -> Option<Time> {
        self.next_check
    }

    /// Stops watching the writability of a socket, which may have been replaced.
    pub(crate) fn reset(&mut self) {
        self.writability = Writability::default();
    }
}
