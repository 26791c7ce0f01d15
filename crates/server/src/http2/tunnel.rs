//! The requests of HTTP/2 streams that have become tunnels (RFC 8441).
//!
//! hyper drops the body of a response that accepts a CONNECT, and with it the request would no longer be in flight: its
//! memory would be free, and its connection idle. It then hands the executor the task that sends on the stream, which ends with the
//! stream. Both happen in one poll, after the future of the response, so that the request of that task is the last one
//! that was accepted in this thread, provided that its body still exists.

use std::cell::Cell;
use std::sync::{Arc, Weak};

use crate::tally::InFlight;
use crate::tunnel_reset::TunnelReset;

thread_local! {
    static ACCEPTED: Cell<Accepted> = const { Cell::new((Weak::new(), None)) };
}

type Accepted = (Weak<InFlight>, Option<TunnelReset>);

/// Records that a response accepts this CONNECT. Its future must be ready at this poll.
pub(crate) fn on_accepted(request: &Arc<InFlight>, reset: Option<TunnelReset>) {
    ACCEPTED.set((Arc::downgrade(request), reset));
}

/// Returns the request of the tunnel whose task is about to be started, if the task is of a tunnel, and what resets it.
pub(crate) fn begin() -> Option<(Arc<InFlight>, TunnelReset)> {
    let (request, reset) = ACCEPTED.take();
    Some((request.upgrade()?, reset.unwrap_or_default()))
}
