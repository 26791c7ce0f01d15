//! The settings of both ends, which are those of the other peers as far as tquic has them.

use std::path::Path;
use std::time::Duration;

use peers_common::command_line::TransportOptions;
use peers_common::settings::{
    ALPN, CIPHER, CONNECTION_WINDOW, IDLE_TIMEOUT, PACKET_SIZE, STREAM_WINDOW,
};
use peers_common::{Failure, PathCounts};
use tquic::{Config, CongestionControlAlgorithm, Connection, TlsConfig};

use crate::socket::MAX_BATCH;

/// Checks that BoringSSL prefers the cipher suite that is measured. tquic has no setting for the suite, and no call that
/// returns the suite of a connection.
///
/// # Errors
/// When the processor has no instructions for AES: BoringSSL prefers another suite then.
pub fn check_suite() -> Result<(), Failure> {
    if has_aes() {
        return Ok(());
    }
    Err(
        format!("BoringSSL takes {CIPHER} only where the processor has instructions for AES")
            .into(),
    )
}

#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

/// A server with the identity of this folder.
///
/// # Errors
/// When a file cannot be read, or tquic has no such packets.
pub fn server(identity: &Path, options: TransportOptions, streams: u32) -> Result<Config, Failure> {
    let (certificate, key) = (identity.join(CERTIFICATE), identity.join(KEY));
    let tls = server_tls(&certificate, &key, protocols(), false)?;
    transport(tls, options, streams)
}

/// A client that trusts the certificate of this folder and no others.
///
/// # Errors
/// As of [`server`].
pub fn client(identity: &Path, options: TransportOptions) -> Result<Config, Failure> {
    let mut tls = TlsConfig::new_client_config(protocols(), false)?;
    tls.set_ca_certs(&identity.join(CERTIFICATE).to_string_lossy())?;
    tls.set_verify(true);
    transport(tls, options, 0)
}

/// TLS of a server with the certificate and the key of these files, PEM. `is_early` is true if it takes 0-RTT data.
///
/// # Errors
/// When the files cannot be read or do not fit together.
pub fn server_tls(
    certificate: &Path,
    key: &Path,
    protocols: Vec<Vec<u8>>,
    is_early: bool,
) -> Result<TlsConfig, Failure> {
    let (certificate, key) = (certificate.to_string_lossy(), key.to_string_lossy());
    Ok(TlsConfig::new_server_config(
        &certificate,
        &key,
        protocols,
        is_early,
    )?)
}

fn protocols() -> Vec<Vec<u8>> {
    vec![ALPN.to_vec()]
}

fn transport(tls: TlsConfig, options: TransportOptions, streams: u32) -> Result<Config, Failure> {
    let mut config = Config::new()?;
    config.set_tls_config(tls);
    config.set_congestion_control_algorithm(CongestionControlAlgorithm::Cubic);
    let windows = if options.own_settings {
        None
    } else {
        let size = usize::from(options.datagram);
        if size > MAX_PACKET {
            let most = format!("tquic has packets of {MAX_PACKET} bytes at most");
            return Err(format!("{most}, not of {size}: choose {PACKET_SIZE}").into());
        }
        // Connections start with 1200 bytes and probe for this size once.
        config.set_send_udp_payload_size(size);
        // One GSO send.
        config.set_send_batch_size(MAX_BATCH / size);
        // The maximum windows come first, because they limit the initial ones.
        config.set_max_connection_window(CONNECTION_WINDOW.into());
        config.set_max_stream_window(STREAM_WINDOW.into());
        Some(Windows {
            stream: STREAM_WINDOW.into(),
            connection: CONNECTION_WINDOW.into(),
        })
    };
    let limits = Limits {
        idle: IDLE_TIMEOUT,
        streams: streams.into(),
        windows,
    };
    limits.set(&mut config)?;
    Ok(config)
}

/// What an end announces and keeps to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The idle timeout.
    pub idle: Duration,
    /// Bidirectional streams that the other end may open.
    pub streams: u64,
    /// The first windows, if they are not tquic's own.
    pub windows: Option<Windows>,
}

/// The first windows of flow control.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Of each bidirectional stream.
    pub stream: u64,
    /// Of the connection.
    pub connection: u64,
}

impl Limits {
    /// Gives them to a configuration.
    ///
    /// # Errors
    /// When the idle timeout is too long.
    pub fn set(self, config: &mut Config) -> Result<(), Failure> {
        config.set_max_idle_timeout(u64::try_from(self.idle.as_millis())?);
        config.set_initial_max_streams_bidi(self.streams);
        if let Some(Windows { stream, connection }) = self.windows {
            config.set_initial_max_data(connection);
            config.set_initial_max_stream_data_bidi_local(stream);
            config.set_initial_max_stream_data_bidi_remote(stream);
        }
        Ok(())
    }
}

/// Returns the counts of a connection. `largest` is the size of its largest packet.
pub fn counts(connection: &mut Connection, largest: usize) -> Option<PathCounts> {
    let path = connection.paths_iter().next()?;
    let counted = connection.get_path_stats(path.local, path.remote).ok()?;
    Some(PathCounts {
        packets_sent: counted.sent_count,
        packets_lost: counted.lost_count,
        packets_spuriously_lost: 0,
        datagrams_received: 0,
        // tquic 1.6 has this field but never increases it.
        congestion_events: counted.loss_event_count,
        datagram: u16::try_from(largest).unwrap_or(u16::MAX),
        rtt_ms: counted.srtt as f64 / 1e3,
    })
}

/// The length of tquic's buffers for packets.
const MAX_PACKET: usize = 2048;

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
