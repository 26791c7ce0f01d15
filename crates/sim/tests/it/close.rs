//! The end of connections: notifications, their time, and the remaining state. RFC 9000 §10.2.

use std::time::Duration;

use crate::common::{SERVER, Scene, Setup, for_each_seed};
use courser_base::Time;
use courser_sim::apps::{Amount, Bulk, Exchange, TransferDirection};
use courser_transport::ConnectionError;
use courser_wire::TransportErrorCode;

const MS: Duration = Duration::from_millis(1);

/// Returns a connection after the handshake that sends nothing on its own for a minute.
fn idle_scene(seed: u64, link: &str) -> Scene {
    let app = Exchange::ping(SERVER, Duration::from_secs(60), None);
    let mut scene = Scene::new(seed, Setup::on(link), app);
    scene.confirm(Duration::from_secs(10));
    // New IDs, tokens and the search for the MTU have finished.
    scene.run_for(Duration::from_secs(5));
    assert_eq!(scene.counters().exchanges.len(), 1);
    scene
}

/// Returns a client whose stream does not end on its own.
fn busy(seed: u64, link: &str) -> Scene {
    let app = Bulk::new(SERVER, TransferDirection::Up, Amount::Endless);
    let mut scene = Scene::new(seed, Setup::on(link), app);
    scene.confirm(Duration::from_secs(10));
    scene.run_for(MS * 300);
    scene
}

fn code_of(error: &ConnectionError) -> u64 {
    match error {
        ConnectionError::ApplicationClosed { code, .. } => code.0,
        other => panic!("closed by the peer's application, but: {other}"),
    }
}

/// Returns three probe timeouts of a connection, after which no state is left.
fn drain_time(scene: &Scene) -> Duration {
    let path = scene.stats().path;
    // The variation is at most half of a first sample. The peer may delay ACKs by 25 ms.
    (path.rtt * 3 + MS * 25) * 3
}

#[test]
fn close_of_the_client_reaches_the_server_half_a_round_trip_later() {
    let mut scene = idle_scene(1, "rtt=100ms");
    let now = scene.world.now();
    scene.close_client(7);
    scene.run_for(MS * 200);
    assert_eq!(scene.end(), Some((now, ConnectionError::LocallyClosed)));
    let (at, error) = scene.server_end().expect("the connection has ended");
    assert_eq!((at - now, code_of(&error)), (MS * 50, 7));
}

#[test]
fn close_of_the_server_reaches_the_client_half_a_round_trip_later() {
    let mut scene = idle_scene(1, "rtt=100ms");
    let now = scene.world.now();
    scene.close_server((1 << 62) - 1);
    scene.run_for(MS * 200);
    let (at, error) = scene.end().expect("the connection has ended");
    assert_eq!((at - now, code_of(&error)), (MS * 50, (1 << 62) - 1));
    let (_, error) = scene.server_end().expect("the connection is closed");
    assert!(error.is_local_close());
}

#[test]
fn both_close_at_once_and_each_keeps_its_own_reason() {
    let mut scene = idle_scene(1, "rtt=100ms");
    scene.close_client(1);
    scene.close_server(2);
    scene.run_for(MS * 60 + drain_time(&scene));
    for end in [scene.end(), scene.server_end()] {
        assert!(end.expect("the connection is closed").1.is_local_close());
    }
    assert_eq!(scene.client().endpoint().connections(), 0);
    assert_eq!(scene.server().endpoint().connections(), 0);
}

#[test]
fn both_ends_remove_the_connection_within_three_probe_timeouts() {
    let mut scene = idle_scene(1, "rtt=100ms");
    let drain = drain_time(&scene);
    scene.close_client(0);
    scene.run_for(MS * 60);
    // Closing and draining continue for late packets.
    assert_eq!(scene.server().endpoint().connections(), 1);
    scene.run_for(drain);
    assert_eq!(scene.client().endpoint().connections(), 0);
    assert_eq!(scene.server().endpoint().connections(), 0);
}

/// An idle peer has no reason to send, so the closing end has no reason to repeat the close. The
/// peer ends by its idle timeout, with no packet in between.
#[test]
fn idle_peer_times_out_after_a_lost_close() {
    let app = Exchange::ping(SERVER, Duration::from_secs(60), None);
    let setup = Setup::on("rtt=100ms").both(|config| {
        config.max_idle_timeout = Some(Duration::from_secs(5));
        config.mtu_discovery = false;
    });
    let mut scene = Scene::new(1, setup, app);
    scene.confirm(Duration::from_secs(1));
    scene.run_for(Duration::from_secs(2));
    scene.set_forward("rtt=100ms,blackhole=0s:60s");
    scene.close_client(0);
    scene.run_for(Duration::from_secs(10));
    assert!(scene.forward().dropped.blackhole >= 1);
    let (at, error) = scene.server_end().expect("the server has timed out");
    assert_eq!(error, ConnectionError::TimedOut);
    assert!(at - Time::ZERO <= Duration::from_secs(7), "{at:?}");
}

/// A busy peer continues to send, and each of its packets may cause the close to be repeated.
#[test]
fn lost_close_is_repeated_to_a_peer_that_sends() {
    let mut scene = busy(1, "20mbit,rtt=50ms,queue=100p");
    let now = scene.world.now();
    scene.lose_back(1, "20mbit,rtt=50ms,queue=100p");
    scene.close_server(9);
    scene.run_for(MS * 300);
    assert_eq!(scene.back().dropped.listed, 1);
    let (at, error) = scene.end().expect("the connection has ended");
    assert_eq!(code_of(&error), 9);
    // The next packet was in flight already.
    assert!(at - now < MS * 50, "{:?}", at - now);
}

/// RFC 9000 §10.2.1: responses become less frequent, so that two ends do not answer each other
/// endlessly.
#[test]
fn repeated_closes_become_less_frequent() {
    let mut scene = busy(1, "20mbit,rtt=50ms,queue=100p");
    let before = scene.back().packets_in;
    // Half of a round trip of packets arrives after the close, and all responses are lost.
    scene.set_back("20mbit,rtt=50ms,blackhole=0s:60s");
    let arrived = scene.forward().packets_out;
    scene.close_server(9);
    // Three probe timeouts of a round trip each are longer. Later there is no connection to answer
    // for, and stateless resets count too.
    scene.run_for(MS * 150);
    let arrived = scene.forward().packets_out - arrived;
    let answers = scene.back().packets_in - before;
    assert!(arrived >= 30, "{arrived}");
    // 1 + 2 + 4 + ... packets for each further answer, and the first close.
    assert!(
        (1 << (answers - 1)) - 1 <= arrived,
        "{answers} for {arrived}"
    );
}

#[test]
fn close_with_half_of_the_data_unread_ends_both_ends() {
    let mut scene = busy(1, "20mbit,rtt=50ms,queue=100p");
    let received = scene.server_counters().received;
    assert!(received > 0);
    scene.close_client(3);
    // Three probe timeouts, each with the delay of a full queue.
    scene.run_for(MS * 1000);
    assert_eq!(
        code_of(&scene.server_end().expect("the connection has ended").1),
        3
    );
    assert_eq!(scene.server_counters().mismatch, None);
    assert_eq!(scene.server().endpoint().connections(), 0);
    // No packet that causes an answer is left.
    let (there, back) = (scene.forward().packets_in, scene.back().packets_in);
    scene.run_for(Duration::from_secs(60));
    assert_eq!(
        (scene.forward().packets_in, scene.back().packets_in),
        (there, back)
    );
}

/// Before the end of the handshake an application's code stays secret (RFC 9000 §10.2.3).
#[test]
fn client_that_closes_during_the_handshake_sends_application_error() {
    let mut scene = Scene::new(
        1,
        Setup::on("rtt=100ms"),
        Bulk::new(SERVER, TransferDirection::Up, Amount::Endless),
    );
    scene.run_for(MS * 60);
    scene.close_client(42);
    scene.run_for(MS * 200);
    let (at, error) = scene.server_end().expect("the connection has ended");
    let ConnectionError::ConnectionClosed(close) = error else {
        panic!("{error}");
    };
    assert_eq!(close.code, TransportErrorCode::APPLICATION_ERROR);
    assert_eq!(close.reason.len(), 0);
    assert_eq!(at - Time::ZERO, MS * 110);
}

#[test]
fn server_that_closes_during_the_handshake_sends_application_error() {
    let mut scene = Scene::new(
        1,
        Setup::on("rtt=100ms"),
        Bulk::new(SERVER, TransferDirection::Up, Amount::Endless),
    );
    scene.run_for(MS * 60);
    scene.close_server(42);
    // Without a sample that is the timeout of RFC 9002 §6.2.2, three times.
    scene.run_for(MS * 3 * 999 + MS * 100);
    let (_, error) = scene.end().expect("the connection has ended");
    let ConnectionError::ConnectionClosed(close) = error else {
        panic!("{error}");
    };
    assert_eq!(close.code, TransportErrorCode::APPLICATION_ERROR);
    assert_eq!(scene.client().endpoint().connections(), 0);
}

/// Nothing was received from the server. It may not exist, and must not be left with incomplete
/// state.
#[test]
fn client_that_closes_before_any_answer_leaves_no_state() {
    let mut scene = Scene::new(
        1,
        Setup::on("rtt=100ms"),
        Bulk::new(SERVER, TransferDirection::Up, Amount::Endless),
    );
    scene.run_for(MS * 10);
    scene.close_client(42);
    scene.run_for(Duration::from_secs(15));
    assert!(
        scene
            .end()
            .expect("the connection is closed")
            .1
            .is_local_close()
    );
    assert_eq!(scene.client().endpoint().connections(), 0);
    assert_eq!(scene.server().endpoint().connections(), 0);
    assert_eq!(scene.server().endpoint().stats().half_open, 0);
}

#[test]
fn second_close_has_no_effect() {
    let mut scene = idle_scene(1, "rtt=100ms");
    scene.close_client(1);
    scene.close_client(2);
    scene.run_for(MS * 30);
    scene.close_client(3);
    scene.run_for(MS * 200);
    assert_eq!(
        code_of(&scene.server_end().expect("the connection is closed").1),
        1
    );
}

/// The server closes with many packets in flight, while a third of all packets is lost.
#[test]
fn close_reaches_a_busy_peer_despite_loss() {
    let mut lost = 0;
    for_each_seed(30, |seed| {
        let mut scene = busy(seed, "20mbit,rtt=50ms,loss=30%,queue=100p");
        scene.close_server(5);
        // Its packets in flight and its probes cause further responses while the server is closing.
        // A third of all attempts fail, so not all of them do.
        scene.run_for(Duration::from_secs(31));
        let (_, error) = scene.end().expect("the connection has ended");
        let told = matches!(&error, ConnectionError::ApplicationClosed { code, .. } if code.0 == 5);
        assert!(
            told || error.is_timeout() || error == ConnectionError::Reset,
            "{error}"
        );
        lost += scene.dropped(|dropped| dropped.loss);
    });
    assert!(lost > 300, "{lost}");
}

/// The server ends by its idle timeout while the client receives nothing. When the client sends
/// again, it gets a stateless reset (RFC 9000 §10.3).
#[test]
fn client_of_a_server_without_state_is_reset() {
    let app = Exchange::ping(SERVER, Duration::from_secs(6), None);
    let mut setup = Setup::on("rtt=50ms");
    setup.client.max_idle_timeout = None;
    setup.server.max_idle_timeout = None;
    let mut scene = Scene::new(1, setup, app);
    scene.confirm(Duration::from_secs(1));
    scene.run_for(Duration::from_secs(1));
    // The server's close and its repetitions are lost. Then its state is gone.
    scene.set_back("rtt=50ms,blackhole=0s:3s");
    scene.close_server(1);
    scene.run_for(Duration::from_secs(3));
    assert_eq!(scene.server().endpoint().connections(), 0);
    assert!(scene.end().is_none());
    scene.run_for(Duration::from_secs(4));
    let (_, error) = scene.end().expect("the connection has ended");
    assert_eq!(error, ConnectionError::Reset);
    assert_eq!(scene.server().endpoint().stats().resets_sent, 1);
}

/// The longest reason that is sent (512 bytes) reaches the peer completely.
#[test]
fn long_reason_is_cut_and_arrives() {
    let mut scene = idle_scene(1, "rtt=100ms");
    let (now, handle) = (scene.world.now(), scene.server_handle());
    let reason = vec![b'x'; 3000];
    scene
        .server_mut()
        .act(now, |_, context| context.close(handle, 1, &reason));
    scene.run_for(MS * 100);
    let (_, error) = scene.end().expect("the connection is closed");
    let ConnectionError::ApplicationClosed { reason, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(&reason[..], &[b'x'; 512][..]);
}
