//! Tokens of address validation in a file. RFC 9000 §8.1.3.

use std::sync::Arc;

use courser::client::FileTokenStore;
use courser::{ClientConfig, Endpoint, Identity, ServerConfig};

use super::within;
use crate::common::{loopback, until};

/// The second client is another one, as in another process: it has the file alone.
#[tokio::test]
async fn token_from_a_file_validates_the_address_of_a_later_client() {
    let folder = std::env::temp_dir().join(format!("courser-it-tokens-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity).expect("matching key");
    let server = Endpoint::server(config.alpn(["test"]), loopback()).expect("a port");
    let address = server.local_addr().expect("bound");
    for is_validated in [false, true] {
        let tokens = FileTokenStore::open(folder.join("tokens")).expect("usable");
        let tokens = Arc::new(tokens);
        let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
        let config = config.alpn(["test"]).token_store(Some(tokens.clone()));
        let client = Endpoint::client(loopback()).expect("a port");
        let connecting = client.connect_with(config, address, "localhost");
        let connecting = connecting.expect("configured");
        let incoming = within(server.accept()).await.expect("open");
        assert_eq!(incoming.remote_address_validated(), is_validated);
        let accept = async { incoming.await };
        let (client, server) = within(async { tokio::join!(connecting, accept) }).await;
        let (client, _server) = (client.expect("handshake"), server.expect("handshake"));
        until(|| client.stats().frames_received.new_token > 0).await;
        tokens.save().expect("a file");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}
