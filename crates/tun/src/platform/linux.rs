//! Devices of Linux: `/dev/net/tun`, with a header of virtio before each packet.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use bytes::Bytes;

use crate::batch::{Offloads, ReadBuffer, WriteBuffer, Written};
use crate::error::OpenError;
use crate::header::{Header, Segmentation};
use crate::join::{Joiner, MAX_HEADERS, Run};
use crate::split::split;

mod ioctl;

/// A device.
#[derive(Debug)]
pub(crate) struct Device {
    file: File,
    name: String,
    offloads: Offloads,
}

impl Device {
    /// Creates a device. The system chooses the name if `wanted` is empty.
    pub(crate) fn open(wanted: &str, has_offloads: bool) -> Result<Self, OpenError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(PATH)
            .map_err(|error| refusal(error, ""))?;
        let name =
            ioctl::set_interface(file.as_fd(), wanted).map_err(|error| refusal(error, wanted))?;
        let offloads = if has_offloads {
            set_offloads(file.as_fd())?
        } else {
            ioctl::set_offload(file.as_fd(), 0)?;
            Offloads::default()
        };
        Ok(Self {
            file,
            name,
            offloads,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn offloads(&self) -> Offloads {
        self.offloads
    }

    pub(crate) fn read_many(
        &self,
        buffer: &mut ReadBuffer,
        packets: &mut Vec<Bytes>,
        limit: usize,
    ) -> io::Result<usize> {
        let before = packets.len();
        buffer.is_drained = false;
        // A device that is filled with malformed packets leaves the call too.
        for _ in 0..limit {
            if packets.len() >= limit {
                break;
            }
            let length = match (&self.file).read(&mut buffer.raw) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    buffer.is_drained = error.kind() == io::ErrorKind::WouldBlock;
                    match packets.len() > before {
                        true => break,
                        false => return Err(error),
                    }
                }
            };
            if take(&buffer.raw[..length], &mut buffer.packets, packets).is_none() {
                buffer.malformed += 1;
            }
        }
        Ok(packets.len() - before)
    }

    pub(crate) fn write_many(
        &self,
        buffer: &mut WriteBuffer,
        packets: &mut Vec<Bytes>,
    ) -> io::Result<Written> {
        let joiner = &mut buffer.joiner;
        let mut written = Written::default();
        if self.offloads.tcp {
            joiner.join(packets, self.offloads.udp);
            for run in joiner.runs() {
                match self.write_run(joiner, run, packets) {
                    // Some kernels refuse joined packets of some shapes, such as 6.6.44 those with a short last segment.
                    Err(error) if run.count > 1 && is_refused(&error) => {
                        written.calls += 1;
                        for index in joiner.members(run) {
                            let slices = [IoSlice::new(&NO_HEADER), IoSlice::new(&packets[index])];
                            written.add(1, self.write(&slices))?;
                        }
                    }
                    result => written.add(run.count, result)?,
                }
            }
        } else {
            for packet in &*packets {
                written.add(
                    1,
                    self.write(&[IoSlice::new(&NO_HEADER), IoSlice::new(packet)]),
                )?;
            }
        }
        packets.clear();
        Ok(written)
    }

    fn write_run(&self, joiner: &Joiner, run: &Run, packets: &[Bytes]) -> io::Result<()> {
        let mut members = joiner.members(run).map(|index| &*packets[index]);
        let Some(first) = members.next() else {
            return Ok(());
        };
        let mut headers = [0; MAX_HEADERS];
        let (header, length) = run.headers(first, &mut headers);
        if length == 0 {
            return self.write(&[IoSlice::new(&NO_HEADER), IoSlice::new(first)]);
        }
        let header = header.encode();
        let mut slices = Vec::with_capacity(run.count + 2);
        slices.push(IoSlice::new(&header));
        slices.push(IoSlice::new(&headers[..length]));
        slices.push(IoSlice::new(&first[length..]));
        slices.extend(members.map(|packet| IoSlice::new(&packet[length..])));
        self.write(&slices)
    }

    /// Passes a packet, whose header is the first slice.
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<()> {
        loop {
            match (&self.file).write_vectored(slices) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Written {
    /// Counts the packets of a call, or returns its error if the device is gone.
    fn add(&mut self, packets: usize, result: io::Result<()>) -> io::Result<()> {
        self.calls += 1;
        match result {
            Ok(()) => self.packets += packets,
            Err(error) if is_gone(&error) => return Err(error),
            Err(_) => self.dropped += packets,
        }
        Ok(())
    }
}

/// Appends the packets of what was read. Returns `None` if it is malformed.
fn take(raw: &[u8], buffer: &mut bytes::BytesMut, packets: &mut Vec<Bytes>) -> Option<()> {
    let (header, packet) = raw.split_first_chunk::<{ Header::LEN }>()?;
    let header = Header::decode(header)?;
    let needed = match header.segmentation {
        Segmentation::None => packet.len(),
        _ => 2 * packet.len(),
    };
    if buffer.capacity() < needed {
        // Takes back the allocation if all of its packets are gone.
        buffer.reserve(CHUNK);
    }
    split(&header, packet, buffer, packets).ok()?;
    Some(())
}

/// Sets as many offloads as the system has.
fn set_offloads(fd: BorrowedFd<'_>) -> io::Result<Offloads> {
    let mut last = Ok(Offloads::default());
    for (tcp, udp) in [(true, true), (true, false), (false, false)] {
        let mut flags = 0;
        if tcp {
            flags |= TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
        }
        if udp {
            flags |= TUN_F_USO4 | TUN_F_USO6;
        }
        let offloads = Offloads {
            checksum: tcp,
            tcp,
            udp,
        };
        match ioctl::set_offload(fd, flags) {
            Ok(()) => return Ok(offloads),
            Err(error) => last = Err(error),
        }
    }
    last
}

fn refusal(error: io::Error, name: &str) -> OpenError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => OpenError::Missing,
        Some(libc::EPERM | libc::EACCES) => OpenError::NotPermitted,
        // EINVAL: an interface of this name is no TUN device.
        Some(libc::EBUSY | libc::EINVAL) if !name.is_empty() => OpenError::Taken(name.to_owned()),
        _ => OpenError::System(error),
    }
}

/// The descriptor of an interface that was removed is in a bad state.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBADFD)
}

/// The system takes no packet of this form.
fn is_refused(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}

const PATH: &str = "/dev/net/tun";

/// The header of a packet that stands for itself.
const NO_HEADER: [u8; Header::LEN] = [0; Header::LEN];

/// Bytes that are allocated for packets at a time: a few super-packets.
const CHUNK: usize = 256 * 1024;

const TUN_F_CSUM: u32 = 0x01;
const TUN_F_TSO4: u32 = 0x02;
const TUN_F_TSO6: u32 = 0x04;
const TUN_F_TSO_ECN: u32 = 0x08;
/// Linux 6.2.
const TUN_F_USO4: u32 = 0x20;
/// Linux 6.2.
const TUN_F_USO6: u32 = 0x40;

#[cfg(test)]
mod tests;
