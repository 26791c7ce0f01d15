//! The settings of quiche, which are those of the other peers as far as quiche has them.

use std::path::Path;

use boring::ssl::{SslContextBuilder, SslFiletype, SslMethod, SslOptions, SslVerifyMode};

use crate::body::Quic;
use crate::command_line::TransportOptions;
use crate::{Failure, settings};

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
    config.set_cc_algorithm(quiche::CongestionControlAlgorithm::CUBIC);
    config.set_max_idle_timeout(u64::try_from(settings::IDLE_TIMEOUT.as_millis())?);
    config.set_initial_max_streams_bidi(streams.into());
    config.set_initial_max_streams_uni(UNIDIRECTIONAL_STREAMS);
    config.set_disable_active_migration(true);
    let (datagram, stream, connection) = if options.own_settings {
        OWN_SETTINGS
    } else {
        let stream = settings::STREAM_WINDOW.into();
        let connection = settings::CONNECTION_WINDOW.into();
        config.set_max_stream_window(stream);
        config.set_max_connection_window(connection);
        (options.datagram.into(), stream, connection)
    };
    config.set_max_send_udp_payload_size(datagram);
    config.set_initial_max_data(connection);
    config.set_initial_max_stream_data_bidi_local(stream);
    config.set_initial_max_stream_data_bidi_remote(stream);
    config.set_initial_max_stream_data_uni(stream);
    Ok(config)
}

/// HTTP/3 has three from each end, and one more without meaning.
const UNIDIRECTIONAL_STREAMS: u64 = 100;

/// Datagrams and windows as the programs have them that come with quiche; the library's own
/// windows are 0.
const OWN_SETTINGS: (usize, u64, u64) = (1350, 1_000_000, 10_000_000);
