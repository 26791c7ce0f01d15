//! A tunnel that carries IP packets of up to 1280 bytes in datagrams (RFC 9221).
//!
//! IPv6 needs links of 1280 bytes, and a link that carries less must divide packets itself (RFC 8200 §5). So while
//! the path of the tunnel carries less, a packet travels in two halves. A host that sends larger packets gets an
//! ICMPv6 Packet Too Big message.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use courser::{Connection, DatagramOptions, SendDatagramError};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::packets::packet_too_big;

/// The largest packet that the tunnel carries.
pub const INNER_MTU: usize = 1280;

/// One side of a network interface in memory, in place of a TUN device.
pub struct Device {
    pub packets: Receiver<Bytes>,
    pub other: Sender<Bytes>,
}

impl Device {
    /// Returns both sides. Each queues 64 packets.
    pub fn pair() -> (Self, Self) {
        let ((to_near, near), (to_far, far)) = (channel(64), channel(64));
        let side = |packets, other| Self { packets, other };
        (side(near, to_far), side(far, to_near))
    }
}

/// Counts the packets of the host that the tunnel has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    pub whole: u32,
    pub halved: u32,
    pub too_big: u32,
}

/// Carries packets until the connection is over or the host has gone.
pub async fn run(connection: Connection, mut device: Device) -> Sent {
    let (mut sent, mut halves) = (Sent::default(), VecDeque::new());
    loop {
        tokio::select! {
            packet = device.packets.recv() => {
                let Some(packet) = packet else { return sent };
                if packet.len() > INNER_MTU {
                    sent.too_big += 1;
                    // Like a router, it drops what the host has no room for.
                    let _ = device.other.try_send(packet_too_big(&packet, INNER_MTU));
                } else if send(&connection, &packet, &mut sent).is_err() {
                    return sent;
                }
            }
            datagram = connection.read_datagram() => {
                let Ok(datagram) = datagram else { return sent };
                if let Some(packet) = receive(&datagram, &mut halves) {
                    let _ = device.other.try_send(packet);
                }
            }
        }
    }
}

fn send(connection: &Connection, packet: &Bytes, sent: &mut Sent) -> Result<(), SendDatagramError> {
    let options = DatagramOptions::new().max_age(MAX_AGE);
    let max = connection.max_datagram_size().unwrap_or(0);
    if packet.len() < max {
        sent.whole += 1;
        return connection.send_datagram_with(framed(WHOLE, 0, packet), options);
    }
    // A datagram of 643 bytes fits on every path of QUIC.
    sent.halved += 1;
    let (first, second) = packet.split_at(packet.len() / 2);
    connection.send_datagram_with(framed(FIRST, sent.halved, first), options)?;
    connection.send_datagram_with(framed(SECOND, sent.halved, second), options)
}

/// Returns a datagram: its kind, for a half the number of its packet, and the bytes.
fn framed(kind: u8, number: u32, bytes: &[u8]) -> Bytes {
    let mut datagram = BytesMut::with_capacity(3 + bytes.len());
    datagram.put_u8(kind);
    if kind != WHOLE {
        datagram.put_uint(u64::from(number & 0xffff), 2);
    }
    datagram.put_slice(bytes);
    datagram.freeze()
}

/// A half that waits for the other one: number, kind and bytes.
type Half = (u16, u8, Bytes);

/// Returns the packet that a datagram completes. Only the latest halves are kept: others were lost.
fn receive(datagram: &Bytes, halves: &mut VecDeque<Half>) -> Option<Bytes> {
    let (&kind, _) = datagram.split_first()?;
    if kind == WHOLE {
        return Some(datagram.slice(1..));
    }
    let number = u16::from_be_bytes([*datagram.get(1)?, *datagram.get(2)?]);
    let bytes = datagram.slice(3..);
    let other = halves.iter().position(|it| it.0 == number && it.1 != kind);
    let Some((.., other)) = other.and_then(|at| halves.remove(at)) else {
        halves.push_back((number, kind, bytes));
        if halves.len() > MAX_HALVES {
            halves.pop_front();
        }
        return None;
    };
    let (first, second) = if kind == FIRST {
        (bytes, other)
    } else {
        (other, bytes)
    };
    Some([first, second].concat().into())
}

const WHOLE: u8 = 0;
const FIRST: u8 = 1;
const SECOND: u8 = 2;
const MAX_HALVES: usize = 64;
/// Older packets are useless: TCP inside has sent them again.
const MAX_AGE: Duration = Duration::from_millis(200);
