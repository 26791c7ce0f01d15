//! Protocols that share a UDP port, distinguished by the first byte. RFC 9443, RFC 7983.

/// The protocol of a datagram on a port that QUIC shares with protocols of real-time communication.
///
/// A peer must not clear the QUIC bit on such a port (RFC 9443 §3), because its packets would then look like
/// those of other protocols. `EndpointConfig::grease_quic_bit` therefore stays off, which is its default.
///
/// The program must filter out RTP and TURN channels before it passes datagrams to an endpoint, which
/// answers a datagram that looks like a long header of an unknown version with Version Negotiation.
///
/// ```
/// use courser_wire::DatagramProtocol;
///
/// // A Binding Request of STUN, an Initial and a packet with a short header of QUIC.
/// assert_eq!(DatagramProtocol::of_first_byte(0x00), DatagramProtocol::Stun);
/// assert_eq!(DatagramProtocol::of_first_byte(0xc3), DatagramProtocol::Quic);
/// assert_eq!(DatagramProtocol::of_first_byte(0x61), DatagramProtocol::Quic);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DatagramProtocol {
    /// STUN (RFC 8489), with which ICE finds paths: 0 to 3.
    Stun,
    /// ZRTP (RFC 6189): 16 to 19.
    Zrtp,
    /// DTLS (RFC 9147): 20 to 63.
    Dtls,
    /// A channel of TURN (RFC 8656) if it comes from a TURN server, or else a short header of QUIC: 64 to
    /// 79. Clients know the addresses of their TURN servers; others receive no channels.
    TurnChannelOrQuic,
    /// QUIC: short headers from 80 to 127, long headers from 192 to 255.
    Quic,
    /// RTP or RTCP (RFC 3550): 128 to 191.
    Rtp,
    /// No protocol: 4 to 15. Such datagrams are dropped.
    Unassigned,
}

impl DatagramProtocol {
    /// Returns the protocol that a datagram with this first byte belongs to.
    pub const fn of_first_byte(byte: u8) -> Self {
        match byte {
            0..=3 => Self::Stun,
            4..=15 => Self::Unassigned,
            16..=19 => Self::Zrtp,
            20..=63 => Self::Dtls,
            64..=79 => Self::TurnChannelOrQuic,
            80..=127 | 192..=255 => Self::Quic,
            128..=191 => Self::Rtp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9443 §3: the bounds of every range.
    #[test]
    fn first_byte_determines_the_protocol() {
        use DatagramProtocol::{Dtls, Quic, Rtp, Stun, TurnChannelOrQuic, Unassigned, Zrtp};
        let ranges = [
            (0..=3, Stun),
            (4..=15, Unassigned),
            (16..=19, Zrtp),
            (20..=63, Dtls),
            (64..=79, TurnChannelOrQuic),
            (80..=127, Quic),
            (128..=191, Rtp),
            (192..=255, Quic),
        ];
        let mut next = 0;
        for (range, protocol) in ranges {
            assert_eq!(*range.start(), next, "{protocol:?}");
            for byte in range.clone() {
                assert_eq!(DatagramProtocol::of_first_byte(byte), protocol, "{byte}");
            }
            next = range.end().wrapping_add(1);
        }
        assert_eq!(next, 0, "all bytes have a protocol");
    }
}
