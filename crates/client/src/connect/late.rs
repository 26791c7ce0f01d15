//! QUIC attempts that continue after TCP has won.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::super::core::Core;
use super::super::error::Error;
use super::super::link::Established;
use super::super::pool::Key;

/// The index of an attempt with its result.
pub(super) type Attempted = (usize, Result<Established, Error>);

/// Waits for the remaining QUIC attempts after TCP has won the race. QUIC may be only slightly slower and can
/// then carry later requests. If it does not connect in time, the network or the server drops UDP.
pub(super) async fn await_quic(
    core: Arc<Core>,
    key: Key,
    local: IpAddr,
    (mut attempts, alternatives): (JoinSet<Attempted>, Vec<Box<str>>),
) {
    let any = async {
        while let Some(attempted) = attempts.join_next().await {
            if let Ok((_, Ok(established))) = attempted {
                return Some(established);
            }
        }
        None
    };
    match tokio::time::timeout(PATIENCE, any).await {
        Ok(Some(established)) => {
            core.udp_memory().on_worked(local, &key.origin);
            core.share_quic(&key, &established);
        }
        Ok(None) | Err(_) => {
            let (mut memory, now) = (core.udp_memory(), Instant::now());
            memory.on_failed(now, local, &key.origin);
            for alternative in &alternatives {
                memory.on_alternative_failed(now, local, (&key.origin, alternative));
            }
        }
    }
}

/// Time limit for QUIC after TCP has won: two lost datagrams and their retransmissions on a slow path.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::super::origin::Origin;
    use super::*;
    use crate::Client;

    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn attempt_that_never_ends_disables_quic_for_the_origin() {
        let core = Client::builder().build().expect("a client").0;
        let origin = Origin::https("origin.test", 443);
        let uri = http::Uri::from_static("https://origin.test/");
        let key = core.key(&origin, &uri, None).expect("no proxy");
        let mut attempts = JoinSet::new();
        attempts.spawn(std::future::pending());
        let alternatives = vec!["alternative.test:443".into()];
        let attempts = (attempts, alternatives);
        let waiting = tokio::spawn(await_quic(core.clone(), key, HOME, attempts));
        let is_worth_trying = || {
            core.udp_memory()
                .is_worth_trying(Instant::now(), HOME, &origin)
        };
        tokio::time::sleep(PATIENCE - Duration::from_millis(1)).await;
        assert!(is_worth_trying());
        waiting.await.expect("no panic");
        assert!(!is_worth_trying());
        let memory = core.udp_memory();
        let now = Instant::now();
        let alternative = (&origin, "alternative.test:443");
        let until = memory.alternative_avoided_until(now, HOME, alternative);
        assert!(until.is_some());
    }
}
