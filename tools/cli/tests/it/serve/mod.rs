//! `courser serve` over all three protocols.

#[cfg(target_os = "linux")]
mod activation;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod bursts;
mod certificate_warnings;
mod client;
mod connection_ids;
#[cfg(unix)]
mod early_data;
#[cfg(target_os = "linux")]
mod exhausted;
mod files;
mod limits;
mod malformed;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod memory_tcp;
mod monitoring;
mod moves;
mod names;
mod observed;
mod proxy;
mod refused_lines;
#[cfg(unix)]
mod remember_paths;
mod restart;
mod running;
pub(crate) mod serving;
mod shards;
#[cfg(unix)]
mod signals;
mod target;
pub(crate) mod tls;
mod tls_notes;
#[cfg(target_os = "linux")]
mod upgrade;
mod upstream;
#[cfg(target_os = "linux")]
mod warnings;

use std::future::Future;
use std::time::Duration;

/// Adds a time limit to a future, so that a test that hangs fails at the caller's line.
#[track_caller]
pub(crate) fn within<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    async move {
        tokio::time::timeout(Duration::from_secs(180), future)
            .await
            .unwrap_or_else(|_| panic!("time limit exceeded at {place}"))
    }
}
