//! s2n-quic as a peer: `peer-s2n-quic server|client`.

fn main() -> Result<(), peers::Failure> {
    peers_s2n_quic::quic_program::run()
}
