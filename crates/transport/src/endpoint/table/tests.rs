use std::time::Duration;

use super::*;
use crate::endpoint::memory::Memory;
use crate::endpoint::shards::ShardId;
use crate::endpoint::shared::Shared;

/// Returns a table with this many records in use, which have no connections.
fn table(records: usize) -> (Table, Vec<ConnectionHandle>) {
    let alone = ShardId {
        number: 0,
        count: 1,
    };
    let mut table = Table::new(Memory::new(1 << 20, alone, Shared::of_test(1)));
    let handles = (0..records).map(|_| table.entries.take()).collect();
    table.busy = records;
    (table, handles)
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn fault() -> ConnectionError {
    ConnectionError::TimedOut
}

#[test]
fn each_connection_is_queued_once_in_order() {
    let (mut table, handles) = table(3);
    for index in [2, 0, 2, 1, 0] {
        table.mark_ready(handles[index]);
        table.queue_sender(handles[index]);
    }
    let expected = [handles[2], handles[0], handles[1]];
    let ready: Vec<_> = std::iter::from_fn(|| table.next_ready()).collect();
    assert_eq!(ready, expected);
    assert_eq!(table.senders().len(), 3);
    let senders: Vec<_> = std::iter::from_fn(|| table.next_sender()).collect();
    assert_eq!(senders, expected);
    table.mark_ready(handles[2]);
    assert_eq!(table.next_ready(), Some(handles[2]), "after its turn");
}

#[test]
fn handle_of_a_removed_connection_is_invalid() {
    let (mut table, handles) = table(1);
    table.mark_ready(handles[0]);
    table.queue_sender(handles[0]);
    table.on_faulty(handles[0], fault());
    table.release(handles[0]);
    let next = table.entries.take();
    assert_eq!(next.index(), handles[0].index());
    assert!(table.entry(handles[0]).is_none() && table.entry(next).is_some());
    assert_eq!((table.next_ready(), table.next_sender()), (None, None));
}

#[test]
fn faulty_connection_keeps_its_error_until_it_is_released() {
    let (mut table, handles) = table(2);
    assert!(!table.is_idle());
    table.on_faulty(handles[0], fault());
    assert_eq!(table.connections(), 1);
    let entry = table.entry(handles[0]).expect("not released");
    assert_eq!(entry.fault.as_deref(), Some(&fault()));
    assert_eq!(table.next_ready(), Some(handles[0]), "it is reported");
    table.release(handles[0]);
    assert!(table.entry(handles[0]).is_none());
    assert_eq!(table.connections(), 1);
}

#[test]
fn released_connection_is_removed_at_once_after_a_fault() {
    let (mut table, handles) = table(1);
    table.release(handles[0]);
    assert!(table.entry(handles[0]).is_some(), "it is not drained");
    table.on_faulty(handles[0], fault());
    assert!(table.entry(handles[0]).is_none());
    assert_eq!(table.next_ready(), None);
    assert!(table.is_idle());
    assert_eq!(table.connections(), 0);
}

#[test]
fn connection_whose_timer_is_due_is_in_use() {
    let (mut table, handles) = table(2);
    for (handle, time) in [(handles[0], at(2)), (handles[1], at(1))] {
        table.entries[handle.index()].scheduled = Some(time);
        table.timers.add(time, handle);
    }
    assert_eq!(table.next_timeout(), Some(at(1)));
    assert_eq!(table.next_due(at(1)), Some(handles[1]));
    assert_eq!(table.take_in_use(), Some(handles[1]));
    assert_eq!(table.next_due(at(1)), None);
    table.entries[handles[0].index()].scheduled = Some(at(5));
    assert_eq!(
        table.next_due(at(2)),
        None,
        "an earlier deadline has replaced it"
    );
}
