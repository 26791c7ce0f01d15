use super::*;

/// Returns a message in the layout of the kernel.
fn message(level: c_int, kind: c_int, data: &[u8]) -> Vec<u8> {
    let mut control = ControlBuffer::new();
    control.push(level, kind, data);
    control.filled().to_vec()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn segment_size_is_laid_out_as_the_kernel_expects() {
    let mut control = ControlBuffer::new();
    control.push_segment_size(Some(1_452));
    let bytes = control.filled();
    assert_eq!(bytes.len(), (HEADER_LEN + 2).next_multiple_of(WORD));
    assert_eq!(bytes[..WORD], (HEADER_LEN + 2).to_ne_bytes());
    assert_eq!(bytes[WORD..WORD + 4], libc::SOL_UDP.to_ne_bytes());
    assert_eq!(bytes[WORD + 4..WORD + 8], libc::UDP_SEGMENT.to_ne_bytes());
    assert_eq!(bytes[WORD + 8..WORD + 10], 1_452_u16.to_ne_bytes());
}

#[test]
fn sizes_beyond_a_batch_are_left_out() {
    let mut control = ControlBuffer::new();
    control.push_segment_size(None);
    control.push_segment_size(Some(70_000));
    assert!(control.filled().is_empty());
}

#[test]
fn marks_round_trip() {
    for mark in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
        for is_ipv4 in [true, false] {
            let mut control = ControlBuffer::new();
            control.push_mark(mark, is_ipv4);
            assert_eq!(
                Control::decode(control.filled()).ecn,
                mark,
                "{mark:?} {is_ipv4}"
            );
        }
    }
}

#[test]
fn one_byte_tos_is_read() {
    let bytes = message(libc::SOL_IP, libc::IP_TOS, &[0b1011_1011]);
    assert_eq!(Control::decode(&bytes).ecn, Ecn::Ce);
}

#[test]
fn sources_round_trip() {
    for source in [ip("192.0.2.1"), ip("2001:db8::1")] {
        let mut control = ControlBuffer::new();
        control.push_source(source);
        assert_eq!(Control::decode(control.filled()).local, Some(source));
    }
}

#[test]
fn mapped_local_address_becomes_ipv4() {
    let mut info = [0; IN6_PKTINFO_LEN];
    info[..16].copy_from_slice(&Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets());
    let bytes = message(libc::SOL_IPV6, libc::IPV6_PKTINFO, &info);
    assert_eq!(Control::decode(&bytes).local, Some(ip("192.0.2.1")));
}

#[test]
fn several_messages_are_read_and_unknown_ones_skipped() {
    let mut bytes = message(libc::SOL_SOCKET, libc::SO_TIMESTAMP, &[9; 16]);
    bytes.extend(message(
        libc::SOL_UDP,
        libc::UDP_GRO,
        &1_200_i32.to_ne_bytes(),
    ));
    bytes.extend(message(libc::SOL_IP, libc::IP_TOS, &[2]));
    let control = Control::decode(&bytes);
    assert_eq!(
        control,
        Control {
            segment_size: Some(1_200),
            ecn: Ecn::Ect0,
            local: None,
            error: None,
        }
    );
}

#[test]
fn impossible_segment_sizes_are_ignored() {
    for size in [0_i32, -5] {
        let bytes = message(libc::SOL_UDP, libc::UDP_GRO, &size.to_ne_bytes());
        assert_eq!(Control::decode(&bytes).segment_size, None, "{size}");
    }
}

#[test]
fn truncated_messages_do_not_panic() {
    let mut bytes = message(libc::SOL_UDP, libc::UDP_GRO, &1_200_i32.to_ne_bytes());
    bytes.extend(message(
        libc::SOL_IPV6,
        libc::IPV6_PKTINFO,
        &[7; IN6_PKTINFO_LEN],
    ));
    let first = HEADER_LEN + size_of::<c_int>();
    let second = first.next_multiple_of(WORD) + HEADER_LEN + IN6_PKTINFO_LEN;
    for len in 0..bytes.len() {
        let control = Control::decode(&bytes[..len]);
        let expected = Control {
            segment_size: (len >= first).then_some(1_200),
            local: (len >= second).then(|| ip("707:707:707:707:707:707:707:707")),
            ..Control::default()
        };
        assert_eq!(control, expected, "{len}");
    }
}

#[test]
fn invalid_lengths_end_decoding() {
    for len in [0, 1, HEADER_LEN - 1, 1_000, usize::MAX, usize::MAX - 3] {
        let mut bytes = message(libc::SOL_UDP, libc::UDP_GRO, &1_200_i32.to_ne_bytes());
        bytes[..WORD].copy_from_slice(&len.to_ne_bytes());
        bytes.extend(message(libc::SOL_IP, libc::IP_TOS, &[2]));
        assert_eq!(Control::decode(&bytes), Control::default(), "{len}");
    }
}

#[test]
fn extended_error_is_read_and_a_short_one_skipped() {
    // errno 90, from ICMP, type 3, code 4, MTU 1400, and the address of the sender.
    let mut data = 90_u32.to_ne_bytes().to_vec();
    data.extend([2, 3, 4, 0]);
    data.extend(1400_u32.to_ne_bytes());
    data.extend([0; 20]);
    for (level, kind) in [
        (libc::SOL_IP, libc::IP_RECVERR),
        (libc::SOL_IPV6, libc::IPV6_RECVERR),
    ] {
        let mut control = ControlBuffer::new();
        control.push(level, kind, &data);
        let error = Control::decode(control.filled()).error;
        let expected = ExtendedError {
            errno: 90,
            origin: 2,
            info: 1400,
        };
        assert_eq!(error, Some(expected));
        let mut control = ControlBuffer::new();
        control.push(level, kind, &data[..11]);
        assert_eq!(Control::decode(control.filled()).error, None);
    }
}
