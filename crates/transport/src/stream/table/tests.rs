use super::*;
use crate::stream::StreamsConfig;
use crate::stream::chunk_pool::ChunkPool;

fn id(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

fn table() -> (Table, Buffers) {
    (
        Table::new(Side::Client, [1; 16]),
        Buffers::new(ChunkPool::new(1), &StreamsConfig::default()),
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
        let key = table.insert(StreamId::new(side, direction, 0));
        let state = table.at(key);
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
    let keys: Vec<u32> = (0..1000).map(|index| table.insert(id(index))).collect();
    for round in 0..2 {
        for index in 0..1000 {
            assert_eq!(
                table.find(id(index)),
                Some(keys[index as usize]),
                "round {round}"
            );
        }
    }
    assert_eq!(table.find(id(1000)), None);
    assert_eq!(table.len(), 1000);
}

/// Near the maximum of cached lookups, and far beyond, where each finds its entry taken.
#[test]
fn lookups_beyond_what_is_remembered_find_their_own() {
    for count in [MAX_RECENT, MAX_RECENT + 1, 600] {
        let (mut table, mut buffers) = table();
        let kinds = [Side::Client, Side::Server].into_iter().flat_map(|side| {
            [
                (side, Direction::Bidirectional),
                (side, Direction::Unidirectional),
            ]
        });
        let all: Vec<StreamId> = kinds
            .flat_map(|(side, direction)| {
                (0..count as u64).map(move |index| StreamId::new(side, direction, index))
            })
            .collect();
        let (open, later) = all.split_at(count);
        let mut model: HashMap<StreamId, u32> = HashMap::new();
        model.extend(open.iter().map(|id| (*id, table.insert(*id))));
        let mut step = 0x9e37_79b9_7f4a_7c15_u64;
        for id in later {
            // Looks streams up at random, while now and then one ends and another begins.
            for _ in 0..3 {
                step = step.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let asked = all[(step >> 33) as usize % all.len()];
                let found = table.find(asked);
                assert_eq!(found, model.get(&asked).copied(), "{asked} of {count}");
                if let Some(key) = found {
                    assert_eq!(table.at(key).id, asked, "of {count}");
                }
            }
            let ended = all[(step >> 7) as usize % all.len()];
            if let Some(key) = model.remove(&ended) {
                table.remove(key, &mut buffers);
                model.insert(*id, table.insert(*id));
            }
        }
        assert_eq!((table.len(), table.recent.len()), (count, MAX_RECENT));
    }
}

#[test]
fn entry_of_ended_stream_is_used_again() {
    let (mut table, mut buffers) = table();
    let key = table.insert(id(0));
    table.remove(key, &mut buffers);
    assert_eq!(table.find(id(0)), None);
    assert!(table.get(id(0)).is_none());
    assert_eq!(table.insert(id(1)), key);
    assert_eq!(table.find(id(1)), Some(key));
    assert_eq!(table.find(id(0)), None);
}

#[test]
fn empty_entries_are_few() {
    let (mut table, mut buffers) = table();
    let keys: Vec<u32> = (0..2000).map(|index| table.insert(id(index))).collect();
    for key in keys {
        assert!(!table.is_oversized());
        table.remove(key, &mut buffers);
    }
    assert!(table.is_oversized());
    table.clear();
    assert!(!table.is_oversized());
    assert_eq!(table.entries.capacity(), 0);
}

/// Attack A27: an open stream that holds nothing costs under 1 KiB.
#[test]
fn entry_is_small() {
    assert!(
        size_of::<Entry>() + 32 <= 768,
        "{} bytes",
        size_of::<Entry>()
    );
}
