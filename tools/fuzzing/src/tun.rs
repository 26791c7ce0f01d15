//! Packets of TUN devices: super-packets that are cut, and packets that are joined.

use bytes::{Bytes, BytesMut};
use courser_tun::{Header, Joiner, MAX_RUN, MAX_SEGMENTS, split};

use crate::input::Input;

/// Reads the rest of an input as a super-packet behind its header, or as one whose packets are joined again, as its first byte says.
/// What is cut must have the length of the payload and no more, and what is joined must keep each packet once.
pub fn tun(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    match kind % 2 {
        0 => cut(rest),
        _ => join(rest, kind & 2 != 0),
    }
}

fn cut(bytes: &[u8]) {
    let Some((header, packet)) = bytes.split_first_chunk::<{ Header::LEN }>() else {
        return;
    };
    let Some(header) = Header::decode(header) else {
        return;
    };
    let mut packets = Vec::new();
    match split(&header, packet, &mut BytesMut::new(), &mut packets) {
        Err(_) => assert!(packets.is_empty()),
        Ok(count) => {
            assert_eq!(count, packets.len());
            assert!((1..=MAX_SEGMENTS).contains(&count));
            let total: usize = packets.iter().map(Bytes::len).sum();
            let headers = (total - packet.len()) / (count - 1).max(1);
            assert!(count == 1 || total == packet.len() + (count - 1) * headers);
        }
    }
}

/// Joins the packets of a super-packet, after changing a byte in each of a few copies.
fn join(bytes: &[u8], joins_udp: bool) {
    let mut input = Input::new(bytes);
    let changes: Vec<_> = (0..input.below(8))
        .map(|_| (input.short(), input.short(), input.byte()))
        .collect();
    let rest = input.take(bytes.len());
    let mut packets = Vec::new();
    if let Some((header, packet)) = rest.split_first_chunk::<{ Header::LEN }>() {
        if let Some(header) = Header::decode(header) {
            let _ = split(&header, packet, &mut BytesMut::new(), &mut packets);
        }
        packets.push(Bytes::copy_from_slice(packet));
    }
    for (which, at, value) in changes {
        if packets.is_empty() {
            break;
        }
        let place = usize::from(which) % packets.len();
        let mut changed = packets[place].to_vec();
        if let Some(len) = std::num::NonZeroUsize::new(changed.len()) {
            changed[usize::from(at) % len] ^= value;
        }
        packets.insert(place, Bytes::from(changed));
    }
    let mut joiner = Joiner::default();
    joiner.join(&packets, joins_udp);
    let mut seen = vec![false; packets.len()];
    for run in joiner.runs() {
        assert!((1..=MAX_RUN).contains(&run.count));
        let mut last = None;
        for member in joiner.members(run) {
            assert!(!std::mem::replace(&mut seen[member], true));
            assert!(last < Some(member));
            last = Some(member);
        }
    }
    assert!(seen.iter().all(|it| *it));
}
