//! The system call `ioctl` on descriptors of `/dev/net/tun`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// `struct ifreq` as TUNSETIFF reads it: a name that ends with a zero, and flags in a union of 24 bytes.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: i16,
    rest: [u8; 22],
}

/// Creates the interface of a descriptor: IP packets, each behind a header of virtio. Returns its name, which the system
/// chooses if it is empty.
pub(super) fn set_interface(fd: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        flags: (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16,
        rest: [0; 22],
    };
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the descriptor is open while it is borrowed. TUNSETIFF reads and writes one `struct ifreq`, which has at most
    // 40 bytes on all architectures and the layout of `InterfaceRequest`; the pointer is to such a value that nothing else
    // uses meanwhile.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let end = request.name.iter().position(|byte| *byte == 0);
    let name = &request.name[..end.unwrap_or(request.name.len())];
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Sets the offloads of the interface, `TUN_F_*`.
pub(super) fn set_offload(fd: BorrowedFd<'_>, flags: u32) -> io::Result<()> {
    // SAFETY: the descriptor is open while it is borrowed, and TUNSETOFFLOAD takes a number, not a pointer.
    let result = unsafe {
        libc::ioctl(
            fd.as_raw_fd(),
            libc::TUNSETOFFLOAD as _,
            libc::c_ulong::from(flags),
        )
    };
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn other_descriptors_are_refused() {
        let file = File::open("/dev/null").unwrap();
        let error = set_interface(file.as_fd(), "courser").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        let error = set_offload(file.as_fd(), 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn names_without_room_for_their_end_are_refused() {
        let file = File::open("/dev/null").unwrap();
        let error = set_interface(file.as_fd(), "sixteen-letters-").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
