//! Finds packets of one flow that the system can take as one, which is what GRO does.

use bytes::Bytes;

use crate::MAX_PACKET;
use crate::checksum;
use crate::header::{Header, Segmentation};
use crate::packet::{
    ACK, ECE, Kind, Layout, PSH, Transport, has_valid_checksum, kind, pseudo_header, set_ip_length,
    u16_at, u32_at,
};

/// Finds runs: packets of a flow that follow each other. The order of packets within each flow remains.
///
/// TCP segments join if their sequence numbers follow and all of their headers are equal but for PSH, datagrams of UDP if
/// they have equal lengths, of which the last may be less. Packets with wrong checksums, options of IP, extension headers
/// or fragments never join, so that the system judges each of them.
#[derive(Debug, Default)]
pub struct Joiner {
    runs: Vec<Run>,
    /// The packet that follows each packet in its run, or [`NONE`].
    next: Vec<u32>,
    /// The runs that may grow, the one that grew last at the end.
    open: Vec<u32>,
}

/// A run of packets, which can be a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of packets.
    pub count: usize,
    first: u32,
    last: u32,
    /// The headers, unless the packet can never join.
    layout: Option<Layout>,
    /// Payload of each packet but the last in bytes.
    segment: usize,
    /// Length of the joined packet in bytes.
    length: usize,
    /// Sequence number of the next segment of TCP.
    sequence: u32,
    /// The ports, to find the flow.
    ports: u32,
    pushes: bool,
}

impl Joiner {
    /// Finds the runs of `packets`. They replace those of the last call.
    ///
    /// Datagrams of UDP join only if the system takes them (Linux 6.2).
    pub fn join(&mut self, packets: &[Bytes], joins_udp: bool) {
        self.runs.clear();
        self.open.clear();
        self.next.clear();
        self.next.resize(packets.len(), NONE);
        for (index, packet) in packets.iter().enumerate() {
            let layout = match kind(packet) {
                Kind::Plain(layout) => layout,
                Kind::Unclear => {
                    // It may belong to any of the flows, and has to stay behind what came before it.
                    self.open.clear();
                    self.runs.push(Run::single(index, packet));
                    continue;
                }
                Kind::Other => {
                    self.runs.push(Run::single(index, packet));
                    continue;
                }
            };
            self.add(packets, index, layout, joins_udp);
        }
    }

    /// Returns the runs, in the order of their first packets.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Returns the indices of the packets of a run.
    pub fn members(&self, run: &Run) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(run.first), |at| {
            Some(self.next[*at as usize]).filter(|next| *next != NONE)
        })
        .map(|index| index as usize)
    }

    fn add(&mut self, packets: &[Bytes], index: usize, layout: Layout, joins_udp: bool) {
        let packet = &packets[index];
        let ports = u32_at(packet, layout.start);
        let is_flow = |run: &Run| {
            run.ports == ports
                && run.layout.is_some_and(|its| {
                    is_same_flow(&packets[run.first as usize], &its, packet, &layout)
                })
        };
        let at = self
            .open
            .iter()
            .rposition(|at| is_flow(&self.runs[*at as usize]));
        let can_join = (layout.transport == Transport::Tcp || joins_udp)
            && can_join(packet, &layout)
            && has_valid_checksum(packet, &layout);
        if let Some(at) = at {
            // It returns to the end, unless it is complete or the packet begins another one.
            let open = self.open.remove(at);
            let run = &mut self.runs[open as usize];
            if can_join && run.takes(packets, packet, &layout) {
                self.next[run.last as usize] = index as u32;
                if run.grow(index, packet, &layout) {
                    self.open.push(open);
                }
                return;
            }
        }
        let mut run = Run::single(index, packet);
        if can_join {
            run.begin(packet, layout);
            if !run.pushes {
                if self.open.len() == MAX_OPEN {
                    self.open.remove(0);
                }
                self.open.push(self.runs.len() as u32);
            }
        }
        self.runs.push(run);
    }
}

impl Run {
    fn single(index: usize, packet: &[u8]) -> Self {
        Self {
            count: 1,
            first: index as u32,
            last: index as u32,
            layout: None,
            segment: 0,
            length: packet.len(),
            sequence: 0,
            ports: 0,
            pushes: false,
        }
    }

    fn begin(&mut self, packet: &[u8], layout: Layout) {
        self.segment = packet.len() - layout.payload;
        self.ports = u32_at(packet, layout.start);
        self.layout = Some(layout);
        self.follow(packet, &layout);
    }

    /// Notes what the next packet has to follow.
    fn follow(&mut self, packet: &[u8], layout: &Layout) {
        if layout.transport == Transport::Tcp {
            let payload = packet.len() - layout.payload;
            self.sequence = u32_at(packet, layout.start + 4).wrapping_add(payload as u32);
            self.pushes = packet[layout.start + 13] & PSH != 0;
        }
    }

    /// Returns true if the packet may become the last one of the run, which is of its flow.
    fn takes(&self, packets: &[Bytes], packet: &[u8], layout: &Layout) -> bool {
        let payload = packet.len() - layout.payload;
        let most = match layout.transport {
            Transport::Tcp => MAX_RUN,
            Transport::Udp => MAX_UDP_RUN,
        };
        let (first, last) = (&packets[self.first as usize], &packets[self.last as usize]);
        self.layout == Some(*layout)
            && self.count < most
            && payload <= self.segment
            && self.length + payload <= MAX_PACKET
            && follows_in_ip(last, packet, layout.is_ipv6)
            && match layout.transport {
                Transport::Tcp => {
                    self.sequence == u32_at(packet, layout.start + 4)
                        && is_same_tcp(
                            &first[layout.start..layout.payload],
                            &packet[layout.start..layout.payload],
                        )
                }
                Transport::Udp => true,
            }
    }

    /// Appends the packet. Returns true if another one may follow.
    fn grow(&mut self, index: usize, packet: &[u8], layout: &Layout) -> bool {
        let payload = packet.len() - layout.payload;
        self.last = index as u32;
        self.count += 1;
        self.length += payload;
        self.follow(packet, layout);
        payload == self.segment && !self.pushes
    }

    /// Returns the header for the system, and writes the headers of the joined packet into `headers`, of which it returns
    /// the length. A run of one packet has no headers of its own.
    pub(crate) fn headers(&self, first: &[u8], headers: &mut [u8; MAX_HEADERS]) -> (Header, usize) {
        let Some(layout) = self.layout.filter(|_| self.count > 1) else {
            return (Header::default(), 0);
        };
        let length = layout.payload;
        headers[..length].copy_from_slice(&first[..length]);
        set_ip_length(headers, layout.is_ipv6, self.length);
        let start = layout.start;
        match layout.transport {
            Transport::Tcp if self.pushes => headers[start + 13] |= PSH,
            Transport::Tcp => {}
            Transport::Udp => {
                let length = u16::try_from(self.length - start).unwrap_or(u16::MAX);
                headers[start + 4..start + 6].copy_from_slice(&length.to_be_bytes());
            }
        }
        let pseudo = pseudo_header(
            headers,
            layout.is_ipv6,
            layout.transport,
            self.length - start,
        );
        let field = start + layout.transport.checksum_offset();
        headers[field..field + 2].copy_from_slice(&checksum::fold(pseudo).to_ne_bytes());
        let header = Header {
            needs_checksum: true,
            segmentation: match (layout.transport, layout.is_ipv6) {
                (Transport::Tcp, false) => Segmentation::TcpV4,
                (Transport::Tcp, true) => Segmentation::TcpV6,
                (Transport::Udp, _) => Segmentation::Udp,
            },
            header_length: length as u16,
            segment_size: self.segment as u16,
            checksum_start: start as u16,
            checksum_offset: layout.transport.checksum_offset() as u16,
        };
        (header, length)
    }
}

/// Returns true for a packet with data and without flags that have to be seen.
fn can_join(packet: &[u8], layout: &Layout) -> bool {
    let has_payload = packet.len() > layout.payload;
    match layout.transport {
        Transport::Tcp => {
            let flags = packet[layout.start + 13];
            has_payload && flags & ACK != 0 && flags & !(ACK | PSH | ECE) == 0
        }
        Transport::Udp => {
            has_payload
                && usize::from(u16_at(packet, layout.start + 4)) == packet.len() - layout.start
        }
    }
}

fn is_same_flow(one: &[u8], its: &Layout, other: &[u8], layout: &Layout) -> bool {
    let addresses = match layout.is_ipv6 {
        true => 8..40,
        false => 12..20,
    };
    its.is_ipv6 == layout.is_ipv6
        && its.transport == layout.transport
        && one[addresses.clone()] == other[addresses]
}

/// Returns true if the header of IP repeats the one before: traffic class with ECN, flow label, hop limit, flags. The
/// identification counts up unless the packets must not be fragmented, in which case it means nothing (RFC 6864 §4.1).
fn follows_in_ip(last: &[u8], packet: &[u8], is_ipv6: bool) -> bool {
    if is_ipv6 {
        return last[..4] == packet[..4] && last[7] == packet[7];
    }
    let must_not_fragment = packet[6] & 0x40 != 0;
    last[1] == packet[1]
        && last[6..9] == packet[6..9]
        && (must_not_fragment || u16_at(last, 4).wrapping_add(1) == u16_at(packet, 4))
}

/// Returns true if two headers of TCP differ in sequence number, checksum and PSH only.
fn is_same_tcp(one: &[u8], other: &[u8]) -> bool {
    one[8..13] == other[8..13]
        && (one[13] ^ other[13]) & !PSH == 0
        && one[14..16] == other[14..16]
        && one[18..] == other[18..]
}

/// The largest number of packets of a run (K638): a call takes 1024 slices, and 64 KiB are some 50 packets.
pub const MAX_RUN: usize = 1000;

/// The largest number of datagrams of a run, as of every version of the system.
const MAX_UDP_RUN: usize = 64;

/// The largest number of flows whose runs may grow at a time (K639). A packet is compared with all of them.
const MAX_OPEN: usize = 16;

/// The longest headers of a run: of IPv6 and of TCP with options.
pub(crate) const MAX_HEADERS: usize = 40 + 60;

const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests;
