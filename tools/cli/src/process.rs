//! The process of a command: its runtime, its core, its signals, its traces and key log.

use courser_measure::Records;

use crate::error::Failure;

/// The traces and the key log of this process.
pub(crate) static RECORDS: Records = Records::new();

/// Creates a runtime on the calling thread. An endpoint is one task, so that the CPU clock of the thread
/// measures the cost of that end.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start a runtime: {error}")))
}

/// Creates a runtime for a server: on the calling thread for one shard, with a thread per shard for more.
pub(crate) fn runtime_for(shards: u16) -> Result<tokio::runtime::Runtime, Failure> {
    if shards == 1 {
        return runtime();
    }
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(usize::from(shards))
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start a runtime: {error}")))
}

/// Pins this thread, and the threads that it starts later, to a core if one is given.
pub(crate) fn pin(core: Option<usize>) -> Result<(), Failure> {
    match core {
        Some(core) => courser_measure::pin_to(core).map_err(Failure::new),
        None => Ok(()),
    }
}

/// Resolves when the user or the system asks the process to end.
pub(crate) async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
