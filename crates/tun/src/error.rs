//! Errors of opening a device.

use std::io;

/// A device that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The name is empty, too long, or has characters that names of interfaces cannot have.
    #[error(
        "'{0}' is no name of an interface: use 1 to 15 characters without '/', ':' and spaces, such as courser0"
    )]
    Name(String),
    /// The system has no TUN devices.
    #[error(
        "/dev/net/tun does not exist: load the module with 'modprobe tun', or give the device to the container \
         (--device /dev/net/tun)"
    )]
    Missing,
    /// The process may not create devices.
    #[error(
        "this process may not create a TUN device: run it as root, or give it the capability CAP_NET_ADMIN \
         (setcap cap_net_admin+ep FILE, or --cap-add NET_ADMIN for a container)"
    )]
    NotPermitted,
    /// Another program has a device of this name.
    #[error("the interface {0} is in use by another program: choose another name")]
    Taken(String),
    /// TUN devices exist here on Linux only.
    #[error("this system has no TUN devices that courser can use: it supports those of Linux")]
    Unsupported,
    /// Another error of the system.
    #[error("cannot open a TUN device: {0}")]
    System(#[from] io::Error),
}
