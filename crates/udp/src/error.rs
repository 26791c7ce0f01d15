//! Socket errors, sorted by what a caller can do about them.

use std::io::{self, ErrorKind};

/// What a caller can do about a socket error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorClass {
    /// Nothing to take or no room to give: wait until the socket is ready.
    WouldBlock,
    /// The kernel is out of memory for packets: the datagrams are lost. Send less for a while;
    /// readiness does not tell when it clears.
    OutOfBuffers,
    /// A datagram is larger than the way to its destination takes: it is lost as a probe that
    /// was too large. Smaller ones pass.
    TooLarge,
    /// A route, a peer or a firewall refuses for now: the datagrams are lost, like any on the way.
    Transient,
    /// The socket itself is of no use any more.
    Fatal,
}

/// Sorts an error of [`UdpSocket`](crate::UdpSocket).
///
/// Nothing that a peer, a router or an address from the network can cause is
/// [`ErrorClass::Fatal`]: an ICMP message must not end a connection (RFC 9000 §14.2.1).
pub fn classify(error: &io::Error) -> ErrorClass {
    match error.kind() {
        ErrorKind::WouldBlock => ErrorClass::WouldBlock,
        ErrorKind::OutOfMemory => ErrorClass::OutOfBuffers,
        ErrorKind::Interrupted
        | ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::PermissionDenied
        | ErrorKind::TimedOut
        // The source address went away with its interface.
        | ErrorKind::AddrNotAvailable
        // A destination that cannot be: port 0 or an unusable address, which a peer can name as
        // its preferred one.
        | ErrorKind::InvalidInput
        | ErrorKind::InvalidData
        // ICMP: source route failed.
        | ErrorKind::Unsupported => ErrorClass::Transient,
        _ => error.raw_os_error().map_or(ErrorClass::Fatal, classify_code),
    }
}

/// True if the datagrams are lost but the socket is as good as before.
///
/// A caller that treats them as lost on the way and goes on does right. Includes
/// [`ErrorClass::TooLarge`] and [`ErrorClass::OutOfBuffers`].
pub fn is_transient(error: &io::Error) -> bool {
    matches!(
        classify(error),
        ErrorClass::Transient | ErrorClass::TooLarge | ErrorClass::OutOfBuffers
    )
}

/// True if a datagram was larger than the way to its destination takes.
pub fn is_too_large(error: &io::Error) -> bool {
    classify(error) == ErrorClass::TooLarge
}

/// Codes for which the standard library has no name.
#[cfg(unix)]
fn classify_code(code: i32) -> ErrorClass {
    match code {
        libc::ENOBUFS => ErrorClass::OutOfBuffers,
        libc::EMSGSIZE => ErrorClass::TooLarge,
        // ENOPROTOOPT, EHOSTDOWN and EPROTO are how the kernel hands on ICMP messages; EIO comes
        // from devices that cannot compute a checksum; EAFNOSUPPORT is an IPv6 destination on an
        // IPv4 socket, the trouble of one path.
        libc::EIO
        | libc::ENOPROTOOPT
        | libc::EHOSTDOWN
        | libc::EPROTO
        | libc::EAFNOSUPPORT
        | libc::ENETRESET => ErrorClass::Transient,
        #[cfg(target_os = "linux")]
        libc::ENONET => ErrorClass::Transient,
        _ => ErrorClass::Fatal,
    }
}

#[cfg(windows)]
fn classify_code(code: i32) -> ErrorClass {
    const WSAEMSGSIZE: i32 = 10_040;
    const WSAEAFNOSUPPORT: i32 = 10_047;
    const WSAENETRESET: i32 = 10_052;
    const WSAENOBUFS: i32 = 10_055;
    match code {
        WSAENOBUFS => ErrorClass::OutOfBuffers,
        WSAEMSGSIZE => ErrorClass::TooLarge,
        WSAEAFNOSUPPORT | WSAENETRESET => ErrorClass::Transient,
        _ => ErrorClass::Fatal,
    }
}

#[cfg(not(any(unix, windows)))]
fn classify_code(_: i32) -> ErrorClass {
    ErrorClass::Fatal
}

#[cfg(test)]
mod tests;
