use std::net::{Ipv4Addr, SocketAddr};

use courser_client::hooks::Destination;
use courser_client::{Client, Origin};

use super::*;
use crate::channel::backend::Heard;

const REFRESH: Duration = Duration::from_secs(30);

struct Scene {
    client: Client,
    balancer: Balancer,
    now: Instant,
}

impl Scene {
    /// Creates a balancer whose name has this many addresses.
    fn new(addresses: u8) -> Self {
        let mut scene = Self {
            client: Client::builder()
                .dangerous_insecure()
                .build()
                .expect("a client"),
            balancer: Balancer::default(),
            now: Instant::now(),
        };
        let (pick, work) = scene.pick();
        assert!(work.resolves && work.connects.is_empty());
        assert!(matches!(pick, Pick::Wait));
        let servers = (1..=addresses).map(|last| scene.server(0, last)).collect();
        scene.balancer.on_resolved(scene.now, servers, &[]);
        scene
    }

    fn server(&self, target: usize, last: u8) -> Server {
        let uri: http::Uri = "https://servers.test".parse().expect("a URI");
        let origin = Origin::of(&uri).expect("an origin");
        let address = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 443));
        Server {
            destination: Destination::new(&self.client, origin, address),
            target,
            address,
            uri,
            heard: Heard::new(),
        }
    }

    fn pick(&mut self) -> (Pick, Work) {
        self.balancer.pick(self.now, REFRESH)
    }

    /// Returns the last byte of the address of the next call.
    fn next(&mut self) -> Option<u8> {
        match self.pick().0 {
            Pick::Ready(server) => Some(last_of(&server)),
            _ => None,
        }
    }

    fn connected(&mut self, server: &Arc<Server>) {
        self.balancer.on_connected(self.now, server);
    }

    fn lose(&mut self, server: &Arc<Server>) {
        self.balancer.on_lost(self.now, server, 0.5);
    }

    fn fail(&mut self, server: &Arc<Server>) {
        let error = Status::unavailable("refused");
        self.balancer
            .on_connect_failed(self.now, server, error, 0.5);
    }
}

fn last_of(server: &Server) -> u8 {
    match server.address {
        SocketAddr::V4(address) => address.ip().octets()[3],
        SocketAddr::V6(_) => panic!("all are IPv4"),
    }
}

#[test]
fn all_addresses_are_connected_to_and_take_turns_once_they_answer() {
    let mut scene = Scene::new(3);
    let (pick, work) = scene.pick();
    assert!(matches!(pick, Pick::Wait));
    assert_eq!(work.connects.len(), 3);
    assert!(
        scene.pick().1.connects.is_empty(),
        "each is connected to once"
    );
    scene.connected(&work.connects[1]);
    assert_eq!((scene.next(), scene.next()), (Some(2), Some(2)));
    scene.connected(&work.connects[0]);
    scene.connected(&work.connects[2]);
    let turns: Vec<_> = (0..6).map(|_| scene.next().expect("ready")).collect();
    assert_eq!(turns.iter().filter(|it| **it == 1).count(), 2, "{turns:?}");
    assert_eq!(turns[..3], turns[3..]);
}

#[test]
fn failed_address_is_tried_again_after_growing_pauses() {
    let mut scene = Scene::new(1);
    let server = scene.pick().1.connects.remove(0);
    for pause in [1.0, 1.6, 2.56] {
        scene.fail(&server);
        let Pick::Unavailable(until, status) = scene.pick().0 else {
            panic!("nothing else answers");
        };
        assert_eq!(until - scene.now, Duration::from_secs_f64(pause));
        assert_eq!(status.message(), "refused");
        scene.now = until - Duration::from_millis(1);
        assert!(scene.pick().1.connects.is_empty());
        scene.now = until;
        let (pick, work) = scene.pick();
        assert!(matches!(pick, Pick::Wait), "calls wait for the attempt");
        assert_eq!(work.connects.len(), 1);
    }
    scene.connected(&server);
    scene.now += SHORTEST_LIFE;
    scene.lose(&server);
    scene.pick();
    scene.fail(&server);
    let Pick::Unavailable(until, _) = scene.pick().0 else {
        panic!("nothing else answers");
    };
    assert_eq!(
        until - scene.now,
        Duration::from_secs(1),
        "a success ends the series"
    );
}

#[test]
fn lost_connection_is_opened_again_while_others_answer() {
    let mut scene = Scene::new(2);
    let servers = scene.pick().1.connects;
    servers.iter().for_each(|it| scene.connected(it));
    scene.now += SHORTEST_LIFE;
    scene.lose(&servers[0]);
    scene.lose(&servers[0]);
    let (pick, work) = scene.pick();
    assert!(matches!(pick, Pick::Ready(server) if last_of(&server) == 2));
    assert_eq!(work.connects.len(), 1);
    scene.fail(&servers[0]);
    assert_eq!((scene.next(), scene.next()), (Some(2), Some(2)));
}

#[test]
fn name_is_resolved_again_when_it_is_old_or_an_address_has_failed() {
    let mut scene = Scene::new(2);
    let servers = scene.pick().1.connects;
    scene.connected(&servers[0]);
    scene.now += REFRESH - Duration::from_millis(1);
    assert!(!scene.pick().1.resolves);
    scene.now += Duration::from_millis(1);
    assert!(scene.pick().1.resolves);
    assert!(!scene.pick().1.resolves, "once");
    let found = vec![scene.server(0, 1), scene.server(0, 2)];
    scene.balancer.on_resolved(scene.now, found, &[]);
    scene.fail(&servers[1]);
    scene.now += SHORTEST_REFRESH - Duration::from_millis(1);
    assert!(!scene.pick().1.resolves);
    scene.now += Duration::from_millis(1);
    assert!(scene.pick().1.resolves, "it may have moved");
}

#[test]
fn known_addresses_keep_their_connections() {
    let mut scene = Scene::new(2);
    let servers = scene.pick().1.connects;
    servers.iter().for_each(|it| scene.connected(it));
    let found = vec![scene.server(0, 3), scene.server(0, 2)];
    scene.balancer.on_resolved(scene.now, found, &[]);
    let (pick, work) = scene.pick();
    assert!(matches!(pick, Pick::Ready(server) if last_of(&server) == 2));
    assert_eq!(work.connects.len(), 1, "only the new one");
    // Reports about servers that have gone are ignored.
    scene.connected(&servers[0]);
    scene.fail(&servers[0]);
    assert_eq!(scene.balancer.backends().len(), 2);
}

#[test]
fn addresses_of_a_name_that_is_not_found_remain() {
    let mut scene = Scene::new(1);
    let server = scene.pick().1.connects.remove(0);
    scene.connected(&server);
    scene.now += REFRESH;
    assert!(scene.pick().1.resolves);
    let error = Status::unavailable("no such name");
    scene.balancer.on_lookup_failed(scene.now, error, 0.5);
    assert_eq!(scene.next(), Some(1));
    scene.now += Duration::from_millis(999);
    assert!(!scene.pick().1.resolves);
    scene.now += Duration::from_millis(1);
    assert!(scene.pick().1.resolves);
    // One of two names is found.
    let found = vec![scene.server(1, 9)];
    scene.balancer.on_resolved(scene.now, found, &[0]);
    assert_eq!(scene.balancer.backends().len(), 2);
}

#[test]
fn unknown_name_fails_calls_until_the_next_lookup() {
    let mut scene = Scene::new(0);
    scene.now += REFRESH;
    assert!(scene.pick().1.resolves);
    let error = Status::unavailable("no such name");
    scene.balancer.on_lookup_failed(scene.now, error, 0.5);
    let (pick, work) = scene.pick();
    assert!(!work.resolves);
    assert!(
        matches!(pick, Pick::Unavailable(until, _) if until == scene.now + Duration::from_secs(1))
    );
}

/// Limit K544. A server that accepts and closes is not connected to again and again.
#[test]
fn connection_that_ends_at_once_counts_as_a_failure() {
    let mut scene = Scene::new(1);
    let server = scene.pick().1.connects.remove(0);
    for pause in [1.0, 1.6] {
        scene.connected(&server);
        scene.now += SHORTEST_LIFE - Duration::from_millis(1);
        scene.lose(&server);
        let (Pick::Unavailable(until, status), work) = scene.pick() else {
            panic!("nothing else answers");
        };
        assert!(work.connects.is_empty());
        assert_eq!(until - scene.now, Duration::from_secs_f64(pause));
        assert!(status.message().contains("closes"), "{status}");
        scene.now = until;
        assert_eq!(scene.pick().1.connects.len(), 1);
    }
}
