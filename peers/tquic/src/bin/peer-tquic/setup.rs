//! The settings of both ends, which are those of the other peers as far as tquic has them.

use std::path::Path;

use peer_tquic_common::command_line::TransportOptions;
use peer_tquic_common::settings::{
    ALPN, CIPHER, CONNECTION_WINDOW, IDLE_TIMEOUT, PACKET_SIZE, STREAM_WINDOW,
};
use peer_tquic_common::{Failure, PathCounts};
use tquic::{Config, CongestionControlAlgorithm, Connection, TlsConfig};

use crate::socket::MAX_BATCH;

/// Returns an error if BoringSSL prefers another cipher suite on this processor than the one that is measured. tquic has
/// no setting for the suite, and no call that returns the suite of a connection.
pub(crate) fn check_suite() -> Result<(), Failure> {
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
pub(crate) fn server(
    identity: &Path,
    options: TransportOptions,
    streams: u32,
) -> Result<Config, Failure> {
    let file = |name| identity.join(name).to_string_lossy().into_owned();
    let (certificate, key) = (file(CERTIFICATE), file(KEY));
    let tls = TlsConfig::new_server_config(&certificate, &key, protocols(), false)?;
    transport(tls, options, streams)
}

/// A client that trusts the certificate of this folder and no others.
pub(crate) fn client(identity: &Path, options: TransportOptions) -> Result<Config, Failure> {
    let mut tls = TlsConfig::new_client_config(protocols(), false)?;
    tls.set_ca_certs(&identity.join(CERTIFICATE).to_string_lossy())?;
    tls.set_verify(true);
    transport(tls, options, 0)
}

fn protocols() -> Vec<Vec<u8>> {
    vec![ALPN.to_vec()]
}

fn transport(tls: TlsConfig, options: TransportOptions, streams: u32) -> Result<Config, Failure> {
    let mut config = Config::new()?;
    config.set_tls_config(tls);
    config.set_congestion_control_algorithm(CongestionControlAlgorithm::Cubic);
    config.set_max_idle_timeout(u64::try_from(IDLE_TIMEOUT.as_millis())?);
    config.set_initial_max_streams_bidi(streams.into());
    if options.own_settings {
        return Ok(config);
    }
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
    config.set_initial_max_data(CONNECTION_WINDOW.into());
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW.into());
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW.into());
    Ok(config)
}

/// Returns the counts of a connection. `largest` is the size of its largest packet.
pub(crate) fn counts(connection: &mut Connection, largest: usize) -> Option<PathCounts> {
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
