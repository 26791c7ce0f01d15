//! A hostile peer and its addresses.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use courser_adversary::{Connection, ID_LEN};
use courser_base::Time;
use courser_crypto::Rng;
use courser_wire::{ConnectionId, packet};

use super::hooks::{Orders, Scripted};
use crate::input::Input;
use crate::tls::Ends;

/// A hostile client or server.
pub(super) struct Peer {
    /// The connection. A server creates it when the first Initial of its client arrives.
    connection: Option<Connection>,
    orders: Rc<RefCell<Orders>>,
    index: usize,
    address: SocketAddr,
    /// All addresses used so far.
    addresses: Vec<SocketAddr>,
    out: VecDeque<Vec<u8>>,
    /// A datagram to which the next one is appended.
    joined: Option<Vec<u8>>,
    joins: bool,
    ends: Ends,
    /// A modification of the next datagram: its kind and position.
    tampering: Option<(u8, u16)>,
}

impl Peer {
    pub(super) fn client(index: usize, orders: Orders, ends: &Ends) -> Self {
        let mut peer = Self::server(index, orders, ends);
        let hooks = Box::new(Scripted(Rc::clone(&peer.orders)));
        let rng = Rng::new([index as u8; 32]);
        let connection = Connection::client(&*ends.client, "localhost", hooks, rng);
        let mut connection = connection.expect("the name is a DNS name");
        // Without a ticket, there are no keys for early data.
        connection.begin_early();
        peer.connection = Some(connection);
        peer
    }

    pub(super) fn server(index: usize, orders: Orders, ends: &Ends) -> Self {
        let address = Self::address_of(index);
        Self {
            connection: None,
            orders: Rc::new(RefCell::new(orders)),
            index,
            address,
            addresses: vec![address],
            out: VecDeque::new(),
            joined: None,
            joins: false,
            ends: ends.clone(),
            tampering: None,
        }
    }

    pub(super) fn address_of(index: usize) -> SocketAddr {
        SocketAddr::from(([10, 0, 1, index as u8], 50_000))
    }

    pub(super) fn has_address(&self, address: SocketAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// Calls `work` with the connection, if it exists, and queues the datagrams that it sends.
    pub(super) fn with(&mut self, work: impl FnOnce(&mut Connection)) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        work(connection);
        while let Some(datagram) = connection.poll_datagram() {
            self.out.push_back(datagram);
        }
    }

    pub(super) fn transmit(&mut self, now: Time) {
        self.with(|connection| connection.transmit(now));
    }

    pub(super) fn orders(&self, change: impl FnOnce(&mut Orders)) {
        change(&mut self.orders.borrow_mut());
    }

    /// Joins the next two datagrams into one.
    pub(super) fn join_next(&mut self) {
        self.joins = true;
    }

    pub(super) fn tamper_next(&mut self, kind: u8, at: u16) {
        self.tampering = Some((kind, at));
    }

    /// Changes the address to another port, another host, or that of another peer.
    pub(super) fn change_address(&mut self, choice: u8) {
        self.address = match choice & 3 {
            0 => SocketAddr::from((self.address.ip(), 50_000 + u16::from(choice))),
            1 => SocketAddr::from(([10, 0, 2, choice], 50_000)),
            2 => SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(choice)], 50_000)),
            _ => Self::address_of(usize::from(choice >> 2) % MAX_PEERS),
        };
        if !self.has_address(self.address) {
            self.addresses.push(self.address);
        }
    }

    /// Uses bytes of the input as the victim's connection ID from now on.
    pub(super) fn switch_id(&mut self, input: &mut Input<'_>) {
        let bytes = input.bytes();
        if let (Some(connection), Some(id)) = (&mut self.connection, ConnectionId::new(bytes)) {
            connection.set_peer_id(id);
        }
    }

    /// Returns the connection ID with which this peer addresses the victim.
    pub(super) fn victim_id(&self) -> Vec<u8> {
        let id = self.connection.as_ref().map(Connection::peer_id);
        id.map_or_else(Vec::new, |id| id.to_vec())
    }

    pub(super) fn push_datagram(&mut self, datagram: Vec<u8>) {
        self.out.push_back(datagram);
    }

    pub(super) fn poll_datagram(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let mut datagram = self.out.pop_front()?;
        if self.joins {
            self.joins = false;
            self.joined = Some(datagram);
            return self.poll_datagram();
        }
        if let Some(mut first) = self.joined.take() {
            first.append(&mut datagram);
            datagram = first;
        }
        if let Some((kind, at)) = self.tampering.take() {
            tamper(&mut datagram, kind, usize::from(at));
        }
        Some((self.address, datagram))
    }

    pub(super) fn receive(&mut self, now: Time, datagram: &mut [u8]) {
        if self.connection.is_none() {
            self.accept(datagram);
        }
        if let Some(connection) = &mut self.connection {
            connection.receive(now, datagram);
        }
    }

    fn accept(&mut self, datagram: &[u8]) {
        let Ok(packet) = packet::decode(datagram, 0, ID_LEN) else {
            return;
        };
        let hooks = Box::new(Scripted(Rc::clone(&self.orders)));
        let rng = Rng::new([self.index as u8; 32]);
        let ids = (packet.destination, packet.source);
        let connection = Connection::server(&*self.ends.server, ids.0, ids.1, hooks, rng);
        self.connection = connection.ok();
    }
}

/// The largest number of hostile peers.
pub(super) const MAX_PEERS: usize = 4;

fn tamper(datagram: &mut Vec<u8>, kind: u8, at: usize) {
    let len = datagram.len();
    match kind & 3 {
        0 if len > 0 => datagram[at % len] ^= 1 << (kind >> 2 & 7),
        1 => datagram.truncate(at % (len + 1)),
        2 => datagram.resize(len + at % 64, kind),
        3 if len > 0 => datagram[at % len] = kind >> 2,
        _ => {}
    }
}
