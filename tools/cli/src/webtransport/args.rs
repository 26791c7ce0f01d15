//! The command line of `courser webtransport`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use courser::webtransport::Origins;
use courser_units::parse_duration;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Resource that has sessions, such as https://example.org/chat
    #[arg(value_name = "URL")]
    pub(super) url: String,

    /// Send standard input on a unidirectional stream, and print those of the server
    #[arg(long, conflicts_with = "datagrams", help_heading = "Data")]
    pub(super) uni: bool,

    /// Send each line of standard input as a datagram, and print each datagram of the server as a line
    #[arg(long, help_heading = "Data")]
    pub(super) datagrams: bool,

    /// With --uni and --datagrams, end after this time without data, once standard input has ended; otherwise the time for a
    /// server to read the rest, if it has ended its side before
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_duration,
          help_heading = "Data")]
    pub(super) wait: Duration,

    /// Application protocol to offer, the preferred one first; repeatable
    ///
    /// The session is refused unless the server chooses one of them.
    #[arg(long, value_name = "NAME", help_heading = "Request")]
    pub(super) protocol: Vec<String>,

    /// Value of the Origin field, as a page of this origin sends it
    #[arg(long, value_name = "ORIGIN", help_heading = "Request", value_parser = parse_origin)]
    pub(super) origin: Option<String>,

    /// Field of the request, such as 'authorization: Bearer x'; repeatable
    #[arg(
        short = 'H',
        long = "header",
        value_name = "FIELD",
        help_heading = "Request"
    )]
    pub(super) headers: Vec<String>,

    /// Time limit for opening the session
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_duration,
          help_heading = "Connection")]
    pub(super) timeout: Duration,

    /// Trust the CA certificates in this file (PEM), not the system's
    #[arg(long, value_name = "FILE", conflicts_with_all = ["insecure", "cert_hash"],
          help_heading = "Connection")]
    pub(super) cacert: Option<PathBuf>,

    /// Trust exactly the certificate with this SHA-256, in hexadecimal or base64; repeatable
    ///
    /// The rules are those of serverCertificateHashes in browsers: the certificate is valid now and for at most 14 days in
    /// all, and has an ECDSA key on P-256. See --pinnedpubkey for others.
    #[arg(long, value_name = "HASH", conflicts_with = "insecure", value_parser = parse_hash,
          help_heading = "Connection")]
    pub(super) cert_hash: Vec<[u8; 32]>,

    /// Also require one of these public keys: sha256//BASE64, several of them separated by semicolons
    ///
    /// With --insecure, any certificate with such a key is trusted.
    #[arg(long, value_name = "HASHES", help_heading = "Connection")]
    pub(super) pinnedpubkey: Option<String>,

    /// Do not verify the server's certificate
    #[arg(short = 'k', long, help_heading = "Connection")]
    pub(super) insecure: bool,

    /// Describe the connection, the session and its end on standard error
    #[arg(short, long, help_heading = "Output")]
    pub(super) verbose: bool,

    /// Write a qlog trace of the connection to this directory
    #[arg(
        long,
        value_name = "DIR",
        env = "QLOGDIR",
        hide_env_values = true,
        help_heading = "Output"
    )]
    pub(super) qlog: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  echo hello | courser webtransport https://example.org/echo
      Send a line on a bidirectional stream and print the answer
  courser webtransport --datagrams -v https://example.org/echo
      Type datagrams, and see the dialect, the limits and the end of the session
  courser webtransport --cert-hash HASH https://localhost:4433/.well-known/courser/echo
      Trust the certificate of 'courser serve --webtransport-echo' by its hash

Without --uni and --datagrams, the command ends when standard input and the server's side of the stream have ended, or
the session. If standard input is a terminal, the end of the server's side suffices.

Exit codes are those of 'courser get' and curl: 0 for success, 2 for invalid arguments, 6 and 7 without a
connection, 22 for a refused session, 28 for a time limit, 56 for a session that ended early, 60 for a
certificate that is not trusted, 95 for a server without WebTransport, 130 after SIGINT.";

/// Checks an origin, as browsers send it.
fn parse_origin(text: &str) -> Result<String, String> {
    let parsed = Origins::listed().and(text);
    parsed.map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// Parses 32 bytes in hexadecimal, with or without colons, or in base64.
pub(crate) fn parse_hash(text: &str) -> Result<[u8; 32], String> {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    let wrong = || {
        format!("'{text}' is not a SHA-256: use 64 hexadecimal digits or 44 characters of base64")
    };
    let digits: String = text.chars().filter(|it| *it != ':').collect();
    let bytes = if digits.len() == 64 && digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        let pairs = (0..32).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16));
        pairs.collect::<Result<Vec<_>, _>>().map_err(|_| wrong())?
    } else {
        BASE64_STANDARD.decode(text).map_err(|_| wrong())?
    };
    bytes.try_into().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_have_three_forms() {
        let mut hash = [0xab; 32];
        hash[0] = 1;
        let hex = format!("01{}", "ab".repeat(31));
        let colons = format!("01{}", ":AB".repeat(31));
        for text in [
            &hex,
            &colons,
            "Aaurq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=",
        ] {
            assert_eq!(parse_hash(text), Ok(hash), "{text}");
        }
        for wrong in ["", "01ab", "AAAA", &hex[1..], &format!("{}x", &hex[1..])] {
            let error = parse_hash(wrong).expect_err(wrong);
            assert!(error.contains("is not a SHA-256"), "{error}");
        }
    }
}
