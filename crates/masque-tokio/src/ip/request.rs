//! Requests for IP tunnels.

use courser_masque::Prefix;
use courser_masque::ip::{AddressRange, InvalidScope, Scope};

/// A request for a tunnel, for [`IpClient::open`](crate::IpClient::open).
///
/// ```
/// # mod courser { pub use courser_masque_tokio as masque; }
/// use courser::masque::IpRequest;
/// // All that the proxy allows, with addresses of both versions: a VPN.
/// let vpn = IpRequest::default();
/// // UDP to one network.
/// let some = IpRequest::to("192.0.2.0/24")?.protocol(17)?;
/// assert_ne!(vpn, some);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IpRequest {
    pub(crate) scope: Scope,
    pub(crate) addresses: Vec<Prefix>,
    pub(crate) routes: Vec<AddressRange>,
    pub(crate) is_router: bool,
}

impl Default for IpRequest {
    /// A tunnel for all packets that the proxy allows, with an address of each version of IP.
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            addresses: vec![Prefix::NEW_IPV4, Prefix::NEW_IPV6],
            routes: Vec::new(),
            is_router: false,
        }
    }
}

impl IpRequest {
    /// Asks for packets to a prefix, an address or a name only. The proxy resolves names. `*` stands for all.
    ///
    /// # Errors
    /// Returns an error if `target` is neither of them.
    pub fn to(target: &str) -> Result<Self, InvalidScope> {
        let mut request = Self::default();
        request.scope.destination = target.parse()?;
        Ok(request)
    }

    /// Asks for packets of one protocol, such as 6 for TCP or 17 for UDP, and ICMP.
    ///
    /// # Errors
    /// Returns an error for an extension header of IPv6.
    pub fn protocol(mut self, protocol: u8) -> Result<Self, InvalidScope> {
        self.scope.protocol = Scope::new("*", &protocol.to_string())?.protocol;
        Ok(self)
    }

    /// Sets the addresses that are requested, instead of one of each version: addresses or prefixes that this end had
    /// before, [`Prefix::NEW_IPV4`] and [`Prefix::NEW_IPV6`] for any. With none, the proxy decides alone. At most 16.
    #[must_use]
    pub fn addresses(mut self, addresses: impl IntoIterator<Item = Prefix>) -> Self {
        self.addresses = addresses.into_iter().collect();
        self
    }

    /// Advertises networks behind this end to the proxy, which may ignore them.
    #[must_use]
    pub fn routes(mut self, routes: impl IntoIterator<Item = AddressRange>) -> Self {
        self.routes = routes.into_iter().collect();
        self
    }

    /// Lowers the hop limit of packets that are sent, because this end forwards packets of other hosts and no system has
    /// lowered it before (RFC 9484 §7.1). A TUN device needs it not: the system is the router.
    #[must_use]
    pub const fn forwarding(mut self, is_router: bool) -> Self {
        self.is_router = is_router;
        self
    }
}
