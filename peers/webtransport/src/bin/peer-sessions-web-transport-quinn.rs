//! Sessions of web-transport-quinn as a peer: `peer-sessions-web-transport-quinn server|client`.

fn main() -> Result<(), peers_common::Failure> {
    peers_webtransport::program::run::<peers_webtransport::web_transport_quinn::WebTransportQuinn>()
}
