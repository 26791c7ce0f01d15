//! The settings of both ends.

use std::mem;
use std::path::Path;
use std::ptr;

use msquic::ffi::{
    QUIC_GLOBAL_EXECUTION_CONFIG,
    QUIC_GLOBAL_EXECUTION_CONFIG_FLAGS_QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NONE,
    QUIC_PARAM_CONFIGURATION_SETTINGS, QUIC_PARAM_GLOBAL_EXECUTION_CONFIG, QUIC_SETTINGS,
};
use msquic::{
    AllowedCipherSuiteFlags, Api, BufferRef, CertificateFile, Configuration, Connection,
    Credential, CredentialConfig, Registration, RegistrationConfig, Settings,
};
use peer_msquic_common::command_line::TransportOptions;
use peer_msquic_common::settings::{ALPN, CONNECTION_WINDOW, IDLE_TIMEOUT, STREAM_WINDOW};
use peer_msquic_common::{Failure, PathCounts};

/// Makes the library use one thread for sockets and connections instead of one for each processor. It
/// must be called before anything else of the library.
pub(crate) fn use_one_worker() -> Result<(), Failure> {
    let config = QUIC_GLOBAL_EXECUTION_CONFIG {
        Flags: QUIC_GLOBAL_EXECUTION_CONFIG_FLAGS_QUIC_GLOBAL_EXECUTION_CONFIG_FLAG_NONE,
        PollingIdleTimeoutUs: 0,
        ProcessorCount: 1,
        // Nothing is pinned to it: the runner has chosen the core of this process.
        ProcessorList: [0],
    };
    // It opens the library, which `set_param` expects.
    let _ = Api::get_ffi();
    let length = u32::try_from(size_of_val(&config))?;
    let parameter = QUIC_PARAM_GLOBAL_EXECUTION_CONFIG;
    let value = ptr::from_ref(&config).cast();
    // SAFETY: msquic copies the value during the call.
    unsafe { Api::set_param(ptr::null_mut(), parameter, length, value) }?;
    Ok(())
}

/// Opens the library for one end. Its default profile has the thread of the sockets do all the work.
pub(crate) fn registration() -> Result<Registration, Failure> {
    Ok(Registration::new(&RegistrationConfig::default())?)
}

/// The name of the application protocol.
pub(crate) fn protocols() -> [BufferRef; 1] {
    [BufferRef::from(ALPN)]
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

/// Opens a configuration without msquic's copies of data that is sent. The crate's `Settings` cannot disable them.
fn open(registration: &Registration, settings: &Settings) -> Result<Configuration, Failure> {
    let configuration = Configuration::open(registration, &protocols(), Some(settings))?;
    // SAFETY: all fields are numbers.
    let mut without_copies: QUIC_SETTINGS = unsafe { mem::zeroed() };
    // SAFETY: both views of this union are numbers. The setting is marked as set, and its value is 0.
    unsafe { &mut without_copies.__bindgen_anon_1.IsSet }.set_SendBufferingEnabled(1);
    let length = u32::try_from(size_of_val(&without_copies))?;
    let value = ptr::from_ref(&without_copies).cast();
    let parameter = QUIC_PARAM_CONFIGURATION_SETTINGS;
    // SAFETY: the configuration is open, and msquic copies the value during the call.
    unsafe { Api::set_param(configuration.as_raw(), parameter, length, value) }?;
    Ok(configuration)
}

pub(crate) fn server(
    registration: &Registration,
    identity: &Path,
    options: TransportOptions,
    streams: u32,
) -> Result<Configuration, Failure> {
    let settings = settings(options, streams)?;
    let configuration = open(registration, &settings)?;
    let file = |name| identity.join(name).to_string_lossy().into_owned();
    let pair = CertificateFile::new(file(KEY), file(CERTIFICATE));
    let tls = CredentialConfig::new()
        .set_credential(Credential::CertificateFile(pair))
        .set_allowed_cipher_suites(AllowedCipherSuiteFlags::AES_128_GCM_SHA256);
    configuration.load_credential(&tls)?;
    Ok(configuration)
}

pub(crate) fn client(
    registration: &Registration,
    identity: &Path,
    options: TransportOptions,
) -> Result<Configuration, Failure> {
    let settings = settings(options, 0)?;
    let configuration = open(registration, &settings)?;
    let trusted = identity.join(CERTIFICATE).to_string_lossy().into_owned();
    let tls = CredentialConfig::new_client()
        .set_ca_certificate_file(trusted)
        .set_allowed_cipher_suites(AllowedCipherSuiteFlags::AES_128_GCM_SHA256);
    configuration.load_credential(&tls)?;
    Ok(configuration)
}

/// Returns what msquic counted on a connection, if it still tells.
pub(crate) fn counts(connection: &Connection) -> Option<PathCounts> {
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
