//! Several sockets of one address and port.

use std::io;
use std::os::fd::AsFd;

use libc::c_int;

use super::{sockopt, steering};
use crate::steering::Steering;

/// Lets later sockets of the same user share the address of `socket`, if they call this before they
/// are bound.
pub(crate) fn share_port(socket: &impl AsFd) -> io::Result<()> {
    set(socket, 1)
}

/// Stops further sockets from sharing the address of `socket`. Those that share it keep it.
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
