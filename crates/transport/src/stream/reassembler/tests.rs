use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::stream::StreamsConfig;
use crate::stream::buffers::Received;
use crate::stream::chunk_pool::ChunkPool;

struct Fixture {
    reassembler: Reassembler,
    buffers: Buffers,
}

impl Fixture {
    fn new() -> Self {
        Self {
            reassembler: Reassembler::default(),
            buffers: Buffers::new(ChunkPool::new(4), &StreamsConfig::default()),
        }
    }

    fn insert(&mut self, offset: u64, data: &[u8]) {
        assert_eq!(
            self.reassembler
                .insert(offset, data, true, &mut self.buffers),
            Stored::Kept
        );
        self.check();
    }

    fn try_insert(&mut self, offset: u64, data: &[u8], may_open_gap: bool) -> Stored {
        self.reassembler
            .insert(offset, data, may_open_gap, &mut self.buffers)
    }

    fn read(&mut self, max: usize) -> Vec<u8> {
        let mut out = vec![0; max];
        let len = self.reassembler.read(&mut out, &mut self.buffers);
        out.truncate(len);
        self.check();
        out
    }

    fn read_chunk(&mut self, max: usize) -> Option<Bytes> {
        let bytes = self.reassembler.read_chunk(max, &mut self.buffers);
        self.check();
        bytes
    }

    /// Reads once without order, and returns the offset and the bytes.
    fn read_unordered(&mut self, max: usize) -> Option<(u64, Vec<u8>)> {
        let piece = self.reassembler.read_unordered(max, &mut self.buffers);
        self.check();
        piece.map(|piece| (piece.offset, piece.bytes.to_vec()))
    }

    /// Asserts the invariants that hold after every call.
    fn check(&self) {
        let part = &self.reassembler;
        let capacity = |data: &Vec<u8>| data.capacity();
        let received = Received {
            capacity: part.ready.iter().map(|ready| ready.capacity).sum::<usize>()
                + part
                    .pending
                    .iter()
                    .map(|it| capacity(&it.data))
                    .sum::<usize>(),
            bytes: part
                .ready
                .iter()
                .map(|ready| ready.chunk.len() - ready.taken)
                .sum::<usize>()
                + part.pending.iter().map(|it| it.data.len()).sum::<usize>(),
            gaps: part.gaps(),
        };
        assert_eq!(self.buffers.received(), received, "what is counted");
        let ready: usize = part
            .ready
            .iter()
            .map(|ready| ready.chunk.len() - ready.taken)
            .sum();
        assert_eq!(ready as u64, part.readable(), "ready bytes");
        let mut end = part.end;
        let mut gaps = 0;
        for chunk in &part.pending {
            assert_eq!(chunk.data.is_empty(), chunk.is_read(), "empty chunk");
            assert!(chunk.offset >= end, "chunks overlap");
            gaps += usize::from(chunk.offset > end);
            end = chunk.end();
        }
        assert_eq!(gaps, part.gaps(), "gaps");
        for (entry, next) in part.pending.iter().zip(part.pending.iter().skip(1)) {
            let can_join = entry.is_read() && next.is_read() && entry.end() == next.offset;
            assert!(!can_join, "entries without data that touch");
        }
        let first = part.ready.front().map_or(part.end, |front| front.offset);
        assert_eq!(first, part.read, "first unread byte");
        assert!(
            part.pending
                .front()
                .is_none_or(|first| first.offset > part.end)
        );
    }
}

#[test]
fn ordered_bytes_come_out_as_they_are() {
    let mut fixture = Fixture::new();
    fixture.insert(0, b"hello ");
    fixture.insert(6, b"world");
    assert_eq!(fixture.read(3), b"hel");
    assert_eq!(fixture.read(100), b"lo world");
    assert_eq!(fixture.read(100), b"");
}

#[test]
fn bytes_past_a_gap_wait_for_it() {
    let mut fixture = Fixture::new();
    fixture.insert(3, b"def");
    assert_eq!(fixture.read(10), b"");
    assert_eq!(fixture.reassembler.gaps(), 1);
    fixture.insert(0, b"abc");
    assert_eq!(fixture.reassembler.gaps(), 0);
    assert_eq!(fixture.read(10), b"abcdef");
}

#[test]
fn first_received_bytes_are_kept() {
    let mut fixture = Fixture::new();
    fixture.insert(2, b"CD");
    fixture.insert(5, b"F");
    fixture.insert(0, b"abcdefg");
    assert_eq!(fixture.read(10), b"abCDeFg");
    fixture.insert(0, b"XXXXXXXhi");
    assert_eq!(fixture.read(10), b"hi");
}

#[test]
fn piece_that_spans_several_chunks_fills_all_gaps() {
    let mut fixture = Fixture::new();
    for offset in [10, 14, 18, 22] {
        fixture.insert(offset, b"..");
    }
    assert_eq!(fixture.reassembler.gaps(), 4);
    fixture.insert(11, b"abcdefghij");
    assert_eq!(fixture.reassembler.gaps(), 2);
    fixture.insert(0, b"0123456789");
    assert_eq!(fixture.read(100), b"0123456789..bc..fg..j");
    assert_eq!(fixture.reassembler.gaps(), 1);
}

#[test]
fn gap_above_limit_is_refused_and_changes_nothing() {
    let mut fixture = Fixture::new();
    fixture.insert(10, b"x");
    assert_eq!(fixture.try_insert(12, b"y", false), Stored::Refused);
    assert_eq!(fixture.try_insert(8, b"y", false), Stored::Refused);
    fixture.check();
    assert_eq!(fixture.try_insert(11, b"y", false), Stored::Kept);
    assert_eq!(fixture.try_insert(9, b"w", false), Stored::Kept);
    assert_eq!(fixture.try_insert(0, b"012345678", false), Stored::Kept);
    fixture.check();
    assert_eq!(fixture.read(100), b"012345678wxy");
}

#[test]
fn large_offset_takes_no_memory() {
    let mut fixture = Fixture::new();
    fixture.insert((1 << 62) - 2, b"z");
    assert!(fixture.reassembler.memory() < 1024);
}

/// Memory stays near the bytes received, in whatever order tiny pieces arrive (attack A26).
#[test]
fn tiny_pieces_cost_little_in_any_order() {
    const LEN: u64 = 64 << 10;
    let orders: [(&str, Vec<u64>); 3] = [
        ("descending", (1..=LEN).rev().collect()),
        ("ascending behind a gap", (1..=LEN).collect()),
        ("odd ones, then even ones, by windows of 256", {
            let windows = (0..LEN / 256).map(|window| window * 256 + 1);
            windows
                .flat_map(|start| {
                    (0..256)
                        .step_by(2)
                        .chain((1..256).step_by(2))
                        .map(move |i| start + i)
                })
                .collect()
        }),
    ];
    for (name, order) in orders {
        let mut fixture = Fixture::new();
        for offset in order {
            let byte = [offset as u8];
            let stored = fixture.try_insert(offset, &byte, fixture.reassembler.gaps() < 129);
            assert_eq!(stored, Stored::Kept, "{name} at {offset}");
        }
        fixture.check();
        let memory = fixture.reassembler.memory();
        assert!(
            memory < 3 * LEN as usize,
            "{name}: {memory} bytes for {LEN}"
        );
        fixture.insert(0, &[0]);
        let all: Vec<u8> = (0..=LEN).map(|offset| offset as u8).collect();
        assert_eq!(fixture.read(1 << 20), all, "{name}");
    }
}

#[test]
fn gaps_at_every_second_byte_cost_a_fixed_amount_each() {
    let mut fixture = Fixture::new();
    for offset in (1..=256).step_by(2) {
        fixture.insert(offset, b"x");
    }
    assert_eq!(fixture.reassembler.gaps(), 128);
    assert!(fixture.reassembler.memory() < 128 * 256);
}

#[test]
fn bulk_uses_pooled_chunks_and_returns_them() {
    let pool = ChunkPool::new(8);
    let mut fixture = Fixture {
        buffers: Buffers::new(pool.clone(), &StreamsConfig::default()),
        reassembler: Reassembler::default(),
    };
    let packet = [7; 1300];
    let mut offset = 0;
    let mut burst = |fixture: &mut Fixture| {
        for _ in 0..48 {
            fixture.insert(offset, &packet);
            offset += 1300;
        }
    };
    burst(&mut fixture);
    assert_eq!(fixture.read(1 << 20).len(), 48 * 1300);
    assert_eq!(pool.kept(), 1);
    // From the second burst on, the stream counts as a bulk stream.
    burst(&mut fixture);
    assert_eq!(pool.kept(), 0);
    assert_eq!(fixture.reassembler.ready.len(), 1);
    fixture.read(1 << 20);
    assert_eq!(pool.kept(), 1);
}

#[test]
fn few_bytes_never_claim_a_bulk_buffer() {
    let mut fixture = Fixture::new();
    fixture.insert(0, &[1; 100_000]);
    fixture.read(1 << 20);
    fixture.insert(100_000, b"x");
    assert!(fixture.reassembler.ready[0].chunk.capacity() <= 4096);
}

#[test]
fn usual_amount_falls_again() {
    let mut fixture = Fixture::new();
    fixture.insert(0, &[1; 60_000]);
    fixture.read(1 << 20);
    for i in 0..10 {
        fixture.insert(60_000 + i * 1300, &[1; 1300]);
        fixture.read(1 << 20);
    }
    assert_eq!(fixture.reassembler.usual, 1300);
}

#[test]
fn full_chunk_is_read_without_copying_and_returns_to_the_pool() {
    let pool = ChunkPool::new(8);
    let mut fixture = Fixture {
        buffers: Buffers::new(pool.clone(), &StreamsConfig::default()),
        reassembler: Reassembler::default(),
    };
    fixture.insert(0, &[1; 40_000]);
    let address = fixture.reassembler.ready[0].chunk.as_slice().as_ptr();
    let first = fixture.read_chunk(10_000).unwrap();
    assert_eq!((first.as_ptr(), first.len()), (address, 10_000));
    let rest = fixture.read_chunk(usize::MAX).unwrap();
    assert_eq!(rest.len(), 30_000);
    assert_eq!(fixture.read_chunk(usize::MAX), None);
    drop(first);
    assert_eq!(pool.kept(), 0);
    drop(rest);
    assert_eq!(pool.kept(), 1);
}

#[test]
fn mostly_empty_chunk_is_copied_and_goes_on() {
    let mut fixture = Fixture::new();
    fixture.insert(0, &[1; 60_000]);
    fixture.read(1 << 20);
    fixture.insert(60_000, &[2; 1300]);
    let address = fixture.reassembler.ready[0].chunk.as_slice().as_ptr();
    let bytes = fixture.read_chunk(1000).unwrap();
    assert_ne!(bytes.as_ptr(), address);
    assert_eq!(bytes, &[2; 1000][..]);
    fixture.insert(61_300, b"abc");
    assert_eq!(fixture.reassembler.ready.len(), 1);
    assert_eq!(fixture.read(400), [&[2; 300][..], b"abc"].concat());
    assert_eq!(fixture.read_chunk(0), None);
}

#[test]
fn partly_shared_chunk_can_still_be_copied_from() {
    let mut fixture = Fixture::new();
    fixture.insert(0, &[1; 40_000]);
    fixture.read_chunk(10_000).unwrap();
    fixture.insert(40_000, b"end");
    assert_eq!(fixture.read(29_998).len(), 29_998);
    assert_eq!(fixture.read_chunk(1).unwrap(), &[1][..]);
    assert_eq!(fixture.read(10), [&[1][..], b"end"].concat());
}

#[test]
fn copying_and_sharing_reads_alternate_on_one_chunk() {
    let mut fixture = Fixture::new();
    let data: Vec<u8> = (0..10_000u32).map(|i| (i >> 3) as u8).collect();
    fixture.insert(0, &data);
    let mut seen = Vec::new();
    for len in 1..100 {
        seen.extend(fixture.read(len));
        seen.extend(fixture.read_chunk(len).unwrap());
    }
    assert_eq!(seen, data[..seen.len()]);
}

#[test]
fn discard_frees_everything() {
    let mut fixture = Fixture::new();
    fixture.insert(0, b"abc");
    fixture.insert(10, b"abc");
    fixture.reassembler.discard(&mut fixture.buffers);
    assert_eq!(
        (fixture.reassembler.gaps(), fixture.reassembler.readable()),
        (0, 0)
    );
    fixture.reassembler.recycle(&mut fixture.buffers);
    fixture.insert(0, b"new");
    assert_eq!(fixture.read(10), b"new");
}

#[derive(Clone, Debug)]
enum Step {
    Insert {
        offset: u64,
        len: usize,
        may_open_gap: bool,
    },
    Read(usize),
    ReadChunk(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let small = (0u64..600, 0usize..60, any::<bool>());
    let large = (0u64..30_000, 0usize..4000, any::<bool>());
    let insert = |(offset, len, may_open_gap)| Step::Insert {
        offset,
        len,
        may_open_gap,
    };
    prop_oneof![
        4 => small.prop_map(insert),
        4 => large.prop_map(insert),
        2 => (0usize..1500).prop_map(Step::Read),
        2 => (0usize..1500).prop_map(Step::ReadChunk),
    ]
}

#[test]
fn bytes_past_a_gap_are_read_without_order() {
    let mut fixture = Fixture::new();
    fixture.insert(4, b"efg");
    fixture.insert(10, b"k");
    assert_eq!(fixture.read_unordered(2), Some((4, b"ef".to_vec())));
    assert_eq!(fixture.read_unordered(9), Some((6, b"g".to_vec())));
    assert_eq!(fixture.read_unordered(9), Some((10, b"k".to_vec())));
    assert_eq!(fixture.read_unordered(9), None);
    assert!(!fixture.reassembler.has_unread());
    // Entries that touch are one.
    assert_eq!(fixture.reassembler.pending.len(), 2);
    assert_eq!(
        (fixture.reassembler.gaps(), fixture.reassembler.end()),
        (2, 0)
    );
}

#[test]
fn bytes_that_were_read_without_order_are_not_read_again() {
    let mut fixture = Fixture::new();
    fixture.insert(4, b"efg");
    assert_eq!(fixture.read_unordered(9), Some((4, b"efg".to_vec())));
    // The peer repeats them alone, with both neighbours, and with all before.
    fixture.insert(4, b"EFG");
    assert!(!fixture.reassembler.has_unread());
    fixture.insert(3, b"dEFGh");
    assert_eq!(fixture.read_unordered(9), Some((3, b"d".to_vec())));
    assert_eq!(fixture.read_unordered(9), Some((7, b"h".to_vec())));
    fixture.insert(0, b"abcDEFGHi");
    assert_eq!(fixture.reassembler.readable(), 4, "abc and i");
    assert_eq!(fixture.read_unordered(9), Some((0, b"abc".to_vec())));
    assert_eq!(fixture.read_unordered(9), Some((8, b"i".to_vec())));
    assert_eq!(fixture.reassembler.read_to(), 9);
    assert_eq!(fixture.reassembler.stored(), 9);
    fixture.insert(9, b"j");
    assert_eq!(fixture.read_unordered(9), Some((9, b"j".to_vec())));
}

#[test]
fn bytes_that_were_read_in_order_are_not_read_without_order() {
    let mut fixture = Fixture::new();
    fixture.insert(0, b"abcd");
    fixture.insert(6, b"gh");
    assert_eq!(fixture.read(3), b"abc");
    assert_eq!(fixture.read_unordered(9), Some((3, b"d".to_vec())));
    assert_eq!(fixture.read_unordered(9), Some((6, b"gh".to_vec())));
    fixture.insert(0, b"ABCDefGH");
    assert_eq!(fixture.read_unordered(9), Some((4, b"ef".to_vec())));
    assert_eq!(fixture.read_unordered(9), None);
    assert_eq!(fixture.reassembler.read_to(), 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Each insertion carries its own bytes, so that the model detects whose bytes were kept.
    #[test]
    fn agrees_with_a_map_of_bytes(steps in prop::collection::vec(step(), 1..120)) {
        let mut fixture = Fixture::new();
        let mut model: BTreeMap<u64, u8> = BTreeMap::new();
        let mut read = 0u64;
        for (count, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert { offset, len, may_open_gap } => {
                    let data: Vec<u8> = (0..len).map(|i| (i * 7 + count * 31) as u8).collect();
                    let before = fixture.reassembler.gaps();
                    let stored = fixture.try_insert(offset, &data, may_open_gap);
                    fixture.check();
                    if stored == Stored::Refused {
                        prop_assert!(!may_open_gap);
                        prop_assert_eq!(fixture.reassembler.gaps(), before);
                        continue;
                    }
                    prop_assert!(may_open_gap || fixture.reassembler.gaps() <= before);
                    for (at, byte) in (offset..).zip(data) {
                        if at >= read {
                            model.entry(at).or_insert(byte);
                        }
                    }
                }
                Step::Read(max) => {
                    let got = fixture.read(max);
                    let expected: Vec<u8> =
                        (read..).map_while(|at| model.get(&at).copied()).take(max).collect();
                    prop_assert_eq!(&got, &expected);
                    read += got.len() as u64;
                }
                Step::ReadChunk(max) => {
                    let got = fixture.read_chunk(max).unwrap_or_default();
                    let expected: Vec<u8> =
                        (read..).map_while(|at| model.get(&at).copied()).take(max).collect();
                    prop_assert!(expected.starts_with(&got));
                    prop_assert!(!got.is_empty() || expected.is_empty());
                    read += got.len() as u64;
                }
            }
            let held = model.range(read..).count();
            let bound = 4 * held + (fixture.reassembler.gaps() + 20) * 256;
            prop_assert!(fixture.reassembler.memory() <= bound, "memory for {held} bytes");
            let end = (read..).take_while(|at| model.contains_key(at)).count() as u64 + read;
            prop_assert_eq!(fixture.reassembler.end(), end);
        }
    }

    /// Every byte is read once, in any order, and is the one that a reader in order gets.
    #[test]
    fn unordered_reads_agree_with_ordered_ones(
        steps in prop::collection::vec(step(), 1..120),
        ordered_steps in 0usize..60,
    ) {
        let (mut fixture, mut ordered) = (Fixture::new(), Fixture::new());
        let mut got: BTreeMap<u64, u8> = BTreeMap::new();
        let mut read = 0u64;
        for (count, step) in steps.into_iter().enumerate() {
            let (pieces, max) = match step {
                Step::Insert { offset, len, may_open_gap } => {
                    let data: Vec<u8> = (0..len).map(|i| (i * 7 + count * 31) as u8).collect();
                    let stored = fixture.try_insert(offset, &data, may_open_gap);
                    fixture.check();
                    prop_assert_eq!(ordered.try_insert(offset, &data, may_open_gap), stored);
                    prop_assert_eq!(fixture.reassembler.gaps(), ordered.reassembler.gaps());
                    prop_assert_eq!(fixture.reassembler.end(), ordered.reassembler.end());
                    continue;
                }
                Step::Read(max) => (1, max),
                Step::ReadChunk(max) => (3, max),
            };
            if count < ordered_steps {
                let bytes = fixture.read(max);
                got.extend((read..).zip(bytes.iter().copied()));
                read += bytes.len() as u64;
                continue;
            }
            for _ in 0..pieces {
                let Some((offset, bytes)) = fixture.read_unordered(max) else {
                    prop_assert!(!fixture.reassembler.has_unread());
                    break;
                };
                prop_assert!((1..=max.max(1)).contains(&bytes.len()));
                for (at, byte) in (offset..).zip(bytes) {
                    prop_assert_eq!(got.insert(at, byte), None, "byte {} was read twice", at);
                }
            }
        }
        while let Some((offset, bytes)) = fixture.read_unordered(1000) {
            for (at, byte) in (offset..).zip(bytes) {
                prop_assert_eq!(got.insert(at, byte), None, "byte {} was read twice", at);
            }
        }
        prop_assert_eq!(got.len() as u64, fixture.reassembler.stored());
        prop_assert_eq!(fixture.reassembler.stored(), ordered.reassembler.stored());
        // The reader in order gets the same bytes up to the first gap.
        let end = ordered.reassembler.end();
        let bytes = ordered.read(usize::try_from(end).expect("few"));
        let same: Vec<u8> = got.range(..end).map(|(_, byte)| *byte).collect();
        prop_assert_eq!(bytes, same);
    }
}
