//! Reports of the kernel that something has changed.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use super::NetworkError;

/// Changes of interfaces, addresses and rules of the system, by any program. Routes vanish with an interface that is set
/// down, and some programs remove the rules of others.
///
/// The descriptor is readable when there is a change.
#[derive(Debug)]
pub struct Changes {
    socket: Socket,
}

impl Changes {
    /// Listens to changes from now on.
    ///
    /// # Errors
    /// Returns an error if the system refuses a socket.
    pub fn open() -> Result<Self, NetworkError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, GROUPS))?;
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|error| super::failed("listen to changes", error))?;
        Ok(Self { socket })
    }

    /// Reads the reports of changes since the last call, at most 64 at a time.
    ///
    /// # Errors
    /// Returns an error of the kind `WouldBlock` if there is none, and another one if the socket has failed.
    pub fn take(&self) -> io::Result<()> {
        let mut begin = [0_u8; 16];
        for count in 0..REPORTS {
            // What has changed is found out by those who care.
            match self.socket.recv(&mut &mut begin[..], 0) {
                Ok(_) => {}
                // Reports were lost, which is one too.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(_) if count > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsRawFd for Changes {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Interfaces, addresses and rules: the groups 1, 5, 9, 8 and 19 of rtnetlink, as bits.
const GROUPS: u32 = 1 | 1 << 4 | 1 << 8 | 1 << 7 | 1 << 18;

/// Reports that are read in a call.
const REPORTS: usize = 64;
