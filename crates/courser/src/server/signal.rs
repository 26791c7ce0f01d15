//! When the system wants a server to end.

/// Ready at the first SIGTERM or SIGINT (Ctrl-C; on other systems than Unix Ctrl-C alone). For
/// [`Server::drain`](super::Server::drain).
///
/// From this call on these signals no longer end the process by themselves.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn shutdown_signal() -> impl Future<Output = ()> + Send + 'static {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{Signal, SignalKind, signal};
        // Never ready, where the system has no such thing.
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
