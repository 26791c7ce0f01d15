//! Packets through tunnels.

use courser_masque_tokio::{Ended, Reason, SendError};

use super::*;

/// MQ-ip-005, MQ-ip-017.
#[tokio::test(flavor = "multi_thread")]
async fn packets_pass_over_every_version() {
    let device = Echo::default();
    let proxy = ip_proxy(&device);
    let started = start_ip(proxy.clone()).await;
    for carrier in ALL {
        let tunnel = started.ip(carrier, IpRequest::default()).await;
        assert_eq!(tunnel.carrier(), carrier);
        for (is_ipv4, host) in [(true, "192.0.2.1"), (false, "2001:db8::1")] {
            for len in [0, 1, 1000] {
                let sent = ping(own(&tunnel, is_ipv4), address(host), len);
                tunnel.send(sent.clone()).expect("open");
                let answer = receive(&tunnel).await;
                assert_eq!(header(&answer).source, address(host), "{carrier:?}");
                assert_eq!(answer.len(), sent.len());
                assert!(answer.ends_with(&vec![7; len]));
            }
        }
        let stats = tunnel.stats();
        assert_eq!((stats.received, stats.sent, stats.malformed), (6, 6, 0));
        tunnel.close();
        let ended = within(tunnel.recv_many(&mut Vec::new(), 1)).await;
        assert_eq!(ended, Err(Ended::Closed));
        let late = tunnel.send(ping(address("10.89.0.2"), address("192.0.2.1"), 0));
        assert_eq!(late, Err(SendError::Ended(Ended::Closed)));
    }
    assert_eq!(proxy.stats().to_network, 18);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_arrive_in_order() {
    let started = start_ip(ip_proxy(&Echo::default())).await;
    for carrier in ALL {
        let tunnel = started.ip(carrier, IpRequest::default()).await;
        let source = own(&tunnel, true);
        let mut packets: Vec<_> = (0..40)
            .map(|len| ping(source, address("192.0.2.1"), len))
            .collect();
        assert_eq!(tunnel.send_many(&mut packets), Ok(40));
        assert!(packets.is_empty());
        let mut received = Vec::new();
        while received.len() < 40 {
            let count = within(tunnel.recv_many(&mut received, 16))
                .await
                .expect("open");
            assert!((1..=16).contains(&count));
        }
        for (len, packet) in received.iter().enumerate() {
            assert_eq!(packet.len(), 28 + len, "{carrier:?}");
        }
    }
}

/// MQ-ip-019: the proxy lowers the hop limit of what it sends into the tunnel, and the client does not.
#[tokio::test(flavor = "multi_thread")]
async fn hop_limits_are_lowered_on_the_way_into_the_tunnel() {
    let device = Echo::default();
    let proxy = ip_proxy(&device);
    let started = start_ip(proxy.clone()).await;
    let tunnel = started.ip(Carrier::Http3, IpRequest::default()).await;
    // The device returns UDP packets as they are.
    let mut udp = ping(own(&tunnel, false), address("2001:db8::1"), 8).to_vec();
    udp[6] = 17;
    tunnel.send(udp.clone().into()).expect("open");
    let answer = receive(&tunnel).await;
    assert_eq!(header(&answer).hop_limit, 63);
    assert_eq!(answer[40..], udp[40..]);
    // At its end, the sender gets an error: the network sends it back as one about a packet of the client, which it is not.
    udp[7] = 1;
    tunnel.send(udp.into()).expect("open");
    until(|| proxy.stats().to_network == 2 && device.sent() == 3).await;
}

/// MQ-ip-022, MQ-ip-024.
#[tokio::test(flavor = "multi_thread")]
async fn packets_above_the_size_of_the_path_are_answered() {
    let started = start_ip(ip_proxy(&Echo::default())).await;
    let tunnel = started.ip(Carrier::Http3, IpRequest::default()).await;
    let max = tunnel.max_packet_size();
    assert!(max >= 1280, "{max}");
    let long = ping(own(&tunnel, false), address("2001:db8::1"), max);
    let size = long.len();
    let error = tunnel.send(long).expect_err("too long");
    // The path MTU may grow meanwhile.
    let SendError::TooLarge { size: found, max } = error else {
        panic!("{error}")
    };
    assert_eq!(found, size);
    let answer = receive(&tunnel).await;
    assert_eq!(icmp_kind(&answer), [2, 0]);
    let mtu = u32::from_be_bytes(answer[44..48].try_into().expect("4 bytes"));
    assert_eq!(mtu as usize, max);
    assert_eq!(tunnel.stats().too_big, 1);
    // The device of the proxy carries 1500 bytes.
    let tunnel = started.ip(Carrier::Http2, IpRequest::default()).await;
    assert_eq!(tunnel.max_packet_size(), 65_575);
    tunnel
        .send(ping(own(&tunnel, true), address("192.0.2.1"), 1473))
        .expect("open");
    let answer = receive(&tunnel).await;
    assert_eq!(icmp_kind(&answer), [3, 4]);
    assert_eq!(answer[26..28], 1500_u16.to_be_bytes());
}

/// MQ-ip-023, MQ-ip-030, attack A361.
#[tokio::test(flavor = "multi_thread")]
async fn prohibited_destinations_are_answered() {
    let proxy = ip_proxy(&Echo::default());
    let started = start_ip(proxy.clone()).await;
    let tunnel = started.ip(Carrier::Http3, IpRequest::default()).await;
    for (destination, expected) in [
        ("127.0.0.1", None),
        ("169.254.169.254", None),
        ("10.0.0.1", Some([3, 13])),
        ("192.168.1.1", Some([3, 13])),
        ("8.8.8.8", Some([3, 13])),
        ("64:ff9b::7f00:1", Some([1, 1])),
        ("fd00::1", Some([1, 1])),
    ] {
        let destination = address(destination);
        let sent = tunnel.send(ping(own(&tunnel, destination.is_ipv4()), destination, 9));
        assert_eq!(sent.is_ok(), expected.is_some(), "{destination}");
        if let Some(expected) = expected {
            assert_eq!(
                icmp_kind(&receive(&tunnel).await),
                expected,
                "{destination}"
            );
        }
    }
    assert_eq!((proxy.stats().to_network, proxy.stats().dropped), (0, 5));
}

/// MQ-ip-029: a client's own packets with other sources are answered at its end.
#[tokio::test(flavor = "multi_thread")]
async fn own_packets_with_other_sources_are_answered_at_once() {
    let started = start_ip(ip_proxy(&Echo::default())).await;
    let tunnel = started.ip(Carrier::Http3, IpRequest::default()).await;
    let wrong = address("2001:db8::77");
    let error = tunnel
        .send(ping(wrong, address("2001:db8::1"), 9))
        .expect_err("not assigned");
    assert_eq!(error, SendError::Dropped(Reason::Source(wrong)));
    assert_eq!(icmp_kind(&receive(&tunnel).await), [1, 5]);
    let link_local = tunnel.send(ping(address("fe80::1"), address("ff02::2"), 9));
    assert_eq!(link_local, Err(SendError::Dropped(Reason::LinkLocal)));
    assert_eq!(
        (tunnel.stats().wrong_source, tunnel.stats().link_local),
        (1, 1)
    );
}

/// MQ-ip-026, MQ-ip-027.
#[tokio::test(flavor = "multi_thread")]
async fn marks_of_packets_pass_unchanged() {
    let started = start_ip(ip_proxy(&Echo::default())).await;
    let tunnel = started.ip(Carrier::Http3, IpRequest::default()).await;
    let mut udp = ping(own(&tunnel, false), address("2001:db8::1"), 8).to_vec();
    // DSCP 46 and Congestion Experienced.
    (udp[0], udp[1], udp[6]) = (0x6b, 0xb0, 17);
    tunnel.send(udp.into()).expect("open");
    assert_eq!(receive(&tunnel).await[..2], [0x6b, 0xb0]);
}

/// MQ-ip-020: the other end measures the path.
#[tokio::test(flavor = "multi_thread")]
async fn echoes_to_all_nodes_are_answered_by_the_proxy() {
    let started = start_ip(ip_proxy(&Echo::default())).await;
    let (_client, mut stream) = hostile::bare(&started, "*", "*").await;
    let datagrams = stream.datagrams().cloned().expect("datagrams");
    let assigned = hostile::first_capsules(&mut stream).await;
    let own = assigned[1];
    let probe = ping(own, address("ff02::1"), 1000);
    datagrams.send(&[&[0], &probe[..]].concat()).expect("open");
    let answer = within(datagrams.receive()).await.expect("open");
    assert_eq!(header(&answer[1..]).source, address("fd00:89::1"));
    assert_eq!(answer.len(), probe.len() + 1);
}
