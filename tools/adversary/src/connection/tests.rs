use super::*;
use crate::encode::encode;
use crate::hooks::{Fate, Honest, PacketToSend};
use crate::{client_tls, server_tls};

/// Returns both ends of a connection between two hostile endpoints.
fn pair(hooks: Box<dyn Hooks>) -> (Connection, Connection) {
    let tls = client_tls(b"h3");
    let client = Connection::client(&*tls, "localhost", hooks, Rng::new([1; 32]))
        .expect("the name is valid");
    let (original, client_id) = (client.peer_id(), client.local_id());
    let tls = server_tls(b"h3");
    let rng = Rng::new([2; 32]);
    let server = Connection::server(&*tls, original, client_id, Box::new(Honest), rng);
    let mut ends = (client, server.expect("the configuration is valid"));
    exchange(&mut ends);
    ends
}

/// Passes datagrams in both directions until there are none.
fn exchange((client, server): &mut (Connection, Connection)) {
    let now = Time::from_nanos(0);
    for _ in 0..20 {
        client.transmit(now);
        while let Some(mut datagram) = client.poll_datagram() {
            server.receive(now, &mut datagram);
        }
        server.transmit(now);
        while let Some(mut datagram) = server.poll_datagram() {
            client.receive(now, &mut datagram);
        }
    }
}

#[test]
fn handshake_is_confirmed_at_both_ends() {
    let (client, server) = pair(Box::new(Honest));
    assert!(client.is_confirmed(), "{client:?}");
    assert!(server.is_confirmed(), "{server:?}");
    let parameters = client
        .peer_parameters()
        .expect("the parameters have arrived");
    assert_eq!(parameters.initial_max_data, GENEROUS);
}

#[test]
fn keys_can_be_updated_without_acknowledgments() {
    let mut ends = pair(Box::new(Honest));
    for round in 1..=3 {
        ends.0.update_keys();
        let before = ends.1.seen().packets;
        ends.0.push(&Frame::Ping);
        exchange(&mut ends);
        assert!(ends.1.seen().packets > before, "update {round}");
    }
}

/// Replaces every PING with a PATH_RESPONSE, holds the packet, and changes its number.
struct Replace;

impl Hooks for Replace {
    fn on_packet(&mut self, _now: Time, packet: &mut PacketToSend) -> Fate {
        if packet.frames == [encode(&Frame::Ping)] {
            packet.frames = vec![encode(&Frame::PathResponse(courser_wire::PathResponse {
                data: [7; 8],
            }))];
            packet.number += 100;
            return Fate::Hold;
        }
        Fate::Send
    }
}

#[test]
fn hooks_replace_frames_and_reorder_packets() {
    let mut ends = pair(Box::new(Replace));
    let (client, server) = (&mut ends.0, &mut ends.1);
    let now = Time::from_nanos(0);
    client.send_packet(now, Space::Application, vec![encode(&Frame::Ping)]);
    assert_eq!(client.poll_datagram(), None, "the packet is held");
    let held_number = client.next_number(Space::Application) - 1 + 100;
    let other = encode(&Frame::DataBlocked(courser_wire::DataBlocked { limit: 3 }));
    client.send_packet(now, Space::Application, vec![other]);
    let mut order = Vec::new();
    while let Some(mut datagram) = client.poll_datagram() {
        server.receive(now, &mut datagram);
        order.push(server.largest_received().expect("a packet was opened"));
    }
    assert_eq!(order, [held_number - 99, held_number]);
    assert_eq!(server.seen().path_responses, 1);
}
