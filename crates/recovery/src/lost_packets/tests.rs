use super::*;

fn lost(number: u64, at_ms: u64) -> Lost {
    Lost {
        number,
        sent: Time::ZERO,
        lost_at: Time::ZERO + Duration::from_millis(at_ms),
        size: 1200,
        path: 0,
        follows_in_batch: false,
    }
}

fn acked(lost: &mut LostPackets, ranges: &[RangeInclusive<u64>]) -> Vec<u64> {
    let mut numbers = Vec::new();
    lost.take_acked(ranges.iter().cloned(), |packet| numbers.push(packet.number));
    numbers
}

#[test]
fn an_acknowledged_loss_is_returned_once() {
    let mut packets = LostPackets::new();
    for number in [3, 5, 9, 4] {
        packets.push(lost(number, 1));
    }
    assert_eq!(acked(&mut packets, &[8..=20, 4..=5]), [9, 4, 5]);
    assert_eq!(acked(&mut packets, &[8..=20, 4..=5]), []);
    assert_eq!(acked(&mut packets, &[0..=20]), [3]);
    assert!(packets.is_empty());
}

#[test]
fn expired_losses_are_removed() {
    let mut packets = LostPackets::new();
    packets.push(lost(1, 10));
    packets.push(lost(2, 50));
    packets.remove_expired(
        Time::ZERO + Duration::from_millis(60),
        Duration::from_millis(20),
    );
    assert_eq!(acked(&mut packets, &[0..=9]), [2]);
}

#[test]
fn memory_is_bounded() {
    let mut packets = LostPackets::new();
    (0..10_000).for_each(|number| packets.push(lost(number, 1)));
    assert_eq!(acked(&mut packets, &[0..=20_000]).len(), MAX_LOST_PACKETS);
}
