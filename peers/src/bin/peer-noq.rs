//! noq as a peer: `peer-noq server|client`.

fn main() -> Result<(), peers::Failure> {
    peers_noq::quic_program::run()
}
