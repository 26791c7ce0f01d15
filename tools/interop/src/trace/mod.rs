//! The packets of a run, decrypted with the key log of one end.
//!
//! The checks of the runner read the same from captures with tshark. Datagrams are those that the
//! ends sent, before the link changed or dropped them.

mod flow;
mod hello;
mod keys;
mod packet;

use std::net::SocketAddr;

use courser_base::Side;
use courser_emulator::{ObservationPoint, ObservedDatagram};
use courser_wire::packet::{self as wire_packet, Packet};
use courser_wire::{ConnectionId, PacketKind};

pub(crate) use self::flow::FlowFacts;
pub(crate) use self::keys::KeyLog;
pub(crate) use self::packet::{Contents, SeenPacket};

use self::flow::Flow;

/// All packets that both ends sent, in order, and the connections that they belong to.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) packets: Vec<SeenPacket>,
    flows: Vec<Flow>,
    /// Packets that were sent before the messages from which their keys follow.
    early: Vec<EarlyPacket>,
}

/// A packet whose keys are not known yet.
#[derive(Debug)]
struct EarlyPacket {
    /// The index among all packets.
    index: usize,
    flow: usize,
    header: Packet,
    bytes: Vec<u8>,
    number_offset: usize,
}

impl Trace {
    /// Decrypts the packets of a run.
    pub(crate) fn new(datagrams: &[ObservedDatagram], keys: &KeyLog) -> Self {
        let mut trace = Self::default();
        for (index, datagram) in datagrams.iter().enumerate() {
            let from = match datagram.place {
                ObservationPoint::FromClient => Side::Client,
                ObservationPoint::FromServer => Side::Server,
                ObservationPoint::ToServer | ObservationPoint::ToClient => continue,
            };
            trace.read(index, from, datagram, keys);
        }
        trace
    }

    /// Makes a trace of one connection without packets.
    #[cfg(test)]
    pub(crate) fn of_facts(facts: FlowFacts) -> Self {
        Self {
            flows: vec![Flow::of_facts(facts)],
            ..Self::default()
        }
    }

    /// Returns the packets that one end sent.
    pub(crate) fn sent_by(&self, from: Side) -> impl Iterator<Item = &SeenPacket> {
        self.packets
            .iter()
            .filter(move |packet| packet.from == from)
    }

    /// Returns the packets of one kind that one end sent.
    pub(crate) fn of_kind(
        &self,
        from: Side,
        kind: PacketKind,
    ) -> impl Iterator<Item = &SeenPacket> {
        self.sent_by(from).filter(move |packet| packet.kind == kind)
    }

    /// Returns the observations about each connection, in the order of their first packets.
    pub(crate) fn connections(&self) -> impl Iterator<Item = &FlowFacts> {
        self.flows.iter().map(Flow::facts)
    }

    /// Reads the packets of a datagram. A packet that cannot be read ends it.
    fn read(&mut self, index: usize, from: Side, datagram: &ObservedDatagram, keys: &KeyLog) {
        let bytes = &datagram.payload[..];
        let mut start = 0;
        while start < bytes.len() {
            let found = self.find(from, datagram.client, bytes, start);
            let local_cid_len = found.as_ref().map_or(0, |(_, len)| *len);
            let Ok(header) = wire_packet::decode(bytes, start, local_cid_len) else {
                return;
            };
            let known = found.map(|(flow, _)| flow);
            let flow = known.or_else(|| self.begin(from, datagram.client, &header));
            let packet = bytes.get(start..header.end).unwrap_or_default();
            let at = header.packet_number_offset - start;
            let contents =
                flow.and_then(|flow| self.flows[flow].on_packet(from, &header, packet, at, keys));
            let kind = header.kind;
            if let (Some(flow), None) = (flow, &contents)
                && matches!(kind, PacketKind::Handshake | PacketKind::OneRtt)
            {
                self.early.push(EarlyPacket {
                    index: self.packets.len(),
                    flow,
                    header: header.clone(),
                    bytes: packet.to_vec(),
                    number_offset: at,
                });
            }
            let end = header.end;
            let token = bytes.get(header.token.clone()).unwrap_or_default();
            self.packets.push(SeenPacket {
                datagram: index,
                from,
                kind: header.kind,
                version: header.version,
                destination: header.destination,
                source: header.source,
                token: token.to_vec(),
                len: end - header.packet_number_offset,
                contents,
            });
            if kind == PacketKind::Initial {
                self.read_early(keys);
            }
            start = end.max(start + 1);
        }
    }

    /// Reads packets whose keys are known by now: a server may send them before its ServerHello.
    fn read_early(&mut self, keys: &KeyLog) {
        for packet in std::mem::take(&mut self.early) {
            let seen = &mut self.packets[packet.index];
            let flow = &mut self.flows[packet.flow];
            let (header, at) = (&packet.header, packet.number_offset);
            seen.contents = flow.on_packet(seen.from, header, &packet.bytes, at, keys);
            if seen.contents.is_none() {
                self.early.push(packet);
            }
        }
    }

    /// Returns the connection of a packet and the length of the connection ID in its short header.
    fn find(
        &self,
        from: Side,
        client: SocketAddr,
        bytes: &[u8],
        start: usize,
    ) -> Option<(usize, usize)> {
        // A client that uses the same port, or an empty ID, again means its newest connection.
        let mut newest_first = self.flows.iter().enumerate().rev();
        newest_first.find_map(|(index, flow)| {
            let len = flow.id_len(from, client, &bytes[start..])?;
            Some((index, len))
        })
    }

    /// Begins a connection with the first Initial packet of a client.
    fn begin(&mut self, from: Side, client: SocketAddr, header: &Packet) -> Option<usize> {
        if from != Side::Client || header.kind != PacketKind::Initial {
            return None;
        }
        let (original, id): (ConnectionId, ConnectionId) = (header.destination, header.source);
        self.flows
            .push(Flow::new(client, header.version, original, id));
        Some(self.flows.len() - 1)
    }
}

#[cfg(test)]
mod tests;
