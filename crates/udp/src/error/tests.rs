#![cfg(unix)]

use super::*;

fn class_of(code: i32) -> ErrorClass {
    classify(&io::Error::from_raw_os_error(code))
}

#[test]
fn every_code_has_its_class() {
    use ErrorClass::{Fatal, OutOfBuffers, TooLarge, Transient, WouldBlock};
    let table = [
        (libc::EAGAIN, WouldBlock),
        (libc::ENOBUFS, OutOfBuffers),
        (libc::ENOMEM, OutOfBuffers),
        (libc::EMSGSIZE, TooLarge),
        (libc::ECONNREFUSED, Transient),
        (libc::ECONNRESET, Transient),
        (libc::EHOSTUNREACH, Transient),
        (libc::ENETUNREACH, Transient),
        (libc::ENETDOWN, Transient),
        (libc::EHOSTDOWN, Transient),
        (libc::EPERM, Transient),
        (libc::EACCES, Transient),
        (libc::EADDRNOTAVAIL, Transient),
        (libc::EAFNOSUPPORT, Transient),
        (libc::EINVAL, Transient),
        (libc::EIO, Transient),
        (libc::EPROTO, Transient),
        (libc::ENOPROTOOPT, Transient),
        (libc::EOPNOTSUPP, Transient),
        (libc::EBADF, Fatal),
        (libc::ENOTSOCK, Fatal),
        (libc::EFAULT, Fatal),
        (libc::EDESTADDRREQ, Fatal),
    ];
    for (code, class) in table {
        let error = io::Error::from_raw_os_error(code);
        assert_eq!(class_of(code), class, "{error}");
        let lost = matches!(class, Transient | TooLarge | OutOfBuffers);
        assert_eq!(is_transient(&error), lost, "{error}");
        assert_eq!(is_too_large(&error), class == TooLarge, "{error}");
    }
}

#[test]
fn unknown_errors_are_fatal() {
    assert_eq!(classify(&io::Error::other("x")), ErrorClass::Fatal);
}
