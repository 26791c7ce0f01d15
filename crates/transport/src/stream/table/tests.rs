use super::*;
use crate::stream::chunk_pool::ChunkPool;

fn id(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

fn table() -> (Table, Buffers) {
    (
        Table::new(Side::Client, 128, [1; 16]),
        Buffers::new(ChunkPool::new(1)),
    )
}

#[test]
fn direction_decides_which_parts_are_used() {
    let (mut table, _) = table();
    for (side, direction, parts) in [
        (Side::Client, Direction::Bidirectional, (true, true)),
        (Side::Server, Direction::Bidirectional, (true, true)),
        (Side::Client, Direction::Unidirectional, (true, false)),
        (Side::Server, Direction::Unidirectional, (false, true)),
    ] {
        let slot = table.insert(StreamId::new(side, direction, 0));
        let state = table.at(slot);
        assert_eq!(
            (state.sends, state.receives),
            parts,
            "{side:?} {direction:?}"
        );
    }
}

#[test]
fn streams_are_found_also_when_their_places_collide() {
    let (mut table, _) = table();
    let slots: Vec<u32> = (0..1000).map(|index| table.insert(id(index))).collect();
    for round in 0..2 {
        for index in 0..1000 {
            assert_eq!(
                table.find(id(index)),
                Some(slots[index as usize]),
                "round {round}"
            );
        }
    }
    assert_eq!(table.find(id(1000)), None);
    assert_eq!(table.len(), 1000);
}

#[test]
fn slot_of_an_ended_stream_is_used_again() {
    let (mut table, mut buffers) = table();
    let slot = table.insert(id(0));
    table.remove(slot, &mut buffers);
    assert_eq!(table.find(id(0)), None);
    assert!(table.get(id(0)).is_none());
    assert_eq!(table.insert(id(1)), slot);
    assert_eq!(table.find(id(1)), Some(slot));
    assert_eq!(table.find(id(0)), None);
}

#[test]
fn empty_slots_are_few() {
    let (mut table, mut buffers) = table();
    let slots: Vec<u32> = (0..2000).map(|index| table.insert(id(index))).collect();
    for slot in slots {
        assert!(!table.is_oversized());
        table.remove(slot, &mut buffers);
    }
    assert!(table.is_oversized());
    table.clear();
    assert!(!table.is_oversized());
    assert_eq!(table.slots.capacity(), 0);
}

/// Attack A27: an open stream that holds nothing costs under 1 KiB.
#[test]
fn slot_is_small() {
    assert!(size_of::<Slot>() + 32 <= 768, "{} bytes", size_of::<Slot>());
}
