//! The flags for certificates from an ACME server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use courser_measure::target::parse_ip;
use courser_units::parse_duration;

use crate::values::parse_listen;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AcmeArguments {
    /// Obtain a certificate for --domain from Let's Encrypt
    #[cfg_attr(
        not(feature = "acme"),
        doc = "(not in this build: needs --features acme)"
    )]
    ///
    /// The server must be reachable on TCP port 443, unless --acme-challenge says otherwise.
    #[arg(id = "acme", long = "acme", requires = "domain", conflicts_with_all = ["cert", "no_tcp"])]
    pub(crate) is_on: bool,

    /// Contact address for the ACME account
    #[arg(long, value_name = "ADDRESS", requires = "acme")]
    pub(crate) email: Option<String>,

    /// Directory for the ACME account, the certificate and the stateless reset secret
    #[arg(
        id = "acme_folder",
        long = "acme-dir",
        value_name = "DIR",
        requires = "acme",
        default_value = "courser-acme"
    )]
    pub(crate) folder: PathBuf,

    /// Directory URL of another ACME server
    #[arg(
        id = "acme_server",
        long = "acme-server",
        value_name = "URL",
        requires = "acme"
    )]
    pub(crate) server: Option<String>,

    /// Trust the CA certificates in this file (PEM) for the ACME server
    #[arg(
        id = "acme_ca",
        long = "acme-ca",
        value_name = "FILE",
        requires = "acme"
    )]
    pub(crate) ca: Option<PathBuf>,

    /// How the ACME server validates the names of --domain
    #[arg(
        id = "acme_challenge",
        long = "acme-challenge",
        value_name = "KIND",
        value_enum,
        requires = "acme",
        default_value = "tls-alpn-01"
    )]
    pub(crate) challenge: Challenge,

    /// Program that adds and removes DNS records, for --acme-challenge dns-01
    ///
    /// It is called with three arguments: `present` or `cleanup`, the name of the record such as
    /// `_acme-challenge.example.org.`, and its value. Programs for the `exec` provider of lego work. It ends
    /// with code 0 once the record is added or removed; the last line that it writes to stderr explains a failure.
    #[arg(
        long = "acme-dns-hook",
        value_name = "PROGRAM",
        requires = "acme",
        required_if_eq("acme_challenge", "dns-01")
    )]
    pub(crate) dns_hook: Option<PathBuf>,

    /// Wait after --acme-dns-hook has added a record, until all servers of the zone have it
    #[arg(
        long = "acme-dns-wait",
        value_name = "SECONDS",
        value_parser = parse_duration,
        requires = "dns_hook",
        default_value = "30"
    )]
    pub(crate) dns_wait: Duration,

    /// ID of an account that the authority has issued (external account binding)
    #[arg(long = "acme-eab", value_name = "ID", requires_all = ["acme", "eab_key"])]
    pub(crate) eab: Option<String>,

    /// File with the key of --acme-eab, in base64url as the authority shows it
    #[arg(long = "acme-eab-key", value_name = "FILE", requires = "eab")]
    pub(crate) eab_key: Option<PathBuf>,

    /// Profile of the certificate, such as shortlived, if the authority offers several
    #[arg(
        id = "acme_profile",
        long = "acme-profile",
        value_name = "NAME",
        requires = "acme"
    )]
    pub(crate) profile: Option<String>,

    /// Listen for plain HTTP on this address, usually port 80, and redirect to https; repeatable
    ///
    /// With --acme-challenge http-01 the ACME server validates the names here.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_plain,
          required_if_eq("acme_challenge", "http-01"))]
    pub(crate) redirect_http: Vec<SocketAddr>,
}

/// How an ACME server validates names (RFC 8555 §8).
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Challenge {
    /// By TLS on TCP port 443
    #[value(name = "tls-alpn-01")]
    TlsAlpn01,
    /// By plain HTTP on TCP port 80; see --redirect-http
    #[value(name = "http-01")]
    Http01,
    /// By DNS records, also for wildcards; see --acme-dns-hook
    #[value(name = "dns-01")]
    Dns01,
}

/// Parses an address of plain HTTP, whose port is 80 if it has none.
fn parse_plain(text: &str) -> Result<SocketAddr, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    match parse_ip(bare) {
        Ok(ip) => Ok(ip.with_port(80)),
        Err(_) => parse_listen(text),
    }
}

impl AcmeArguments {
    /// Returns a warning if the ACME server connects to another port than this server listens on.
    pub(super) fn port_warning(&self, https: SocketAddr) -> Option<String> {
        let (served, wanted) = match self.challenge {
            _ if !self.is_on => return None,
            Challenge::TlsAlpn01 => (https.port(), 443),
            Challenge::Http01 => (self.redirect_http.first()?.port(), 80),
            Challenge::Dns01 => return None,
        };
        (served != wanted).then(|| {
            format!(
                "ACME servers connect to TCP port {wanted}, and this server listens on {served}: forward port \
                 {wanted} to it, or listen on it"
            )
        })
    }
}

#[cfg(feature = "acme")]
pub(super) use self::build::acme;

/// Builds the settings of the library.
#[cfg(feature = "acme")]
mod build {
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use base64::Engine as _;
    use base64::engine::DecodePaddingMode;
    use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
    use courser::server::{Acme, DnsChange};
    use courser_measure::{Failure, tls};

    use super::{AcmeArguments, Challenge};

    /// Returns the settings for these names.
    pub(in crate::serve) fn acme(
        arguments: &AcmeArguments,
        domains: &[String],
    ) -> Result<Acme, Failure> {
        let mut acme = Acme::new(domains, &arguments.folder);
        if let Some(email) = &arguments.email {
            acme = acme.contact(email);
        }
        if let Some(url) = &arguments.server {
            acme = acme.directory(url);
        }
        if let Some(path) = &arguments.ca {
            acme = acme.roots(tls::roots(tls::certificates(path)?, path)?);
        }
        if let Some(profile) = &arguments.profile {
            acme = acme.profile(profile);
        }
        if let Some((id, path)) = arguments.eab.as_ref().zip(arguments.eab_key.as_ref()) {
            acme = acme.external_account(id, read_key(path)?);
        }
        match arguments.challenge {
            Challenge::TlsAlpn01 => {}
            Challenge::Http01 => acme = acme.http01(),
            Challenge::Dns01 => {
                let program = arguments.dns_hook.clone().unwrap_or_default();
                let wait = arguments.dns_wait;
                acme = acme.dns01(move |change| run(program.clone(), change, wait));
            }
        }
        Ok(acme)
    }

    /// Reads the key of an external account.
    fn read_key(path: &Path) -> Result<Vec<u8>, Failure> {
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::new(format!(
                "cannot use --acme-eab-key {}: {why}",
                path.display()
            ))
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let config =
            GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let alphabet = match text.contains(['+', '/']) {
            true => &base64::alphabet::STANDARD,
            false => &base64::alphabet::URL_SAFE,
        };
        let key = GeneralPurpose::new(alphabet, config).decode(text.trim());
        match key {
            Ok(key) if !key.is_empty() => Ok(key),
            Ok(_) => Err(wrong(&"the file is empty")),
            Err(error) => Err(wrong(&format!(
                "it is not base64url, the form in which authorities show the key: {error}"
            ))),
        }
    }

    /// Calls the program that changes DNS records.
    async fn run(program: PathBuf, change: DnsChange, wait: Duration) -> Result<(), String> {
        let (verb, record, wait) = match change {
            DnsChange::Add(record) => ("present", record, wait),
            DnsChange::Remove(record) => ("cleanup", record, Duration::ZERO),
            _ => return Err("a change that this version does not know".to_owned()),
        };
        let name = program.display().to_string();
        let call = move || {
            Command::new(program)
                .args([verb, &record.name, &record.value])
                .stdin(Stdio::null())
                .output()
        };
        let ended = tokio::task::spawn_blocking(call).await;
        let output = ended.map_err(|error| error.to_string())?;
        let output = output.map_err(|error| format!("{name}: {error}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            let why = last.unwrap_or("it wrote no reason to stderr");
            return Err(format!("{name} {verb}: {}: {why}", output.status));
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn file(name: &str, content: &str) -> PathBuf {
            let path = std::env::temp_dir().join(format!("courser-{name}-{}", std::process::id()));
            std::fs::write(&path, content).expect("written");
            path
        }

        #[test]
        fn keys_of_external_accounts_are_base64url_with_and_without_padding() {
            for (text, key) in [
                ("-_8\n", Some(&[0xfb, 0xff][..])),
                ("-_8=", Some(&[0xfb, 0xff])),
                ("+/8=", Some(&[0xfb, 0xff])),
                ("", None),
                ("not a key", None),
            ] {
                let path = file("eab", text);
                let read = read_key(&path).ok();
                std::fs::remove_file(path).expect("removed");
                assert_eq!(read.as_deref(), key, "{text}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Command;

    fn arguments(flags: &[&str]) -> Result<AcmeArguments, String> {
        let words = ["courser", "serve"]
            .into_iter()
            .chain(flags.iter().copied());
        let parsed = crate::args::Arguments::try_parse_from(words);
        let parsed = parsed.map_err(|error| error.to_string())?;
        let Some(Command::Serve(serve)) = parsed.command else {
            panic!("another command");
        };
        Ok(serve.certificate.acme)
    }

    const ACME: [&str; 3] = ["--acme", "-d", "a.test"];

    #[test]
    fn challenges_require_what_they_use() {
        let with = |flags: &[&str]| arguments(&[&ACME[..], flags].concat());
        assert!(with(&[]).is_ok());
        for (flags, missing) in [
            (&["--acme-challenge", "http-01"][..], "--redirect-http"),
            (&["--acme-challenge", "dns-01"], "--acme-dns-hook"),
            (&["--acme-eab", "id"], "--acme-eab-key"),
        ] {
            let error = with(flags).expect_err("a missing flag");
            assert!(error.contains(missing), "{error}");
        }
        assert!(
            arguments(&["--acme-profile", "x"]).is_err(),
            "without --acme"
        );
        assert!(arguments(&["--redirect-http", "127.0.0.1:80"]).is_ok());
    }

    #[test]
    fn other_ports_than_those_of_acme_servers_are_a_warning() {
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let with = |flags: &[&str]| arguments(&[&ACME[..], flags].concat()).expect("valid");
        assert_eq!(with(&[]).port_warning(at(443)), None);
        let warning = with(&[]).port_warning(at(8443)).expect("a warning");
        assert!(
            warning.contains("port 443") && warning.contains("8443"),
            "{warning}"
        );
        let http = |address| with(&["--acme-challenge", "http-01", "--redirect-http", address]);
        assert_eq!(http("0.0.0.0").port_warning(at(8443)), None);
        assert_eq!(http("[::]:80").port_warning(at(8443)), None);
        assert!(http("[::]:8080").port_warning(at(443)).is_some());
        assert_eq!(arguments(&[]).expect("valid").port_warning(at(8443)), None);
    }
}
