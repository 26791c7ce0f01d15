//! Socket errors, classified by their cause and by the reaction they call for.

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
    /// A route, a device, a peer or a firewall refuses the datagrams for now. They are lost, like
    /// datagrams lost on the path.
    Transient,
    /// The socket may have stopped working for all destinations, or the error is not known to this
    /// crate. The datagrams are lost. If every call fails in this way for seconds, another socket
    /// may help.
    Suspect,
    /// The descriptor is not an open socket, or a call had invalid memory. Only a fault of this
    /// process can be the reason, and the socket never works again.
    Fatal,
}

/// The cause of a socket error, for counters and messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorCause {
    /// The system is short of memory or descriptors (`ENOBUFS`, `ENOMEM`, `EMFILE`).
    NoBuffers,
    /// A datagram exceeds the limit of the device or the path (`EMSGSIZE`).
    TooLarge,
    /// There is no route, or its device is down, was removed, or cannot reach the destination
    /// (`ENETUNREACH`, `EHOSTUNREACH`, `ENETDOWN`, `ENODEV`, `ENOKEY`, `EDESTADDRREQ`).
    Unreachable,
    /// The peer or a router answered that it does not take the datagrams (`ECONNREFUSED`,
    /// `EPROTO`).
    Refused,
    /// A firewall or a security policy forbids the datagrams (`EPERM`, `EACCES`).
    NotPermitted,
    /// The source address does not belong to this machine any more (`EADDRNOTAVAIL`).
    NoAddress,
    /// The system does not accept the datagram in this form (`EINVAL`, `EAFNOSUPPORT`,
    /// `EOPNOTSUPP`).
    Invalid,
    /// The device failed (`EIO`).
    Device,
    /// The socket was shut down or disconnected, for example while the system was suspended
    /// (`EPIPE`, `ENOTCONN`, `ESHUTDOWN`).
    Disconnected,
    /// The descriptor is not an open socket, or a call had invalid memory (`EBADF`, `ENOTSOCK`,
    /// `EFAULT`).
    Closed,
    /// Any other error, including those of custom transports without a code.
    Other,
}

impl ErrorCause {
    /// All causes, in the order of [`ErrorCounts::iter`](crate::ErrorCounts::iter).
    pub const ALL: [Self; 11] = [
        Self::NoBuffers,
        Self::TooLarge,
        Self::Unreachable,
        Self::Refused,
        Self::NotPermitted,
        Self::NoAddress,
        Self::Invalid,
        Self::Device,
        Self::Disconnected,
        Self::Closed,
        Self::Other,
    ];

    /// Returns the cause of an error. `WouldBlock` and `Interrupted` are [`ErrorCause::Other`].
    pub fn of(error: &io::Error) -> Self {
        // The code first: some systems translate several codes to one kind.
        error
            .raw_os_error()
            .and_then(cause_of_code)
            .or_else(|| cause_of_kind(error.kind()))
            .unwrap_or(Self::Other)
    }

    /// Returns the reaction that errors with this cause call for.
    pub fn class(self) -> ErrorClass {
        match self {
            Self::NoBuffers => ErrorClass::OutOfBuffers,
            Self::TooLarge => ErrorClass::TooLarge,
            Self::Unreachable
            | Self::Refused
            | Self::NotPermitted
            | Self::NoAddress
            | Self::Invalid
            | Self::Device => ErrorClass::Transient,
            Self::Disconnected | Self::Other => ErrorClass::Suspect,
            Self::Closed => ErrorClass::Fatal,
        }
    }

    /// Returns a short name in lower case, for labels of counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoBuffers => "no_buffers",
            Self::TooLarge => "too_large",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::NotPermitted => "not_permitted",
            Self::NoAddress => "no_address",
            Self::Invalid => "invalid",
            Self::Device => "device",
            Self::Disconnected => "disconnected",
            Self::Closed => "closed",
            Self::Other => "other",
        }
    }
}

/// Classifies an error of [`UdpSocket`](crate::UdpSocket).
///
/// No peer, router, device or address from the network can cause [`ErrorClass::Fatal`]: a failed
/// send is a lost datagram (RFC 9000 §14.2.1). An error that this crate does not know is at most
/// [`ErrorClass::Suspect`].
pub fn classify(error: &io::Error) -> ErrorClass {
    match error.kind() {
        ErrorKind::WouldBlock => ErrorClass::WouldBlock,
        ErrorKind::Interrupted => ErrorClass::Transient,
        _ => ErrorCause::of(error).class(),
    }
}

/// Returns true if the datagrams are lost but the socket still works, or may.
///
/// Callers may treat them as lost on the path and continue. False for [`ErrorClass::WouldBlock`] and
/// [`ErrorClass::Fatal`] only.
pub fn is_transient(error: &io::Error) -> bool {
    !matches!(classify(error), ErrorClass::WouldBlock | ErrorClass::Fatal)
}

/// Returns true if a datagram was larger than the path to its destination allows.
pub fn is_too_large(error: &io::Error) -> bool {
    classify(error) == ErrorClass::TooLarge
}

/// Returns true if the descriptor was closed by mistake. Its number is free or belongs to another part of the
/// process, so closing it again could close that file.
pub fn has_lost_descriptor(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_lost = matches!(error.raw_os_error(), Some(libc::EBADF | libc::ENOTSOCK));
    #[cfg(not(unix))]
    let is_lost = ErrorCause::of(error) == ErrorCause::Closed;
    is_lost
}

/// Returns the cause of a kind of error. Errors of custom transports have no code.
fn cause_of_kind(kind: ErrorKind) -> Option<ErrorCause> {
    Some(match kind {
        ErrorKind::OutOfMemory => ErrorCause::NoBuffers,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            ErrorCause::Unreachable
        }
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::TimedOut => ErrorCause::Refused,
        ErrorKind::PermissionDenied => ErrorCause::NotPermitted,
        ErrorKind::AddrNotAvailable => ErrorCause::NoAddress,
        // An impossible destination: port 0 or an unusable address, which a peer can name as its
        // preferred address. `Unsupported` is also the kernel's error for the ICMP message "source
        // route failed".
        ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::Unsupported => {
            ErrorCause::Invalid
        }
        ErrorKind::BrokenPipe | ErrorKind::NotConnected => ErrorCause::Disconnected,
        _ => return None,
    })
}

/// Returns the cause of an error code, or `None` if the kind of the error is more specific.
#[cfg(unix)]
fn cause_of_code(code: i32) -> Option<ErrorCause> {
    Some(match code {
        libc::ENOBUFS | libc::ENOMEM | libc::EMFILE | libc::ENFILE => ErrorCause::NoBuffers,
        libc::EMSGSIZE => ErrorCause::TooLarge,
        // ENODEV: the interface was removed, or a zone names none.
        // EDESTADDRREQ comes from a WireGuard device whose peer has no endpoint.
        libc::ENETUNREACH
        | libc::EHOSTUNREACH
        | libc::ENETDOWN
        | libc::EHOSTDOWN
        | libc::ENODEV
        | libc::ENXIO
        | libc::EDESTADDRREQ => ErrorCause::Unreachable,
        // ICMP messages become ENOPROTOOPT and EPROTO.
        libc::ECONNREFUSED
        | libc::ECONNRESET
        | libc::ECONNABORTED
        | libc::ENETRESET
        | libc::ETIMEDOUT
        | libc::ENOPROTOOPT
        | libc::EPROTO => ErrorCause::Refused,
        libc::EPERM | libc::EACCES => ErrorCause::NotPermitted,
        libc::EADDRNOTAVAIL => ErrorCause::NoAddress,
        // EAFNOSUPPORT reports an IPv6 destination on an IPv4 socket, which is a problem of one
        // path.
        libc::EINVAL | libc::EAFNOSUPPORT | libc::EOPNOTSUPP => ErrorCause::Invalid,
        // From devices that cannot compute a checksum, and from drivers.
        libc::EIO => ErrorCause::Device,
        // Darwin closes the sockets of a suspended process, and then reports these.
        libc::EPIPE | libc::ENOTCONN | libc::ESHUTDOWN => ErrorCause::Disconnected,
        libc::EBADF | libc::ENOTSOCK | libc::EFAULT => ErrorCause::Closed,
        #[cfg(target_os = "linux")]
        libc::ENONET => ErrorCause::Unreachable,
        // From WireGuard and IPsec, without a peer or a valid key for the destination.
        #[cfg(target_os = "linux")]
        libc::ENOKEY | libc::EKEYEXPIRED | libc::EKEYREVOKED | libc::EKEYREJECTED => {
            ErrorCause::Unreachable
        }
        _ => return None,
    })
}

#[cfg(windows)]
fn cause_of_code(code: i32) -> Option<ErrorCause> {
    cause_of_winsock(code)
}

#[cfg(not(any(unix, windows)))]
fn cause_of_code(_: i32) -> Option<ErrorCause> {
    None
}

/// Returns the cause of an error code of Windows Sockets.
#[cfg(any(windows, test))]
fn cause_of_winsock(code: i32) -> Option<ErrorCause> {
    Some(match code {
        // WSA_NOT_ENOUGH_MEMORY, WSAEMFILE, WSAENOBUFS.
        8 | 10_024 | 10_055 => ErrorCause::NoBuffers,
        // WSAEMSGSIZE.
        10_040 => ErrorCause::TooLarge,
        // WSAEDESTADDRREQ, WSAENETDOWN, WSAENETUNREACH, WSAEHOSTDOWN, WSAEHOSTUNREACH.
        10_039 | 10_050 | 10_051 | 10_064 | 10_065 => ErrorCause::Unreachable,
        // WSAENOPROTOOPT, WSAENETRESET, WSAECONNABORTED, WSAECONNRESET, WSAETIMEDOUT,
        // WSAECONNREFUSED. ICMP messages "port unreachable" and "time exceeded" are errors of the
        // next receive call.
        10_042 | 10_052 | 10_053 | 10_054 | 10_060 | 10_061 => ErrorCause::Refused,
        // ERROR_ACCESS_DENIED, WSAEACCES.
        5 | 10_013 => ErrorCause::NotPermitted,
        // WSAEADDRNOTAVAIL.
        10_049 => ErrorCause::NoAddress,
        // WSAEINVAL, WSAEOPNOTSUPP, WSAEPFNOSUPPORT, WSAEAFNOSUPPORT.
        10_022 | 10_045 | 10_046 | 10_047 => ErrorCause::Invalid,
        // WSAENOTCONN, WSAESHUTDOWN.
        10_057 | 10_058 => ErrorCause::Disconnected,
        // ERROR_INVALID_HANDLE, WSAEBADF, WSAEFAULT, WSAENOTSOCK, WSANOTINITIALISED.
        6 | 10_009 | 10_014 | 10_038 | 10_093 => ErrorCause::Closed,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
