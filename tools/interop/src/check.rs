//! The checks of the runner on what both ends sent.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use courser_base::{Ecn, Side};
use courser_emulator::{ObservationPoint, ObservedDatagram};
use courser_wire::{ConnectionId, PacketKind, VERSION_1, VERSION_2};

use crate::case::{Case, Check};
use crate::trace::{SeenPacket, Trace};

/// The datagrams of a run that the link received, and the packets in them.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) datagrams: Vec<ObservedDatagram>,
    pub(crate) trace: Trace,
    /// True if a key log has the secrets of the handshakes.
    pub(crate) has_keys: bool,
}

/// The reason why a run fails its check.
type Failed = String;

impl Evidence {
    /// Checks a run. Returns the rate of the download in kbit/s if the case measures it.
    pub(crate) fn check(&self, case: &Case) -> Result<Option<f64>, Failed> {
        if case.check == Check::Version2 {
            return self.check_version_2().map(|()| None);
        }
        self.check_version()?;
        if needs_keys(case.check) && !self.has_keys {
            return Err("no key log with the secrets of the handshake".to_owned());
        }
        self.check_handshakes(match case.check {
            Check::Handshakes(count) => count,
            Check::Resumption | Check::ZeroRtt => 2,
            _ if case.has_competitor => 2,
            _ => 1,
        })?;
        match case.check {
            Check::NoRetry => self.check_no_retry(),
            Check::RepeatedClientHello => self.check_repeated_client_hello(),
            Check::RaisedLimits => self.check_raised_limits(),
            Check::ChaCha20Only => self.check_chacha20(),
            Check::StreamLimit => self.check_stream_limit(),
            Check::Retry => self.check_retry(),
            Check::Resumption => self.check_resumption(),
            Check::ZeroRtt => self.check_zero_rtt(),
            Check::KeyUpdate => self.check_key_update(),
            Check::Ecn => self.check_ecn(),
            Check::Amplification => self.check_amplification(),
            Check::Ipv6 => self.check_ipv6(),
            Check::VersionNegotiation => self.check_version_negotiation(),
            Check::Ports => self.check_paths(),
            Check::Addresses => self.check_addresses().and_then(|()| self.check_paths()),
            Check::Migration => self.check_migration(),
            Check::Goodput => return self.goodput(case).map(Some),
            Check::Handshakes(_) | Check::Version2 => Ok(()),
        }?;
        Ok(None)
    }

    fn check_version(&self) -> Result<(), Failed> {
        let initials = self.trace.of_kind(Side::Server, PacketKind::Initial);
        let versions: BTreeSet<u32> = initials.map(|packet| packet.version).collect();
        if versions == BTreeSet::from([VERSION_1]) {
            return Ok(());
        }
        Err(format!(
            "the server's Initial packets have the versions {versions:x?}"
        ))
    }

    /// Counts handshakes by the Source Connection IDs of the server's Initial packets.
    fn check_handshakes(&self, expected: usize) -> Result<(), Failed> {
        let initials = self.trace.of_kind(Side::Server, PacketKind::Initial);
        let ids: BTreeSet<ConnectionId> = initials.map(|packet| packet.source).collect();
        expect(ids.len() == expected, || {
            format!("{} handshakes instead of {expected}", ids.len())
        })
    }

    fn check_no_retry(&self) -> Result<(), Failed> {
        let mut retries = self.trace.of_kind(Side::Server, PacketKind::Retry);
        expect(retries.next().is_none(), || {
            "the server sent a Retry".to_owned()
        })
    }

    fn check_repeated_client_hello(&self) -> Result<(), Failed> {
        let initials = self.trace.of_kind(Side::Client, PacketKind::Initial);
        let contents = initials.filter_map(|packet| packet.contents.as_ref());
        let starts = |contents: &&crate::trace::Contents| {
            contents.crypto.iter().any(|(offset, _)| *offset == 0)
        };
        let count = contents.filter(starts).count();
        expect(count >= 2, || {
            format!("{count} ClientHello messages, not repeated")
        })
    }

    fn check_raised_limits(&self) -> Result<(), Failed> {
        if !self.has_keys {
            return Ok(());
        }
        let mut packets = self.trace.of_kind(Side::Client, PacketKind::OneRtt);
        let is_raised = packets.any(|packet| {
            packet
                .contents
                .as_ref()
                .is_some_and(|contents| contents.raises_data_limit)
        });
        expect(is_raised, || {
            "the client raised no limit on data".to_owned()
        })
    }

    fn check_chacha20(&self) -> Result<(), Failed> {
        let is_suite = |suite: &u16| *suite != RENEGOTIATION_SIGNAL;
        let offered: Vec<Vec<u16>> = self
            .trace
            .connections()
            .map(|facts| {
                let suites = facts.offered_suites.iter().copied();
                suites.filter(is_suite).collect()
            })
            .collect();
        expect(offered == [[CHACHA20]], || {
            format!("the client offered the suites {offered:x?}")
        })
    }

    fn check_stream_limit(&self) -> Result<(), Failed> {
        let limit = self
            .trace
            .connections()
            .find_map(|facts| facts.server_max_streams_bidi);
        let limit = limit.ok_or("the server's stream limit was not found")?;
        expect(limit <= 1000, || {
            format!("the server allows {limit} streams at the start")
        })
    }

    fn check_retry(&self) -> Result<(), Failed> {
        let retries = self.trace.of_kind(Side::Server, PacketKind::Retry);
        let tokens: Vec<&Vec<u8>> = retries.map(|packet| &packet.token).collect();
        expect(!tokens.is_empty(), || "the server sent no Retry".to_owned())?;
        let mut highest_before = None;
        for packet in self.trace.of_kind(Side::Client, PacketKind::Initial) {
            let number = packet.contents.as_ref().map(|contents| contents.number);
            if packet.token.is_empty() {
                highest_before = highest_before.max(number);
            } else if number <= highest_before {
                return Err("the client reset the packet number after the Retry".to_owned());
            } else if tokens.contains(&&packet.token) {
                return Ok(());
            }
        }
        Err("no Initial packet has the token of the Retry".to_owned())
    }

    fn check_resumption(&self) -> Result<(), Failed> {
        let certificates: Vec<bool> = self
            .trace
            .connections()
            .map(|facts| facts.has_certificate)
            .collect();
        match certificates[..] {
            [true, false] => Ok(()),
            [_, true] => Err("the server sent a certificate in the second handshake".to_owned()),
            _ => Err(format!("certificates by connection: {certificates:?}")),
        }
    }

    fn check_zero_rtt(&self) -> Result<(), Failed> {
        let bytes = |kind| -> usize {
            self.trace
                .of_kind(Side::Client, kind)
                .map(|packet| packet.len)
                .sum()
        };
        let (early, later) = (bytes(PacketKind::ZeroRtt), bytes(PacketKind::OneRtt));
        expect(early > 0, || "the client sent no 0-RTT packet".to_owned())?;
        expect(later <= MAX_LATER_BYTES, || {
            format!("the client sent {later} bytes in 1-RTT packets")
        })
    }

    fn check_key_update(&self) -> Result<(), Failed> {
        for side in [Side::Client, Side::Server] {
            let mut packets = self.trace.of_kind(side, PacketKind::OneRtt);
            let is_updated = packets.any(|packet| {
                packet
                    .contents
                    .as_ref()
                    .is_some_and(|contents| contents.key_phase)
            });
            expect(is_updated, || {
                format!("{} sent no packet with key phase 1", name(side))
            })?;
        }
        Ok(())
    }

    fn check_ecn(&self) -> Result<(), Failed> {
        for (side, place) in [
            (Side::Client, ObservationPoint::FromClient),
            (Side::Server, ObservationPoint::FromServer),
        ] {
            let sent = self
                .datagrams
                .iter()
                .filter(|datagram| datagram.place == place);
            let marks: Vec<Ecn> = sent.map(|datagram| datagram.ecn).collect();
            let is_capable = |mark: &Ecn| matches!(mark, Ecn::Ect0 | Ecn::Ect1);
            expect(!marks.contains(&Ecn::Ce), || {
                format!("{} sent CE", name(side))
            })?;
            expect(marks.iter().any(is_capable), || {
                format!("{} marked no packet with ECT", name(side))
            })?;
            let mut packets = self.trace.sent_by(side);
            let has_counts = packets.any(|packet| {
                packet
                    .contents
                    .as_ref()
                    .is_some_and(|contents| contents.has_ack_with_ecn)
            });
            expect(has_counts, || {
                format!("{} sent no ACK with ECN counts", name(side))
            })?;
        }
        Ok(())
    }

    fn check_amplification(&self) -> Result<(), Failed> {
        let lens = self
            .trace
            .connections()
            .map(|facts| facts.server_crypto_len);
        let longest = lens.max().unwrap_or(0);
        expect(longest >= LONG_CHAIN, || {
            format!("the server sent {longest} bytes in CRYPTO frames, not the long chain")
        })?;
        self.within_three_times()
    }

    /// Compares the bytes of the server with those that reached it, until a Handshake packet reaches it.
    fn within_three_times(&self) -> Result<(), Failed> {
        let has_handshake = self.datagrams_with(Side::Client, PacketKind::Handshake);
        let (mut received, mut sent) = (0, 0);
        // The payload of a datagram is the same at both ends of this link.
        for datagram in &self.datagrams {
            match datagram.place {
                ObservationPoint::ToServer => {
                    if has_handshake
                        .iter()
                        .any(|payload| *payload == datagram.payload)
                    {
                        return Ok(());
                    }
                    received += datagram.payload.len();
                }
                ObservationPoint::FromServer => {
                    sent += datagram.payload.len();
                    expect(sent <= 3 * received, || {
                        format!("the server sent {sent} bytes after {received} bytes of the client")
                    })?;
                }
                ObservationPoint::FromClient | ObservationPoint::ToClient => {}
            }
        }
        Err("no Handshake packet of the client reached the server".to_owned())
    }

    /// Returns the payloads of the datagrams with a packet of this kind.
    fn datagrams_with(&self, from: Side, kind: PacketKind) -> Vec<&[u8]> {
        let packets = self.trace.of_kind(from, kind);
        packets
            .map(|packet| &self.datagrams[packet.datagram].payload[..])
            .collect()
    }

    fn check_ipv6(&self) -> Result<(), Failed> {
        let is_ipv6 = self
            .datagrams
            .iter()
            .all(|datagram| datagram.client.is_ipv6());
        expect(is_ipv6, || "there were IPv4 packets".to_owned())
    }

    fn check_version_2(&self) -> Result<(), Failed> {
        let versions = |from, kind| -> BTreeSet<u32> {
            self.trace
                .of_kind(from, kind)
                .map(|packet| packet.version)
                .collect()
        };
        let first = versions(Side::Client, PacketKind::Initial);
        expect(first.contains(&VERSION_1), || {
            format!("the client's Initial packets have the versions {first:x?}")
        })?;
        let answer = versions(Side::Server, PacketKind::Initial);
        expect(answer.contains(&VERSION_2), || {
            format!("the server's Initial packets have the versions {answer:x?}")
        })?;
        for side in [Side::Client, Side::Server] {
            let handshake = versions(side, PacketKind::Handshake);
            expect(handshake == BTreeSet::from([VERSION_2]), || {
                format!(
                    "{} has Handshake packets with the versions {handshake:x?}",
                    name(side)
                )
            })?;
        }
        Ok(())
    }

    /// Compares the IDs of the first Version Negotiation packet with those of the client's first flight
    /// (RFC 9000 §17.2.1).
    fn check_version_negotiation(&self) -> Result<(), Failed> {
        let mut answers = self
            .trace
            .of_kind(Side::Server, PacketKind::VersionNegotiation);
        let answer = answers.next();
        let answer = answer.ok_or("the server sent no Version Negotiation packet")?;
        let mut initials = self.trace.of_kind(Side::Client, PacketKind::Initial);
        let first = initials.next().ok_or("the client sent no Initial packet")?;
        expect(first.version != VERSION_1, || {
            "the client began with version 1".to_owned()
        })?;
        let ids = (answer.source, answer.destination);
        expect(ids == (first.destination, first.source), || {
            format!("the Version Negotiation packet has the IDs {ids:?}")
        })
    }

    /// Returns the packets of the server with the path on which each was sent.
    fn server_packets(&self) -> impl Iterator<Item = (SocketAddr, &SeenPacket)> {
        self.trace.sent_by(Side::Server).filter_map(|packet| {
            let datagram = self.datagrams.get(packet.datagram)?;
            Some((datagram.translated?, packet))
        })
    }

    fn check_paths(&self) -> Result<(), Failed> {
        let answered_until = self
            .client_close()
            .map(|at| at.saturating_sub(TIME_TO_ANSWER));
        let mut paths: Vec<SocketAddr> = Vec::new();
        let mut challenges = BTreeSet::new();
        for (path, packet) in self.server_packets() {
            if paths.contains(&path) {
                continue;
            }
            if !paths.is_empty() {
                let sent = packet
                    .contents
                    .as_ref()
                    .map(|contents| &contents.challenges);
                let sent = sent.filter(|challenges| !challenges.is_empty());
                let sent = sent
                    .ok_or_else(|| format!("the first packet to {path} has no PATH_CHALLENGE"))?;
                let at = self.datagrams[packet.datagram].at;
                if answered_until.is_none_or(|until| at <= until) {
                    challenges.extend(sent.iter().copied());
                }
            }
            paths.push(path);
        }
        expect(paths.len() > 1, || {
            "the server saw one path only".to_owned()
        })?;
        let packets = self.trace.sent_by(Side::Client);
        let contents = packets.filter_map(|packet| packet.contents.as_ref());
        let responses: BTreeSet<[u8; 8]> = contents
            .flat_map(|contents| contents.responses.iter().copied())
            .collect();
        let open = challenges.difference(&responses).count();
        expect(open == 0, || {
            format!("{open} PATH_CHALLENGE frames were not answered")
        })
    }

    /// Returns the time at which the client closed its connection.
    fn client_close(&self) -> Option<Duration> {
        let mut packets = self.trace.sent_by(Side::Client);
        let close = packets.find(|packet| {
            let contents = packet.contents.as_ref();
            contents.is_some_and(|contents| contents.close.is_some())
        })?;
        Some(self.datagrams[close.datagram].at)
    }

    fn check_addresses(&self) -> Result<(), Failed> {
        let ips: BTreeSet<_> = self.server_packets().map(|(path, _)| path.ip()).collect();
        expect(ips.len() > 1, || {
            "the server saw one address only".to_owned()
        })
    }

    fn check_migration(&self) -> Result<(), Failed> {
        self.check_paths()?;
        let mut ids: Vec<(SocketAddr, ConnectionId)> = Vec::new();
        for packet in self.trace.of_kind(Side::Client, PacketKind::OneRtt) {
            let Some(path) = self.datagrams[packet.datagram].translated else {
                continue;
            };
            let is_known = ids.iter().any(|(known, _)| *known == path);
            let mut others = ids.iter().filter(|(known, _)| *known != path);
            if !is_known && others.any(|(_, id)| *id == packet.destination) {
                return Err("the first packet on the new path has the previous ID".to_owned());
            }
            ids.push((path, packet.destination));
        }
        Ok(())
    }

    /// Returns the rate between the first and the last 1-RTT packet that reached the client.
    fn goodput(&self, case: &Case) -> Result<f64, Failed> {
        let client = self.datagrams.first().map(|datagram| datagram.client);
        let times = self.datagrams.iter().filter(|datagram| {
            let is_short = datagram
                .payload
                .first()
                .is_some_and(|first| first & 0x80 == 0);
            datagram.place == ObservationPoint::ToClient
                && is_short
                && Some(datagram.client) == client
        });
        let mut times = times.map(|datagram| datagram.at);
        let first = times.next().unwrap_or_default();
        let time = times.last().unwrap_or_default().saturating_sub(first);
        expect(time > Duration::ZERO, || {
            "no 1-RTT packet reached the client".to_owned()
        })?;
        let bytes: usize = case.files.iter().map(|(count, len)| count * len).sum();
        let bits = f64::from(u32::try_from(8 * bytes).unwrap_or(u32::MAX));
        Ok(bits / 1000.0 / time.as_secs_f64())
    }
}

/// Returns true for checks of encrypted parts of packets.
fn needs_keys(check: Check) -> bool {
    matches!(
        check,
        Check::StreamLimit
            | Check::Resumption
            | Check::KeyUpdate
            | Check::Ecn
            | Check::Amplification
            | Check::Ports
            | Check::Addresses
            | Check::Migration
    )
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Client => "the client",
        Side::Server => "the server",
    }
}

/// The number of the cipher suite TLS_CHACHA20_POLY1305_SHA256.
const CHACHA20: u16 = 0x1303;

/// TLS_EMPTY_RENEGOTIATION_INFO_SCSV, a signal in the list of cipher suites that is not a suite. RFC 5746 §3.3.
const RENEGOTIATION_SIGNAL: u16 = 0x00ff;

/// CRYPTO data of a server with a chain of nine certificates, in bytes.
const LONG_CHAIN: u64 = 7500;

/// The time before its close in which a client may leave a PATH_CHALLENGE unanswered: several round trips of the
/// link. A rebinding at the end of a transfer may coincide with the close.
const TIME_TO_ANSWER: Duration = Duration::from_millis(150);

/// Bytes in a client's 1-RTT packets, which are too few for the requests of the case.
const MAX_LATER_BYTES: usize = 5000;

#[cfg(test)]
mod tests;
