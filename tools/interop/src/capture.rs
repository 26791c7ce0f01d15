//! Datagrams of a run as capture files for Wireshark and tshark.
//!
//! The files are in the format of libpcap with raw IP packets. The IP and UDP headers are made up from
//! the addresses of the ends; both ends have the address of the link that they sent to.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use courser_emulator::{ObservationPoint, ObservedDatagram};

/// Writes the datagrams that one end sent and received.
///
/// `places` are the two places at this end, and `server` is the address of the server.
pub(crate) fn write(
    path: &Path,
    datagrams: &[ObservedDatagram],
    places: [ObservationPoint; 2],
    server: SocketAddr,
) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&file_header())?;
    for datagram in datagrams {
        if places.contains(&datagram.place) {
            let packet = ip_packet(datagram, server);
            let length = u32::try_from(packet.len())
                .unwrap_or(u32::MAX)
                .to_le_bytes();
            let seconds = u32::try_from(datagram.at.as_secs()).unwrap_or(u32::MAX);
            file.write_all(&seconds.to_le_bytes())?;
            file.write_all(&datagram.at.subsec_micros().to_le_bytes())?;
            file.write_all(&length)?;
            file.write_all(&length)?;
            file.write_all(&packet)?;
        }
    }
    file.flush()
}

fn file_header() -> [u8; 24] {
    let mut header = [0; 24];
    header[..4].copy_from_slice(&MAGIC.to_le_bytes());
    header[4] = 2;
    header[6] = 4;
    header[16..20].copy_from_slice(&SNAP_LEN.to_le_bytes());
    header[20..].copy_from_slice(&LINKTYPE_RAW.to_le_bytes());
    header
}

/// Returns a datagram with the headers of UDP and IP.
fn ip_packet(datagram: &ObservedDatagram, server: SocketAddr) -> Vec<u8> {
    let client = match datagram.place {
        ObservationPoint::FromClient | ObservationPoint::ToClient => datagram.client,
        ObservationPoint::ToServer | ObservationPoint::FromServer => {
            datagram.translated.unwrap_or(datagram.client)
        }
    };
    let (source, destination) = match datagram.place {
        ObservationPoint::FromClient | ObservationPoint::ToServer => (client, server),
        ObservationPoint::FromServer | ObservationPoint::ToClient => (server, client),
    };
    let udp_len = u16::try_from(8 + datagram.payload.len()).unwrap_or(u16::MAX);
    let ecn = datagram.ecn.to_bits();
    let mut packet = Vec::with_capacity(48 + datagram.payload.len());
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            packet.extend([0x45, ecn]);
            packet.extend(udp_len.saturating_add(20).to_be_bytes());
            packet.extend([0, 0, 0x40, 0, HOP_LIMIT, UDP, 0, 0]);
            packet.extend(from.octets());
            packet.extend(to.octets());
            let checksum = internet_checksum(&packet);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        (from, to) => {
            // The ECN field is the low half of the traffic class, across two bytes.
            packet.extend([0x60, ecn << 4, 0, 0]);
            packet.extend(udp_len.to_be_bytes());
            packet.extend([UDP, HOP_LIMIT]);
            for ip in [from, to] {
                let ip = match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                    IpAddr::V6(ip) => ip,
                };
                packet.extend(ip.octets());
            }
        }
    }
    packet.extend(source.port().to_be_bytes());
    packet.extend(destination.port().to_be_bytes());
    packet.extend(udp_len.to_be_bytes());
    // No checksum, which captures of a host with offload lack too.
    packet.extend([0, 0]);
    packet.extend_from_slice(&datagram.payload);
    packet
}

/// The checksum of an IPv4 header. RFC 1071.
fn internet_checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

const MAGIC: u32 = 0xa1b2_c3d4;
const SNAP_LEN: u32 = 65_575;
const LINKTYPE_RAW: u32 = 101;
const UDP: u8 = 17;
const HOP_LIMIT: u8 = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use courser_base::Ecn;

    use super::*;

    fn datagram(client: &str) -> ObservedDatagram {
        ObservedDatagram {
            at: Duration::from_micros(1_000_007),
            place: ObservationPoint::FromClient,
            client: client.parse().expect("an address"),
            translated: None,
            ecn: Ecn::Ect0,
            payload: Bytes::from_static(b"abc"),
        }
    }

    #[test]
    fn packet_over_ipv4_has_valid_headers() {
        let server = "127.0.0.1:443".parse().expect("an address");
        let packet = ip_packet(&datagram("127.0.0.5:1000"), server);
        assert_eq!(packet.len(), 20 + 8 + 3);
        assert_eq!(packet[..4], [0x45, 2, 0, 31]);
        assert_eq!(internet_checksum(&packet[..20]), 0);
        assert_eq!(packet[12..20], [127, 0, 0, 5, 127, 0, 0, 1]);
        assert_eq!(packet[20..28], [0x03, 0xe8, 0x01, 0xbb, 0, 11, 0, 0]);
        assert_eq!(&packet[28..], b"abc");
    }

    #[test]
    fn packet_over_ipv6_has_its_mark_in_the_traffic_class() {
        let server = "[::1]:443".parse().expect("an address");
        let packet = ip_packet(&datagram("[::1]:1000"), server);
        assert_eq!(packet.len(), 40 + 8 + 3);
        assert_eq!(packet[..8], [0x60, 0x20, 0, 0, 0, 11, 17, 64]);
        assert_eq!((packet[23], packet[39]), (1, 1));
    }

    #[test]
    fn file_has_the_datagrams_of_its_end_only() {
        let path = std::env::temp_dir().join(format!("courser-capture-{}", std::process::id()));
        let sent = datagram("127.0.0.1:1000");
        let mut other = sent.clone();
        other.place = ObservationPoint::ToServer;
        let places = [ObservationPoint::FromClient, ObservationPoint::ToClient];
        let server = "127.0.0.1:443".parse().expect("an address");
        write(&path, &[sent, other], places, server).expect("written");
        let bytes = std::fs::read(&path).expect("a file");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(bytes.len(), 24 + 16 + 31);
        assert_eq!(
            bytes[24..40],
            [1, 0, 0, 0, 7, 0, 0, 0, 31, 0, 0, 0, 31, 0, 0, 0]
        );
    }
}
