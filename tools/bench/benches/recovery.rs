//! Range sets, the ring of sent packets and the pacer.

use std::time::Duration;

use courser_base::{RangeSet, Time};
use courser_recovery::{Pacer, RttEstimator, Sent, SentPackets};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

/// The numbers of packets that arrive in order.
#[divan::bench]
fn ranges_in_order(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        let mut ranges = RangeSet::new();
        for number in 0..PACKETS {
            ranges.insert_one(number);
        }
        ranges
    });
}

/// Every second packet is missing, and arrives after all others.
#[divan::bench]
fn ranges_with_gaps(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        let mut ranges = RangeSet::new();
        for number in (0..PACKETS).step_by(2).chain((1..PACKETS).step_by(2)) {
            ranges.insert_one(number);
        }
        ranges
    });
}

#[divan::bench]
fn range_is_looked_up(bencher: Bencher<'_, '_>) {
    let mut ranges = RangeSet::new();
    (0..64).for_each(|at| ranges.insert(11 * at..11 * at + 10));
    bencher.bench_local(|| black_box(&ranges).contains(black_box(345)));
}

/// A window of packets is sent, and acknowledged with one range per `burst` packets.
#[divan::bench(args = [2, 64])]
fn ring(bencher: Bencher<'_, '_>, burst: u64) {
    let mut ring = SentPackets::new();
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        let first = ring.next_expected();
        (first..first + PACKETS).for_each(|number| ring.push(number, packet()));
        for number in (first..first + PACKETS).step_by(burst as usize) {
            ring.take_range(number..=number + burst - 1, |number, packet| {
                black_box((number, packet.size));
            });
        }
        assert!(ring.is_empty());
    });
}

/// Half of the packets stay, as if they were lost.
#[divan::bench]
fn ring_with_losses(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        let mut ring = SentPackets::new();
        (0..PACKETS).for_each(|number| ring.push(number, packet()));
        for number in (0..PACKETS).step_by(2) {
            black_box(ring.take(number));
        }
        ring
    });
}

/// A batch is reserved and sent each millisecond.
#[divan::bench]
fn pacer(bencher: Bencher<'_, '_>) {
    let mut now = Time::from_nanos(1);
    let mut rtt = RttEstimator::new(Duration::from_millis(50));
    rtt.on_sample(now, Duration::from_millis(50), Duration::ZERO, None);
    let mut pacer = Pacer::new(now, MTU);
    bencher.bench_local(|| {
        now += Duration::from_millis(1);
        let granted = pacer.reserve(now, 64_000, &rtt, WINDOW, MTU);
        pacer.on_sent(granted);
        pacer.next_release(now, 64_000, &rtt, WINDOW, MTU)
    });
}

fn packet() -> Sent<[u64; 2]> {
    Sent {
        time: Time::from_nanos(1),
        size: MTU,
        path: 0,
        snapshot: 0,
        tx_in_flight: 0,
        ack_eliciting: true,
        in_flight: true,
        ecn_marked: true,
        follows_in_batch: false,
        quic_bit_cleared: false,
        order: 0,
        is_mtu_probe: false,
        frames: [1, 2],
    }
}

const PACKETS: u64 = 1024;
const MTU: u16 = 1200;
const WINDOW: u64 = 1_000_000;
