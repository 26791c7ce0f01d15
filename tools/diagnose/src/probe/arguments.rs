//! The flags of `courser probe`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use courser_units::parse_duration;

/// The arguments of `courser probe`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Server to examine [default port: 443]
    #[arg(value_name = "HOST[:PORT]")]
    pub host: String,

    /// Path to request from the server
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = parse_path)]
    pub path: String,

    /// Application protocols to offer, the preferred one first
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "h3,hq-interop"
    )]
    pub alpn: Vec<String>,

    /// Name of the server for TLS [default: HOST]
    #[arg(long, value_name = "NAME")]
    pub server_name: Option<String>,

    /// Trust the certificates in this file (PEM) [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Time limit for each step
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = parse_limit)]
    pub timeout: Duration,

    /// Do not connect over TCP to look for the alt-svc field and the port in it
    #[arg(long)]
    pub no_tcp: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,

    /// Write the report as an HTML page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Parses the time limit of a step.
fn parse_limit(text: &str) -> Result<Duration, String> {
    let limit = parse_duration(text)?;
    match limit <= MAX_STEP_LIMIT && limit >= MIN_STEP_LIMIT {
        true => Ok(limit),
        false => Err(format!(
            "'{text}' is not between 0.1 and {} s",
            MAX_STEP_LIMIT.as_secs()
        )),
    }
}

/// Parses the path of a request.
fn parse_path(text: &str) -> Result<String, String> {
    let parsed = text.parse::<http::uri::PathAndQuery>();
    match parsed {
        Ok(_) if text.starts_with('/') => Ok(text.to_owned()),
        _ => Err(format!(
            "'{text}' is not a path: use one that begins with /, such as /index.html"
        )),
    }
}

/// The longest time limit of a step (K235).
const MAX_STEP_LIMIT: Duration = Duration::from_secs(60);
const MIN_STEP_LIMIT: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Only the host that is named is contacted, with at most 7 handshakes, a datagram of an unknown
version, and a few requests, whose user agent says courser-probe. An untrusted certificate is
reported, and the probe continues: nothing secret is sent.

If the port does not answer over UDP, the probe examines the port that the server announces for
HTTP/3 in the field alt-svc or in an HTTPS record. Otherwise it connects to an announced port once.

Exit codes: 0 for the grades A to C, 3 for D, 4 for F and for a server that does not answer; 1 if
the command itself fails and 2 for invalid arguments.

Examples:
  courser probe example.org
      Examine a server, and print a grade with reasons
  courser probe localhost:4433 --ca cert.pem --html report.html
      Examine a server of this machine, and write a page too
  courser probe example.org --path /large.bin
      Request content that is large enough to observe priorities
  courser probe example.org --json | jq .grade
      Print only the grade";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_range() {
        assert_eq!(parse_limit("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "61", "soon"] {
            assert!(parse_limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_begin_with_a_slash() {
        assert_eq!(parse_path("/a?b=c").as_deref(), Ok("/a?b=c"));
        for text in ["", "a", "/a b", "https://a.test/"] {
            let error = parse_path(text).expect_err(text);
            assert!(error.contains("begins with /"), "{error}");
        }
    }
}
