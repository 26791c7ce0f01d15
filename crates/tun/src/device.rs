//! A TUN device.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use bytes::{Bytes, BytesMut};

use crate::MAX_PACKET;
use crate::error::OpenError;
use crate::header::Header;
use crate::join::Joiner;
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

/// The offloads of a device, which are those that the system has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// The system leaves checksums to this crate.
    pub checksum: bool,
    /// Segments of TCP come as super-packets of up to 64 KiB.
    pub tcp: bool,
    /// Datagrams of UDP that a program sent with one call come as super-packets, and runs of them are taken (Linux 6.2).
    pub udp: bool,
}

/// The settings of a [`Device`].
#[derive(Clone, Debug)]
#[must_use = "no device exists until `open`"]
pub struct DeviceBuilder {
    pub(crate) name: Option<String>,
    pub(crate) has_offloads: bool,
}

/// The buffer of a reader, which its packets share. Keep it between calls.
#[derive(Debug)]
pub struct ReadBuffer {
    /// A packet as the system writes it, with its header.
    pub(crate) raw: Box<[u8]>,
    /// The rest of the allocation for packets.
    pub(crate) packets: BytesMut,
    /// Packets that contradicted their header.
    pub(crate) malformed: u64,
}

/// The memory of a writer. Keep it between calls.
#[derive(Debug, Default)]
pub struct WriteBuffer {
    pub(crate) joiner: Joiner,
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Packets that the system took.
    pub packets: usize,
    /// System calls for them.
    pub calls: usize,
    /// Packets that the system refused: malformed ones, all while the interface is down, and those without memory.
    pub dropped: usize,
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
        let inner = platform::Device::open(&self)?;
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

impl ReadBuffer {
    /// Allocates a buffer, some 64 KiB.
    pub fn new() -> Self {
        Self {
            raw: vec![0; Header::LEN + MAX_PACKET].into_boxed_slice(),
            packets: BytesMut::new(),
            malformed: 0,
        }
    }

    /// Returns the number of packets that were dropped because they contradicted their header.
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl Default for ReadBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl WriteBuffer {
    /// Returns an empty buffer, which grows with the first write.
    pub fn new() -> Self {
        Self::default()
    }
}

/// `IFNAMSIZ`, without the zero at the end.
const MAX_NAME: usize = 15;

#[cfg(test)]
mod tests;
