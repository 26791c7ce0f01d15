//! Resets of tunnels over HTTP/2.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;

/// Lets a service reset the stream of a CONNECT over HTTP/2, which otherwise ends as if all were well: the client could not
/// tell a whole message from a part of one (RFC 9113 §8.5). Over HTTP/3 the stream itself can be reset, and a connection of
/// HTTP/1.1 is closed.
///
/// The service inserts it into the extensions of the response that accepts the CONNECT, and keeps a clone.
///
/// ```
/// # mod courser { pub use courser_server as server; }
/// use courser::server::TunnelReset;
///
/// let reset = TunnelReset::default();
/// let mut response = http::Response::new(());
/// response.extensions_mut().insert(reset.clone());
/// // Later, before the upgraded stream is dropped:
/// reset.reset();
/// ```
#[derive(Clone, Debug, Default)]
pub struct TunnelReset(Arc<AtomicBool>);

impl TunnelReset {
    /// Resets the stream, with CANCEL, when the upgraded stream is dropped. What it has not sent yet is lost.
    pub fn reset(&self) {
        self.0.store(true, Relaxed);
    }

    /// Runs the task that sends on the stream until it ends, or until the stream has to be reset: h2 does that when the
    /// task is dropped.
    pub(crate) async fn bound(self, sending: impl Future<Output = ()>) {
        let mut sending = pin!(sending);
        std::future::poll_fn(|cx| match self.0.load(Relaxed) {
            // The drop of the upgraded stream wakes the task.
            true => Poll::Ready(()),
            false => sending.as_mut().poll(cx),
        })
        .await;
    }
}
