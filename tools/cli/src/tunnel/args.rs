//! The command line of `courser tunnel`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use courser::masque::Prefix;
use courser_units::parse_duration;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The proxy: HOST[:PORT], or a URI template such as 'https://vpn.example/ip{?target,ipproto}'
    #[arg(value_name = "PROXY")]
    pub(super) proxy: String,

    /// Name of the interface [default: the next free one, such as tun0]
    #[arg(long, value_name = "NAME")]
    pub(super) tun: Option<String>,

    /// Send packets to this prefix or address through the tunnel; repeatable
    ///
    /// By default these are the networks that the proxy offers, except for everything.
    #[arg(long, value_name = "PREFIX", value_parser = parse_prefix, help_heading = "Routes")]
    pub(super) route: Vec<Prefix>,

    /// Send everything through the tunnel that has no other route
    ///
    /// Networks that this machine is connected to, and the proxy itself, are reached as before.
    #[arg(long, help_heading = "Routes")]
    pub(super) default_route: bool,

    /// Use this name server, through the tunnel, for all names; repeatable
    #[arg(long, value_name = "ADDRESS", help_heading = "Routes")]
    pub(super) dns: Vec<IpAddr>,

    /// MTU of the interface in bytes, or auto for what the path to the proxy carries
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = parse_mtu,
          help_heading = "Routes")]
    pub(super) mtu: Mtu,

    /// Connect, print what would be done, and change nothing
    #[arg(long)]
    pub(super) check: bool,

    /// Send this token to the proxy (Proxy-Authorization: Bearer TOKEN)
    #[arg(
        long,
        value_name = "TOKEN",
        env = "COURSER_TUNNEL_TOKEN",
        hide_env_values = true,
        help_heading = "Request"
    )]
    pub(super) auth: Option<String>,

    /// Field of the request, such as 'authorization: Bearer x'; repeatable
    #[arg(
        short = 'H',
        long = "header",
        value_name = "FIELD",
        help_heading = "Request"
    )]
    pub(super) headers: Vec<String>,

    /// Time limit for connecting
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_duration,
          help_heading = "Connection")]
    pub(super) timeout: Duration,

    /// Trust the CA certificates in this file (PEM), not the system's
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "insecure",
        help_heading = "Connection"
    )]
    pub(super) cacert: Option<PathBuf>,

    /// Do not verify the proxy's certificate
    #[arg(short = 'k', long, help_heading = "Connection")]
    pub(super) insecure: bool,
}

/// The value of `--mtu`, `None` for auto.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mtu(pub(super) Option<u16>);

const EXAMPLES: &str = "\
Examples:
  courser tunnel vpn.example
      Reach the networks that the proxy offers
  courser tunnel vpn.example --default-route --dns 9.9.9.9
      Send everything through the proxy, and resolve names behind it
  courser tunnel vpn.example --route 10.0.0.0/8 --route 2001:db8::/32
      Send packets to two networks through the proxy
  courser tunnel vpn.example --default-route --check
      Print addresses, routes and MTU, and change nothing

Needs root, or the capability CAP_NET_ADMIN. The interface, its addresses, routes, rules and name servers are
taken back at the end, after SIGINT and SIGTERM. A connection that is lost is made again.

Exit codes are 0 after a signal, 1 for a failure and 2 for invalid arguments.";

fn parse_prefix(text: &str) -> Result<Prefix, String> {
    text.parse()
        .map_err(|error: courser::masque::InvalidPrefix| error.to_string())
}

fn parse_mtu(text: &str) -> Result<Mtu, String> {
    if text == "auto" {
        return Ok(Mtu(None));
    }
    match text.parse() {
        Ok(mtu @ 576..) => Ok(Mtu(Some(mtu))),
        _ => Err(format!(
            "'{text}' is no MTU: use auto, or 576 to 65535 bytes, of which IPv6 needs 1280"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        assert_eq!(parse_mtu("auto"), Ok(Mtu(None)));
        assert_eq!(parse_mtu("1350"), Ok(Mtu(Some(1350))));
        for wrong in ["", "0", "575", "65536", "Auto", "1e3"] {
            let error = parse_mtu(wrong).expect_err(wrong);
            assert!(error.contains("576 to 65535"), "{error}");
        }
        assert!(parse_prefix("10.0.0.1").is_ok_and(|it| it.is_single()));
        let error = parse_prefix("10.0.0.1/8").expect_err("bits behind the prefix");
        assert!(error.contains("without bits behind its length"), "{error}");
    }
}
