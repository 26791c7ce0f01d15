//! The system call `sendmsg`.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

use socket2::SockAddr;

/// Sends `contents` to `destination`, or to the connected peer for `None`, and returns the number
/// of bytes that the kernel accepted. `control` holds control messages in the layout of the kernel.
pub(super) fn sendmsg(
    socket: BorrowedFd<'_>,
    destination: Option<&SockAddr>,
    control: &[u8],
    contents: &[u8],
) -> io::Result<usize> {
    let mut slice = libc::iovec {
        iov_base: contents.as_ptr().cast_mut().cast(),
        iov_len: contents.len(),
    };
    // SAFETY: `msghdr` consists of integers and raw pointers, for which all zeroes is a value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    if let Some(name) = destination {
        message.msg_name = name.as_ptr().cast_mut().cast();
        message.msg_namelen = name.len();
    }
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    if !control.is_empty() {
        message.msg_control = control.as_ptr().cast_mut().cast();
        message.msg_controllen = control.len() as _;
    }
    // SAFETY: `socket` is open for as long as it is borrowed. Each pointer of `message` goes with
    // the length of the live borrow or local it was taken from, and all of them outlive the call.
    // The kernel only reads through them, so casting away const breaks no shared borrow.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
