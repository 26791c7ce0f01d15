//! The listening sockets that a process inherits: from the process that it replaces, or from a service manager.

use std::net::{SocketAddr, TcpListener};

use courser::server::ListeningSockets;

use super::args::Arguments;
use super::upgrade::Former;
use crate::error::Failure;

/// The listening sockets that a process inherits.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    pub(super) sockets: Vec<ListeningSockets>,
    /// The socket of the admin endpoints.
    pub(super) admin: Option<TcpListener>,
    /// The process that this one replaces, while it waits.
    former: Option<Former>,
}

impl Inherited {
    /// Finds the process that this one replaces, or takes the sockets of a service manager.
    pub(super) fn find() -> Result<Self, Failure> {
        let former = Former::find().map_err(|error| cannot_take_over(&error))?;
        #[cfg(target_os = "linux")]
        if former.is_none() {
            let sockets = ListeningSockets::from_service_manager();
            return Ok(Self {
                sockets: sockets.map_err(|error| Failure::new(error.to_string()))?,
                ..Self::default()
            });
        }
        Ok(Self {
            former,
            ..Self::default()
        })
    }

    /// Returns the addresses to serve without --listen: those of the sockets for https.
    pub(super) fn addresses(&self, arguments: &Arguments) -> Vec<SocketAddr> {
        if let Some(former) = &self.former {
            return former.addresses().to_vec();
        }
        let https = self.https(arguments);
        https.map(|it| it.address).collect()
    }

    /// Receives the sockets of the process that this one replaces. It waits until this one has read its files.
    pub(super) fn receive(&mut self, admin: Option<SocketAddr>) -> Result<(), Failure> {
        if let Some(former) = &mut self.former {
            let handed = former.receive();
            let handed = handed.map_err(|error| cannot_take_over(&error))?;
            (self.sockets, self.admin) = (handed.sockets, handed.admin);
            return Ok(());
        }
        let is_admin = |it: &ListeningSockets| admin.is_some_and(|admin| it.are_for(admin));
        if let Some(position) = self.sockets.iter().position(is_admin) {
            self.admin = self.sockets.remove(position).tcp;
        }
        Ok(())
    }

    /// Reports to the process that this one replaces that this one serves. Returns false if there is none.
    pub(super) fn on_serving(&mut self) -> bool {
        let former = self.former.take();
        former.map(Former::on_serving).is_some()
    }

    /// Returns warnings of sockets that the service manager lacks. `cores` can serve HTTP/3.
    pub(super) fn warnings(&self, arguments: &Arguments, cores: usize) -> Vec<String> {
        let mut all = Vec::new();
        for sockets in self.https(arguments).filter(|it| it.stay_open) {
            let address = sockets.address;
            let refused = |clients: &str, option: &str| {
                format!(
                    "the service manager passes no socket for {clients} at {address}, so that they are refused \
                     during a restart: add {option}={address} to the socket unit"
                )
            };
            if sockets.tcp.is_none() && !arguments.no_tcp {
                all.push(refused("TCP clients", "ListenStream"));
            }
            if sockets.udp.is_empty() && !arguments.no_quic {
                all.push(refused("clients of HTTP/3", "ListenDatagram"));
            }
            if sockets.udp.len() == 1 && cores > 1 {
                all.push(format!(
                    "HTTP/3 at {address} uses one of {cores} cores, because the service manager passes one UDP \
                     socket: write ListenDatagram={address} {cores} times in the socket unit, with ReusePort=yes"
                ));
            }
        }
        all
    }

    /// Returns the sockets that are not for the admin endpoints or plain HTTP.
    fn https<'a>(&'a self, arguments: &'a Arguments) -> impl Iterator<Item = &'a ListeningSockets> {
        let plain = &arguments.certificate.acme.redirect_http;
        let others = plain.iter().chain(&arguments.admin);
        let sockets = self.sockets.iter();
        sockets.filter(move |it| !others.clone().any(|other| it.are_for(*other)))
    }
}

/// Returns a hint for a port that is taken: systemd holds it, and has passed its sockets to another process.
/// Otherwise the hint is the flag.
pub(super) fn hint_for_taken_port(flag: &str) -> String {
    let process = std::env::var("LISTEN_PID").unwrap_or_default();
    let is_other = !process.is_empty() && process != std::process::id().to_string();
    match is_other && std::env::var_os("LISTEN_FDS").is_some() {
        true => format!(
            "; the service manager has passed its sockets to process {process} (LISTEN_PID), not to this one: start \
             courser without a shell in between, or with `exec`"
        ),
        false => format!(" ({flag})"),
    }
}

pub(super) fn cannot_take_over(error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot take the sockets over: {error}"))
}
