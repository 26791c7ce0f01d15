//! Moves connections as soon as the system has another network, on Linux:
//! `cargo run -p courser --example network_changes -- 192.0.2.1:443`.
//!
//! The kernel reports changed addresses and routes over netlink (rtnetlink(7)). It reports more than matters, so the
//! program compares the address from which datagrams to its server would leave.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use courser::Endpoint;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[cfg(target_os = "linux")]
mod events {
    use std::os::fd::OwnedFd;

    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
    use tokio::io::unix::AsyncFd;

    /// The socket on which the kernel reports changes.
    pub struct Changes(AsyncFd<OwnedFd>);

    impl Changes {
        pub fn open() -> std::io::Result<Self> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
            bind(&socket, &SocketAddrNetlink::new(0, ADDRESSES | ROUTES))?;
            Ok(Self(AsyncFd::new(socket)?))
        }

        /// Waits for a change. A full queue (ENOBUFS) counts as one.
        pub async fn next(&self) -> std::io::Result<()> {
            loop {
                let mut ready = self.0.readable().await?;
                let mut message = [0; 8192];
                let read = |fd: &AsyncFd<OwnedFd>| {
                    Ok(recv(fd.get_ref(), &mut message, RecvFlags::empty())?)
                };
                match ready.try_io(read) {
                    Ok(Err(error)) if error.raw_os_error() != Some(105) => return Err(error),
                    Ok(_) => return Ok(()),
                    Err(_) => {}
                }
            }
        }
    }

    /// `RTMGRP_IPV4_IFADDR` and `RTMGRP_IPV6_IFADDR`.
    const ADDRESSES: u32 = 0x10 | 0x100;
    /// `RTMGRP_IPV4_ROUTE` and `RTMGRP_IPV6_ROUTE`.
    const ROUTES: u32 = 0x40 | 0x400;
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

/// Moves the connections of `endpoint` when the way to `peer` begins at another address.
#[cfg(target_os = "linux")]
async fn follow_network(endpoint: &Endpoint, peer: SocketAddr) -> Result {
    let changes = events::Changes::open()?;
    let mut source = source_for(peer);
    println!("sending from {source:?}");
    loop {
        changes.next().await?;
        // Addresses and routes follow each other, and a new IPv6 address is checked for a second.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let present = source_for(peer);
        if present != source && present.is_some() {
            println!("sending from {present:?}");
            endpoint.network_changed();
        }
        source = present;
    }
}

#[tokio::main]
async fn main() -> Result {
    let peer: SocketAddr = match std::env::args().nth(1) {
        Some(peer) => peer.parse()?,
        None => "192.0.2.1:443".parse()?,
    };
    let endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    #[cfg(target_os = "linux")]
    follow_network(&endpoint, peer).await?;
    println!(
        "this example needs Linux: {:?} {peer}",
        endpoint.local_addr()?
    );
    Ok(())
}
