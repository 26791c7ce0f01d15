use super::*;

/// Checks the three questions that all errors of a connection answer.
macro_rules! assert_answers {
    ($error:expr, $lost:expr, $is_timeout:expr, $is_retryable:expr) => {
        let error = $error;
        assert_eq!(error.connection_error(), $lost, "{error}");
        assert_eq!(error.is_timeout(), $is_timeout, "{error}");
        assert_eq!(error.is_retryable(), $is_retryable, "{error}");
    };
}

#[test]
fn errors_of_a_lost_connection_return_its_reason() {
    for (lost, is_timeout, is_retryable) in [
        (ConnectionError::TimedOut, true, true),
        (ConnectionError::Reset, false, true),
        (ConnectionError::LocallyClosed, false, false),
    ] {
        let seen = Some(&lost);
        let read = ReadError::from(lost.clone());
        assert_answers!(read.clone(), seen, is_timeout, is_retryable);
        assert_answers!(
            ReadExactError::from(read.clone()),
            seen,
            is_timeout,
            is_retryable
        );
        assert_answers!(ReadToEndError::from(read), seen, is_timeout, is_retryable);
        assert_answers!(
            WriteError::from(lost.clone()),
            seen,
            is_timeout,
            is_retryable
        );
        assert_answers!(
            StoppedError::from(lost.clone()),
            seen,
            is_timeout,
            is_retryable
        );
        assert_answers!(
            SendDatagramError::from(lost.clone()),
            seen,
            is_timeout,
            is_retryable
        );
        assert_answers!(
            MigrateError::from(lost.clone()),
            seen,
            is_timeout,
            is_retryable
        );
    }
}

#[test]
fn errors_of_a_live_connection_have_no_reason() {
    let code = VarInt::from(7_u32);
    assert_answers!(WriteError::Stopped(code), None, false, false);
    assert_answers!(WriteError::EarlyDataRejected, None, false, true);
    assert_answers!(WriteError::DeadlinePassed, None, false, false);
    assert_answers!(ReadError::Reset(code), None, false, false);
    assert_answers!(ReadError::EarlyDataRejected, None, false, true);
    assert_answers!(ReadExactError::FinishedEarly(1), None, false, false);
    assert_answers!(
        ReadExactError::from(ReadError::EarlyDataRejected),
        None,
        false,
        true
    );
    assert_answers!(ReadToEndError::TooLong { limit: 1 }, None, false, false);
    assert_answers!(StoppedError::EarlyDataRejected, None, false, true);
    assert_answers!(SendDatagramError::Disabled, None, false, false);
    assert_answers!(MigrateError::NoAnswer, None, false, false);
    assert_answers!(ConnectError::CidsExhausted, None, false, true);
    assert_answers!(ConnectError::EndpointStopping, None, false, false);
}
