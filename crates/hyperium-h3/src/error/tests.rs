use super::*;

#[test]
fn application_error_code_is_preserved() {
    let closed = ConnectionError::ApplicationClosed {
        code: courser::ApplicationErrorCode::from(VarInt::from_u32(0x102)),
        reason: bytes::Bytes::new(),
    };
    assert!(matches!(
        connection_error(closed),
        ConnectionErrorIncoming::ApplicationClose { error_code: 0x102 }
    ));
}

#[test]
fn both_timeouts_are_timeouts() {
    for error in [
        ConnectionError::TimedOut,
        ConnectionError::HandshakeTimedOut,
        ConnectionError::PathSilent,
    ] {
        assert!(matches!(
            connection_error(error),
            ConnectionErrorIncoming::Timeout
        ));
    }
}

#[test]
fn other_connection_errors_keep_their_source() {
    let ConnectionErrorIncoming::Undefined(error) = connection_error(ConnectionError::Reset) else {
        panic!("h3 has no error of its own for a stateless reset");
    };
    assert_eq!(
        error.downcast_ref::<ConnectionError>(),
        Some(&ConnectionError::Reset)
    );
}

#[test]
fn resets_and_stops_keep_their_code() {
    let code = VarInt::from_u32(0x10c);
    for error in [
        read_error(ReadError::Reset(code)),
        write_error(WriteError::Stopped(code)),
    ] {
        assert!(matches!(
            error,
            StreamErrorIncoming::StreamTerminated { error_code: 0x10c }
        ));
    }
}

#[test]
fn code_above_the_range_becomes_the_largest() {
    assert_eq!(saturating_var_int(u64::MAX), VarInt::MAX);
    assert_eq!(saturating_var_int(7).into_inner(), 7);
}
