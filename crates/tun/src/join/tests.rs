use etherparse::PacketBuilder;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Change {
    None,
    Push,
    Fin,
    Window,
    Ttl,
    Ecn,
    Checksum,
    Gap,
    Empty,
    Short,
}

const CHANGES: [Change; 10] = [
    Change::None,
    Change::Push,
    Change::Fin,
    Change::Window,
    Change::Ttl,
    Change::Ecn,
    Change::Checksum,
    Change::Gap,
    Change::Empty,
    Change::Short,
];

/// Flows that send one packet after the other, each of which may differ from the one before.
struct Flows {
    sequences: [u32; 40],
}

impl Default for Flows {
    fn default() -> Self {
        Self { sequences: [0; 40] }
    }
}

impl Flows {
    fn next(&mut self, flow: usize, change: Change) -> Bytes {
        let is_udp = flow % 2 == 1;
        let is_ipv6 = flow % 4 > 1;
        let ttl = if matches!(change, Change::Ttl) {
            63
        } else {
            64
        };
        let builder = match is_ipv6 {
            false => PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], ttl),
            true => PacketBuilder::ipv6([1; 16], [2; 16], ttl),
        };
        let length = match change {
            Change::Empty => 0,
            Change::Short => 500,
            _ => 1000,
        };
        let payload = vec![flow as u8; length];
        let mut bytes = Vec::new();
        let port = 1000 + flow as u16;
        if is_udp {
            builder.udp(port, 443).write(&mut bytes, &payload).unwrap();
        } else {
            let sequence = &mut self.sequences[flow];
            if matches!(change, Change::Gap) {
                *sequence = sequence.wrapping_add(77);
            }
            let window = if matches!(change, Change::Window) {
                8
            } else {
                9
            };
            let mut builder = builder.tcp(port, 443, *sequence, window).ack(5);
            if matches!(change, Change::Push) {
                builder = builder.psh();
            }
            if matches!(change, Change::Fin) {
                builder = builder.fin();
            }
            builder.write(&mut bytes, &payload).unwrap();
            *sequence = sequence.wrapping_add(length as u32);
        }
        match change {
            Change::Ecn if is_ipv6 => bytes[1] |= 0x30,
            Change::Ecn => {
                bytes[1] |= 3;
                let length = bytes.len();
                set_ip_length(&mut bytes, false, length);
            }
            Change::Checksum => *bytes.last_mut().unwrap() ^= 1,
            _ => {}
        }
        if !is_ipv6 && !matches!(change, Change::Ecn) {
            // The builder leaves the identification at 0 and the packet unfragmentable.
            assert_eq!(bytes[6] & 0x40, 0x40);
        }
        Bytes::from(bytes)
    }
}

fn runs(packets: &[Bytes], joins_udp: bool) -> Vec<Vec<usize>> {
    let mut joiner = Joiner::default();
    joiner.join(packets, joins_udp);
    let members = |run| joiner.members(run).collect();
    joiner.runs().iter().map(members).collect()
}

proptest! {
    /// Each packet is in one run, those of a flow remain in order, and only neighbours of a flow share a run.
    #[test]
    fn packets_of_each_flow_remain_in_order(events in proptest::collection::vec((0_usize..20, 0_usize..20), 0..120)) {
        let mut flows = Flows::default();
        let packets: Vec<_> = events
            .iter()
            .map(|(flow, change)| flows.next(*flow, *CHANGES.get(*change).unwrap_or(&Change::None)))
            .collect();
        let runs = runs(&packets, true);
        let mut seen: Vec<usize> = runs.concat();
        for flow in 0..20 {
            let of_flow = seen.iter().filter(|index| events[**index].0 == flow);
            prop_assert!(of_flow.is_sorted());
        }
        for run in &runs {
            prop_assert!(run.iter().all(|index| events[*index].0 == events[run[0]].0));
        }
        seen.sort_unstable();
        prop_assert!(seen.into_iter().eq(0..packets.len()));
    }

    #[test]
    fn any_bytes_are_placed_once(packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..90), 0..50)) {
        let packets: Vec<_> = packets.into_iter().map(Bytes::from).collect();
        let mut seen = runs(&packets, true).concat();
        seen.sort_unstable();
        prop_assert!(seen.into_iter().eq(0..packets.len()));
    }
}

#[test]
fn flows_that_alternate_are_runs_each() {
    let mut flows = Flows::default();
    let packets: Vec<_> = (0..20).map(|it| flows.next(it % 4, Change::None)).collect();
    let expected: Vec<Vec<usize>> = (0..4)
        .map(|flow| (0..5).map(|it| 4 * it + flow).collect())
        .collect();
    assert_eq!(runs(&packets, true), expected);
    // Without the offload of UDP only TCP joins.
    assert_eq!(runs(&packets, false).len(), 2 + 10);
}

#[test]
fn each_difference_ends_a_run() {
    for change in CHANGES {
        for flow in 0..4 {
            let is_udp = flow % 2 == 1;
            let mut flows = Flows::default();
            let packets: Vec<_> = [Change::None, change, Change::None]
                .into_iter()
                .map(|change| flows.next(flow, change))
                .collect();
            let counts: Vec<_> = runs(&packets, true).iter().map(Vec::len).collect();
            let expected: &[usize] = match change {
                Change::None => &[3],
                Change::Push if is_udp => &[3],
                // It is the last one of its run.
                Change::Push | Change::Short => &[2, 1],
                Change::Gap | Change::Window | Change::Fin if is_udp => &[3],
                Change::Gap => &[1, 2],
                _ => &[1, 1, 1],
            };
            assert_eq!(counts, expected, "{change:?} in flow {flow}");
        }
    }
}

#[test]
fn fragments_and_options_end_all_runs() {
    let mut flows = Flows::default();
    let mut fragment = flows.next(0, Change::None).to_vec();
    fragment[6] = 0x20;
    let packets = [
        flows.next(1, Change::None),
        Bytes::from(fragment),
        flows.next(1, Change::None),
    ];
    assert_eq!(runs(&packets, true).len(), 3);
}

#[test]
fn runs_are_bounded() {
    let mut flows = Flows::default();
    // Each of 64 KiB.
    let packets: Vec<_> = (0..200).map(|_| flows.next(0, Change::None)).collect();
    let lengths: Vec<_> = runs(&packets, true).iter().map(Vec::len).collect();
    assert_eq!(lengths, [65, 65, 65, 5]);
    let packets: Vec<_> = (0..200).map(|_| flows.next(1, Change::None)).collect();
    let lengths: Vec<_> = runs(&packets, true).iter().map(Vec::len).collect();
    assert_eq!(lengths, [64, 64, 64, 8]);
    let mut small = Vec::new();
    for index in 0..2 * MAX_RUN as u32 {
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64);
        let builder = builder.tcp(1, 2, index, 9).ack(5);
        builder.write(&mut bytes, &[7]).unwrap();
        small.push(Bytes::from(bytes));
    }
    let lengths: Vec<_> = runs(&small, true).iter().map(Vec::len).collect();
    assert_eq!(lengths, [MAX_RUN, MAX_RUN]);
}

/// With more flows than can be open, the run that has waited longest ends.
#[test]
fn open_runs_are_bounded() {
    let mut flows = Flows::default();
    let order = (0..=MAX_OPEN).chain([0, MAX_OPEN]);
    let packets: Vec<_> = order.map(|it| flows.next(2 * it, Change::None)).collect();
    let lengths: Vec<_> = runs(&packets, true).iter().map(Vec::len).collect();
    let mut expected = vec![1; MAX_OPEN];
    expected.extend([2, 1]);
    assert_eq!(lengths, expected);
}
