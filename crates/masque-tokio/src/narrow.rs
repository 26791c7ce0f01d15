//! Paths that carry less than a tunnel needs.
//!
//! A path that loses many packets looks for a while like one that drops large ones: QUIC goes back to 1200 bytes, and
//! searches again. Packets up to the smallest MTU leave in capsules meanwhile. Only a size that stays small is a reason to
//! end the tunnel, and only if the other end does not receive those capsules either.

use std::sync::Arc;
use std::time::Duration;

use courser_quic::runtime;

use crate::protocol::Probe;
use crate::tunnel::Tunnel;

/// Waits until the path provably carries less than a size, and returns what it carries.
pub(crate) async fn size(tunnel: Tunnel, smallest: usize, probe: Arc<dyn Probe>) -> usize {
    size_with(tunnel, smallest, probe, TIMES).await
}

async fn size_with(tunnel: Tunnel, smallest: usize, probe: Arc<dyn Probe>, times: Times) -> usize {
    loop {
        let size = lasting(&tunnel, smallest, times.search).await;
        if !is_received(&tunnel, smallest, &*probe, times).await {
            return size;
        }
        // Capsules carry it. What is behind an intermediary may be another path later.
        runtime::sleep(times.repeat).await;
    }
}

/// Waits until the path has carried less than a size for a time.
async fn lasting(tunnel: &Tunnel, smallest: usize, time: Duration) -> usize {
    loop {
        let mut size = tunnel.max_size();
        while size >= smallest {
            size = tunnel.size_changed(size).await;
        }
        let is_wide = async {
            let mut size = size;
            while size < smallest {
                size = tunnel.size_changed(size).await;
            }
        };
        if runtime::timeout(time, is_wide).await.is_err() {
            return tunnel.max_size();
        }
    }
}

/// Returns true if the other end answers a payload of the smallest size, and false if other packets of it arrive, but no
/// answer. Without any packet the network may be lost, and the connection decides.
async fn is_received(tunnel: &Tunnel, smallest: usize, probe: &dyn Probe, times: Times) -> bool {
    let (mut unanswered, mut wait) = (0, times.answer);
    loop {
        if tunnel.max_size() >= smallest {
            return true;
        }
        let before = tunnel.stats().received;
        if let Some(request) = probe.request() {
            tunnel.send_in_capsules(&[request]);
        }
        runtime::sleep(wait).await;
        if probe.is_answered() {
            return true;
        }
        if tunnel.stats().received == before {
            wait = (wait * 2).min(times.repeat);
            continue;
        }
        unanswered += 1;
        if unanswered == REQUESTS {
            return false;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Times {
    /// Time for the search for the MTU of the path, before the other end is asked whether it receives what IPv6 needs
    /// (limit K635).
    search: Duration,
    /// Time for an answer (limit K635). It may be lost with its capsule, which is sent again after a few round trips.
    answer: Duration,
    /// Time after which the other end of a narrow path is asked again.
    repeat: Duration,
}

/// Time for the search for the path MTU (limit K635).
const SEARCH_TIME: Duration = Duration::from_secs(5);
/// Time for an answer (limit K635).
const ANSWER_TIME: Duration = Duration::from_secs(2);

const TIMES: Times = Times {
    search: SEARCH_TIME,
    answer: ANSWER_TIME,
    repeat: Duration::from_secs(60),
};

/// Requests without an answer, while other packets arrive, after which the path is too narrow (limit K635).
const REQUESTS: u32 = 3;

#[cfg(test)]
mod tests;
