//! The settings of quiche, which are those of the other peers as far as quiche has them.

use std::path::Path;
use std::time::Duration;

use boring::ssl::{SslContextBuilder, SslFiletype, SslMethod, SslOptions, SslVerifyMode};
use peers_common::command_line::TransportOptions;
use peers_common::{Failure, settings};

use crate::body::Quic;

/// A server with the certificate and the key of these files, PEM. It sends no tickets.
///
/// # Errors
/// When the files cannot be read or do not fit together.
pub fn server(
    certificate: &Path,
    key: &Path,
    options: TransportOptions,
    streams: u32,
) -> Result<quiche::Config, Failure> {
    let mut tls = tls()?;
    tls.set_certificate_chain_file(certificate)?;
    tls.set_private_key_file(key, SslFiletype::PEM)?;
    transport(tls, options, streams)
}

/// A client that trusts the certificates of this file, PEM, and no others.
///
/// # Errors
/// When the file cannot be read.
pub fn client(roots: &Path, options: TransportOptions) -> Result<quiche::Config, Failure> {
    let mut tls = tls()?;
    tls.set_ca_file(roots)?;
    tls.set_verify(SslVerifyMode::PEER);
    transport(tls, options, 0)
}

/// The suite that was agreed on, by IANA's name. BoringSSL has no setting for those of TLS 1.3;
/// with AES in hardware it prefers TLS_AES_128_GCM_SHA256.
pub fn cipher_suite(connection: &mut Quic) -> &'static str {
    let tls: &mut boring::ssl::SslRef = connection.as_mut();
    let suite = tls.current_cipher();
    suite.and_then(|it| it.standard_name()).unwrap_or("none")
}

/// X25519 alone, no resumption.
fn tls() -> Result<SslContextBuilder, Failure> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    tls.set_curves_list("X25519")?;
    tls.set_options(SslOptions::NO_TICKET);
    Ok(tls)
}

fn transport(
    tls: SslContextBuilder,
    options: TransportOptions,
    streams: u32,
) -> Result<quiche::Config, Failure> {
    let mut config = quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?;
    config.set_application_protos(quiche::h3::APPLICATION_PROTOCOL)?;
    config.set_disable_active_migration(true);
    let limits = if options.own_settings {
        Limits {
            streams: streams.into(),
            ..OWN_SETTINGS
        }
    } else {
        let limits = Limits {
            idle: settings::IDLE_TIMEOUT,
            datagram: options.datagram.into(),
            stream: settings::STREAM_WINDOW.into(),
            connection: settings::CONNECTION_WINDOW.into(),
            streams: streams.into(),
        };
        config.set_max_stream_window(limits.stream);
        config.set_max_connection_window(limits.connection);
        limits
    };
    limits.set(&mut config)?;
    Ok(config)
}

/// What an end announces and keeps to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The idle timeout.
    pub idle: Duration,
    /// The UDP payload of full packets.
    pub datagram: usize,
    /// The first window of each stream.
    pub stream: u64,
    /// The first window of the connection.
    pub connection: u64,
    /// Bidirectional streams that the other end may open.
    pub streams: u64,
}

impl Limits {
    /// Gives them to a configuration, and CUBIC.
    ///
    /// # Errors
    /// When the idle timeout is too long.
    pub fn set(self, config: &mut quiche::Config) -> Result<(), Failure> {
        config.set_cc_algorithm(quiche::CongestionControlAlgorithm::CUBIC);
        config.set_max_idle_timeout(u64::try_from(self.idle.as_millis())?);
        config.set_max_send_udp_payload_size(self.datagram);
        config.set_initial_max_data(self.connection);
        config.set_initial_max_stream_data_bidi_local(self.stream);
        config.set_initial_max_stream_data_bidi_remote(self.stream);
        config.set_initial_max_stream_data_uni(self.stream);
        config.set_initial_max_streams_bidi(self.streams);
        config.set_initial_max_streams_uni(UNIDIRECTIONAL_STREAMS);
        Ok(())
    }
}

/// HTTP/3 has three from each end, and one more without meaning.
const UNIDIRECTIONAL_STREAMS: u64 = 100;

/// Datagrams and windows as the programs have them that come with quiche; the library's own
/// windows are 0.
const OWN_SETTINGS: Limits = Limits {
    idle: settings::IDLE_TIMEOUT,
    datagram: 1350,
    stream: 1_000_000,
    connection: 10_000_000,
    streams: 0,
};
