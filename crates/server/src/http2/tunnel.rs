//! The requests of HTTP/2 streams that have become tunnels (RFC 8441).
//!
//! hyper drops the body of a response that accepts a CONNECT, and with it the request would no longer be in flight: its
//! memory would be free, and its connection idle. It then hands the executor the task that sends on the stream, which ends with the
//! stream. Both happen in one poll, after the future of the response, so that the request of that task is the last one
//! that was accepted in this thread, provided that its body still exists.

use std::cell::Cell;
use std::sync::{Arc, Weak};

use crate::tally::InFlight;

thread_local! {
    static ACCEPTED: Cell<Weak<InFlight>> = const { Cell::new(Weak::new()) };
}

/// Records that a response accepts this CONNECT. Its future must be ready at this poll.
pub(crate) fn on_accepted(request: &Arc<InFlight>) {
    ACCEPTED.set(Arc::downgrade(request));
}

/// Returns the request of the tunnel whose task is about to be started, if the task is of a tunnel.
pub(crate) fn begin() -> Option<Arc<InFlight>> {
    ACCEPTED.take().upgrade()
}
