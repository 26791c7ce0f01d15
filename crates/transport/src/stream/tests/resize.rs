//! Limits that the application changes during a connection.

use super::*;

#[test]
fn larger_number_of_streams_is_announced_and_a_smaller_one_waits() {
    let (mut server, usual) = (End::server(), config().max_uni);
    server.streams.set_max_streams(UNI, usual + 5);
    let announced = format!("MAX_STREAMS {UNI:?} {}", usual + 5);
    assert_eq!(kinds(&server.send_and_ack_all()), [announced]);
    server.streams.set_max_streams(UNI, 1);
    assert_eq!(server.send_all().len(), 0, "limits are not withdrawn");
    assert_eq!(server.streams.granted(UNI), usual + 5);
    server.streams.set_max_streams(UNI, u64::MAX);
    let announced = format!("MAX_STREAMS {UNI:?} {}", 1u64 << 60);
    assert_eq!(kinds(&server.send_and_ack_all()), [announced]);
}

#[test]
fn receive_window_is_fixed_at_its_new_size() {
    let (mut server, usual) = (End::server(), config().receive_window);
    server.streams.set_receive_window(10 * usual);
    let announced = format!("MAX_DATA {}", 10 * usual);
    assert_eq!(kinds(&server.send_and_ack_all()), [announced]);
    server.streams.set_receive_window(1);
    assert_eq!(server.send_all().len(), 0, "credit is not withdrawn");
    server.streams.set_receive_window(u64::MAX);
    let most = (1u64 << 62) - 1;
    let announced = format!("MAX_DATA {most}");
    assert_eq!(kinds(&server.send_and_ack_all()), [announced]);
}

#[test]
fn send_buffer_limits_what_is_accepted_from_writers() {
    let roomy = StreamsConfig {
        stream_receive_window: 100_000,
        stream_receive_window_max: 100_000,
        receive_window: 100_000,
        receive_window_max: 100_000,
        send_buffer_max: 100_000,
        unsent_limit: 100_000,
        ..config()
    };
    let mut client = End::new(Side::Client, &roomy);
    let id = client.streams.open(UNI).expect("allowed");
    client.streams.on_congestion_window(1 << 20);
    client.streams.set_send_buffer_max(0);
    assert_eq!(client.streams.write(id, &[0; 9000]), Ok(4096), "the least");
    let full = client.streams.write(id, &[0; 9000]);
    assert_eq!(full, Err(WriteError::Blocked));
    client.streams.set_send_buffer_max(65_536);
    assert_eq!(client.streams.write(id, &[0; 9000]), Ok(9000), "at once");
}
