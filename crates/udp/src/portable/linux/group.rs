//! Several sockets of one address and port.

use std::io;
use std::os::fd::AsFd;

use super::{sockopt, steering};
use crate::steering::Steering;

/// Lets later sockets of the same user that call this before they are bound have the address of
/// `socket`.
pub(crate) fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    sockopt::set(socket.as_fd(), (libc::SOL_SOCKET, libc::SO_REUSEPORT), 1)
}

/// Has the kernel choose a socket for each datagram by its connection ID.
pub(crate) fn steer(socket: &impl AsFd, rule: Steering, sockets: u16) -> io::Result<()> {
    steering::attach(socket.as_fd(), rule, sockets)
}
