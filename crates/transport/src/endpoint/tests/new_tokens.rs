//! Tests NEW_TOKEN tokens, which validate an address on later connections. RFC 9000 §8.1.3.

use std::sync::Mutex;

use bytes::Bytes;

use super::*;
use crate::config::{MemoryTokenStore, TimeOfDay, TokenLog, TokenStore};

/// A faulty store that returns the same token each time.
#[derive(Default)]
struct Replayed(Mutex<Vec<Bytes>>);

impl TokenStore for Replayed {
    fn put(&self, _: &str, token: Bytes) {
        self.0.lock().expect("not poisoned").push(token);
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        self.0.lock().expect("not poisoned").first().cloned()
    }
}

/// Connects again and returns whether the server considered the address validated.
fn connects_validated(pair: &mut Pair) -> bool {
    pair.accepts = false;
    pair.client.events.clear();
    pair.server.events.clear();
    pair.start();
    pair.run_for(RTT / 2);
    let incoming = pair.server.endpoint.poll_incoming().expect("it waits");
    let is_validated = incoming.is_address_validated();
    assert!(incoming.may_retry());
    pair.server.handle = pair.server.endpoint.accept(pair.now, incoming, None).ok();
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    pair.run_for(RTT * 2);
    is_validated
}

fn connected_with(store: Arc<dyn TokenStore>) -> Pair {
    let mut pair = Pair::new();
    pair.client_config.tokens = Some(store);
    pair.connect();
    pair
}

/// Returns the token in the first Initial that the client sent from datagram `from` on.
fn first_token(pair: &Pair, from: usize) -> Vec<u8> {
    let datagram = &pair.client.sent[from];
    let packet = packet::decode(&datagram.bytes, 0, 8).expect("an Initial");
    assert_eq!(packet.kind, PacketKind::Initial);
    datagram.bytes[packet.token].to_vec()
}

#[test]
fn token_validates_the_address_on_the_next_connection() {
    let mut pair = connected_with(Arc::new(MemoryTokenStore::default()));
    let mut used: Vec<Vec<u8>> = Vec::new();
    for _ in 0..6 {
        let from = pair.client.sent.len();
        assert!(
            connects_validated(&mut pair),
            "each connection brings new ones"
        );
        let token = first_token(&pair, from);
        assert!(!token.is_empty() && !used.contains(&token), "used twice");
        used.push(token);
    }
}

#[test]
fn token_is_sent_only_to_the_server_that_issued_it() {
    let store = Arc::new(MemoryTokenStore::default());
    let mut pair = connected_with(Arc::clone(&store) as Arc<dyn TokenStore>);
    let (now, peer, config) = (pair.now, pair.server.address, pair.client_config.clone());
    // RFC 9000 §8.1.3: another port of the host is another server.
    let other_port = courser_base::with_port(peer, peer.port() + 1);
    for (peer, name) in [(peer, "example.org"), (other_port, "localhost")] {
        let from = pair.client.sent.len();
        let other = pair.client.endpoint.connect(now, &config, peer, name);
        pair.client.handle = Some(other.expect("a proper name"));
        pair.client.touch();
        pair.drive();
        assert_eq!(first_token(&pair, from), [] as [u8; 0], "{name} at {peer}");
    }
    assert!(store.take("localhost:4433").is_some(), "it is kept");
}

/// RFC 9001 §9.2: a token is opaque to the client, which returns the same bytes.
#[test]
fn client_returns_tokens_unchanged() {
    let mut pair = connected_with(Arc::new(MemoryTokenStore::default()));
    for token in [&b"x"[..], b"GET / HTTP/1.1\r\n\r\n", &[0; 200]] {
        let store = Arc::new(Replayed::default());
        store.put("localhost:4433", Bytes::copy_from_slice(token));
        pair.client_config.tokens = Some(store);
        let from = pair.client.sent.len();
        assert!(
            !connects_validated(&mut pair),
            "the server did not issue it"
        );
        assert_eq!(first_token(&pair, from), token);
    }
}

/// RFC 9000 §8.1.3: a server issues no empty tokens (§19.7).
#[test]
fn tokens_of_a_server_are_not_empty() {
    let store = Arc::new(Replayed::default());
    let _pair = connected_with(Arc::clone(&store) as Arc<dyn TokenStore>);
    let tokens = store.0.lock().expect("not poisoned");
    assert!(!tokens.is_empty());
    assert!(tokens.iter().all(|token| token.len() >= 16), "{tokens:x?}");
}

#[test]
fn token_is_in_every_initial() {
    let mut pair = connected_with(Arc::new(MemoryTokenStore::default()));
    pair.client.sent.clear();
    assert!(connects_validated(&mut pair));
    let mut initials = 0;
    for datagram in &pair.client.sent {
        let packet = packet::decode(&datagram.bytes, 0, 8).expect("a packet");
        if packet.kind == PacketKind::Initial {
            initials += 1;
            assert!(!packet.token.is_empty());
        }
    }
    assert!(initials >= 2);
}

#[test]
fn server_issues_the_configured_number_of_different_tokens() {
    for count in [0, 1, 2, 4, 9] {
        let store = Arc::new(Replayed::default());
        let mut pair = pair_with(|server| server.new_tokens = count);
        pair.client_config.tokens = Some(Arc::clone(&store) as Arc<dyn TokenStore>);
        pair.connect();
        let tokens = store.0.lock().expect("not poisoned");
        assert_eq!(tokens.len(), count.min(4) as usize);
        for (index, token) in tokens.iter().enumerate() {
            assert!(!tokens[..index].contains(token), "{count} tokens");
        }
    }
}

#[test]
fn token_validates_only_once() {
    let mut pair = connected_with(Arc::new(Replayed::default()));
    let proven: Vec<_> = (0..5).map(|_| connects_validated(&mut pair)).collect();
    assert_eq!(proven, [true, false, false, false, false], "attack A13");
}

/// An attacker on the path can copy the token of an Initial and be faster than its owner.
#[test]
fn token_in_a_packet_that_does_not_open_is_not_used_up() {
    let store = Arc::new(Replayed::default());
    let mut pair = connected_with(Arc::clone(&store) as Arc<dyn TokenStore>);
    let first_datagram = FirstDatagram {
        token: store.take("localhost:4433").expect("a token").to_vec(),
        address: pair.client.address,
        ..FirstDatagram::new(1)
    };
    let mut forged = first_datagram.initial();
    *forged.bytes.last_mut().expect("not empty") ^= 1;
    pair.accepts = false;
    assert!(answers(&mut pair, forged).is_empty());
    assert!(pair.server.endpoint.poll_incoming().is_none());
    assert!(connects_validated(&mut pair), "attack A13");
}

/// A store with one token of this many bytes.
struct Long(usize);

impl TokenStore for Long {
    fn put(&self, _: &str, _: Bytes) {}

    fn take(&self, _: &str) -> Option<Bytes> {
        Some(Bytes::from(vec![7; self.0]))
    }
}

#[test]
fn tokens_too_long_for_an_initial_are_not_sent() {
    for (len, is_sent) in [(512, true), (513, false), (1300, false)] {
        let mut pair = connected_with(Arc::new(Long(len)));
        assert!(pair.client.has(&Event::Confirmed), "{len} bytes");
        let first = pair.client.sent.remove(0);
        let packet = packet::decode(&first.bytes, 0, 8).expect("a packet");
        assert_eq!(!packet.token.is_empty(), is_sent, "{len} bytes");
    }
}

#[test]
fn token_of_another_address_is_ignored() {
    let mut pair = connected_with(Arc::new(MemoryTokenStore::default()));
    pair.client.address = SocketAddr::from(([10, 0, 0, 99], 50_000));
    assert!(!connects_validated(&mut pair));
}

#[test]
fn token_is_valid_on_another_port_of_the_address() {
    let mut pair = connected_with(Arc::new(MemoryTokenStore::default()));
    pair.client.address.set_port(50_001);
    assert!(connects_validated(&mut pair));
}

#[test]
fn token_is_valid_for_a_day() {
    for (hours, is_good) in [(24 * 60 - 1, true), (24 * 60 + 1, false)] {
        let mut pair = connected_with(Arc::new(MemoryTokenStore::default()));
        pair.now += Duration::from_secs(hours * 60);
        assert_eq!(connects_validated(&mut pair), is_good, "{hours} minutes");
    }
}

#[test]
fn new_token_token_after_a_retry_gets_another_retry() {
    let store = Arc::new(Replayed::default());
    let mut pair = connected_with(Arc::clone(&store) as Arc<dyn TokenStore>);
    let token = store.take("localhost:4433").expect("a token").to_vec();
    let mut config = ServerConfig::clone(&pair.server_config);
    config.retry = crate::RetryPolicy::Always;
    pair.server
        .endpoint
        .set_server_config(Some(Arc::new(config)));
    pair.accepts = false;
    // From another address the token is invalid.
    let first_datagram = FirstDatagram {
        token: token.clone(),
        ..FirstDatagram::new(1)
    };
    let answer = answers(&mut pair, first_datagram.initial());
    assert_eq!(
        answer.iter().map(kind_of).collect::<Vec<_>>(),
        [PacketKind::Retry]
    );
    // From the right address no Retry is needed.
    let first_datagram = FirstDatagram {
        token,
        address: pair.client.address,
        ..FirstDatagram::new(2)
    };
    assert!(answers(&mut pair, first_datagram.initial()).is_empty());
    assert!(
        pair.server
            .endpoint
            .poll_incoming()
            .expect("in")
            .is_address_validated()
    );
}

#[test]
fn validated_client_receives_a_big_chain_at_once() {
    let mut setup = Setup::default();
    setup.server.tls = crate::testing::identity::server_tls_with_big_chain(&[b"test"], 19);
    let mut pair = Pair::with(setup);
    let time_of = |pair: &mut Pair| {
        pair.client.events.clear();
        let begun = pair.now;
        pair.start();
        assert!(pair.run_until(Duration::from_secs(5), |pair| {
            pair.client.has(&Event::Connected)
        }));
        let time = pair.now - begun;
        pair.run_for(RTT * 5);
        time
    };
    assert_eq!(
        time_of(&mut pair),
        RTT * 2,
        "three times the ClientHello is not enough"
    );
    assert_eq!(time_of(&mut pair), RTT);
}

/// Changes the settings of the server of a pair.
fn set_server(pair: &mut Pair, change: impl FnOnce(&mut ServerConfig)) {
    let mut server = ServerConfig::clone(&pair.server_config);
    change(&mut server);
    pair.server_config = Arc::new(server);
    let server = Some(Arc::clone(&pair.server_config));
    pair.server.endpoint.set_server_config(server);
}

/// Returns a pair whose client has tokens of a server with such settings.
fn connected_to(change: impl FnOnce(&mut ServerConfig)) -> Pair {
    let mut pair = Pair::new();
    set_server(&mut pair, change);
    pair.client_config.tokens = Some(Arc::new(MemoryTokenStore::default()));
    pair.connect();
    pair
}

#[test]
fn lifetime_of_tokens_is_the_one_that_the_program_sets() {
    for (seconds, is_valid) in [(90, true), (110, false)] {
        let minute = Duration::from_secs(100);
        let mut pair = connected_to(|server| server.new_token_lifetime = minute);
        pair.run_for(Duration::from_secs(seconds));
        assert_eq!(connects_validated(&mut pair), is_valid, "{seconds} s");
    }
}

#[test]
fn lifetimes_outside_their_range_are_refused() {
    let server = Pair::new().server_config;
    let mut server = ServerConfig::clone(&server);
    server.retry_token_lifetime = Duration::from_millis(999);
    let error = server.validate().expect_err("too short").to_string();
    let expected = "retry_token_lifetime (s): is 0, allowed is 1 to 315360000";
    assert_eq!(error, expected);
    server.retry_token_lifetime = Duration::from_secs(1);
    server.new_token_lifetime = Duration::MAX;
    let error = server.validate().expect_err("too long");
    assert_eq!(error.field, "new_token_lifetime (s)");
    server.new_token_lifetime = Duration::from_secs(315_360_000);
    assert_eq!(server.validate(), Ok(()));
}

#[test]
fn bytes_of_waiting_clients_outside_their_range_are_refused() {
    let mut server = ServerConfig::clone(&Pair::new().server_config);
    let range = format!("allowed is 1200 to {}", usize::MAX);
    server.max_incoming_bytes = 1199;
    let error = server
        .validate()
        .expect_err("no first datagram")
        .to_string();
    assert_eq!(error, format!("max_incoming_bytes: is 1199, {range}"));
    server.max_incoming_bytes = 1200;
    server.incoming_bytes_per_client = Some(0);
    let error = server
        .validate()
        .expect_err("no first datagram")
        .to_string();
    assert_eq!(error, format!("incoming_bytes_per_client: is 0, {range}"));
    server.incoming_bytes_per_client = Some(1200);
    assert_eq!(server.validate(), Ok(()));
}

#[test]
fn token_is_sealed_with_the_key_of_the_server_configuration() {
    let mut pair = connected_to(|server| server.token_key = Some([5; 32]));
    assert!(connects_validated(&mut pair), "the same key");
    set_server(&mut pair, |server| server.token_key = Some([6; 32]));
    assert!(!connects_validated(&mut pair), "another key");
    set_server(&mut pair, |server| server.token_key = None);
    assert!(!connects_validated(&mut pair), "that of the endpoint");
}

/// A log that records the calls, and returns whether it has fewer than it accepts.
#[derive(Default)]
struct Log(Mutex<Vec<(u128, Duration, Duration)>>, usize);

impl TokenLog for Log {
    fn use_once(&self, nonce: u128, issued: Duration, lifetime: Duration) -> bool {
        let mut uses = self.0.lock().expect("not poisoned");
        uses.push((nonce, issued, lifetime));
        uses.len() <= self.1
    }
}

#[test]
fn log_of_the_program_decides_which_tokens_count() {
    let log = Arc::new(Log(Mutex::default(), 1));
    let mut pair = connected_to(|server| server.token_log = Some(log.clone()));
    assert!(connects_validated(&mut pair), "its first token");
    assert!(!connects_validated(&mut pair), "the log refuses the second");
    let uses = log.0.lock().expect("not poisoned");
    let [first, second] = uses[..] else {
        panic!("two uses: {uses:?}");
    };
    assert_ne!(first.0, second.0);
    let day = Duration::from_secs(24 * 60 * 60);
    assert_eq!((first.2, second.2), (day, day));
    let now = pair.server.endpoint.admission.tokens().seconds(pair.now).0;
    assert!(first.1.as_secs() <= now && first.1.as_secs() + 10 > now);
}

/// A13. A log tells only when the client may wait whether its token was used before.
#[test]
fn token_that_the_log_refuses_does_not_replace_a_retry() {
    let log = Arc::new(Log::default());
    let store = Arc::new(Replayed::default());
    let mut pair = connected_with(store.clone());
    set_server(&mut pair, |server| {
        server.retry = crate::RetryPolicy::Always;
        server.token_log = Some(log.clone());
    });
    pair.accepts = false;
    let first_datagram = FirstDatagram {
        token: store.take("localhost:4433").expect("a token").to_vec(),
        address: pair.client.address,
        ..FirstDatagram::new(1)
    };
    let answer = answers(&mut pair, first_datagram.initial());
    let kinds: Vec<_> = answer.iter().map(kind_of).collect();
    assert_eq!(kinds, [PacketKind::Retry]);
    assert!(pair.server.endpoint.poll_incoming().is_none());
    assert_eq!(log.0.lock().expect("not poisoned").len(), 1);
}

/// A hook that panics.
struct Broken;

impl TokenLog for Broken {
    fn use_once(&self, _: u128, _: Duration, _: Duration) -> bool {
        panic!("a fault of the program");
    }
}

impl TimeOfDay for Broken {
    fn since_1970(&self) -> Duration {
        panic!("a fault of the program");
    }
}

#[test]
fn panic_of_a_hook_costs_the_token_at_most() {
    let mut pair = connected_to(|server| {
        server.token_log = Some(Arc::new(Broken));
        server.time_of_day = Some(Arc::new(Broken));
    });
    assert!(!connects_validated(&mut pair), "by another mechanism");
    set_server(&mut pair, |server| server.token_log = None);
    assert!(
        connects_validated(&mut pair),
        "the endpoint has its own time"
    );
}

/// A clock that the test sets.
struct Clock(Mutex<Duration>);

impl TimeOfDay for Clock {
    fn since_1970(&self) -> Duration {
        *self.0.lock().expect("not poisoned")
    }
}

#[test]
fn tokens_expire_by_the_clock_of_the_program() {
    let day = Duration::from_secs(24 * 60 * 60);
    let clock = Arc::new(Clock(Mutex::new(day * 100)));
    let mut pair = connected_to(|server| server.time_of_day = Some(clock.clone()));
    assert!(connects_validated(&mut pair));
    *clock.0.lock().expect("not poisoned") += day * 2;
    assert!(
        !connects_validated(&mut pair),
        "two days later by this clock"
    );
}
