use std::net::Ipv4Addr;

use super::*;

fn received(len: usize, segment_size: usize) -> Received {
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    Received {
        len,
        segment_size,
        peer,
        local: None,
        ecn: Ecn::NotEct,
        truncated: false,
    }
}

#[test]
fn last_datagram_may_be_shorter() {
    let batch = received(25, 10);
    let mut buffer = [0; 64];
    assert_eq!(batch.count(), 3);
    let lens: Vec<usize> = batch.datagrams(&buffer).map(<[u8]>::len).collect();
    assert_eq!(lens, [10, 10, 5]);
    assert_eq!(batch.datagrams_mut(&mut buffer).count(), 3);
}

#[test]
fn empty_datagram_counts_but_yields_nothing() {
    let batch = received(0, 1);
    assert_eq!(batch.count(), 1);
    assert_eq!(batch.datagrams(&[0; 8]).count(), 0);
}

#[test]
fn segment_size_of_zero_means_one_datagram() {
    let destination = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let transmit = |segment_size, contents| Transmit {
        destination,
        source: None,
        ecn: Ecn::NotEct,
        segment_size,
        contents,
    };
    assert_eq!(transmit(Some(0), &[0; 9]).segment_len(), 9);
    assert_eq!(transmit(None, &[0; 9]).segment_len(), 9);
    assert_eq!(transmit(None, &[]).segment_len(), 1);
    assert_eq!(transmit(Some(4), &[0; 9]).segment_len(), 4);
}
