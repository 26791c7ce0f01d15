//! Warnings about the server's UDP sockets, and about records that the disk does not take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use courser::Endpoint;
use courser_measure::sockets;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{output, records};

/// Looks after the UDP sockets, traces and key logs while the server runs.
#[derive(Debug)]
pub(super) struct SocketWatch {
    endpoints: Vec<Endpoint>,
    as_json: bool,
    has_warned: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl SocketWatch {
    /// Warns of sockets that cost speed, once when the kernel begins to drop datagrams, and once
    /// when records are dropped. How many datagrams they become is in the metrics; records are
    /// counted again at the end.
    pub(super) fn begin(endpoints: Vec<Endpoint>, as_json: bool) -> Self {
        for text in sockets::warnings(&endpoints) {
            warn(&text, as_json);
        }
        let has_warned = Arc::new(AtomicBool::new(false));
        let (watched, flag) = (endpoints.clone(), has_warned.clone());
        let task = tokio::spawn(async move {
            let mut has_gaps = false;
            while !flag.load(Relaxed) || !has_gaps {
                tokio::time::sleep(BETWEEN_LOOKS).await;
                warn_of_drops(&watched, &flag, as_json);
                if !has_gaps && let Some(text) = records::gaps() {
                    has_gaps = true;
                    warn(&text, as_json);
                }
            }
        });
        Self {
            endpoints,
            as_json,
            has_warned,
            task,
        }
    }

    /// Takes a last look.
    pub(super) fn end(self) {
        self.task.abort();
        warn_of_drops(&self.endpoints, &self.has_warned, self.as_json);
    }
}

/// Warns of drops unless that was done before.
fn warn_of_drops(endpoints: &[Endpoint], has_warned: &AtomicBool, as_json: bool) {
    if let Some(text) = sockets::drop_warning(endpoints)
        && !has_warned.swap(true, Relaxed)
    {
        warn(&text, as_json);
    }
}

/// Tells the user of something that costs speed or data.
pub(super) fn warn(text: &str, as_json: bool) {
    match as_json {
        true => output::line(json!({"event": "warning", "text": text}).to_string()),
        false => output::note(text),
    }
}

/// A look costs a system call for each socket.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
