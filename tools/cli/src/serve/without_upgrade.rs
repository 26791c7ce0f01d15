//! Upgrades and service managers, on systems that have neither.

use std::io;
use std::net::TcpListener;

use courser::server::{ListeningSockets, ServerHandle};

use super::OpenAdmin;

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

pub(super) async fn on_signals(_: ServerHandle, admin: Option<OpenAdmin>, _: bool) {
    // The endpoints go on.
    if let Some(OpenAdmin { socket, task, .. }) = admin {
        drop((socket, task));
    }
}

pub(super) fn notify(_: &str) {}
