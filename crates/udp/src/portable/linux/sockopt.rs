//! The system calls `setsockopt` and `getsockopt`.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, socklen_t};

/// A socket option: its level and name.
pub(super) type SocketOption = (c_int, c_int);

/// Sets an integer option.
pub(super) fn set(socket: BorrowedFd<'_>, option: SocketOption, value: c_int) -> io::Result<()> {
    let (level, name) = option;
    // SAFETY: `socket` is open for as long as it is borrowed; the kernel reads as many bytes as
    // the integer behind the pointer has, and that lives until the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            mem::size_of::<c_int>() as socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Sets the filter that chooses a socket for each datagram, for all sockets of the group that `socket`
/// belongs to.
pub(super) fn attach_reuseport_filter(
    socket: BorrowedFd<'_>,
    filter: &[libc::sock_filter],
) -> io::Result<()> {
    let len = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog {
        len,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: `socket` is open for as long as it is borrowed; the kernel copies the program of the
    // given size and the `len` instructions that it points to, all of which live until the call
    // returns, and writes to none of them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            mem::size_of::<libc::sock_fprog>() as socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads an integer option.
pub(super) fn get(socket: BorrowedFd<'_>, option: SocketOption) -> io::Result<c_int> {
    let mut value = [0];
    get_array(socket, option, &mut value)?;
    Ok(value[0])
}

/// Returns the number of buffers of received datagrams that the kernel dropped.
pub(super) fn dropped(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut memory = [0; DROPS + 1];
    match get_array(socket, (libc::SOL_SOCKET, libc::SO_MEMINFO), &mut memory)? {
        len if len > DROPS => Ok(memory[DROPS].cast_unsigned()),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Fills `values` and returns the number of values that the kernel wrote.
fn get_array<const N: usize>(
    socket: BorrowedFd<'_>,
    option: SocketOption,
    values: &mut [c_int; N],
) -> io::Result<usize> {
    let (level, name) = option;
    let mut len = mem::size_of_val(values) as socklen_t;
    // SAFETY: `socket` is open for as long as it is borrowed; the kernel writes at most `len`
    // bytes through the first pointer, which is the size of the exclusive borrow behind it, and
    // any bytes are valid integers; the second points to a live local.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            values.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result == 0 {
        Ok(len as usize / mem::size_of::<c_int>())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Index of the drops in the kernel's list of socket memory figures (`SK_MEMINFO_DROPS`).
const DROPS: usize = 8;

#[cfg(test)]
mod tests;
