//! Clients of IP proxies.

use super::request::IpRequest;
use super::tunnel::IpTunnel;
use crate::open_error::OpenError;

/// A client of an IP proxy, which opens tunnels. Clones share the connection to the proxy.
#[derive(Clone, Debug)]
pub struct IpClient(());

impl IpClient {
    /// Opens a tunnel.
    ///
    /// # Errors
    /// Returns an error if the proxy refuses the tunnel, or the connection is lost.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready cancels the request.
    pub async fn open(&self, request: IpRequest) -> Result<IpTunnel, OpenError> {
        let _ = request;
        Err(OpenError::Unsupported)
    }
}
