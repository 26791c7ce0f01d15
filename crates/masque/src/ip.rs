//! IP proxies without a transport: CONNECT-IP (RFC 9484).

pub mod capsule;
pub mod limits;
pub mod packet;
mod range;
pub mod request;
mod scope;
mod template;

pub use self::capsule::{AssignedAddress, Capsule, CapsuleError, RequestedAddress};
pub use self::range::{AddressRange, InvalidRange, Routes};
pub use self::scope::{Destination, InvalidScope, Scope};
pub use self::template::{Mismatch, Template};
