use super::*;

fn of_h2(reason: h2::Reason) -> Option<Code> {
    code_of(&h2::Error::from(reason))
}

#[test]
fn codes_of_http2_have_those_of_the_protocol_document() {
    let cases = [
        (h2::Reason::NO_ERROR, Code::Internal),
        (h2::Reason::PROTOCOL_ERROR, Code::Internal),
        (h2::Reason::INTERNAL_ERROR, Code::Internal),
        (h2::Reason::FLOW_CONTROL_ERROR, Code::Internal),
        (h2::Reason::FRAME_SIZE_ERROR, Code::Internal),
        (h2::Reason::REFUSED_STREAM, Code::Unavailable),
        (h2::Reason::CANCEL, Code::Cancelled),
        (h2::Reason::COMPRESSION_ERROR, Code::Internal),
        (h2::Reason::CONNECT_ERROR, Code::Internal),
        (h2::Reason::ENHANCE_YOUR_CALM, Code::ResourceExhausted),
        (h2::Reason::INADEQUATE_SECURITY, Code::PermissionDenied),
    ];
    for (reason, expected) in cases {
        assert_eq!(of_h2(reason), Some(expected), "{reason:?}");
    }
}

fn closed(code: u64) -> Option<Code> {
    let code = VarInt::from_u64(code).expect("small").into();
    let reason = bytes::Bytes::new();
    let error = ConnectionError::ApplicationClosed { code, reason };
    code_of(&H3Error::Connection(error))
}

#[test]
fn connections_that_end_are_unavailable_unless_an_error_ended_them() {
    for error in [
        ConnectionError::TimedOut,
        ConnectionError::HandshakeTimedOut,
        ConnectionError::PathSilent,
        ConnectionError::Reset,
        ConnectionError::LocallyClosed,
    ] {
        assert_eq!(code_of(&error), Some(Code::Unavailable), "{error}");
    }
    // H3_NO_ERROR, and codes of other programs.
    for code in [0x100, 0, 7, 0x3f] {
        assert_eq!(closed(code), Some(Code::Unavailable), "{code:#x}");
    }
    assert_eq!(closed(0x107), Some(Code::ResourceExhausted));
    for code in [0x101, 0x104, 0x105, 0x10a, 0x200] {
        assert_eq!(closed(code), Some(Code::Internal), "{code:#x}");
    }
}

#[test]
fn status_of_a_body_is_that_of_the_call() {
    let status = Status::data_loss("the disk is gone");
    let error = H3Error::Body(Box::new(status));
    let found = status_of(error, Code::Unknown);
    assert_eq!(
        (found.code(), found.message()),
        (Code::DataLoss, "the disk is gone")
    );
}

#[test]
fn errors_without_a_code_are_left_to_the_caller() {
    let error = H3Error::Body("a text".into());
    assert_eq!(code_of(&error), None);
    assert_eq!(status_of(error, Code::Unknown).code(), Code::Unknown);
    assert_eq!(code_of(&H3Error::GoingAway), Some(Code::Unavailable));
    let broken = io::Error::from(io::ErrorKind::ConnectionReset);
    assert_eq!(code_of(&broken), Some(Code::Unavailable));
}
