//! Standard input, whose end is the runner's word to stop.

use std::io::{self, Read};
use std::thread;

use tokio::sync::oneshot;

/// Resolves when standard input ends: the runner is done with this server, or is gone.
pub async fn closed() {
    let (closed, wait) = oneshot::channel();
    thread::spawn(move || {
        let mut ignored = Vec::new();
        // An unreadable input is a closed one.
        let _ = io::stdin().read_to_end(&mut ignored);
        let _ = closed.send(());
    });
    let _ = wait.await;
}
