//! System signals that end a server.

/// Completes at the first SIGTERM or SIGINT, or at Ctrl-C on systems other than Unix. Intended for
/// [`Server::drain`](super::Server::drain).
///
/// Once this is called, these signals no longer terminate the process.
///
/// # Panics
/// Panics outside of a tokio runtime.
pub fn shutdown_signal() -> impl Future<Output = ()> + Send + 'static {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{Signal, SignalKind, signal};
        // Never completes if the system does not support the signal.
        async fn next(signal: std::io::Result<Signal>) {
            match signal {
                Ok(mut signal) => drop(signal.recv().await),
                Err(_) => std::future::pending().await,
            }
        }
        let terminate = signal(SignalKind::terminate());
        let interrupt = signal(SignalKind::interrupt());
        async move {
            tokio::select! {
                () = next(terminate) => {}
                () = next(interrupt) => {}
            }
        }
    }
    #[cfg(not(unix))]
    async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
