use rustls::compress::CompressionCache;

use super::*;
use crate::testing::messages::{COMPRESSED_CERTIFICATE, message, split};
use crate::testing::{Authority, End, SERVER_NAME, drive, options_of, start};
use crate::{ClientAuthentication, ClientOptions, Identity, ServerOptions, TlsClient, TlsServer};
use crate::{client_config, server_config};

/// Returns an authority, and a chain of three certificates of a host with many names.
fn long_chain() -> (Authority, Identity) {
    let root = Authority::new("The root certification authority of the example");
    let upper = root.authority("The upper intermediate authority of the example");
    let lower = upper.authority("The lower intermediate authority of the example");
    let names: Vec<String> = (0..80).map(|n| format!("host-{n}.{SERVER_NAME}")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push(SERVER_NAME);
    let mut identity = lower.identity_of(&names);
    identity.chain.push(lower.certificate());
    identity.chain.push(upper.certificate());
    (root, identity)
}

fn options_of_long_chain() -> (ClientOptions, ServerOptions) {
    let (root, identity) = long_chain();
    let mut options = options_of(&root);
    options.1.identity = identity;
    options
}

/// Starts a client that supports compression or not, and a server.
fn ends(options: (ClientOptions, ServerOptions), client_decompresses: bool) -> (End, End) {
    let mut client = rustls::ClientConfig::clone(&client_config(options.0).unwrap());
    if !client_decompresses {
        client.cert_decompressors.clear();
    }
    let client = TlsClient::new(Arc::new(client)).unwrap();
    let server = TlsServer::new(server_config(options.1).unwrap()).unwrap();
    start(&client, &server)
}

/// Completes a handshake. Returns the bytes of the server's first flight, and the types of its
/// messages.
fn first_flight(client: &mut End, server: &mut End) -> (usize, Vec<u8>) {
    server.read(&client.flight()).unwrap();
    let flight = server.flight();
    let bytes = flight.iter().map(|(_, bytes)| bytes.len()).sum();
    let kinds = flight.iter().flat_map(|(_, bytes)| split(bytes));
    let kinds = kinds.map(|message| message[0]).collect();
    client.read(&flight).unwrap();
    drive(client, server).unwrap();
    assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
    (bytes, kinds)
}

#[test]
fn long_chain_is_compressed_below_the_anti_amplification_limit() {
    let options = options_of_long_chain();
    let chain: Vec<_> = options
        .1
        .identity
        .chain
        .iter()
        .map(|it| it.to_vec())
        .collect();
    let full: usize = chain.iter().map(Vec::len).sum();
    assert!(full > 3000, "{full} bytes do not fit uncompressed");
    let left = compressed_chain_bytes(&options.1.identity.chain);
    let (mut client, mut server) = ends(options, true);
    let (bytes, kinds) = first_flight(&mut client, &mut server);
    assert_eq!(client.session.peer_certificates(), Some(chain));
    if cfg!(any(
        feature = "certificate-zlib",
        feature = "certificate-brotli"
    )) {
        assert!(kinds.contains(&COMPRESSED_CERTIFICATE), "{kinds:?}");
        // Three times a datagram of 1200 bytes, less headers and frames.
        assert!(bytes < 3 * 1100, "{bytes} bytes with a chain of {full}");
        let left = left.unwrap();
        assert!(left < full && left < bytes, "{left} of {full}");
        let used = client.session.handshake_data().certificate_compression;
        assert!(matches!(used, Some("zlib" | "brotli")), "{used:?}");
        let of_server = server.session.handshake_data();
        assert_eq!(of_server.certificate_compression, None);
    } else {
        assert_eq!(left, None);
        assert!(!kinds.contains(&COMPRESSED_CERTIFICATE), "{kinds:?}");
        assert_eq!(
            client.session.handshake_data().certificate_compression,
            None
        );
    }
}

#[test]
fn client_without_compression_receives_an_uncompressed_chain() {
    let options = options_of_long_chain();
    let full: usize = options.1.identity.chain.iter().map(|it| it.len()).sum();
    let (mut client, mut server) = ends(options, false);
    let (bytes, kinds) = first_flight(&mut client, &mut server);
    assert!(bytes > full, "{bytes} bytes with a chain of {full}");
    assert!(!kinds.contains(&COMPRESSED_CERTIFICATE), "{kinds:?}");
}

#[test]
fn short_chain_is_not_compressed() {
    let (mut client, mut server) = ends(options_of(&Authority::new("root")), true);
    let (_, kinds) = first_flight(&mut client, &mut server);
    assert!(!kinds.contains(&COMPRESSED_CERTIFICATE), "{kinds:?}");
}

#[test]
fn number_of_cached_chains_is_limited() {
    let (_, options) = options_of(&Authority::new("root"));
    let mut config = ServerConfig::clone(&server_config(options).unwrap());
    for (certificates, entries) in [
        (0, 16),
        (4, 16),
        (5, 20),
        (1024, 4096),
        (1025, 4096),
        (usize::MAX, 4096),
    ] {
        keep_compressed(&mut config, certificates);
        let kept = format!("{:?}", config.cert_compression_cache);
        let expected = format!("{:?}", CompressionCache::new(entries));
        assert_eq!(kept, expected, "{certificates} certificates");
    }
}

/// Runs a handshake of a client with a long chain, whose flight at the Handshake level `change`
/// modifies. Returns the error of the server.
#[cfg(any(feature = "certificate-zlib", feature = "certificate-brotli"))]
fn hostile_client(change: impl Fn(&mut Vec<u8>)) -> courser_crypto::TlsError {
    let (clients, identity) = long_chain();
    let mut options = options_of(&Authority::new("root"));
    options.0.identity = Some(identity);
    options.1.client_authentication = ClientAuthentication::Required(clients.roots());
    let (mut client, mut server) = ends(options, true);
    server.read(&client.flight()).unwrap();
    client.read(&server.flight()).unwrap();
    let mut flight = client.flight();
    let mut changed = 0;
    for (_, bytes) in &mut flight {
        let messages = split(bytes).into_iter().map(|whole| {
            if whole[0] != COMPRESSED_CERTIFICATE {
                return whole;
            }
            changed += 1;
            let mut body = whole[4..].to_vec();
            change(&mut body);
            message(COMPRESSED_CERTIFICATE, &body)
        });
        *bytes = messages.collect::<Vec<_>>().concat();
    }
    assert_eq!(changed, 1, "the server offers compression to clients");
    server.read(&flight).unwrap_err()
}

/// A change of a CompressedCertificate message.
#[cfg(any(feature = "certificate-zlib", feature = "certificate-brotli"))]
type Change = fn(&mut Vec<u8>);

/// RFC 8879 §4: the announced length is checked before and during decompression.
#[cfg(any(feature = "certificate-zlib", feature = "certificate-brotli"))]
#[test]
fn wrong_lengths_and_contents_of_compressed_certificates_are_refused() {
    // The algorithm, the length of the message, and the length of the compressed bytes come first.
    let cases: [(&str, Change); 5] = [
        ("16 MiB announced", |body| body[2..5].fill(0xff)),
        ("fewer bytes than there are", |body| {
            body[2..5].copy_from_slice(&[0, 0, 9])
        }),
        ("one byte more than there are", |body| {
            body[4] = body[4].wrapping_add(1)
        }),
        ("another algorithm", |body| body[1] = 9),
        ("damaged bytes", |body| body[20..].fill(0x55)),
    ];
    for (case, change) in cases {
        let error = hostile_client(change);
        let alert = error.alert.unwrap_or_default();
        // bad_certificate, or illegal_parameter for an algorithm that was not offered.
        assert!([42, 47, 50].contains(&alert), "{case}: {error:?}");
    }
}
