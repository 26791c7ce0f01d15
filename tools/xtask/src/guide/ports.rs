//! Ports of a page, which are free ports of the machine while its commands run.

use std::collections::BTreeMap;
use std::net::{TcpListener, UdpSocket};

/// The free port for each port that the commands of a page name.
#[derive(Debug, Default)]
pub(super) struct Ports(BTreeMap<String, String>);

impl Ports {
    /// Replaces each port after a colon with its free port.
    pub(super) fn replace(&mut self, command: &str) -> Result<String, String> {
        let mut replaced = String::new();
        let mut rest = command;
        while let Some(at) = rest.find(':') {
            replaced.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            if (4..=5).contains(&digits) {
                replaced.push_str(&self.free(&rest[..digits])?);
                rest = &rest[digits..];
            }
        }
        replaced.push_str(rest);
        Ok(replaced)
    }

    /// Replaces the free ports in an output with those of the page.
    pub(super) fn restore(&self, output: &str) -> String {
        let mut output = output.to_owned();
        for (named, free) in &self.0 {
            output = output.replace(&format!(":{free}"), &format!(":{named}"));
            output = output.replace(&format!(" {free}"), &format!(" {named}"));
        }
        output
    }

    fn free(&mut self, named: &str) -> Result<String, String> {
        if let Some(free) = self.0.get(named) {
            return Ok(free.clone());
        }
        let free = free_port().map_err(|error| format!("no free port: {error}"))?;
        self.0.insert(named.to_owned(), free.to_string());
        Ok(free.to_string())
    }
}

/// Returns a port that is free for TCP and UDP on all addresses of loopback.
fn free_port() -> std::io::Result<u16> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let address = tcp.local_addr()?;
        match UdpSocket::bind(address) {
            Ok(_) => return Ok(address.port()),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into()))
}

/// Ports that are tried before the machine counts as full.
const ATTEMPTS: usize = 20;
