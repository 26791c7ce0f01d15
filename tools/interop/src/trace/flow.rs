//! One connection in a capture.

use std::net::SocketAddr;

use courser_base::Side;
use courser_crypto::initial::initial_secrets;
use courser_crypto::{CipherSuite, Keys};
use courser_wire::packet::Packet;
use courser_wire::{ConnectionId, Frame, Frames, PacketKind};

use super::hello::{self, CryptoBytes};
use super::keys::{self, KeyLog, OneRttKeys, open_long};
use super::packet::Contents;

/// Observations about a connection that checks read.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowFacts {
    /// The cipher suites that the client offered.
    pub(crate) offered_suites: Vec<u16>,
    /// True if the server sent a Certificate message.
    pub(crate) has_certificate: bool,
    pub(crate) server_max_streams_bidi: Option<u64>,
    /// The end of the server's CRYPTO data at the Handshake level.
    pub(crate) server_crypto_len: u64,
}

/// A connection, its IDs and its keys.
#[derive(Debug)]
pub(crate) struct Flow {
    client: SocketAddr,
    /// IDs that the client sends to: its own choice, and those of the server.
    server_ids: Vec<ConnectionId>,
    client_ids: Vec<ConnectionId>,
    /// The keys of Initial packets, for each ID that they may derive from.
    initial: Vec<Ends<Keys>>,
    handshake: Ends<Option<Keys>>,
    one_rtt: Ends<Option<OneRttKeys>>,
    /// CRYPTO data of the Initial and the Handshake level.
    crypto: Ends<[CryptoBytes; 2]>,
    /// The largest packet number of each space.
    largest: Ends<[Option<u64>; 3]>,
    /// The version of the server's last packet with a long header: that of the connection.
    version: u32,
    random: Option<[u8; 32]>,
    suite: Option<CipherSuite>,
    facts: FlowFacts,
}

/// A value for each end.
#[derive(Debug, Default)]
struct Ends<T> {
    client: T,
    server: T,
}

impl<T> Ends<T> {
    fn of(&mut self, side: Side) -> &mut T {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

impl Flow {
    /// Makes a connection from the header of the client's first packet.
    pub(crate) fn new(
        client: SocketAddr,
        version: u32,
        original: ConnectionId,
        client_id: ConnectionId,
    ) -> Self {
        let mut flow = Self {
            client,
            server_ids: vec![original],
            client_ids: vec![client_id],
            initial: Vec::new(),
            handshake: Ends::default(),
            one_rtt: Ends::default(),
            crypto: Ends::default(),
            largest: Ends::default(),
            version,
            random: None,
            suite: None,
            facts: FlowFacts::default(),
        };
        flow.add_initial_keys(version, &original);
        flow
    }

    /// Makes a connection with these observations.
    #[cfg(test)]
    pub(crate) fn of_facts(facts: FlowFacts) -> Self {
        let client = SocketAddr::from(([127, 0, 0, 1], 9));
        let empty = ConnectionId::EMPTY;
        Self {
            facts,
            ..Self::new(client, courser_wire::VERSION_1, empty, empty)
        }
    }

    pub(crate) fn facts(&self) -> &FlowFacts {
        &self.facts
    }

    /// Returns the length of the destination ID if a packet may belong to this connection.
    pub(crate) fn id_len(&self, from: Side, client: SocketAddr, packet: &[u8]) -> Option<usize> {
        let ids = match from {
            Side::Client => &self.server_ids,
            Side::Server => &self.client_ids,
        };
        let is_long = packet.first()? & 0x80 != 0;
        let destination = if is_long {
            let len = usize::from(*packet.get(5)?);
            packet.get(6..)?.get(..len)?
        } else {
            packet.get(1..)?
        };
        let matches = |id: &&ConnectionId| {
            let is_same = match is_long {
                true => destination == &id[..],
                false => destination.starts_with(id),
            };
            is_same && (!id.is_empty() || client == self.client)
        };
        ids.iter().find(matches).map(|id| id.len())
    }

    /// Decrypts a packet and stores the IDs, messages and keys in it. `packet` begins at its first byte.
    pub(crate) fn on_packet(
        &mut self,
        from: Side,
        header: &Packet,
        packet: &[u8],
        number_offset: usize,
        keys: &KeyLog,
    ) -> Option<Contents> {
        if from == Side::Server && header.version != 0 {
            self.on_server_version(header.version);
        }
        match header.kind {
            PacketKind::Retry => {
                remember(&mut self.server_ids, header.source);
                self.add_initial_keys(header.version, &header.source);
                None
            }
            PacketKind::VersionNegotiation | PacketKind::ZeroRtt => None,
            PacketKind::Initial | PacketKind::Handshake => {
                let ids = match from {
                    Side::Client => &mut self.client_ids,
                    Side::Server => &mut self.server_ids,
                };
                if header.kind == PacketKind::Initial && from == Side::Client {
                    self.add_initial_keys_of_other_version(header);
                } else {
                    remember(ids, header.source);
                }
                let (number, payload) = self.open_long(from, header.kind, packet, number_offset)?;
                self.store_contents(from, header.kind, &payload, keys);
                Some(Contents::of(number, false, &payload))
            }
            PacketKind::OneRtt => {
                let largest = self.largest.of(from)[2];
                let keys_of_end = self.one_rtt.of(from).as_mut()?;
                let (number, phase, payload) = keys_of_end.open(packet, number_offset, largest)?;
                self.note_number(from, 2, number);
                self.store_contents(from, header.kind, &payload, keys);
                Some(Contents::of(number, phase, &payload))
            }
        }
    }

    fn open_long(
        &mut self,
        from: Side,
        kind: PacketKind,
        packet: &[u8],
        number_offset: usize,
    ) -> Option<(u64, Vec<u8>)> {
        let space = usize::from(kind == PacketKind::Handshake);
        let largest = self.largest.of(from)[space];
        let opened = if kind == PacketKind::Handshake {
            let keys = self.handshake.of(from).as_ref()?;
            open_long(keys, packet, number_offset, largest)?
        } else {
            let mut candidates = self.initial.iter_mut();
            candidates.find_map(|keys| open_long(keys.of(from), packet, number_offset, largest))?
        };
        self.note_number(from, space, opened.0);
        Some(opened)
    }

    fn note_number(&mut self, from: Side, space: usize, number: u64) {
        let largest = &mut self.largest.of(from)[space];
        *largest = (*largest).max(Some(number));
    }

    /// Adds keys for Initial packets of the version that the server chose. RFC 9368 §2.3.
    fn on_server_version(&mut self, version: u32) {
        if version != self.version {
            self.version = version;
            for id in self.server_ids.clone() {
                self.add_initial_keys(version, &id);
            }
        }
    }

    /// Adds keys for Initial packets that a client sends in the version that the server chose.
    fn add_initial_keys_of_other_version(&mut self, header: &Packet) {
        if self.initial.len() < MAX_INITIAL_KEYS && header.version != courser_wire::VERSION_1 {
            let original = self.server_ids[0];
            self.add_initial_keys(header.version, &original);
        }
    }

    fn add_initial_keys(&mut self, version: u32, id: &ConnectionId) {
        let secrets = initial_secrets(version, id, Side::Client);
        self.initial.push(Ends {
            client: secrets.local.keys(),
            server: secrets.peer.keys(),
        });
    }

    /// Stores connection IDs, TLS messages and keys from a payload.
    fn store_contents(&mut self, from: Side, kind: PacketKind, payload: &[u8], keys: &KeyLog) {
        let mut has_crypto = false;
        for frame in Frames::new(payload).map_while(Result::ok) {
            match frame {
                Frame::NewConnectionId(frame) => {
                    let ids = match from {
                        Side::Client => &mut self.client_ids,
                        Side::Server => &mut self.server_ids,
                    };
                    remember(ids, frame.id);
                }
                Frame::Crypto(crypto) if kind != PacketKind::OneRtt => {
                    has_crypto = true;
                    let level = usize::from(kind == PacketKind::Handshake);
                    self.crypto.of(from)[level].insert(crypto.offset, crypto.data);
                    if from == Side::Server && level == 1 {
                        let end = crypto.offset + crypto.data.len() as u64;
                        self.facts.server_crypto_len = self.facts.server_crypto_len.max(end);
                    }
                }
                _ => {}
            }
        }
        if has_crypto {
            self.read_messages(from, keys);
        }
    }

    fn read_messages(&mut self, from: Side, keys: &KeyLog) {
        let levels = self.crypto.of(from);
        let bytes = [levels[0].prefix(), levels[1].prefix()];
        for message in bytes.iter().flat_map(|bytes| hello::messages(bytes)) {
            match message.kind {
                hello::CLIENT_HELLO => {
                    if let Some((random, suites)) = hello::client_hello(message.body) {
                        self.random = Some(random);
                        self.facts.offered_suites = suites;
                    }
                }
                hello::SERVER_HELLO => {
                    self.suite = hello::server_hello(message.body).and_then(keys::suite);
                }
                hello::ENCRYPTED_EXTENSIONS => {
                    self.facts.server_max_streams_bidi = hello::max_streams_bidi(message.body);
                    if let Some(id) = hello::preferred_id(message.body) {
                        remember(&mut self.server_ids, id);
                    }
                }
                hello::CERTIFICATE | hello::COMPRESSED_CERTIFICATE => {
                    self.facts.has_certificate |= from == Side::Server;
                }
                _ => {}
            }
        }
        let (Some(random), Some(suite)) = (self.random, self.suite) else {
            return;
        };
        for side in [Side::Client, Side::Server] {
            if self.handshake.of(side).is_none() {
                *self.handshake.of(side) = keys.handshake(random, side, suite, self.version);
            }
            if self.one_rtt.of(side).is_none() {
                *self.one_rtt.of(side) = keys.one_rtt(random, side, suite, self.version);
            }
        }
    }
}

fn remember(ids: &mut Vec<ConnectionId>, id: ConnectionId) {
    if !ids.contains(&id) {
        ids.push(id);
    }
}

/// The most keys for Initial packets of a connection: one for each Retry and each other version.
const MAX_INITIAL_KEYS: usize = 64;
