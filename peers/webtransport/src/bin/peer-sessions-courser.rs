//! Sessions of courser as a peer: `peer-sessions-courser server|client`.

fn main() -> Result<(), peers_common::Failure> {
    peers_webtransport::program::run::<peers_webtransport::own::Courser>()
}
