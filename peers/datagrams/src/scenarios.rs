//! The scenarios, and what is reported of each.

use clap::ValueEnum;

/// A program on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// The VPN with 100 Mbit/s through the router.
    Vpn,
    /// The VPN with packets as fast as its tunnel takes them.
    VpnFull,
    /// The VPN with 10 Mbit/s over 40 ms.
    VpnFar,
    /// The VPN with 10 Mbit/s; the path becomes narrow, and the router reports it.
    VpnNarrow,
    /// The same, and the router does not report it.
    VpnSilent,
    /// The same over 40 ms.
    VpnSilentFar,
    /// Six speakers through the router.
    Voice,
    /// The same beside a stream on the same connection.
    VoiceBulk,
    /// Six speakers over 40 ms with a loss of 2 %.
    VoiceLoss,
    /// Six speakers beside a stream, on a bottleneck of 20 Mbit/s.
    VoiceBulkFar,
}

/// How the path becomes narrow in the middle of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Narrowing {
    /// The router reports packets that are too large.
    Reported,
    /// It drops them.
    Silent,
    /// The emulated link drops them.
    OfLink,
}

impl Scenario {
    pub(crate) const ALL: [Self; 10] = [
        Self::Vpn,
        Self::VpnFull,
        Self::VpnFar,
        Self::VpnNarrow,
        Self::VpnSilent,
        Self::VpnSilentFar,
        Self::Voice,
        Self::VoiceBulk,
        Self::VoiceLoss,
        Self::VoiceBulkFar,
    ];

    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Vpn => "VPN: 100 Mbit/s of 1280-byte packets, veth and router",
            Self::VpnFull => "VPN: packets as fast as the tunnel takes them, veth and router",
            Self::VpnFar => "VPN: 10 Mbit/s over 40 ms",
            Self::VpnNarrow => "VPN: 10 Mbit/s, the path narrows to 1300 bytes, with ICMP",
            Self::VpnSilent => "VPN: 10 Mbit/s, the path narrows to 1300 bytes, without ICMP",
            Self::VpnSilentFar => "VPN: the same over 40 ms, without ICMP",
            Self::Voice => "voice: 6 speakers, veth and router",
            Self::VoiceBulk => "voice: 6 speakers beside a stream, veth and router",
            Self::VoiceLoss => "voice: 6 speakers over 40 ms with 2 % of loss",
            Self::VoiceBulkFar => "voice: 6 speakers beside a stream, 20 Mbit/s and 40 ms",
        }
    }

    pub(crate) fn is_voice(self) -> bool {
        match self {
            Self::Voice | Self::VoiceBulk | Self::VoiceLoss | Self::VoiceBulkFar => true,
            Self::Vpn | Self::VpnFull | Self::VpnFar => false,
            Self::VpnNarrow | Self::VpnSilent | Self::VpnSilentFar => false,
        }
    }

    pub(crate) fn has_bulk(self) -> bool {
        matches!(self, Self::VoiceBulk | Self::VoiceBulkFar)
    }

    /// Packets of the VPN in a millisecond: 10.24 Mbit/s each.
    pub(crate) fn rate(self) -> Option<u32> {
        match self {
            Self::VpnFull => None,
            Self::Vpn => Some(10),
            _ => Some(1),
        }
    }

    /// The link in place of the kernel's routing.
    pub(crate) fn link(self) -> Option<&'static str> {
        match self {
            Self::VpnFar | Self::VpnSilentFar => Some("20ms,mtu=1500"),
            Self::VoiceLoss => Some("20ms,2%,mtu=1500"),
            Self::VoiceBulkFar => Some("20mbit,20ms,queue=100k,mtu=1500"),
            _ => None,
        }
    }

    pub(crate) fn narrowing(self) -> Option<Narrowing> {
        match self {
            Self::VpnNarrow => Some(Narrowing::Reported),
            Self::VpnSilent => Some(Narrowing::Silent),
            Self::VpnSilentFar => Some(Narrowing::OfLink),
            _ => None,
        }
    }
}
