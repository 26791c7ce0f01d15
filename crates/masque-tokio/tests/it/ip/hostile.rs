//! Peers that break the rules of IP proxies.

use courser_masque::ip::Capsule;
use courser_masque_tokio::SendError;

use super::*;

/// Opens a tunnel on a bare client of HTTP/3, with values as they stand in the path.
pub(super) async fn try_bare(
    started: &Started,
    target: &str,
    protocol: &str,
) -> Result<(UdpClient, h3::Upgraded), h3::Error> {
    let link = started.client(Carrier::Http3).await;
    let uri = format!("https://localhost/.well-known/masque/ip/{target}/{protocol}/");
    let request = http::Request::connect(uri)
        .extension(h3::Protocol::new("connect-ip").expect("a token"))
        .body(())
        .expect("a URI");
    let response = within(link.http3().expect("HTTP/3").connect(request)).await?;
    Ok((link, response.into_body()))
}

pub(super) async fn bare(
    started: &Started,
    target: &str,
    protocol: &str,
) -> (UdpClient, h3::Upgraded) {
    try_bare(started, target, protocol).await.expect("accepted")
}

/// Reads the first ADDRESS_ASSIGN and ROUTE_ADVERTISEMENT, and returns the addresses.
pub(super) async fn first_capsules(stream: &mut h3::Upgraded) -> Vec<IpAddr> {
    let mut bytes = Vec::new();
    // Both have lengths below 64: two entries of 7 and 19 bytes, two ranges of 10 and 34.
    while bytes.len() < 2 + 26 + 2 + 44 {
        let chunk = within(stream.read_chunk())
            .await
            .expect("open")
            .expect("open");
        bytes.extend_from_slice(&chunk);
    }
    assert_eq!(bytes[..2], [1, 26]);
    let assigned = Capsule::decode(1, &bytes[2..28]).expect("valid");
    let Capsule::AddressAssign(entries) = assigned else {
        panic!()
    };
    entries.iter().map(|entry| entry.prefix.first()).collect()
}

/// MQ-ip-007, MQ-ip-008, MQ-ip-009, MQ-ip-013, MQ-ip-015, attack A366.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_capsules_reset_the_stream() {
    let proxy = ip_proxy(&Echo::default());
    let started = start_ip(proxy.clone()).await;
    let request = |id: u8| [&[id, 4][..], &[0; 4], &[32]].concat();
    let ranges = |count: u16| -> Vec<u8> {
        let range = |number: u16| {
            let [high, low] = (2 * number).to_be_bytes();
            [4, 10, 0, high, low, 10, 0, high, low, 0]
        };
        (0..count).flat_map(range).collect()
    };
    for (kind, value, code) in [
        (1_u8, vec![0, 5, 10, 0, 0, 1, 32], h3::Code::MESSAGE_ERROR),
        (1, vec![0, 4, 10, 0, 0, 1, 33], h3::Code::MESSAGE_ERROR),
        (1, vec![0, 4, 10, 0, 0, 1, 8], h3::Code::MESSAGE_ERROR),
        (1, vec![0, 4, 10], h3::Code::MESSAGE_ERROR),
        (2, vec![], h3::Code::MESSAGE_ERROR),
        (2, request(0), h3::Code::MESSAGE_ERROR),
        (
            2,
            [request(7), request(7)].concat(),
            h3::Code::MESSAGE_ERROR,
        ),
        (2, request(1).repeat(17), h3::Code::EXCESSIVE_LOAD),
        (
            3,
            vec![4, 10, 0, 0, 2, 10, 0, 0, 1, 0],
            h3::Code::MESSAGE_ERROR,
        ),
        (
            3,
            [
                [4, 10, 0, 0, 2, 10, 0, 0, 2, 0],
                [4, 10, 0, 0, 1, 10, 0, 0, 1, 0],
            ]
            .concat(),
            h3::Code::MESSAGE_ERROR,
        ),
        (
            3,
            [
                [4, 10, 0, 0, 1, 10, 0, 0, 9, 0],
                [4, 10, 0, 0, 2, 10, 0, 0, 2, 6],
            ]
            .concat(),
            h3::Code::MESSAGE_ERROR,
        ),
        (3, ranges(257), h3::Code::EXCESSIVE_LOAD),
        (3, vec![4; 9000], h3::Code::EXCESSIVE_LOAD),
    ] {
        let (_client, mut stream) = bare(&started, "*", "*").await;
        first_capsules(&mut stream).await;
        let len = u16::try_from(value.len()).expect("short") | 0x4000;
        let shown = (kind, value.len());
        let capsule = [&[kind][..], &len.to_be_bytes(), &value].concat();
        stream.write_chunk(capsule.into()).await.expect("open");
        let error = within(stream.read_chunk()).await.expect_err("reset");
        assert_eq!(error.code(), Some(code), "{shown:?}");
    }
    until(|| proxy.stats().assigned == 0).await;
}

/// Attacks A362, A368: spoofed sources and malformed packets of a client that judges nothing.
#[tokio::test(flavor = "multi_thread")]
async fn packets_of_careless_clients_are_dropped() {
    let device = Echo::default();
    let proxy = ip_proxy(&device);
    let started = start_ip(proxy.clone()).await;
    let (_client, mut stream) = bare(&started, "*", "*").await;
    let assigned = first_capsules(&mut stream).await;
    let datagrams = stream.datagrams().cloned().expect("datagrams");
    let other = started.ip(Carrier::Http3, IpRequest::default()).await;
    let good = ping(assigned[0], address("192.0.2.1"), 5);
    let mut wrong_sum = good.to_vec();
    wrong_sum[8] = 9;
    for packet in [
        ping(own(&other, true), address("192.0.2.1"), 5),
        ping(address("10.89.0.1"), address("192.0.2.1"), 5),
        ping(address("192.0.2.1"), assigned[0], 5),
        ping(address("fe80::1"), address("ff02::2"), 5),
        good.slice(..good.len() - 1),
        wrong_sum.into(),
        Bytes::new(),
        Bytes::from_static(&[0x60]),
    ] {
        datagrams.send(&[&[0], &packet[..]].concat()).expect("open");
    }
    datagrams.send(&[&[0], &good[..]].concat()).expect("open");
    loop {
        let answer = within(datagrams.receive()).await.expect("open");
        // Errors about the spoofed ones come too.
        if icmp_kind(&answer[1..]) == [0, 0] {
            assert_eq!(header(&answer[1..]).destination, assigned[0]);
            break;
        }
    }
    assert_eq!(proxy.stats().to_network, 1);
    assert_eq!(other.stats().received, 0);
}

/// MQ-ip-030, attack A362: a client that assigns addresses to the proxy and advertises routes, so as to reach the ones and to
/// use the others as sources.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_and_routes_of_clients_are_ignored() {
    let only = courser_masque_tokio::AddressRange::from(prefix("192.0.2.0/25"));
    let proxy = ip_proxy(&Echo::default());
    let proxy = proxy.routes([only]).expect("valid");
    let started = start_ip(proxy.clone()).await;
    let (_client, mut stream) = bare(&started, "*", "*").await;
    let datagrams = stream.datagrams().cloned().expect("datagrams");
    // One address and one route of IPv4.
    let mut bytes = Vec::new();
    while bytes.len() < 2 + 7 + 2 + 10 {
        let chunk = within(stream.read_chunk()).await.expect("open");
        bytes.extend_from_slice(&chunk.expect("open"));
    }
    let own = IpAddr::from([bytes[4], bytes[5], bytes[6], bytes[7]]);
    let assign = [1, 7, 0, 4, 192, 0, 2, 200, 32];
    let routes = [3, 10, 4, 192, 0, 2, 201, 192, 0, 2, 201, 0];
    let capsules = [&assign[..], &routes].concat();
    stream.write_chunk(capsules.into()).await.expect("open");
    // The answer to a request shows that they were read.
    let request = Bytes::from_static(&[2, 7, 5, 4, 0, 0, 0, 0, 32]);
    stream.write_chunk(request).await.expect("open");
    assert_eq!(
        within(stream.read_chunk())
            .await
            .expect("open")
            .map(|chunk| chunk[2]),
        Some(5)
    );
    for (source, destination) in [
        (own, address("192.0.2.200")),
        (address("192.0.2.201"), address("192.0.2.1")),
        (own, address("192.0.2.1")),
    ] {
        let packet = ping(source, destination, 5);
        datagrams.send(&[&[0], &packet[..]].concat()).expect("open");
    }
    let mut answers = Vec::new();
    while answers.len() < 3 {
        let answer = within(datagrams.receive()).await.expect("open");
        answers.push(icmp_kind(&answer[1..]));
    }
    assert_eq!(answers, [[3, 0], [3, 13], [0, 0]]);
    assert_eq!(proxy.stats().to_network, 1);
}

/// Limit K630, attack A367.
#[tokio::test(flavor = "multi_thread")]
async fn errors_of_a_tunnel_are_bounded() {
    let started = start_ip(ip_proxy(&Echo::default())).await;
    let tunnel = started.ip(Carrier::Http3, IpRequest::default()).await;
    let mut packets: Vec<_> = (0..1000)
        .map(|_| ping(address("2001:db8::77"), address("2001:db8::1"), 9))
        .collect();
    assert_eq!(tunnel.send_many(&mut packets), Ok(0));
    let stats = tunnel.stats();
    assert_eq!(stats.wrong_source, 1000);
    assert!((50..100).contains(&stats.icmp), "{}", stats.icmp);
}

/// Limit K632, attack A366: a client that asks for addresses and does not read the answers.
#[tokio::test(flavor = "multi_thread")]
async fn storms_of_requests_end_the_tunnel() {
    let proxy = ip_proxy(&Echo::default());
    let started = start_ip(proxy.clone()).await;
    let (_client, mut stream) = bare(&started, "*", "*").await;
    let mut storm = Vec::new();
    for id in 1..=300_u16 {
        storm.extend([2, 8]);
        storm.extend((id | 0x4000).to_be_bytes());
        storm.extend([4, 0, 0, 0, 0, 32]);
    }
    stream.write_chunk(storm.into()).await.expect("open");
    let code = loop {
        match within(stream.read_chunk()).await {
            Ok(_) => {}
            Err(error) => break error.code(),
        }
    };
    assert_eq!(code, Some(h3::Code::EXCESSIVE_LOAD));
    until(|| proxy.stats().assigned == 0).await;
}

/// A path without a search for its MTU, which carries 1200 bytes.
fn narrow() -> TransportConfig {
    TransportConfig {
        mtu_discovery: false,
        ..TransportConfig::default()
    }
}

/// MQ-ip-021: packets that IPv6 needs leave in capsules where DATAGRAM frames are too small for them.
#[tokio::test(flavor = "multi_thread")]
async fn narrow_paths_carry_what_ipv6_needs() {
    let proxy = ip_proxy(&Echo::default());
    let started = start_ip_with(proxy.clone(), narrow()).await;
    let builder = started.ip_builder(Carrier::Http3);
    let builder = builder.transport_config(narrow());
    let client = within(builder.connect()).await.expect("connected");
    let tunnel = within(client.open(IpRequest::default()))
        .await
        .expect("accepted");
    within(tunnel.configured()).await.expect("open");
    let max = tunnel.max_packet_size();
    assert!(max < 1280, "{max}");
    // There and back, between small ones.
    for len in [1232, 9, 1232] {
        let sent = ping(own(&tunnel, false), address("2001:db8::1"), len);
        tunnel.send(sent.clone()).expect("1280 bytes");
        assert_eq!(receive(&tunnel).await.len(), sent.len());
    }
    let long = tunnel.send(ping(own(&tunnel, false), address("2001:db8::1"), 1233));
    let (size, smallest) = (1281, 1280);
    let error = SendError::TooLarge {
        size,
        max: smallest,
    };
    assert_eq!(long, Err(error));
    let answer = receive(&tunnel).await;
    assert_eq!(icmp_kind(&answer), [2, 0]);
    assert_eq!(answer[44..48], 1280_u32.to_be_bytes());
    // The sender of IPv4 makes its packets smaller.
    let (size, long) = (1280, ping(own(&tunnel, true), address("192.0.2.1"), 1252));
    let mut may_be_cut = long.to_vec();
    assert_eq!(tunnel.send(long), Err(SendError::TooLarge { size, max }));
    assert_eq!(icmp_kind(&receive(&tunnel).await), [3, 4]);
    // Without the flag DF (RFC 1624).
    may_be_cut[6] = 0;
    let sum = u16::from_be_bytes([may_be_cut[10], may_be_cut[11]]);
    let (sum, has_carry) = sum.overflowing_add(0x4000);
    let sum = (sum + u16::from(has_carry)).to_be_bytes();
    may_be_cut[10..12].copy_from_slice(&sum);
    tunnel.send(may_be_cut.into()).expect("1280 bytes");
    // The echo of IPv4 has the flag, and does not come back.
    until(|| proxy.stats().to_network == 4).await;
}

/// MQ-ip-021, limit K635: the other end sends packets, and does not answer the echo of the link.
#[tokio::test(flavor = "multi_thread")]
async fn tunnels_with_ipv6_end_on_narrow_paths() {
    let started = start_ip_with(ip_proxy(&Echo::default()), narrow()).await;
    let (_client, mut stream) = bare(&started, "*", "*").await;
    let own = first_capsules(&mut stream).await[1];
    let datagrams = stream.datagrams().cloned().expect("datagrams");
    let sending = async {
        loop {
            let packet = ping(own, address("2001:db8::1"), 9);
            // Fails once the stream was reset.
            let _ = datagrams.send(&[&[0], &packet[..]].concat());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let reading = async {
        let mut echoes = 0;
        loop {
            match within(stream.read_chunk()).await {
                Ok(Some(chunk)) => echoes += usize::from(chunk.len() > 1000),
                Ok(None) => panic!("the stream ends without a code"),
                Err(error) => break (error.code(), echoes),
            }
        }
    };
    let (code, echoes) = tokio::select! {
        () = sending => unreachable!(),
        end = reading => end,
    };
    assert_eq!(code, Some(h3::Code::CONNECT_ERROR));
    assert!(echoes >= 3, "the other end was asked");
}
