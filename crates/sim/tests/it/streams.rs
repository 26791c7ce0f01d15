//! Streams over networks that lose: many, large, empty, aborted. RFC 9000 §2 to §4.

use std::time::Duration;

use crate::common::requests::{RequestEnd, Requests, SlowReader};
use crate::common::{SERVER, Scene, Setup, for_each_seed};
use courser_sim::apps::{Amount, Bulk, Exchange, TransferDirection};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Packets of 1200 bytes all the time: these links have no MTU, and would be crossed in few.
fn setup(link: &str) -> Setup {
    Setup::on(link).both(|config| config.mtu_discovery = false)
}

fn requests(scene: &Scene) -> &Requests {
    scene.client().app().expect("the application is `Requests`")
}

/// Runs until every request has ended.
fn finish(scene: &mut Scene, limit: Duration) -> Duration {
    let time = scene.run_until(limit, "end of all requests", |scene| {
        requests(scene).is_done()
    });
    scene.assert_clean();
    time
}

#[test]
fn thousand_streams_complete_a_hundred_at_a_time() {
    let app = Requests::new(SERVER, 1000, 10, 10);
    let mut scene = Scene::new(1, setup("20mbit,rtt=20ms,queue=200p"), app);
    let time = finish(&mut scene, SECOND * 10);
    assert_eq!(scene.counters().streams, 1000);
    assert_eq!(scene.counters().received, 10_000);
    // A hundred at a time: ten round trips, and the credit for the next ones.
    assert!(time < MS * 20 * (2 + 10 * 4), "{time:?}");
}

#[test]
fn thousand_streams_complete_with_five_percent_loss() {
    for_each_seed(5, |seed| {
        let app = Requests::new(SERVER, 1000, 100, 1000);
        let mut scene = Scene::new(seed, setup("20mbit,rtt=20ms,loss=5%,queue=200p"), app);
        // 1 MB at loss 5 % is 1200 * 1.22 / 0.22 bytes per round trip, twenty times that.
        finish(&mut scene, SECOND * 60);
        assert_eq!(scene.counters().streams, 1000);
        assert_eq!(scene.counters().received, 1_000_000);
        assert!(scene.back().dropped.loss > 30);
    });
}

#[test]
fn all_streams_complete_with_a_limit_of_one() {
    let app = Requests::new(SERVER, 50, 100, 100);
    let mut setup = setup("rtt=20ms,loss=5%");
    setup.server.max_bidi_streams = 1;
    let mut scene = Scene::new(1, setup, app);
    finish(&mut scene, SECOND * 30);
    assert_eq!(scene.counters().streams, 50);
    assert_eq!(requests(&scene).most_open(), 1);
}

#[test]
fn parallel_requests_all_end_with_ten_percent_loss() {
    for_each_seed(20, |seed| {
        let app = Requests::new(SERVER, 60, 2000, 5000);
        let mut scene = Scene::new(seed, setup("20mbit,rtt=30ms,loss=10%,queue=200p"), app);
        finish(&mut scene, SECOND * 60);
        assert_eq!(scene.counters().streams, 60);
        assert_eq!(scene.counters().received, 300_000);
        assert_eq!(scene.server_counters().received, 120_000);
        assert!(scene.dropped(|dropped| dropped.loss) > 20);
    });
}

/// A loss on one stream blocks no other: of ten responses, which fill a first window, those without
/// a part in the lost packet arrive after the round trip.
#[test]
fn lost_packet_delays_only_its_own_streams() {
    for lost in 1..=8 {
        let app = Requests::new(SERVER, 10, 10, 1000).beginning_at(SECOND);
        let mut scene = Scene::new(lost, setup("rtt=40ms"), app);
        scene.run_for(SECOND - MS);
        let number = scene.back().packets_in + lost;
        scene.set_back(&format!("rtt=40ms,drop={number}"));
        scene.run_for(MS * 60);
        assert_eq!(scene.back().dropped.listed, 1, "packet {lost}");
        // A packet has parts of two responses, or of three if it ends with small ones.
        let there = scene.counters().streams;
        assert!((7..10).contains(&there), "packet {lost}: {there}");
        finish(&mut scene, SECOND);
        assert_eq!(scene.counters().streams, 10);
    }
}

#[test]
fn stream_without_a_byte_ends_like_any_other() {
    let mut lost = 0;
    for_each_seed(20, |seed| {
        let app = Requests::new(SERVER, 40, 0, 0);
        let mut scene = Scene::new(seed, setup("rtt=20ms,loss=20%:3"), app);
        finish(&mut scene, SECOND * 30);
        assert_eq!(
            (scene.counters().streams, scene.counters().received),
            (40, 0)
        );
        lost += scene.dropped(|dropped| dropped.loss);
    });
    assert!(lost > 40, "{lost}");
}

/// The end of the stream is in a separate packet, which is lost.
#[test]
fn lost_end_is_sent_again() {
    let app = Requests::new(SERVER, 1, 1000, 10).finishing_after(MS * 300);
    let setup = setup("rtt=40ms");
    let mut scene = Scene::new(1, setup, app);
    scene.run_for(MS * 300);
    assert_eq!(scene.server_counters().received, 1000);
    assert_eq!(scene.server_counters().streams, 0);
    scene.lose_forward(1, "rtt=40ms");
    let time = finish(&mut scene, SECOND * 2);
    assert_eq!(scene.forward().dropped.listed, 1);
    // It left 340 ms after the start. A probe timeout is 145 ms at most.
    assert!(time < MS * (40 + 40 + 145 + 10), "{time:?}");
}

#[test]
fn resets_of_every_second_stream_leave_the_others_whole() {
    for_each_seed(20, |seed| {
        let app = Requests::new(SERVER, 60, 20_000, 3000).with_end(|index| match index % 2 {
            0 => RequestEnd::Finish,
            _ => RequestEnd::ResetAfter(5000),
        });
        let mut scene = Scene::new(seed, setup("20mbit,rtt=30ms,loss=5%,queue=200p"), app);
        finish(&mut scene, SECOND * 60);
        assert_eq!(scene.counters().streams, 30);
        assert_eq!(scene.counters().received, 90_000);
        assert!(scene.server_counters().received >= 600_000);
        assert!(scene.dropped(|dropped| dropped.loss) > 20);
    });
}

#[test]
fn stops_of_every_second_answer_leave_the_others_whole() {
    for_each_seed(20, |seed| {
        let app = Requests::new(SERVER, 60, 100, 20_000).with_end(|index| match index % 2 {
            0 => RequestEnd::Finish,
            _ => RequestEnd::StopAfter(1),
        });
        let mut scene = Scene::new(seed, setup("20mbit,rtt=30ms,loss=5%,queue=200p"), app);
        finish(&mut scene, SECOND * 60);
        assert_eq!(scene.counters().streams, 30);
        assert!(scene.counters().received >= 600_000);
        assert!(scene.dropped(|dropped| dropped.loss) > 20);
    });
}

/// The limits and credit of aborted streams are released: five hundred of them, a hundred at a
/// time, and then a transfer larger than all windows.
#[test]
fn credit_of_aborted_streams_is_released() {
    let app = Requests::new(SERVER, 500, 4000, 4000).with_end(|index| match index % 5 {
        0 => RequestEnd::ResetAfter(2000),
        1 => RequestEnd::StopAfter(1000),
        _ => RequestEnd::Finish,
    });
    let setup = setup("20mbit,rtt=30ms,loss=2%,queue=200p").both(|config| {
        config.receive_window = 100_000;
        config.receive_window_max = 100_000;
        config.stream_receive_window = 20_000;
        config.stream_receive_window_max = 20_000;
    });
    let mut scene = Scene::new(1, setup, app);
    finish(&mut scene, SECOND * 60);
    assert_eq!(scene.counters().streams, 300);
    assert!(scene.counters().received > 1_200_000);
}

/// A window of two kilobytes: a round trip for each two kilobytes, and lost credit is granted
/// again.
#[test]
fn tiny_windows_with_loss_never_get_stuck() {
    for_each_seed(20, |seed| {
        let setup = setup("rtt=20ms,loss=10%").both(|config| {
            config.receive_window = 3000;
            config.receive_window_max = 3000;
            config.stream_receive_window = 2000;
            config.stream_receive_window_max = 2000;
        });
        let app = Bulk::new(SERVER, TransferDirection::Up, Amount::Bytes(60_000));
        let mut scene = Scene::new(seed, setup, app);
        // More than thirty windows, of which a fifth waits for one or two probes.
        scene.finish(SECOND * 30, 1);
        assert_eq!(scene.server_counters().received, 60_000);
        scene.assert_clean();
        assert!(scene.dropped(|dropped| dropped.loss) > 5);
    });
}

#[test]
fn windows_of_a_single_byte_move_a_byte_each_round_trip() {
    let setup = setup("rtt=20ms").both(|config| {
        config.stream_receive_window = 1;
        config.stream_receive_window_max = 1;
    });
    let app = Bulk::new(SERVER, TransferDirection::Up, Amount::Bytes(50));
    let mut scene = Scene::new(1, setup, app);
    let time = scene.finish(SECOND * 5, 1);
    assert_eq!(scene.server_counters().received, 50);
    scene.assert_clean();
    // The header has eight bytes, and two round trips are the handshake's and the last answer.
    assert!(time >= MS * 20 * 57 && time <= MS * 20 * 64, "{time:?}");
}

/// The reader takes 100 kB each second, and no data is buffered beyond the window.
#[test]
fn slow_reader_slows_the_sender_down() {
    let setup = setup("20mbit,rtt=20ms,queue=200p").both(|config| {
        config.stream_receive_window = 64 * 1024;
        config.stream_receive_window_max = 64 * 1024;
    });
    let app = SlowReader::new(SERVER, 500_000, 10_000, MS * 100);
    let mut scene = Scene::new(1, setup, app);
    scene.run_for(SECOND * 2);
    let (read, arrived) = (scene.counters().received, scene.stats().data_received);
    assert!(
        read > 150_000 && arrived <= read + 64 * 1024,
        "{read} {arrived}"
    );
    scene.finish(SECOND * 5, 1);
    assert_eq!(scene.counters().received, 500_000);
    scene.assert_clean();
}

#[test]
fn slow_reader_with_loss_gets_every_byte() {
    for_each_seed(10, |seed| {
        let setup = setup("20mbit,rtt=20ms,loss=5%,queue=200p").both(|config| {
            config.stream_receive_window = 16 * 1024;
            config.stream_receive_window_max = 16 * 1024;
        });
        let app = SlowReader::new(SERVER, 200_000, 10_000, MS * 50);
        let mut scene = Scene::new(seed, setup, app);
        scene.finish(SECOND * 20, 1);
        assert_eq!(scene.counters().received, 200_000);
        scene.assert_clean();
    });
}

/// The reader sleeps for longer than the idle timeout: probes for credit keep both ends alive.
#[test]
fn reader_that_sleeps_past_the_idle_timeout_keeps_its_connection() {
    let setup = setup("20mbit,rtt=20ms,queue=200p").both(|config| {
        config.stream_receive_window = 16 * 1024;
        config.stream_receive_window_max = 16 * 1024;
        config.max_idle_timeout = Some(SECOND * 3);
        config.keep_alive_interval = Some(SECOND);
    });
    let app = SlowReader::new(SERVER, 100_000, 40_000, SECOND * 8);
    let mut scene = Scene::new(1, setup, app);
    scene.finish(SECOND * 90, 1);
    assert_eq!(scene.counters().received, 100_000);
    scene.assert_clean();
}

/// Twenty megabytes at 100 Mbit/s take 1.6 s; windows must grow for that.
#[test]
fn big_response_fills_the_link() {
    let app = Bulk::new(SERVER, TransferDirection::Down, Amount::Bytes(20_000_000));
    let mut scene = Scene::new(1, setup("100mbit,rtt=40ms,queue=1bdp"), app);
    let time = scene.finish(SECOND * 4, 1);
    assert_eq!(scene.counters().received, 20_000_000);
    scene.assert_clean();
    assert!(time < MS * 1600 * 2, "{time:?}");
}

#[test]
fn consecutive_exchanges_complete_with_loss() {
    for_each_seed(20, |seed| {
        let app = Exchange::new(SERVER, 200, 2000, Some(40));
        let mut scene = Scene::new(seed, setup("rtt=20ms,loss=10%"), app);
        scene.finish(SECOND * 60, 40);
        assert_eq!(scene.counters().exchanges.len(), 40);
        assert_eq!(scene.server_counters().received, 8000);
        scene.assert_clean();
        assert!(scene.dropped(|dropped| dropped.loss) > 5);
    });
}
