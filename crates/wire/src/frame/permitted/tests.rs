use super::*;

/// RFC 9000 Table 3, column Pkts, in the order of the types. STREAM stands for all eight of its
/// types. RETIRE_CONNECTION_ID and the CONNECTION_CLOSE of the application follow the text of
/// §12.5. The other types are those of draft-ietf-quic-ack-frequency-12 §3 and RFC 9221 §4.
const TABLE: [(u64, &str); 28] = [
    (0x00, "IH01"),
    (0x01, "IH01"),
    (0x02, "IH_1"),
    (0x03, "IH_1"),
    (0x04, "__01"),
    (0x05, "__01"),
    (0x06, "IH_1"),
    (0x07, "___1"),
    (0x08, "__01"),
    (0x10, "__01"),
    (0x11, "__01"),
    (0x12, "__01"),
    (0x13, "__01"),
    (0x14, "__01"),
    (0x15, "__01"),
    (0x16, "__01"),
    (0x17, "__01"),
    (0x18, "__01"),
    (0x19, "___1"),
    (0x1a, "__01"),
    (0x1b, "___1"),
    (0x1c, "IH01"),
    (0x1d, "__01"),
    (0x1e, "___1"),
    (0x1f, "___1"),
    (0xaf, "___1"),
    (0x30, "__01"),
    (0x31, "__01"),
];

fn packets(frame_type: u64) -> String {
    let kinds = [
        ('I', PacketKind::Initial),
        ('H', PacketKind::Handshake),
        ('0', PacketKind::ZeroRtt),
        ('1', PacketKind::OneRtt),
    ];
    kinds
        .map(|(sign, kind)| {
            if is_permitted(frame_type, kind) {
                sign
            } else {
                '_'
            }
        })
        .iter()
        .collect()
}

#[test]
fn every_type_is_permitted_where_rfc_9000_table_3_says() {
    for (frame_type, expected) in TABLE {
        assert_eq!(packets(frame_type), expected, "{frame_type:#x}");
    }
    for frame_type in 0x08..=0x0f {
        assert_eq!(packets(frame_type), "__01", "{frame_type:#x}");
    }
}

#[test]
fn initial_and_handshake_carry_six_types_only() {
    for kind in [PacketKind::Initial, PacketKind::Handshake] {
        let types: Vec<_> = (0..0x100)
            .filter(|&frame_type| is_permitted(frame_type, kind))
            .collect();
        assert_eq!(types, [0x00, 0x01, 0x02, 0x03, 0x06, 0x1c], "{kind:?}");
    }
}

#[test]
fn application_close_is_refused_in_initial_and_handshake() {
    assert!(!is_permitted(0x1d, PacketKind::Initial));
    assert!(!is_permitted(0x1d, PacketKind::Handshake));
    assert!(is_permitted(0x1d, PacketKind::ZeroRtt));
}

#[test]
fn zero_rtt_refuses_frames_that_a_client_has_no_reason_to_send() {
    for frame_type in [0x02, 0x03, 0x06, 0x07, 0x19, 0x1b, 0x1e, 0x1f, 0xaf] {
        assert!(
            !is_permitted(frame_type, PacketKind::ZeroRtt),
            "{frame_type:#x}"
        );
    }
}

#[test]
fn unknown_types_are_permitted_nowhere() {
    for frame_type in [0x20, 0x2f, 0x32, 0x3d, 0x40, 0xae, 0xb0, u64::MAX] {
        assert_eq!(packets(frame_type), "____", "{frame_type:#x}");
    }
}

#[test]
fn packets_without_frames_permit_none() {
    for frame_type in 0..0x20 {
        assert!(!is_permitted(frame_type, PacketKind::Retry));
        assert!(!is_permitted(frame_type, PacketKind::VersionNegotiation));
    }
}
