//! The flags of `courser serve` for migration, preferred addresses and the QUIC bit.

use std::net::SocketAddr;

use clap::Args;
use courser::server::Server;
use courser_measure::Failure;

/// Addresses that connections over QUIC may move to, and the QUIC bit of their packets.
#[derive(Args, Debug)]
#[command(next_help_heading = "Protocols")]
pub(crate) struct MoveArguments {
    /// Do not let HTTP/3 clients change their address
    ///
    /// Packets from another IP address are dropped. Another port of the same address is followed, because
    /// NATs rebind.
    #[arg(long, conflicts_with = "no_quic")]
    no_migration: bool,

    /// Ask HTTP/3 clients to move to this address of the server, such as 192.0.2.7:443; repeatable
    ///
    /// One address of IPv4 and one of IPv6, for servers behind a shared address such as anycast (RFC 9000
    /// §9.6). The server must --listen on a wildcard address, 0.0.0.0 or [::], whose socket receives there.
    /// Clients that cannot reach the new address stay at the old one.
    #[arg(long, value_name = "ADDR", value_parser = parse_preferred, conflicts_with = "no_quic")]
    preferred_address: Vec<SocketAddr>,

    /// Clear the QUIC bit of half of the packets, at random, to clients that accept it (RFC 9287)
    #[arg(long, conflicts_with = "no_quic")]
    grease_quic_bit: bool,
}

impl MoveArguments {
    /// Applies the flags to the server.
    pub(super) fn apply(&self, server: Server) -> Result<Server, Failure> {
        let (mut v4, mut v6) = (None, None);
        for address in &self.preferred_address {
            let other = match *address {
                SocketAddr::V4(address) => v4.replace(address).map(SocketAddr::from),
                SocketAddr::V6(address) => v6.replace(address).map(SocketAddr::from),
            };
            if let Some(other) = other {
                return Err(Failure::new(format!(
                    "--preferred-address {other} and {address}: give at most one of IPv4 and one of IPv6"
                )));
            }
        }
        Ok(server
            .migration(!self.no_migration)
            .preferred_address(v4, v6)
            .grease_quic_bit(self.grease_quic_bit))
    }
}

fn parse_preferred(text: &str) -> Result<SocketAddr, String> {
    courser_measure::target::parse_socket_addr(text).map_err(|_| {
        format!("'{text}' is not an address with a port: use one such as 192.0.2.7:443 or [2001:db8::7]:443")
    })
}
