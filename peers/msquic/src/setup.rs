//! The settings of both ends.

use std::mem;
use std::net::SocketAddr;
use std::path::Path;

use msquic::ffi::{
    QUIC_GLOBAL_EXECUTION_CONFIG,
    QUIC_GLOBAL_EXECUTION_CONFIG_FLAGS_QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NONE,
    QUIC_PARAM_CONFIGURATION_SETTINGS, QUIC_PARAM_CONN_REMOTE_ADDRESS,
    QUIC_PARAM_GLOBAL_EXECUTION_CONFIG, QUIC_SETTINGS,
};
use msquic::{
    Addr, AllowedCipherSuiteFlags, BufferRef, CertificateFile, Configuration, Connection,
    ConnectionEvent, Credential, CredentialConfig, Registration, RegistrationConfig, Settings,
    Status,
};
use peers_common::command_line::TransportOptions;
use peers_common::settings::{ALPN, CONNECTION_WINDOW, IDLE_TIMEOUT, STREAM_WINDOW};
use peers_common::{Failure, PathCounts};

use crate::parameters;

/// Makes the library use one thread for sockets and connections instead of one for each processor. It
/// must be called before anything else of the library.
///
/// # Errors
/// When msquic refuses it.
pub fn use_one_worker() -> Result<(), Failure> {
    let config = QUIC_GLOBAL_EXECUTION_CONFIG {
        Flags: QUIC_GLOBAL_EXECUTION_CONFIG_FLAGS_QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NONE,
        PollingIdleTimeoutUs: 0,
        ProcessorCount: 1,
        // Nothing is pinned to it: the runner has chosen the core of this process.
        ProcessorList: [0],
    };
    // SAFETY: this is the type that msquic expects.
    unsafe { parameters::set_global(QUIC_PARAM_GLOBAL_EXECUTION_CONFIG, &config) }?;
    Ok(())
}

/// Opens the library for one end. Its default profile has the thread of the sockets do all the work.
///
/// # Errors
/// When the library cannot be opened.
pub fn registration() -> Result<Registration, Failure> {
    Ok(Registration::new(&RegistrationConfig::default())?)
}

fn settings(options: TransportOptions, streams: u32) -> Result<Settings, Failure> {
    let idle = u64::try_from(IDLE_TIMEOUT.as_millis())?;
    let settings = Settings::new()
        .set_IdleTimeoutMs(idle)
        .set_PeerBidiStreamCount(u16::try_from(streams)?)
        .set_DatagramReceiveEnabled();
    if options.own_settings {
        return Ok(settings);
    }
    let size = options.datagram + HEADERS;
    Ok(settings
        .set_MinimumMtu(size)
        .set_MaximumMtu(size)
        .set_StreamRecvWindowDefault(STREAM_WINDOW)
        .set_ConnFlowControlWindow(CONNECTION_WINDOW))
}

/// Opens a configuration of either end.
///
/// # Errors
/// When msquic refuses the settings.
pub fn open(
    registration: &Registration,
    protocol: &[u8],
    settings: &Settings,
) -> Result<Configuration, Failure> {
    let protocols = [BufferRef::from(protocol)];
    Ok(Configuration::open(
        registration,
        &protocols,
        Some(settings),
    )?)
}

/// Opens a configuration for a measurement, without msquic's copies of data that is sent. The crate's `Settings` cannot
/// disable them.
fn open_without_copies(
    registration: &Registration,
    settings: &Settings,
) -> Result<Configuration, Failure> {
    let configuration = open(registration, ALPN, settings)?;
    // SAFETY: all fields are numbers.
    let mut without_copies: QUIC_SETTINGS = unsafe { mem::zeroed() };
    // SAFETY: both views of this union are numbers. The setting is marked as set, and its value is 0.
    unsafe { &mut without_copies.__bindgen_anon_1.IsSet }.set_SendBufferingEnabled(1);
    let parameter = QUIC_PARAM_CONFIGURATION_SETTINGS;
    // SAFETY: the configuration is open, and this is the type that msquic expects.
    unsafe { parameters::set(configuration.as_raw(), parameter, &without_copies) }?;
    Ok(configuration)
}

/// Opens the configuration of a server with the identity of this folder.
///
/// # Errors
/// When a file cannot be read, or msquic refuses the settings.
pub fn server(
    registration: &Registration,
    identity: &Path,
    options: TransportOptions,
    streams: u32,
) -> Result<Configuration, Failure> {
    let settings = settings(options, streams)?;
    let configuration = open_without_copies(registration, &settings)?;
    let tls = server_tls(&identity.join(CERTIFICATE), &identity.join(KEY))
        .set_allowed_cipher_suites(AllowedCipherSuiteFlags::AES_128_GCM_SHA256);
    configuration.load_credential(&tls)?;
    Ok(configuration)
}

/// TLS of a server with the certificate and the key of these files, PEM.
pub fn server_tls(certificate: &Path, key: &Path) -> CredentialConfig {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let pair = CertificateFile::new(text(key), text(certificate));
    CredentialConfig::new().set_credential(Credential::CertificateFile(pair))
}

/// Opens the configuration of a client that trusts the certificate of this folder and no others.
///
/// # Errors
/// As of [`server`].
pub fn client(
    registration: &Registration,
    identity: &Path,
    options: TransportOptions,
) -> Result<Configuration, Failure> {
    let settings = settings(options, 0)?;
    let configuration = open_without_copies(registration, &settings)?;
    let trusted = identity.join(CERTIFICATE).to_string_lossy().into_owned();
    let tls = CredentialConfig::new_client()
        .set_ca_certificate_file(trusted)
        .set_allowed_cipher_suites(AllowedCipherSuiteFlags::AES_128_GCM_SHA256);
    configuration.load_credential(&tls)?;
    Ok(configuration)
}

/// Gives a connection the address of its server.
///
/// # Errors
/// When msquic refuses the address.
pub fn set_server(connection: &Connection, server: SocketAddr) -> Result<(), Status> {
    let server = Addr::from(server);
    // SAFETY: the connection is open, and this is the type that msquic expects.
    unsafe { parameters::set(connection.as_raw(), QUIC_PARAM_CONN_REMOTE_ADDRESS, &server) }
}

/// Returns the reason for the end of a connection that this end did not close, if the event has one.
pub fn reason(event: &ConnectionEvent<'_>) -> Option<String> {
    match event {
        ConnectionEvent::ShutdownInitiatedByTransport { status, error_code } => {
            Some(format!("the connection failed: {status}, {error_code:#x}"))
        }
        ConnectionEvent::ShutdownInitiatedByPeer { error_code } => {
            Some(format!("the server closed with {error_code:#x}"))
        }
        _ => None,
    }
}

/// Returns what msquic counted on a connection, if it still tells.
pub fn counts(connection: &Connection) -> Option<PathCounts> {
    let counted = connection.get_stats_v2().ok()?;
    Some(PathCounts {
        packets_sent: counted.SendTotalPackets,
        packets_lost: counted.SendSuspectedLostPackets,
        packets_spuriously_lost: counted.SendSpuriousLostPackets,
        datagrams_received: 0,
        congestion_events: counted.SendCongestionCount.into(),
        // msquic counts the headers of IP and UDP.
        datagram: counted.SendPathMtu.saturating_sub(HEADERS),
        rtt_ms: f64::from(counted.Rtt) / 1e3,
    })
}

/// Headers of IPv4 and UDP, which msquic counts.
const HEADERS: u16 = 28;

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
