//! quinn as a peer: `peer-quinn server|client`.

fn main() -> Result<(), peers::Failure> {
    peers_quinn::quic_program::run()
}
