//! Upgrades and service managers, on systems that have neither.

use std::io;
use std::net::{SocketAddr, TcpListener};

use courser::server::{ListeningSockets, ServerHandle};

use super::open_admin::OpenAdmin;

/// Does nothing: no process is replaced.
pub(super) fn stand_between() -> io::Result<()> {
    Ok(())
}

/// The process that this one replaces. No process is replaced.
#[derive(Debug)]
pub(super) enum Former {}

/// The sockets that a process hands over.
#[derive(Debug)]
#[allow(dead_code, reason = "no process hands sockets over on these systems")]
pub(super) struct Handed {
    pub(super) sockets: Vec<ListeningSockets>,
    pub(super) admin: Option<TcpListener>,
}

impl Former {
    pub(super) fn find() -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(super) fn addresses(&self) -> &[SocketAddr] {
        match *self {}
    }

    pub(super) fn receive(&mut self) -> io::Result<Handed> {
        match *self {}
    }

    pub(super) fn on_serving(self) {
        match self {}
    }
}

pub(super) async fn on_signals(_: ServerHandle, admin: Option<OpenAdmin>, _: bool) {
    // The endpoints go on.
    if let Some(OpenAdmin { socket, task, .. }) = admin {
        drop((socket, task));
    }
}

pub(super) fn notify(_: &str) {}
