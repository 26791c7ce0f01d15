//! The flags of `courser doctor`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// The arguments of `courser doctor`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Also check the path to this host: its packet size, and the losses of a connection [default port: 443]
    #[arg(value_name = "HOST[:PORT]")]
    pub host: Option<String>,

    /// Check that a server can listen on this address, and that the firewall opens its port
    #[arg(long, short, value_name = "ADDR", value_parser = parse_listen)]
    pub listen: Option<SocketAddr>,

    /// Check the certificate chain in this file (PEM); may be repeated
    #[arg(long, value_name = "FILE")]
    pub cert: Vec<PathBuf>,

    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// Parses an address with a port.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("'{text}' is not an address and a port: use [::]:443 for all interfaces, or 127.0.0.1:443")
    })
}

const EXAMPLES: &str = "\
Exit codes: 0 if there is nothing worse than a note, 3 for a warning, 4 for an error; 1 if the
command itself fails and 2 for invalid arguments.

No privilege is needed. What cannot be seen without one is a note that says so.

Examples:
  courser doctor
      Check this machine
  courser doctor --listen [::]:443 --cert chain.pem
      Check it before a server is started
  courser doctor example.org
      Check the way to a host; 'courser probe' measures it
  courser doctor --json | jq '.findings[] | select(.severity == \"error\")'
      List the errors";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_a_port() {
        assert_eq!(
            parse_listen("127.0.0.1:443"),
            Ok(([127, 0, 0, 1], 443).into())
        );
        for text in ["443", ":443", "127.0.0.1", "localhost:443"] {
            let error = parse_listen(text).expect_err(text);
            assert!(error.contains("use [::]:443"), "{error}");
        }
    }
}
