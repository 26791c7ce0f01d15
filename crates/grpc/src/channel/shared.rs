//! The state of a channel.

use std::sync::Arc;
use std::time::Duration;

use courser_base::Mutex;
use courser_client::{Client, Origin};
use http::{HeaderValue, Uri};
use tokio::sync::{Notify, Semaphore};

use super::balancer::Balancer;

/// The state that all clones share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) targets: Vec<Target>,
    pub(super) settings: Settings,
    pub(super) balancer: Mutex<Balancer>,
    /// Notifies calls that wait for a connection.
    pub(super) changed: Notify,
    /// The calls that may be open at a time.
    pub(super) calls: Option<Arc<Semaphore>>,
}

/// A server by name.
pub(super) struct Target {
    /// The server to resolve and connect to.
    pub(super) server: Origin,
    /// The scheme and authority of its requests, to which its certificate belongs.
    pub(super) origin: Origin,
    pub(super) uri: Uri,
}

pub(super) struct Settings {
    pub(super) timeout: Option<Duration>,
    pub(super) refresh: Duration,
    pub(super) probe_after: Duration,
    pub(super) waits_for_ready: bool,
    pub(super) user_agent: HeaderValue,
}
