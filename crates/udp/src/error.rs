//! Socket errors, classified by the reaction they call for.

use std::io::{self, ErrorKind};

/// The reaction that a socket error calls for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorClass {
    /// No datagram is waiting, or the send buffer is full. Wait until the socket is ready.
    WouldBlock,
    /// The kernel is out of memory for packets, and the datagrams are lost. Send less for a while:
    /// readiness does not show when this ends.
    OutOfBuffers,
    /// A datagram is larger than the path to its destination allows. It is lost, like an MTU probe
    /// that is too large. Smaller datagrams pass.
    TooLarge,
    /// A route, a peer or a firewall refuses the datagrams for now. They are lost, like datagrams
    /// lost on the path.
    Transient,
    /// The socket itself is unusable.
    Fatal,
}

/// Classifies an error of [`UdpSocket`](crate::UdpSocket).
///
/// No peer, router or address from the network can cause [`ErrorClass::Fatal`]: an ICMP message
/// must not end a connection (RFC 9000 §14.2.1).
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
        // The source address disappeared with its interface.
        | ErrorKind::AddrNotAvailable
        // An impossible destination: port 0 or an unusable address, which a peer can name as its
        // preferred address.
        | ErrorKind::InvalidInput
        | ErrorKind::InvalidData
        // The kernel's error for the ICMP message "source route failed".
        | ErrorKind::Unsupported => ErrorClass::Transient,
        _ => error.raw_os_error().map_or(ErrorClass::Fatal, classify_code),
    }
}

/// Returns true if the datagrams are lost but the socket still works.
///
/// Callers may treat them as lost on the path and continue. Includes [`ErrorClass::TooLarge`] and
/// [`ErrorClass::OutOfBuffers`].
pub fn is_transient(error: &io::Error) -> bool {
    matches!(
        classify(error),
        ErrorClass::Transient | ErrorClass::TooLarge | ErrorClass::OutOfBuffers
    )
}

/// Returns true if a datagram was larger than the path to its destination allows.
pub fn is_too_large(error: &io::Error) -> bool {
    classify(error) == ErrorClass::TooLarge
}

/// Classifies the codes that have no [`ErrorKind`].
#[cfg(unix)]
fn classify_code(code: i32) -> ErrorClass {
    match code {
        libc::ENOBUFS => ErrorClass::OutOfBuffers,
        libc::EMSGSIZE => ErrorClass::TooLarge,
        // The kernel translates ICMP messages to ENOPROTOOPT, EHOSTDOWN and EPROTO. EIO comes from
        // devices that cannot compute a checksum. EAFNOSUPPORT reports an IPv6 destination on an
        // IPv4 socket, which is a problem of one path.
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
