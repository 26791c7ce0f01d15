//! Requests on connections of other origins (RFC 9412, RFC 8336 §2.4).
//!
//! An HTTP/3 connection serves another origin if its server claims the origin in an ORIGIN frame and its
//! certificate is valid for the name. Without such a frame, no connection is shared between origins. DNS is not
//! consulted, as RFC 8336 permits.

use super::core::Core;
use super::link::{Established, Link};
use super::pool::Key;

/// Returns a connection of another origin that may carry requests for this one.
pub(super) fn find(core: &Core, key: &Key) -> Option<Established> {
    let origin = &key.origin;
    let is_direct = key.proxy.is_none() && key.address.is_none();
    let may_share = is_direct && core.may_use_quic(key);
    // If the user has chosen an address, no other server may be used.
    if !may_share || core.settings.is_redirected(origin) {
        return None;
    }
    let claiming = core.pool.claiming(origin);
    claiming.into_iter().find(|established| {
        let Link::Http3(client) = &established.link else {
            return false;
        };
        let chain = client.quic().peer_identity().unwrap_or_default();
        core.tls.covers(&chain, origin.host())
    })
}
