//! Several sockets of one address and port.

use std::io;
use std::os::fd::AsFd;

use libc::c_int;

use super::{sockopt, steering};
use crate::steering::Steering;

/// Lets later sockets of the same user that call this before they are bound have the address of
/// `socket`.
pub(crate) fn share_port(socket: &impl AsFd) -> io::Result<()> {
    set(socket, 1)
}

/// Lets no further socket have the address of `socket`. Those that have it keep it.
pub(crate) fn unshare_port(socket: &impl AsFd) -> io::Result<()> {
    set(socket, 0)
}

fn set(socket: &impl AsFd, value: c_int) -> io::Result<()> {
    let option = (libc::SOL_SOCKET, libc::SO_REUSEPORT);
    sockopt::set(socket.as_fd(), option, value)
}

/// Makes the kernel choose the socket of each datagram by its connection ID.
pub(crate) fn steer(socket: &impl AsFd, rule: Steering, sockets: u16) -> io::Result<()> {
    steering::attach(socket.as_fd(), rule, sockets)
}
