//! Warns about slow sockets and lost records while a program runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use courser::Endpoint;
use tokio::task::JoinHandle;

use crate::records::Records;
use crate::sockets;

/// Watches UDP sockets, traces and key logs while a program runs.
pub struct Watch {
    endpoints: Endpoints,
    warner: Arc<Warner>,
    task: JoinHandle<()>,
}

/// Returns the endpoints whose sockets are watched. The program may replace an endpoint, so the results must
/// not be kept.
type Endpoints = Arc<dyn Fn() -> Vec<Endpoint> + Send + Sync>;

/// The receiver of warnings.
struct Warner {
    warn: Box<dyn Fn(&str) + Send + Sync>,
    /// True once dropped datagrams were reported.
    has_warned: AtomicBool,
}

impl Watch {
    /// Starts watching, on the current tokio runtime.
    ///
    /// Each check covers the sockets of the endpoints that `endpoints` returns at that time. Calls `warn` for
    /// each reason why the sockets are slow, once when the kernel drops datagrams, and once when records are
    /// dropped.
    pub fn begin(
        endpoints: impl Fn() -> Vec<Endpoint> + Send + Sync + 'static,
        records: &'static Records,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let slow = sockets::warnings(&endpoints());
        slow.iter().for_each(|text| warn(text));
        let warner = Arc::new(Warner {
            warn: Box::new(warn),
            has_warned: AtomicBool::new(false),
        });
        let endpoints: Endpoints = Arc::new(endpoints);
        let (watched, shared) = (endpoints.clone(), warner.clone());
        let task = tokio::spawn(async move {
            let mut has_gaps = false;
            while !shared.has_warned.load(Relaxed) || !has_gaps {
                tokio::time::sleep(CHECK_INTERVAL).await;
                shared.check(&watched());
                if !has_gaps && let Some(text) = records.gaps() {
                    has_gaps = true;
                    (shared.warn)(&text);
                }
            }
        });
        Self {
            endpoints,
            warner,
            task,
        }
    }

    /// Checks for dropped datagrams one last time, and stops watching.
    pub fn end(self) {
        self.task.abort();
        self.warner.check(&(self.endpoints)());
    }
}

impl Warner {
    /// Warns if datagrams were dropped, unless that was reported before.
    fn check(&self, endpoints: &[Endpoint]) {
        if let Some(text) = sockets::drop_warning(endpoints)
            && !self.has_warned.swap(true, Relaxed)
        {
            (self.warn)(&text);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// The time between two checks. A check costs one system call per socket.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
