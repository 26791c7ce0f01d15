//! A TUN device.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use bytes::Bytes;

use crate::batch::{Offloads, ReadBuffer, WriteBuffer, Written};
use crate::error::OpenError;
use crate::platform;

/// A TUN device, which is removed from the system when it is dropped.
///
/// Packets have neither a link header nor a checksum offload: each one is whole. All methods take `&self`, and one thread
/// may read while another one writes.
///
/// ```no_run
/// use courser_tun::{Device, ReadBuffer, WriteBuffer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::builder().name("courser0").open()?;
/// println!("{} with {:?}", device.name(), device.offloads());
/// let (mut read, mut write) = (ReadBuffer::new(), WriteBuffer::new());
/// let mut packets = Vec::new();
/// // Returns an error of the kind `WouldBlock` if nothing is there: wait until the descriptor is readable.
/// device.read_many(&mut read, &mut packets, 256)?;
/// // Sends them back to where they came from.
/// device.write_many(&mut write, &mut packets)?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Device {
    inner: platform::Device,
}

/// The settings of a [`Device`].
#[derive(Clone, Debug)]
#[must_use = "no device exists until `open`"]
pub struct DeviceBuilder {
    name: Option<String>,
    has_offloads: bool,
}

impl Device {
    /// Begins a device with settings of its own.
    pub const fn builder() -> DeviceBuilder {
        DeviceBuilder {
            name: None,
            has_offloads: true,
        }
    }

    /// Returns the name of the interface.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Returns the offloads.
    pub const fn offloads(&self) -> Offloads {
        self.inner.offloads()
    }

    /// Appends packets that the system sends, until none is left or `packets` has `limit` of them. Returns the number of
    /// new ones. The last super-packet is never cut, so that there can be up to [`MAX_SEGMENTS`](crate::MAX_SEGMENTS) - 1
    /// more.
    ///
    /// # Errors
    /// Returns an error of the kind `WouldBlock` if there are none, and another one if the device is gone:
    /// [`is_gone`](Self::is_gone) tells.
    pub fn read_many(
        &self,
        buffer: &mut ReadBuffer,
        packets: &mut Vec<Bytes>,
        limit: usize,
    ) -> io::Result<usize> {
        self.inner.read_many(buffer, packets, limit)
    }

    /// Passes packets to the system, which receives them from the interface, and clears `packets`. Runs of one flow are
    /// passed as one.
    ///
    /// Packets that the system refuses are dropped and counted, as a network drops them.
    ///
    /// # Errors
    /// Returns an error if the device is gone.
    pub fn write_many(
        &self,
        buffer: &mut WriteBuffer,
        packets: &mut Vec<Bytes>,
    ) -> io::Result<Written> {
        self.inner.write_many(buffer, packets)
    }

    /// Returns true for the error of a device that was removed from the system, so that it never works again.
    pub fn is_gone(error: &io::Error) -> bool {
        platform::is_gone(error)
    }
}

#[cfg(target_os = "linux")]
impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

#[cfg(target_os = "linux")]
impl AsRawFd for Device {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_fd().as_raw_fd()
    }
}

impl DeviceBuilder {
    /// Sets the name of the interface, at most 15 characters. The system chooses one by default, such as `tun0`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Leaves segmentation and checksums to the system, so that each call reads and writes one packet.
    pub const fn without_offloads(mut self) -> Self {
        self.has_offloads = false;
        self
    }

    /// Creates the device. The interface is down, and has no address.
    ///
    /// # Errors
    /// Returns an error if the name is invalid or taken, this process lacks the privilege, or the system has no TUN
    /// devices.
    pub fn open(self) -> Result<Device, OpenError> {
        if let Some(name) = &self.name
            && !is_name(name)
        {
            return Err(OpenError::Name(name.clone()));
        }
        let inner = platform::Device::open(self.name.as_deref().unwrap_or(""), self.has_offloads)?;
        Ok(Device { inner })
    }
}

/// Returns true for a name that interfaces can have. A pattern such as `tun%d` would be filled in by the system.
fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name != "."
        && name != ".."
        && name
            .bytes()
            .all(|it| it.is_ascii_graphic() && !b"/:%".contains(&it))
}

/// `IFNAMSIZ`, without the zero at the end.
const MAX_NAME: usize = 15;

#[cfg(test)]
mod tests;
