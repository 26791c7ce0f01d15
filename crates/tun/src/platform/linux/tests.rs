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

/// Fault F178.
#[test]
fn joined_packets_that_the_system_refuses_are_passed_one_by_one() {
    let packet = |number: u32| {
        let builder = etherparse::PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64);
        let builder = builder.tcp(1000, 443, number * 500, 1000).ack(1);
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &[7; 500]).unwrap();
        // Packets that must not be fragmented have any identification.
        bytes[6] = 0x40;
        bytes[10..12].fill(0);
        let sum = crate::checksum::finish(crate::checksum::sum(&bytes[..20]));
        bytes[10..12].copy_from_slice(&sum);
        Bytes::from(bytes)
    };
    // A file that answers each write with EINVAL.
    let device = device_of("/proc/self/oom_score_adj", true);
    let mut packets: Vec<_> = (0..3).map(packet).collect();
    let mut joiner = Joiner::default();
    joiner.join(&packets, true);
    assert_eq!(joiner.runs().len(), 1);
    let written = device
        .write_many(&mut WriteBuffer::new(), &mut packets)
        .unwrap();
    assert_eq!((written.packets, written.dropped, written.calls), (0, 3, 4));
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
