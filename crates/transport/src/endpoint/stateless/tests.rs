use courser_base::FourTuple;
use courser_wire::Version;

use super::*;

const PEER: &str = "192.0.2.1:5000";

fn stateless() -> Stateless {
    let config = EndpointConfig::from_seed([1; 32]);
    Stateless::new(&config, Shared::of_test(1))
}

fn arrived() -> Arrived {
    Arrived {
        now: Time::ZERO,
        path: FourTuple::to(PEER.parse().expect("an address")),
        socket: SocketId::default(),
        ecn: Ecn::NotEct,
        is_handed_on: false,
        is_over_share: false,
    }
}

fn id(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).expect("eight bytes are an ID")
}

fn client() -> Client {
    Client {
        since: Time::ZERO,
        place: arrived().place(),
        destination: id(1),
        source: id(2),
        version: Version::V1,
    }
}

/// Returns the counters of a queue.
fn stats(stateless: &Stateless) -> EndpointStats {
    let mut stats = EndpointStats::default();
    stateless.count(&mut stats);
    stats
}

#[test]
fn answers_are_sent_in_order_to_their_clients() {
    let mut stateless = stateless();
    stateless.retry(&client(), &id(3), b"token");
    assert!(stateless.reset(arrived(), 100, &id(9), &mut Rng::new([1; 32])));
    assert_eq!(stateless.queued(), 2);
    let mut buffer = TransmitBuffer::new(1);
    let retry = stateless.poll_transmit(&mut buffer).expect("a Retry");
    assert_eq!(retry.destination, arrived().path.peer);
    assert!(buffer.bytes().windows(5).any(|it| it == b"token"));
    stateless.poll_transmit(&mut buffer).expect("a reset");
    assert!(buffer.bytes().ends_with(&stateless.reset_token(&id(9))));
    assert_eq!(stateless.poll_transmit(&mut buffer), None);
    let stats = stats(&stateless);
    assert_eq!((stats.retries_sent, stats.resets_sent), (1, 1));
}

#[test]
fn full_queue_drops_and_counts_further_answers() {
    let mut stateless = stateless();
    for _ in 0..MAX_REPLIES + 3 {
        stateless.close(&client(), id(3), TransportErrorCode::CONNECTION_REFUSED, "");
    }
    assert_eq!(stateless.queued(), MAX_REPLIES);
    assert_eq!(stats(&stateless).replies_over_room, 3);
}

#[test]
fn short_datagrams_and_those_without_an_id_use_up_no_budget() {
    let mut stateless = stateless();
    let (none, mut rng) = (ConnectionId::default(), Rng::new([1; 32]));
    for _ in 0..100_000 {
        assert!(!stateless.reset(arrived(), reset::MIN_TRIGGER_LEN - 1, &id(1), &mut rng));
        assert!(!stateless.reset(arrived(), 100, &none, &mut rng));
    }
    assert!(stateless.reset(arrived(), 100, &id(1), &mut rng));
    assert_eq!(stats(&stateless).replies_over_rate, 0);
}

#[test]
fn endpoint_without_a_server_offers_no_version() {
    let mut stateless = stateless();
    let mut datagram = vec![0; MIN_INITIAL_DATAGRAM];
    datagram[..6].copy_from_slice(&[0xc0, 0xfa, 0xce, 0xb0, 0x0c, 0]);
    let mut rng = Rng::new([1; 32]);
    assert!(!stateless.negotiate_version(arrived(), &datagram, None, &mut rng));
    let versions = Some(Versions::ALL);
    assert!(stateless.negotiate_version(arrived(), &datagram, versions, &mut rng));
    assert_eq!(stats(&stateless).version_negotiations_sent, 1);
}
