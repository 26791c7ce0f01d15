//! The opening of paths: connection IDs that are missing, resets, and limits of a server.

use super::super::frames::raw;
use super::*;

/// Creates a pair whose server permits a path for which the client has no connection ID yet, and is cut off.
fn without_id() -> Pair {
    let mut pair = with_two_paths();
    let now = pair.now;
    let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
    assert!(
        pair.client
            .connection()
            .several_paths()
            .close(now, ONE, code)
    );
    pair.client.touch();
    pair.run_for(RTT + RTT / 4);
    pair.link.filter = Some(Box::new(|_, datagram| datagram.from.port() != 4433));
    pair.run_for(Duration::from_secs(2));
    assert_eq!(open(&mut pair), Ok(PathId::new(2)));
    assert_eq!(open(&mut pair), Err(OpenPathError::LimitReached));
    pair.forge_to_client(SpaceId::Application, &raw(&[0x3e7a, 3]));
    assert_eq!(open(&mut pair), Err(OpenPathError::NoConnectionId));
    pair
}

#[test]
fn attempt_that_lacks_a_connection_id_is_repeated_when_it_arrives() {
    let mut pair = without_id();
    pair.link.filter = None;
    let may_open = |pair: &mut Pair| pair.client.has(&Event::MayOpenPath);
    assert!(pair.run_until(Duration::from_secs(5), may_open));
    let id = PathId::new(3);
    assert_eq!(open(&mut pair), Ok(id));
    pair.run_for(RTT * 3);
    assert!(pair.server.has(&Event::PathOpened(id)));
}

#[test]
fn attempt_that_lacks_a_connection_id_for_ten_seconds_is_answered() {
    let mut pair = without_id();
    pair.run_for(Duration::from_millis(9900));
    assert!(!pair.client.has(&Event::MayOpenPath));
    pair.run_for(Duration::from_millis(200));
    assert!(pair.client.has(&Event::MayOpenPath));
    assert_eq!(open(&mut pair), Err(OpenPathError::NoConnectionId));
}

/// The server has lost its state (RFC 9000 §10.3). Its resets name the IDs of the path on which packets arrive.
#[test]
fn stateless_reset_on_a_further_path_ends_the_connection() {
    let mut pair = with_two_paths();
    cut(&mut pair, client_address());
    let mut transfer = Transfer::up(&mut pair, 2_000_000);
    pair.run_for(RTT);
    pair.restart_server();
    for _ in 0..50 {
        if pair.client.has(&Event::Lost(ConnectionError::Reset)) {
            return;
        }
        pair.run_for(RTT);
        let _ = &mut transfer;
    }
    panic!("{:?}", pair.client.events);
}

/// Paths that are opened and given up without end get path IDs at a pace (limit K277, attack A206).
#[test]
fn paths_that_are_opened_and_closed_without_end_are_slowed_down() {
    let mut pair = pair();
    let (begin, mut opened) = (pair.now, 0);
    while pair.now < begin + Duration::from_secs(60) {
        if let Ok(id) = open(&mut pair) {
            opened += 1;
            pair.run_for(RTT * 2);
            let now = pair.now;
            let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
            pair.client
                .connection()
                .several_paths()
                .close(now, id, code);
            pair.client.touch();
        }
        pair.run_for(RTT);
    }
    // Two at first, a burst of 16, and 16 a minute.
    assert!((30..=34).contains(&opened), "{opened}");
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    for end in [&mut pair.client, &mut pair.server] {
        assert!(end.connection().several_paths().list().len() <= 3);
    }
}

/// Packets to path IDs that the server has issued IDs for, from forged addresses (limit K278, attack A207).
#[test]
fn server_validates_few_paths_at_a_time_and_sends_little_to_their_addresses() {
    let mut config = several();
    config.max_paths = 8;
    let mut pair = with(config.clone(), config);
    pair.client.sockets = (1..8)
        .map(|host| SocketAddr::from(([10, 0, 9, host], 50_000)))
        .collect();
    let forged: Vec<SocketAddr> = pair.client.sockets.clone();
    let before = pair.server.sent.len();
    for socket in 1..8 {
        let now = pair.now;
        let path = NewPath {
            socket: SocketId(socket),
            ..second()
        };
        let opened = pair.client.connection().several_paths().open(now, &path);
        assert_eq!(opened, Ok(PathId::new(socket)));
    }
    pair.client.touch();
    // What the server sends there is lost: the addresses are those of others.
    pair.link.filter = Some(Box::new(|_, datagram| {
        !datagram.to.ip().to_string().starts_with("10.0.9.")
    }));
    pair.run_for(RTT);
    let list = pair.server.connection().several_paths().list();
    assert_eq!(list.len(), 5, "the first path, and four in validation");
    pair.run_for(Duration::from_secs(10));
    let sent = |address: &SocketAddr| {
        let to = pair.server.sent[before..]
            .iter()
            .filter(|datagram| datagram.to == *address);
        to.map(|datagram| datagram.bytes.len()).sum::<usize>()
    };
    let received = |address: &SocketAddr| {
        let from = pair
            .client
            .sent
            .iter()
            .filter(|datagram| datagram.from == *address);
        from.map(|datagram| datagram.bytes.len()).sum::<usize>()
    };
    for address in &forged {
        assert!(
            sent(address) <= 3 * received(address),
            "{address}: {}",
            sent(address)
        );
    }
}

/// The packets of path 1 are late, so that the server sees path 2 first.
#[test]
fn paths_that_arrive_out_of_order_keep_their_ids() {
    let mut config = several();
    config.max_paths = 4;
    let mut pair = with(config.clone(), config);
    pair.client
        .sockets
        .push(SocketAddr::from(([10, 0, 2, 1], 50_777)));
    cut(&mut pair, second_socket());
    assert_eq!(open(&mut pair), Ok(ONE));
    let (now, two) = (pair.now, PathId::new(2));
    let third = NewPath {
        socket: SocketId(2),
        ..second()
    };
    let opened = pair.client.connection().several_paths().open(now, &third);
    assert_eq!(opened, Ok(two));
    pair.run_for(RTT * 3);
    assert!(pair.server.has(&Event::PathOpened(two)));
    let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
    let now = pair.now;
    assert!(
        pair.client
            .connection()
            .several_paths()
            .close(now, two, code)
    );
    pair.client.touch();
    pair.run_for(Duration::from_millis(500));
    pair.link.filter = None;
    pair.run_for(Duration::from_secs(2));
    assert!(pair.server.has(&Event::PathOpened(ONE)));
    pair.upload(100_000);
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

/// A client may open a path as soon as the handshake is confirmed, and some try once only (picoquicdemo).
#[test]
fn connection_ids_of_further_paths_arrive_with_the_confirmation() {
    let mut server = ServerConfig::new(server_tls(&[b"test"]));
    server.transport = Arc::new(several());
    let (setup, eye) = Setup {
        client: several(),
        server,
        ..Setup::default()
    }
    .with_eye();
    let mut pair = Pair::with(setup);
    pair.connect();
    let sent = eye.server_sent(&pair);
    let confirms = |frame: &Frame<'_>| matches!(frame, Frame::HandshakeDone);
    let issues =
        |frame: &Frame<'_>| matches!(frame, Frame::PathNewConnectionId(it) if it.path_id == 1);
    let confirmed = sent.iter().position(|packet| packet.has(confirms));
    let issued = sent.iter().position(|packet| packet.has(issues));
    assert!(
        issued.is_some() && issued <= confirmed,
        "{issued:?} {confirmed:?}"
    );
}
