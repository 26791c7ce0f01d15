use super::*;

#[cfg(unix)]
fn error(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

/// The codes of every Unix that this crate knows, with cause and class.
#[cfg(unix)]
#[test]
fn every_code_has_its_cause_and_class() {
    use ErrorCause::*;
    let table = [
        (libc::ENOBUFS, NoBuffers),
        (libc::ENOMEM, NoBuffers),
        (libc::EMFILE, NoBuffers),
        (libc::ENFILE, NoBuffers),
        (libc::EMSGSIZE, TooLarge),
        (libc::EHOSTUNREACH, Unreachable),
        (libc::ENETUNREACH, Unreachable),
        (libc::ENETDOWN, Unreachable),
        (libc::EHOSTDOWN, Unreachable),
        (libc::ENODEV, Unreachable),
        (libc::ENXIO, Unreachable),
        (libc::EDESTADDRREQ, Unreachable),
        #[cfg(target_os = "linux")]
        (libc::ENONET, Unreachable),
        #[cfg(target_os = "linux")]
        (libc::ENOKEY, Unreachable),
        (libc::ECONNREFUSED, Refused),
        (libc::ECONNRESET, Refused),
        (libc::ECONNABORTED, Refused),
        (libc::ENETRESET, Refused),
        (libc::ETIMEDOUT, Refused),
        (libc::EPROTO, Refused),
        (libc::ENOPROTOOPT, Refused),
        (libc::EPERM, NotPermitted),
        (libc::EACCES, NotPermitted),
        (libc::EADDRNOTAVAIL, NoAddress),
        (libc::EAFNOSUPPORT, Invalid),
        (libc::EINVAL, Invalid),
        (libc::EOPNOTSUPP, Invalid),
        (libc::EIO, Device),
        (libc::EPIPE, Disconnected),
        (libc::ENOTCONN, Disconnected),
        (libc::ESHUTDOWN, Disconnected),
        (libc::EBADF, Closed),
        (libc::ENOTSOCK, Closed),
        (libc::EFAULT, Closed),
        (libc::ELOOP, Other),
        (libc::ENOENT, Other),
    ];
    for (code, cause) in table {
        let error = error(code);
        assert_eq!(ErrorCause::of(&error), cause, "{error}");
        assert_eq!(classify(&error), cause.class(), "{error}");
        assert_eq!(is_transient(&error), cause != Closed, "{error}");
        assert_eq!(is_too_large(&error), cause == TooLarge, "{error}");
    }
}

/// Of all codes that a kernel may return, those of a closed descriptor and of invalid memory alone
/// are fatal.
#[cfg(unix)]
#[test]
fn only_faults_of_this_process_are_fatal() {
    let fatal = |code: &i32| classify(&error(*code)) == ErrorClass::Fatal;
    let mut expected = [libc::EBADF, libc::ENOTSOCK, libc::EFAULT];
    expected.sort_unstable();
    assert_eq!((1..=4096).filter(fatal).collect::<Vec<_>>(), expected);
    let waits = |code: &i32| classify(&error(*code)) == ErrorClass::WouldBlock;
    assert_eq!((1..=4096).filter(waits).collect::<Vec<_>>(), [libc::EAGAIN]);
    assert_eq!(classify(&error(libc::EINTR)), ErrorClass::Transient);
}

/// The codes of Windows: an ICMP message, a device that is down and a socket that was shut down end
/// nothing.
#[test]
fn codes_of_windows_have_their_causes() {
    use ErrorCause::*;
    let table = [
        (10_055, NoBuffers),
        (10_040, TooLarge),
        (10_050, Unreachable),
        (10_051, Unreachable),
        (10_065, Unreachable),
        (10_039, Unreachable),
        (10_052, Refused),
        (10_054, Refused),
        (10_013, NotPermitted),
        (10_049, NoAddress),
        (10_022, Invalid),
        (10_047, Invalid),
        (10_057, Disconnected),
        (10_058, Disconnected),
        (10_038, Closed),
        (10_009, Closed),
    ];
    for (code, cause) in table {
        assert_eq!(cause_of_winsock(code), Some(cause), "{code}");
    }
    let fatal: Vec<_> = (1..=12_000)
        .filter(|code| cause_of_winsock(*code) == Some(Closed))
        .collect();
    assert_eq!(fatal, [6, 10_009, 10_014, 10_038, 10_093]);
}

/// Errors of transports that are no sockets have a kind and no code.
#[test]
fn errors_without_a_code_are_never_fatal() {
    let class = |kind: ErrorKind| classify(&kind.into());
    assert_eq!(classify(&io::Error::other("x")), ErrorClass::Suspect);
    for (kind, expected) in [
        (ErrorKind::WouldBlock, ErrorClass::WouldBlock),
        (ErrorKind::Interrupted, ErrorClass::Transient),
        (ErrorKind::HostUnreachable, ErrorClass::Transient),
        (ErrorKind::ConnectionReset, ErrorClass::Transient),
        (ErrorKind::OutOfMemory, ErrorClass::OutOfBuffers),
        (ErrorKind::BrokenPipe, ErrorClass::Suspect),
        (ErrorKind::NotConnected, ErrorClass::Suspect),
        (ErrorKind::UnexpectedEof, ErrorClass::Suspect),
        (ErrorKind::NotFound, ErrorClass::Suspect),
    ] {
        assert_eq!(class(kind), expected, "{kind:?}");
    }
}

#[test]
fn causes_have_different_names() {
    let names: std::collections::BTreeSet<_> =
        ErrorCause::ALL.iter().map(|cause| cause.name()).collect();
    assert_eq!(names.len(), ErrorCause::ALL.len());
}
