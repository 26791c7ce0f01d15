use courser_base::Side;
use courser_wire::Direction;

use super::*;

fn stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

#[test]
fn code_stays_until_it_is_forgotten() {
    let mut stops = Stops::default();
    stops.keep(stream(0), 7u8.into(), false);
    stops.keep(stream(1), 8u8.into(), true);
    assert_eq!(stops.code(stream(0)), Some(7u8.into()));
    assert_eq!(stops.code(stream(1)), Some(8u8.into()));
    assert_eq!(stops.code(stream(2)), None);
    stops.forget(stream(0));
    stops.forget(stream(1));
    assert!(stops.is_empty());
}

#[test]
fn finished_streams_displace_each_other_and_no_open_one() {
    let mut stops = Stops::default();
    stops.keep(stream(0), 1u8.into(), false);
    for index in 1..=1000 {
        stops.keep(stream(index), 2u8.into(), true);
    }
    assert_eq!(stops.finished.len(), FINISHED_MAX);
    assert_eq!(stops.code(stream(0)), Some(1u8.into()));
    assert_eq!(stops.code(stream(1)), None);
    assert_eq!(stops.code(stream(1000)), Some(2u8.into()));
}
