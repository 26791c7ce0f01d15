//! Moves connections as soon as the system has another network, on Linux:
//! `cargo run -p courser --example network_changes -- 192.0.2.1:443`.
//!
//! The kernel reports changed addresses and routes over netlink (rtnetlink(7)). It reports more than matters, so the
//! program compares the address from which datagrams to its server would leave.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use courser::Endpoint;
use tokio::sync::mpsc;

/// Returns a channel that receives a message after each change of addresses and routes. A thread waits for them.
#[cfg(target_os = "linux")]
fn changes() -> std::io::Result<mpsc::Receiver<()>> {
    use rustix::io::Errno;
    use rustix::net::{self, AddressFamily, RecvFlags, SocketFlags, SocketType, netlink};

    /// `RTMGRP_IPV4_IFADDR`, `RTMGRP_IPV6_IFADDR`, `RTMGRP_IPV4_ROUTE` and `RTMGRP_IPV6_ROUTE`.
    const GROUPS: u32 = 0x10 | 0x100 | 0x40 | 0x400;

    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    let socket = net::socket_with(family, SocketType::RAW, flags, None)?;
    net::bind(&socket, &netlink::SocketAddrNetlink::new(0, GROUPS))?;
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut message = [0; 8192];
        loop {
            match net::recv(&socket, &mut message, RecvFlags::empty()) {
                // Messages were lost, so something has changed.
                Ok(_) | Err(Errno::NOBUFS) => {}
                Err(_) => return,
            }
            if let Err(mpsc::error::TrySendError::Closed(())) = sender.try_send(()) {
                return;
            }
        }
    });
    Ok(receiver)
}

#[cfg(not(target_os = "linux"))]
fn changes() -> std::io::Result<mpsc::Receiver<()>> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Returns the address from which the system would send to `peer`, or `None` without a route. Sends nothing.
fn source_for(peer: SocketAddr) -> Option<IpAddr> {
    let any = if peer.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Moves the connections of an endpoint when the way to a peer begins at another address.
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let peer = std::env::args().nth(1);
    let peer: SocketAddr = peer.as_deref().unwrap_or("192.0.2.1:443").parse()?;
    // A program has connections on this endpoint, and follows the network beside them.
    let endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    let (mut changes, mut source) = (changes()?, source_for(peer));
    while changes.recv().await.is_some() {
        // Addresses and routes follow each other, and a new IPv6 address is checked for a second.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let present = source_for(peer);
        if present.is_some() && present != source {
            println!("sending from {present:?}");
            endpoint.network_changed();
            source = present;
        }
    }
    Ok(())
}
