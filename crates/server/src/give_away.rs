//! Listeners whose addresses are left to another process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use courser_quic::hooks::EndpointHooks as _;

use crate::handover::ListeningSockets;
use crate::listen::Listener;

/// Leaves the addresses of these listeners to another process, and returns descriptors of their sockets. From then on,
/// their endpoints receive only from the clients that they have already. Without an error, `take_back` undoes it.
pub(crate) async fn give_away(listeners: &[Arc<Listener>]) -> io::Result<Vec<ListeningSockets>> {
    keep_peers(listeners)?;
    // Datagrams of these clients that the sockets still hold are received here.
    tokio::time::sleep(LAST_DATAGRAMS).await;
    let sockets = listeners.iter().map(|listener| {
        let udp = listener.endpoint().map(|it| it.give_address_away());
        Ok(ListeningSockets {
            address: listener.address,
            tcp: listener.duplicate_tcp()?,
            udp: udp.transpose()?.unwrap_or_default(),
            stay_open: listener.stay_open,
        })
    });
    let sockets: io::Result<_> = sockets.collect();
    // Clients may have been accepted until the last call that received.
    tokio::time::sleep(LAST_DATAGRAMS).await;
    let kept = keep_peers(listeners);
    if sockets.is_err() || kept.is_err() {
        take_back(listeners);
    }
    kept.and(sockets)
}

/// Receives from all clients again after [`give_away`].
pub(crate) fn take_back(listeners: &[Arc<Listener>]) {
    for endpoint in listeners.iter().filter_map(|it| it.endpoint()) {
        endpoint.take_address_back();
    }
}

/// Leaves the UDP addresses of these listeners, so that another process can bind them while this one drains. Clients
/// that are connected already are still served.
pub(crate) async fn leave(listeners: &[Arc<Listener>]) -> io::Result<()> {
    let endpoints = || listeners.iter().filter_map(|it| it.endpoint());
    if endpoints().any(|it| it.open_connections() > 0) {
        keep_peers(listeners)?;
        // Datagrams of these clients that the sockets still hold are received there.
        tokio::time::sleep(LAST_DATAGRAMS).await;
        keep_peers(listeners)?;
    }
    endpoints().try_for_each(|it| it.leave_address())
}

fn keep_peers(listeners: &[Arc<Listener>]) -> io::Result<()> {
    let mut endpoints = listeners.iter().filter_map(|it| it.endpoint());
    endpoints.try_for_each(|it| it.keep_peers())
}

/// Time for which a server reads on at its address before it leaves it to another process.
const LAST_DATAGRAMS: Duration = Duration::from_millis(20);
