//! Connection IDs.

use peers_common::Failure;
use quiche::ConnectionId;

use crate::body::Quic;

/// A connection ID of either end.
pub(crate) type Id = [u8; ID_LEN];

/// Random bytes.
pub(crate) fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], Failure> {
    let mut bytes = [0; LENGTH];
    boring::rand::rand_bytes(&mut bytes)?;
    Ok(bytes)
}

/// Gives the peer as many IDs of `make` as it takes, and passes each to `issued`.
pub(crate) fn offer(
    quic: &mut Quic,
    make: impl Fn() -> Result<Id, Failure>,
    mut issued: impl FnMut(Id),
) -> Result<(), Failure> {
    while quic.is_established() && quic.scids_left() > 0 {
        let (id, token) = (make()?, u128::from_be_bytes(random()?));
        quic.new_scid(&ConnectionId::from_ref(&id), token, false)?;
        issued(id);
    }
    Ok(())
}

/// The length of all IDs, which the peers put in front of their packets.
pub(crate) const ID_LEN: usize = 8;
