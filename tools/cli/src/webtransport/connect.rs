//! Connects to the server of a session.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser::server::CertificateFacts;
use courser::webtransport::{self, Config};
use courser::{
    ClientConfig, Connection, ConnectionError, Endpoint, HandshakeFailure, HandshakeFailureKind,
    HandshakeOffer, Side, TransportConfig, h3,
};
use courser_measure::target::{local_ip_for, port_closed};
use courser_measure::tls::{self, Trust};
use courser_units::rfc3339;

use super::args::Arguments;
use super::target::Target;
use crate::get::exit::{
    CA_FILE, CERTIFICATE, FAILED_INIT, Failed, NO_CONNECTION, PINNED_KEY, QUIC, TIMED_OUT, TLS,
    WRITE_ERROR,
};
use crate::get::pins;
use crate::handshake::{self, Tool};
use crate::process::RECORDS;

/// A connection of HTTP/3 that has announced WebTransport.
pub(super) struct Connected {
    pub(super) endpoint: Endpoint,
    pub(super) http3: h3::Client,
    pub(super) address: SocketAddr,
    /// The certificate of the server, if it can be read.
    pub(super) certificate: Option<CertificateFacts>,
}

/// Connects to the first address of the server that answers.
pub(super) async fn connect(arguments: &Arguments, target: &Target) -> Result<Connected, Failed> {
    let pinned = match &arguments.pinnedpubkey {
        Some(pins) => pins::read(pins)?,
        None => Vec::new(),
    };
    let (config, offer) = config(arguments)?;
    let mut first_failure = None;
    let count = u32::try_from(target.addresses.len()).unwrap_or(u32::MAX);
    for address in &target.addresses {
        let limit = arguments.timeout / count;
        match connect_to(*address, target, (config.clone(), &offer), limit).await {
            Ok((endpoint, connection)) => {
                let certificate = check(arguments, &pinned, &connection)?;
                let mut settings = h3::Config::new(Side::Client);
                let enabled = webtransport::enable(&mut settings, Side::Client, Config::new());
                enabled.map_err(|error| Failed::new(FAILED_INIT, error.to_string()))?;
                return Ok(Connected {
                    endpoint,
                    http3: h3::Client::with_config(connection, settings),
                    address: *address,
                    certificate,
                });
            }
            Err(failed) => first_failure = first_failure.or(Some(failed)),
        }
    }
    Err(first_failure.unwrap_or_else(|| Failed::new(NO_CONNECTION, "the server has no address")))
}

fn config(arguments: &Arguments) -> Result<(ClientConfig, HandshakeOffer), Failed> {
    let trust = match &arguments.cacert {
        Some(file) => Trust::File(file.clone()),
        // The hash is compared before anything is sent.
        None if arguments.insecure || !arguments.cert_hash.is_empty() => Trust::AnyServer,
        None => Trust::System,
    };
    let tls = tls::client(&trust, h3::ALPN.as_bytes());
    let tls = tls.map_err(|error| Failed::new(CA_FILE, error.to_string()))?;
    let sinks = RECORDS.sinks(arguments.qlog.as_deref(), "courser webtransport");
    let sinks = sinks.map_err(|error| Failed::new(WRITE_ERROR, error.to_string()))?;
    let transport = TransportConfig {
        sinks,
        handshake_timeout: arguments.timeout,
        // Users type, and wait for others.
        keep_alive_interval: Some(KEEP_ALIVE),
        ..TransportConfig::default()
    };
    let offer = HandshakeOffer::of_tls13(&tls);
    let config = ClientConfig::with_rustls(Arc::new(tls));
    Ok((config.transport_config(transport), offer))
}

async fn connect_to(
    address: SocketAddr,
    target: &Target,
    (config, offer): (ClientConfig, &HandshakeOffer),
    limit: Duration,
) -> Result<(Endpoint, Connection), Failed> {
    let local = SocketAddr::from((local_ip_for(address.ip()), 0));
    let refused = |error: String| Failed::new(NO_CONNECTION, error);
    let endpoint = Endpoint::client(local);
    let endpoint = endpoint.map_err(|error| refused(format!("cannot open a socket: {error}")))?;
    let connecting = endpoint.connect_with(config, address, &target.name);
    let connecting = connecting.map_err(|error| refused(error.to_string()))?;
    let connected = tokio::select! {
        connected = tokio::time::timeout(limit, connecting) => connected,
        () = port_closed(address) => return Err(refused(format!(
            "nothing is listening on udp {address}: is the server running, with HTTP/3?"
        ))),
    };
    let late = || {
        let text = format!(
            "no answer from udp {address} within {} s: is a server with HTTP/3 running there, \
             and does a firewall let UDP through?",
            limit.as_secs_f64()
        );
        Failed::new(TIMED_OUT, text)
    };
    match connected {
        Err(_) => Err(late()),
        Ok(Err(error)) if error.is_timeout() => Err(late()),
        Ok(Err(error)) => Err(refusal(&error, address, &target.name, offer)),
        Ok(Ok(connection)) => Ok((endpoint, connection)),
    }
}

fn refusal(
    error: &ConnectionError,
    address: SocketAddr,
    name: &str,
    offer: &HandshakeOffer,
) -> Failed {
    use HandshakeFailureKind as Kind;
    let place = address.to_string();
    let Some(failure) = HandshakeFailure::of_quic(error, &place, name, offer) else {
        let text = format!("cannot connect to {address}: {error}");
        return Failed::new(QUIC, text);
    };
    if failure.kind() == Kind::Protocol {
        let text =
            format!("{address} supports QUIC, but not HTTP/3 (ALPN h3), which sessions need");
        return Failed::new(QUIC, text);
    }
    let code = match failure.kind() {
        Kind::CertificateExpired
        | Kind::CertificateNotValidYet
        | Kind::CertificateForOtherName
        | Kind::CertificateUntrusted
        | Kind::CertificateOfAuthority
        | Kind::CertificateUnusable => CERTIFICATE,
        _ => TLS,
    };
    Failed::new(code, handshake::explain(&failure, Tool::WebTransport))
}

/// Checks the hashes that the user has given. Nothing was sent to the server before.
fn check(
    arguments: &Arguments,
    pinned: &[[u8; 32]],
    connection: &Connection,
) -> Result<Option<CertificateFacts>, Failed> {
    let chain = connection.peer_identity().unwrap_or_default();
    let facts = chain.first().and_then(CertificateFacts::of_certificate);
    let hashes = &arguments.cert_hash;
    let refuse = |code, text: String| {
        connection.close(BAD_CERTIFICATE.into(), b"the certificate is not trusted");
        Err(Failed::new(code, text))
    };
    let has = |known: &[[u8; 32]], hash: fn(&CertificateFacts) -> [u8; 32]| {
        facts.as_ref().is_some_and(|it| known.contains(&hash(it)))
    };
    if !hashes.is_empty() {
        if !has(hashes, |it| it.sha256) {
            let seen = facts
                .as_ref()
                .map_or_else(|| "unreadable".to_owned(), |it| hex(&it.sha256));
            let text = format!(
                "the certificate has the SHA-256 {seen}, which is none of those of --cert-hash"
            );
            return refuse(CERTIFICATE, text);
        }
        let now = SystemTime::now();
        if let Some(facts) = facts
            .as_ref()
            .filter(|it| now < it.not_before || it.not_after < now)
        {
            let (from, until) = (rfc3339(facts.not_before), rfc3339(facts.not_after));
            let text =
                format!("the certificate of --cert-hash is valid from {from} to {until}, not now");
            return refuse(CERTIFICATE, text);
        }
    }
    if !pinned.is_empty() && !has(pinned, |it| it.spki_sha256) {
        let text = "the public key of the server is none of those of --pinnedpubkey".to_owned();
        return refuse(PINNED_KEY, text);
    }
    Ok(facts)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The code of a connection to a server whose certificate is not trusted: bad_certificate of TLS (RFC 9001 §4.8).
const BAD_CERTIFICATE: u32 = 0x12a;
/// Less than the idle timeouts of usual servers.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
