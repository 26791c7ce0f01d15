use super::*;

#[test]
fn codes_have_the_numbers_and_names_of_rfc_9000_20_1() {
    let names = [
        "NO_ERROR",
        "INTERNAL_ERROR",
        "CONNECTION_REFUSED",
        "FLOW_CONTROL_ERROR",
        "STREAM_LIMIT_ERROR",
        "STREAM_STATE_ERROR",
        "FINAL_SIZE_ERROR",
        "FRAME_ENCODING_ERROR",
        "TRANSPORT_PARAMETER_ERROR",
        "CONNECTION_ID_LIMIT_ERROR",
        "PROTOCOL_VIOLATION",
        "INVALID_TOKEN",
        "APPLICATION_ERROR",
        "CRYPTO_BUFFER_EXCEEDED",
        "KEY_UPDATE_ERROR",
        "AEAD_LIMIT_REACHED",
        "NO_VIABLE_PATH",
    ];
    for (value, name) in (0..).zip(names) {
        assert_eq!(TransportErrorCode::from_value(value).to_string(), name);
    }
    assert_eq!(TransportErrorCode::NO_VIABLE_PATH.value(), 0x10);
    assert_eq!(TransportErrorCode::PROTOCOL_VIOLATION.value(), 0x0a);
}

#[test]
fn tls_alerts_become_crypto_errors() {
    let code = TransportErrorCode::crypto(120);
    assert_eq!(code.value(), 0x178);
    assert_eq!(code.alert(), Some(120));
    assert_eq!(code.to_string(), "CRYPTO_ERROR 0x178 (TLS alert 120)");
    assert_eq!(TransportErrorCode::from_value(0xff).alert(), None);
    assert_eq!(TransportErrorCode::from_value(0x100).alert(), Some(0));
    assert_eq!(TransportErrorCode::from_value(0x1ff).alert(), Some(255));
    assert_eq!(TransportErrorCode::from_value(0x200).alert(), None);
}

#[test]
fn unknown_codes_keep_their_number() {
    let code = TransportErrorCode::from_value(0x4242_4242);
    assert_eq!(code.value(), 0x4242_4242);
    assert_eq!(code.to_string(), "transport error 0x42424242");
    assert_eq!(ApplicationErrorCode(7).to_string(), "application error 0x7");
}
