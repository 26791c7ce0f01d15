//! Connects to the server of a session.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use courser::server::CertificateFacts;
use courser::webtransport::{self, Config};
use courser::{
    CertificateHashVerifier, ClientConfig, Connection, ConnectionError, Endpoint, HandshakeFailure,
    HandshakeFailureKind, HandshakeOffer, Side, TransportConfig, h3,
};
use courser_measure::target::{local_ip_for, port_closed};
use courser_measure::tls::{self, Trust};
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, Error};
use tokio::net::TcpStream;
use tokio::time::timeout;

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
    let failure =
        first_failure.unwrap_or_else(|| Failed::new(NO_CONNECTION, "the server has no address"));
    Err(with_tcp(failure, &target.addresses).await)
}

/// Adds to a failure that a server listens on TCP, which tells a missing server from one that UDP does not reach.
async fn with_tcp(failure: Failed, addresses: &[SocketAddr]) -> Failed {
    let (true, Some(address)) = (
        [NO_CONNECTION, TIMED_OUT].contains(&failure.code),
        addresses.first(),
    ) else {
        return failure;
    };
    match timeout(TCP_TIME, TcpStream::connect(address)).await {
        Ok(Ok(_)) => {
            let text = format!(
                "{} (tcp {address} accepts connections: HTTP/3 may be off there, or a firewall or proxy may lack UDP)",
                failure.text
            );
            Failed::new(failure.code, text)
        }
        _ => failure,
    }
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
        connected = timeout(limit, connecting) => connected,
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
    let refuse = |code, text: String| {
        connection.close(BAD_CERTIFICATE.into(), b"the certificate is not trusted");
        Err(Failed::new(code, text))
    };
    if !arguments.cert_hash.is_empty()
        && let Err(text) = check_hash(&arguments.cert_hash, chain.first())
    {
        return refuse(CERTIFICATE, text);
    }
    let has_key = |facts: &CertificateFacts| pinned.contains(&facts.spki_sha256);
    if !pinned.is_empty() && !facts.as_ref().is_some_and(has_key) {
        let text = "the public key of the server is none of those of --pinnedpubkey".to_owned();
        return refuse(PINNED_KEY, text);
    }
    Ok(facts)
}

/// Checks the certificate of a server as browsers check it for `serverCertificateHashes`. Returns a message otherwise.
fn check_hash(hashes: &[[u8; 32]], certificate: Option<&CertificateDer<'_>>) -> Result<(), String> {
    let verifier = CertificateHashVerifier::new(hashes.iter().copied());
    let verifier = verifier.map_err(|error| error.to_string())?;
    let certificate = certificate.ok_or("the server has no certificate")?;
    // Neither names nor issuers are checked.
    let any_name = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
    let checked = verifier.verify_server_cert(certificate, &[], &any_name, &[], UnixTime::now());
    checked.map(drop).map_err(|error| match error {
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            format!("{} (--cert-hash)", other.0)
        }
        error => format!("{error} (--cert-hash)"),
    })
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
/// Time for TCP to answer, after UDP has not.
const TCP_TIME: Duration = Duration::from_millis(500);
