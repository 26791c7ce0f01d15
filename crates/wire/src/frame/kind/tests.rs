use super::*;
use crate::DecodeErrorKind;
use crate::reader::Reader;

#[test]
fn qlog_writes_names_in_lower_case() {
    for kind in FrameKind::ALL {
        assert_eq!(kind.qlog_name(), kind.name().to_lowercase());
    }
}

/// The compiler does not report a type of the table without an arm in `Frame::decode`.
#[test]
fn every_type_in_the_table_is_decoded() {
    let known = (0..0x4000).filter(|&value| FrameType(value).kind().is_some());
    let mut kinds = Vec::new();
    for value in known {
        let mut bytes = [0; 64];
        let mut writer = crate::Writer::new(&mut bytes);
        writer.varint(value);
        match Frame::decode(&mut Reader::new(&bytes)) {
            Ok(frame) => {
                assert_eq!(Some(frame.kind()), FrameType(value).kind(), "{value:#x}");
                kinds.push(frame.kind());
            }
            Err(error) => {
                let unknown = DecodeErrorKind::UnknownFrame(value);
                assert_ne!(error.error.kind, unknown, "{value:#x}");
            }
        }
    }
    // Zeros are no valid NEW_CONNECTION_ID and NEW_TOKEN frames, whose fields must not be empty.
    assert!(kinds.len() > 30, "{kinds:?}");
}

#[test]
fn columns_of_packets_have_four_letters() {
    for value in 0..0x100 {
        let packets = FrameType(value).packets();
        let is_place = |(sign, letter): (u8, u8)| sign == letter || sign == b'_';
        assert!(packets.bytes().zip(*b"IH01").all(is_place), "{value:#x}");
        assert_eq!(packets.len(), 4, "{value:#x}");
    }
}
