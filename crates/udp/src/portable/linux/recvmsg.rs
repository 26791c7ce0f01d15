//! The system call `recvmsg`.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use socket2::{SockAddr, SockAddrStorage};

use super::cmsg::ControlBuffer;

/// The result of one call.
pub(super) struct Filled {
    pub(super) len: usize,
    pub(super) flags: libc::c_int,
    pub(super) peer: Option<SocketAddr>,
}

/// Receives into `buffer` and replaces the contents of `control` with the control messages. `flags`
/// are those of the call: none for datagrams, MSG_ERRQUEUE for errors of datagrams that were sent.
pub(super) fn recvmsg(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    control: &mut ControlBuffer,
    flags: libc::c_int,
) -> io::Result<Filled> {
    let mut name = SockAddrStorage::zeroed();
    let name_len = name.size_of();
    let mut slice = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let room = control.room();
    // SAFETY: `msghdr` consists of integers and raw pointers, for which all zeroes is a value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = name_len;
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = room.as_mut_ptr().cast();
    message.msg_controllen = room.len() as _;
    // SAFETY: `socket` is open for as long as it is borrowed. Each pointer of `message` goes with
    // the length of the exclusive borrow or local it was taken from; all of them outlive the call
    // and are plain bytes to which any value may be written.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    let (flags, filled, name_len) = (
        message.msg_flags,
        message.msg_controllen as usize,
        message.msg_namelen.min(name_len),
    );
    control.set_filled(filled);
    // SAFETY: the kernel wrote an address of `name_len` bytes, no more than there is room, into
    // storage that was all zeroes before, so every byte of it is initialised.
    let name = unsafe { SockAddr::new(name, name_len) };
    Ok(Filled {
        len,
        flags,
        peer: name.as_socket(),
    })
}
