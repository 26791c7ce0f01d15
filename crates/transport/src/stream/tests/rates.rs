//! Streams with a limit on their rate.

use super::sending::wide_client;
use super::*;
use courser_base::Rate;

/// Sends for a second of virtual time, at most `per_ms` packets per millisecond, and returns the bytes of
/// each stream. Writers keep their streams full.
fn send_for_a_second(client: &mut End, streams: &[StreamId], per_ms: usize) -> Vec<u64> {
    for _ in 0..1000 {
        for _ in 0..per_ms {
            for &id in streams {
                let _ = client.streams.write(id, &[7; 4000]);
            }
            let Some(flying) = client.send() else { break };
            client.on_acked(&flying);
        }
        client.now += Duration::from_millis(1);
        if client
            .streams
            .next_timeout()
            .is_some_and(|at| at <= client.now)
        {
            client.streams.on_timeout(client.now);
        }
    }
    let sent = |id: &StreamId| client.streams.send_stats(*id).expect("open").sent;
    streams.iter().map(sent).collect()
}

fn rate(bytes: u64) -> Option<Rate> {
    Some(Rate::from_bytes_per_second(bytes))
}

#[test]
fn limited_stream_keeps_its_rate_and_the_other_gets_the_rest() {
    let mut client = wide_client();
    let [limited, other] = [(); 2].map(|()| client.streams.open(UNI).expect("allowed"));
    client
        .streams
        .set_max_send_rate(limited, rate(100_000))
        .expect("open");
    let sent = send_for_a_second(&mut client, &[limited, other], 1);
    assert!((95_000..105_000).contains(&sent[0]), "{sent:?}");
    // A packet of 1200 bytes per millisecond.
    assert!(sent[0] + sent[1] > 1_150_000, "{sent:?}");
}

#[test]
fn limited_stream_alone_leaves_the_connection_silent_in_between() {
    let mut client = wide_client();
    let id = client.streams.open(UNI).expect("allowed");
    client
        .streams
        .set_max_send_rate(id, rate(500_000))
        .expect("open");
    client.streams.write(id, &[7; 50_000]).expect("room");
    let first = client.send_all();
    assert!(
        (5..=6).contains(&first.len()),
        "ten milliseconds: {}",
        first.len()
    );
    assert!(!client.streams.has_frames_to_send());
    let next = client.streams.next_timeout().expect("the end of the pause");
    assert!(next >= NOW + Duration::from_millis(10));
    client.streams.on_timeout(next);
    assert!(client.streams.has_stream_data());
}

#[test]
fn priority_and_losses_do_not_end_a_pause() {
    let mut client = wide_client();
    let id = client.streams.open(UNI).expect("allowed");
    client
        .streams
        .set_max_send_rate(id, rate(1000))
        .expect("open");
    client.streams.write(id, &[7; 5000]).expect("room");
    let first = client.send_all();
    assert_eq!(first.len(), 1);
    client.streams.set_priority(id, 3).expect("open");
    client.streams.write(id, &[7; 5000]).expect("room");
    assert!(!client.streams.has_stream_data());
    // Lost bytes are sent again at once.
    client.on_lost(&first[0]);
    assert_eq!(client.send_all().len(), 1);
    assert!(!client.streams.has_stream_data());
    client.streams.set_max_send_rate(id, None).expect("open");
    assert!(client.send_all().len() > 5);
    assert_eq!(client.streams.next_timeout(), None);
}

#[test]
fn streams_that_are_over_leave_no_timer() {
    let mut client = wide_client();
    let id = client.streams.open(UNI).expect("allowed");
    client
        .streams
        .set_max_send_rate(id, rate(1000))
        .expect("open");
    client.streams.write(id, &[7; 5000]).expect("room");
    let _ = client.send_all();
    client.streams.reset(id, 1).expect("open");
    client.send_and_ack_all();
    assert_eq!(client.streams.next_timeout(), None);
    let gone = client.streams.set_max_send_rate(id, rate(1));
    assert_eq!(gone, Err(ClosedStream));
}
