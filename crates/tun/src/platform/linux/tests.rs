use std::fs::File;
use std::io;

use super::*;

#[test]
fn refusals_of_the_system_are_told_apart() {
    let refused = |code, name| refusal(io::Error::from_raw_os_error(code), name);
    assert!(matches!(refused(libc::ENOENT, ""), OpenError::Missing));
    assert!(matches!(refused(libc::EPERM, "a"), OpenError::NotPermitted));
    assert!(matches!(refused(libc::EBUSY, "a"), OpenError::Taken(name) if name == "a"));
    assert!(matches!(refused(libc::ENOMEM, "a"), OpenError::System(_)));
}

/// Writes to a file fail as those to a device do.
fn device_of(path: &str, tcp: bool) -> Device {
    Device {
        file: OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap(),
        name: "test".to_owned(),
        offloads: Offloads {
            checksum: tcp,
            tcp,
            udp: tcp,
        },
    }
}

#[test]
fn packets_that_the_system_refuses_are_dropped_and_counted() {
    for tcp in [false, true] {
        // ENOSPC stands for ENOBUFS, ENOMEM and EIO.
        let device = device_of("/dev/full", tcp);
        let mut packets = vec![Bytes::from_static(b"abc"); 3];
        let written = device
            .write_many(&mut WriteBuffer::new(), &mut packets)
            .unwrap();
        assert_eq!((written.packets, written.dropped, written.calls), (0, 3, 3));
        assert!(packets.is_empty());
    }
}

#[test]
fn device_that_was_removed_is_an_error() {
    let error = || Err(io::Error::from_raw_os_error(libc::EBADFD));
    let mut written = Written::default();
    let error = written.add(1, error()).unwrap_err();
    assert!(is_gone(&error));
    assert!(!is_gone(&io::Error::from_raw_os_error(libc::EIO)));
}

#[test]
fn malformed_packets_are_counted_and_do_not_hold_a_reader() {
    // Zeros: a header, and a packet without a version. Read as a single packet.
    let device = device_of("/dev/zero", true);
    let mut buffer = ReadBuffer::new();
    let mut packets = Vec::new();
    assert_eq!(device.read_many(&mut buffer, &mut packets, 2).unwrap(), 2);
    assert_eq!(packets[0].len(), crate::MAX_PACKET);
    let file = File::open("/dev/null").unwrap();
    let empty = Device { file, ..device };
    packets.clear();
    assert_eq!(empty.read_many(&mut buffer, &mut packets, 5).unwrap(), 0);
    assert_eq!(buffer.malformed(), 5);
}
