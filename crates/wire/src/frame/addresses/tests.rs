use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector, decode_first};
use crate::testing::{hex, varints};

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

#[test]
fn encodings_match_the_documents() {
    let (ipv4, ipv6) = (address("192.0.2.1:443"), address("[2001:db8::1]:4433"));
    let of_ipv6 = "20010db8000000000000000000000001 1151";
    let observed =
        |sequence, address| Frame::ObservedAddress(ObservedAddress { sequence, address });
    let add = |sequence, address| Frame::AddAddress(AddAddress { sequence, address });
    let reach = |round, address| Frame::ReachOut(ReachOut { round, address });
    for (frame, digits) in [
        (observed(5, ipv4), "809f81a6 05 c0000201 01bb".to_owned()),
        (observed(64, ipv6), format!("809f81a7 4040 {of_ipv6}")),
        (add(0, ipv4), "803d7f90 00 c0000201 01bb".to_owned()),
        (add(1, ipv6), format!("803d7f91 01 {of_ipv6}")),
        (reach(2, ipv4), "803d7f92 02 c0000201 01bb".to_owned()),
        (reach(3, ipv6), format!("803d7f93 03 {of_ipv6}")),
        (
            Frame::RemoveAddress(RemoveAddress { sequence: 7 }),
            "803d7f94 07".to_owned(),
        ),
    ] {
        assert_vector(&frame, &digits);
    }
}

#[test]
fn mapped_addresses_are_those_of_ipv4() {
    let mapped = ObservedAddress {
        sequence: 1,
        address: address("[::ffff:192.0.2.1]:443"),
    };
    let mut buffer = [0; 40];
    let mut writer = crate::Writer::new(&mut buffer);
    mapped.encode(&mut writer);
    assert_eq!(writer.written(), hex("809f81a6 01 c0000201 01bb"));
    assert_eq!(writer.written().len(), mapped.encoded_len());
    let of_peer = hex("809f81a7 01 00000000000000000000ffffc0000201 01bb");
    let Ok(Frame::ObservedAddress(decoded)) = decode_first(&of_peer) else {
        panic!("an observed address");
    };
    assert_eq!(decoded.address, address("192.0.2.1:443"));
}

proptest! {
    #[test]
    fn frames_round_trip(number in varints(), ip in any::<IpAddr>(), port in any::<u16>()) {
        let address = SocketAddr::from((ip.to_canonical(), port));
        for frame in [
            Frame::ObservedAddress(ObservedAddress { sequence: number, address }),
            Frame::AddAddress(AddAddress { sequence: number, address }),
            Frame::ReachOut(ReachOut { round: number, address }),
            Frame::RemoveAddress(RemoveAddress { sequence: number }),
        ] {
            assert_round_trip(&frame);
        }
    }
}
