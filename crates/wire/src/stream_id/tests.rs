use super::*;

#[test]
fn low_two_bits_are_initiator_and_direction() {
    let table = [
        (0, Side::Client, Direction::Bidirectional),
        (1, Side::Server, Direction::Bidirectional),
        (2, Side::Client, Direction::Unidirectional),
        (3, Side::Server, Direction::Unidirectional),
    ];
    for (bits, side, direction) in table {
        for index in [0, 1, 1000, MAX_STREAMS - 1] {
            let id = StreamId::new(side, direction, index);
            assert_eq!(id.value(), index << 2 | bits, "{bits} {index}");
            assert_eq!(id, StreamId::from_value(id.value()), "{bits} {index}");
            assert_eq!(
                (id.initiator(), id.direction(), id.index()),
                (side, direction, index),
                "{bits} {index}"
            );
        }
    }
}

#[test]
fn the_last_stream_has_the_largest_varint() {
    let last = StreamId::new(Side::Server, Direction::Unidirectional, MAX_STREAMS - 1);
    assert_eq!(last.value(), MAX_VARINT);
}

#[test]
fn displays_as_its_number() {
    assert_eq!(StreamId::from_value(7).to_string(), "7");
}
