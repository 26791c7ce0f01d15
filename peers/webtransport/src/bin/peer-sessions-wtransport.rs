//! Sessions of wtransport as a peer: `peer-sessions-wtransport server|client`.

fn main() -> Result<(), peers_common::Failure> {
    peers_webtransport::program::run::<peers_webtransport::wtransport::Wtransport>()
}
