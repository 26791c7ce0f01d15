//! The hosts at both ends of the tunnel, and what they see of it.

use std::time::Duration;

use courser::{Connection, runtime};

use super::packets::{number_of, numbered, reported_mtu};
use super::tunnel::{self, Device, INNER_MTU, Sent};

/// What the host behind the client has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    pub sent: Sent,
    /// The packets that the other host has returned.
    pub echoed: u32,
    /// The MTU that an ICMPv6 message has reported.
    pub reported_mtu: Option<u32>,
}

/// Sends `count` packets of 1280 bytes, one each 10 ms, and one that is too large.
pub async fn near(connection: Connection, count: u32) -> Report {
    let mut size = connection.watch_datagram_size();
    let begin = runtime::now();
    println!("datagrams of up to {:?} bytes at first", size.seen());
    runtime::spawn(async move {
        while let Ok(Some(size)) = size.changed().await {
            println!("{size} bytes after {:?}", runtime::now() - begin);
        }
    });
    let (mut host, device) = Device::pair();
    let tunnel = runtime::spawn(tunnel::run(connection.clone(), device));
    let (mut report, mut ticks) = (Report::default(), runtime::interval(TICK));
    for number in 0..count {
        ticks.tick().await;
        let _ = host.other.send(numbered(number, INNER_MTU)).await;
        while let Ok(packet) = host.packets.try_recv() {
            report.echoed += u32::from(number_of(&packet).is_some());
        }
    }
    let _ = host.other.send(numbered(count, 1400)).await;
    while let Ok(Some(packet)) = runtime::timeout(PATIENCE, host.packets.recv()).await {
        report.echoed += u32::from(number_of(&packet).is_some());
        report.reported_mtu = report.reported_mtu.or(reported_mtu(&packet));
    }
    connection.close(0u32.into(), b"done");
    report.sent = tunnel.await.unwrap_or_default();
    report
}

/// Returns each packet, until the connection is over.
pub async fn far(connection: Connection) -> Sent {
    let (mut host, device) = Device::pair();
    runtime::spawn(async move {
        while let Some(packet) = host.packets.recv().await {
            let _ = host.other.send(packet).await;
        }
    });
    tunnel::run(connection, device).await
}

const TICK: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_millis(500);
