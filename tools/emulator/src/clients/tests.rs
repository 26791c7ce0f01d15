use super::*;

fn clients(max: usize) -> Clients {
    let server = SocketAddr::from(([127, 0, 0, 1], 9));
    Clients::new(server, max, Duration::from_secs(10), 2_400)
}

fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn second(second: u64) -> Time {
    Time::ZERO + Duration::from_secs(second)
}

#[test]
fn number_of_clients_is_limited_and_idle_clients_are_forgotten() {
    let mut clients = clients(2);
    let mut seen = |now, port| {
        let index = clients
            .find_or_add(second(now), address(port), None)
            .expect("a socket");
        clients.expire(second(now));
        index
    };
    assert_eq!(seen(0, 1), Some(0));
    assert_eq!(seen(1, 2), Some(1));
    assert_eq!(seen(2, 3), None);
    assert_eq!(seen(9, 1), Some(0));
    assert_eq!(seen(11, 1), Some(0), "expires the other");
    assert_eq!(seen(12, 3), Some(1));
    assert_eq!(clients.counts.clients, 3);
}

#[test]
fn rebinding_changes_ports_and_keeps_a_bounded_number_of_old_ones() {
    let mut clients = clients(2);
    clients
        .find_or_add(Time::ZERO, address(1), None)
        .expect("a socket");
    let port = |clients: &Clients| {
        let client = clients.get(0).expect("known");
        client.upstream.local_addr().expect("bound")
    };
    let before = port(&clients);
    clients.rebind(None).expect("a socket");
    assert_ne!(port(&clients).port(), before.port());
    clients.rebind(Some(77)).expect("a socket");
    assert_eq!(port(&clients).ip(), IpAddr::from([127, 0, 0, 77]));
    for _ in 0..MAX_RETIRED {
        clients.rebind(None).expect("a socket");
    }
    assert_eq!(clients.retired.len(), MAX_RETIRED);
}

#[test]
fn worst_amplification_is_measured_while_few_bytes_have_arrived() {
    let mut clients = clients(1);
    clients
        .find_or_add(Time::ZERO, address(1), None)
        .expect("a socket");
    clients.on_server_sent(Time::ZERO, 0, 500);
    assert_eq!(
        clients.counts.worst_amplification, None,
        "no bytes have arrived"
    );
    clients.on_reached_server(0, 1_200);
    clients.on_server_sent(Time::ZERO, 0, 2_500);
    assert_eq!(clients.counts.worst_amplification, Some(2_500));
    clients.on_reached_server(0, 1_201);
    clients.on_server_sent(Time::ZERO, 0, 1_000_000);
    assert_eq!(clients.counts.worst_amplification, Some(2_500));
}

#[test]
fn first_reply_counts_for_amplification_however_late_it_is() {
    let mut clients = clients(1);
    clients
        .find_or_add(Time::ZERO, address(1), None)
        .expect("a socket");
    clients.on_reached_server(0, 5_000);
    clients.on_server_sent(Time::ZERO, 0, 1_000);
    assert_eq!(clients.counts.worst_amplification, Some(200));
    clients.on_server_sent(Time::ZERO, 0, 1_000_000);
    assert_eq!(clients.counts.worst_amplification, Some(200));
}
