//! Explicit Congestion Notification (ECN): the two bits of the IP header and the counts that peers
//! report.

/// The ECN codepoint of an IP packet. RFC 3168 §5.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not-ECT: the sender does not support ECN.
    #[default]
    NotEct = 0b00,
    /// ECT(1): the sender requests L4S treatment (RFC 9331).
    Ect1 = 0b01,
    /// ECT(0): the sender supports ECN (RFC 3168).
    Ect0 = 0b10,
    /// CE: a router on the path experiences congestion.
    Ce = 0b11,
}

impl Ecn {
    /// Reads the codepoint from the low two bits of a TOS or traffic-class byte.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            0b11 => Self::Ce,
            _ => Self::NotEct,
        }
    }

    /// Returns the two bits as they appear in the IP header.
    pub const fn to_bits(self) -> u8 {
        self as u8
    }
}

/// Numbers of packets that arrived with each mark. RFC 9000 §13.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnCounts {
    /// Number of packets marked ECT(0).
    pub ect0: u64,
    /// Number of packets marked ECT(1).
    pub ect1: u64,
    /// Number of packets marked CE.
    pub ce: u64,
}

impl EcnCounts {
    /// Counts one received packet. Packets that are not ECN-capable are not counted.
    pub fn count(&mut self, mark: Ecn) {
        match mark {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.ect0 += 1,
            Ecn::Ect1 => self.ect1 += 1,
            Ecn::Ce => self.ce += 1,
        }
    }

    /// Returns true if no marked packet was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
