//! Handshakes, one after the other, whose connections are closed at once.

use crate::meter::Meter;
use crate::pair::Pair;
use crate::path::Path;

/// Runs the handshakes, and returns their number.
pub(crate) fn run(meter: &Meter) -> u64 {
    let client = (Path::HandshakeClient, Path::HandshakeClient);
    let server = (Path::HandshakeServer, Path::HandshakeServer);
    let mut pair = Pair::new(meter, client, server);
    for round in 0..WARM_UP + ROUNDS {
        if round >= WARM_UP {
            meter.start();
        }
        pair.connect();
        meter.stop();
        pair.close();
    }
    u64::from(ROUNDS)
}

const WARM_UP: u32 = 10;
const ROUNDS: u32 = 50;
