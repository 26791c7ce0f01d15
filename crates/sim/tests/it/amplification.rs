//! The three-times limit before an address is validated. RFC 9000 §8.1.
//!
//! The scene checks every datagram of the server against the limit in every scenario.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::common::{CLIENT, SERVER, Scene, Setup, for_each_seed};
use courser_sim::apps::{Amount, Bulk, TransferDirection};
use courser_sim::trace::{PacketEvent, TraceEvent};
use courser_transport::{ConnectionError, RetryPolicy};

const MS: Duration = Duration::from_millis(1);

/// The probe timeout before there is a sample: RFC 9002 §6.2.2.
const FIRST_PTO: Duration = Duration::from_millis(999);

/// The client sends 1000 bytes and closes.
fn small() -> Bulk {
    Bulk::new(SERVER, TransferDirection::Up, Amount::Bytes(1000))
}

/// Returns the bytes that the limit permits the server to send, and those that it sent.
fn limit_and_sent(scene: &Scene) -> (u64, u64) {
    (3 * scene.forward().bytes_out, scene.back().bytes_in)
}

#[test]
fn server_sends_at_most_three_times_half_of_a_client_hello() {
    for lost in [1, 2] {
        let others = if lost == 1 { "1,3-1000" } else { "2-1000" };
        let link = format!("rtt=50ms,drop={others};rtt=50ms");
        let mut scene = Scene::new(1, Setup::on(&link), small());
        scene.run_for(Duration::from_secs(30));
        let (limit, sent) = limit_and_sent(&scene);
        assert_eq!(limit, 3600);
        assert!(sent > 0 && sent <= limit, "{sent} of {limit}");
    }
}

/// The server sends probes for its lost flight up to the limit, and not a byte more.
#[test]
fn server_sends_at_most_three_times_the_hello_of_a_silent_client() {
    let mut scene = Scene::new(1, Setup::on("rtt=50ms,drop=3-1000;rtt=50ms"), small());
    scene.run_for(Duration::from_secs(30));
    let (limit, sent) = limit_and_sent(&scene);
    assert_eq!(limit, 7200);
    assert!(sent <= limit, "{sent} of {limit}");
    // Its flight, and at least one probe.
    assert!(sent > 3000, "{sent}");
    assert_eq!(
        scene.server_end().expect("the connection has ended").1,
        ConnectionError::HandshakeTimedOut
    );
}

/// Everything that the server sends to a client that is then silent may be lost.
#[test]
fn limit_holds_for_every_subset_of_the_first_eight_datagrams_of_the_server() {
    for_each_seed(1 << 8, |seed| {
        let mask = seed - 1;
        let link = format!("rtt=50ms,drop=3-6;rtt=50ms,mask={mask:#b}");
        let setup = Setup::on(&link).both(|config| {
            // The result does not matter here.
            config.handshake_timeout = Duration::from_secs(200);
            config.max_idle_timeout = Some(Duration::from_secs(200));
        });
        let mut scene = Scene::new(seed, setup, small());
        scene.finish(Duration::from_secs(90), 1);
        scene.assert_clean();
    });
}

/// A server at its limit cannot send. The client's probes must raise the limit (RFC 9002 §6.2.2.1).
#[test]
fn clients_probe_unblocks_a_server_at_its_limit() {
    // The first 7000 bytes are lost, and the server receives the ClientHello only.
    let mut scene = Scene::new(1, Setup::on("rtt=50ms;rtt=50ms,first=6"), small());
    let time = scene.finish(Duration::from_secs(10), 1);
    assert!(scene.stats().ptos >= 1);
    assert!(scene.back().dropped.listed >= 4);
    // Its probes come after 1, 3 and 7 seconds at the latest.
    assert!(time < 7 * FIRST_PTO + MS * 200, "{time:?}");
    scene.assert_clean();
}

/// The client has received everything, but the acknowledgement is lost: both ends send probes, so
/// that neither waits indefinitely.
#[test]
fn lost_response_to_the_servers_flight_causes_no_deadlock() {
    for lost in 1..=8 {
        let link = format!("rtt=50ms,drop=3-{};rtt=50ms", 2 + lost);
        let mut scene = Scene::new(lost, Setup::on(&link), small());
        // Probes of a client with a sample come after 150 ms, which doubles each time, with two
        // datagrams each.
        scene.finish(Duration::from_secs(5), 1);
        assert_eq!(scene.forward().dropped.listed, lost);
        scene.assert_clean();
    }
}

type Lens = Rc<RefCell<Vec<(bool, usize)>>>;

/// Returns the lengths of all datagrams sent, and true for those of the client.
fn listen(scene: &mut Scene) -> Lens {
    let lens = Lens::default();
    let to = Rc::clone(&lens);
    scene.world.on_trace(Box::new(move |event: &TraceEvent| {
        if event.happening == PacketEvent::Sent {
            to.borrow_mut().push((event.source == CLIENT, event.len));
        }
    }));
    lens
}

/// RFC 9000 §14.1: every datagram with an Initial of the client has 1200 bytes, probes included.
#[test]
fn client_pads_every_client_hello_and_probe() {
    let link = "rtt=50ms;rtt=50ms,blackhole=0s:60s";
    let mut scene = Scene::new(1, Setup::on(link), small());
    let lens = listen(&mut scene);
    scene.run_for(Duration::from_secs(11));
    let from_client: Vec<usize> = of(&lens, true);
    assert!(from_client.len() >= 5, "{from_client:?}");
    assert!(
        from_client.iter().all(|len| *len >= 1200),
        "{from_client:?}"
    );
}

fn of(lens: &Lens, client: bool) -> Vec<usize> {
    let lens = lens.borrow();
    let those = lens.iter().filter(|(is_client, _)| *is_client == client);
    those.map(|(_, len)| *len).collect()
}

/// RFC 9000 §14.1: the server pads datagrams with ack-eliciting Initials.
#[test]
fn server_pads_the_datagram_of_its_hello() {
    let mut scene = Scene::new(1, Setup::on("rtt=50ms,drop=3-1000;rtt=50ms"), small());
    let lens = listen(&mut scene);
    scene.run_for(MS * 40);
    let from_server = of(&lens, false);
    assert!(
        from_server.iter().any(|len| *len >= 1200),
        "{from_server:?}"
    );
}

/// A Retry is shorter than the datagram it answers, however often that is repeated.
#[test]
fn retries_are_shorter_than_client_hellos() {
    let mut setup = Setup::on("rtt=50ms;rtt=50ms,blackhole=0s:60s");
    setup.retry = RetryPolicy::Always;
    let mut scene = Scene::new(1, setup, small());
    let lens = listen(&mut scene);
    scene.run_for(Duration::from_secs(11));
    let from_server = of(&lens, false);
    assert!(from_server.len() >= 4, "{from_server:?}");
    assert!(from_server.iter().all(|len| *len < 300), "{from_server:?}");
}

/// Copies of datagrams count as received bytes. The server never sends more than three times their
/// sum.
#[test]
fn limit_holds_with_loss_copies_and_damage_together() {
    let mut faults = 0;
    for_each_seed(100, |seed| {
        let link = "rtt=50ms,loss=20%:3,duplicate=20%,corrupt=10%,reorder=20%:20ms";
        let setup = Setup::on(link).both(|config| {
            config.handshake_timeout = Duration::from_secs(30);
        });
        let mut scene = Scene::new(seed, setup, small());
        scene.finish(Duration::from_secs(20), 1);
        scene.assert_clean();
        let (there, back) = (scene.forward(), scene.back());
        faults += there.dropped.loss + there.duplicated + back.corrupted + back.reordered;
    });
    assert!(faults > 200, "{faults}");
}
