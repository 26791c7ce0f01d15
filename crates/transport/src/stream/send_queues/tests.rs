use std::time::Duration;

use courser_base::Side;
use courser_wire::Direction;

use super::*;
use crate::stream::buffers::Buffers;
use crate::stream::chunk_pool::ChunkPool;
use crate::stream::config::StreamsConfig;
use crate::stream::table::Table;

const NOW: Time = Time::ZERO;

struct Fixture {
    queues: SendQueues,
    table: Table,
    buffers: Buffers,
}

impl Fixture {
    fn new() -> Self {
        Self {
            queues: SendQueues::default(),
            table: Table::new(Side::Client, [1; 16]),
            buffers: Buffers::new(ChunkPool::new(1), &StreamsConfig::default()),
        }
    }

    /// Adds a stream with this much credit, writes `data` to it, and schedules it.
    fn stream(&mut self, index: u64, credit: u64, data: &[u8]) -> u32 {
        let id = StreamId::new(Side::Client, Direction::Unidirectional, index);
        let key = self.table.insert(id);
        let stream = self.table.at(key);
        stream.send.begin(credit);
        let room = self.buffers.sending.write_limits(1000, 0);
        stream.send.write(data, room, &mut self.buffers).unwrap();
        self.queues.schedule(key, stream);
        key
    }

    fn queued(&self) -> (bool, bool) {
        (!self.queues.new.is_empty(), !self.queues.control.is_empty())
    }
}

#[test]
fn stream_with_credit_waits_to_send_its_data() {
    let mut fixture = Fixture::new();
    let key = fixture.stream(0, 100, b"data");
    assert_eq!(fixture.queued(), (true, false));
    let stream = fixture.table.at(key);
    assert!(!fixture.queues.schedule(key, stream));
    fixture.queues.new.on_last_sent(0);
    assert!(fixture.queues.new.is_empty(), "it was queued once");
}

#[test]
fn stream_without_credit_asks_for_it_once() {
    let mut fixture = Fixture::new();
    let key = fixture.stream(0, 0, b"data");
    assert_eq!(fixture.queued(), (false, true));
    assert!(fixture.table.at(key).pending.has(ControlFrame::Blocked));
    let stream = fixture.table.at(key);
    assert!(!fixture.queues.signal_blocked(key, stream));
}

#[test]
fn stream_with_a_limited_rate_pauses() {
    let mut fixture = Fixture::new();
    let key = fixture.stream(0, 100, b"data");
    let stream = fixture.table.at(key);
    let rate = Rate::from_bytes_per_second(100);
    fixture.queues.set_rate(NOW, stream.id, Some(rate));
    assert!(fixture.queues.on_new_sent(NOW, stream, 1));
    assert!(fixture.queues.new.is_empty() && stream.in_new.is_none());
    fixture.queues.schedule(key, stream);
    assert!(fixture.queues.new.is_empty(), "it pauses");
    let resumption = fixture.queues.next_resumption().expect("a pause");
    assert_eq!(resumption, NOW + Duration::from_millis(10));
    assert_eq!(fixture.queues.pop_resumed(resumption), Some(stream.id));
    fixture.queues.schedule(key, stream);
    assert!(!fixture.queues.new.is_empty());
}

#[test]
fn stream_that_is_over_leaves_all_queues() {
    let mut fixture = Fixture::new();
    let key = fixture.stream(0, 100, b"data");
    let stream = fixture.table.at(key);
    fixture.queues.request(key, stream, ControlFrame::Reset);
    fixture.queues.remove(stream);
    assert_eq!(fixture.queued(), (false, false));
}
