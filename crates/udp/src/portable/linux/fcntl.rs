//! The system call `fcntl` on descriptors that another program has opened for this process.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

/// Takes over a descriptor that this process has inherited and that nothing in it uses. Programs that this process
/// starts do not inherit it.
///
/// # Errors
/// Returns the error of the system if the descriptor is not open.
pub(crate) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call reads no memory of this process. A number that is not an open descriptor is an error.
    let result = unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, or the call above had failed. The only caller adopts each descriptor that
    // was opened for this process once, before anything else in the process can know its number.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::IntoRawFd as _;

    use super::*;

    #[test]
    fn open_descriptor_is_adopted() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let adopted = UdpSocket::from(adopt(socket.into_raw_fd()).unwrap());
        assert_eq!(adopted.local_addr().unwrap(), address);
    }

    #[test]
    fn closed_descriptor_is_an_error() {
        let error = adopt(RawFd::MAX).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }
}
