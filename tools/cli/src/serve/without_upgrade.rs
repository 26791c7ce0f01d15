//! Upgrades and service managers, on systems that have neither.

use std::io;
use std::net::TcpListener;

use courser::server::ListeningSockets;

/// The listening sockets that a process inherits: none.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    pub(super) sockets: Vec<ListeningSockets>,
    pub(super) admin: Option<TcpListener>,
}

impl Inherited {
    pub(super) fn receive() -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(super) fn on_serving(&mut self) {}
}

pub(super) fn notify(_: &str) {}
