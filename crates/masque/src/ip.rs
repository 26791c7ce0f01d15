//! IP proxies without a transport: CONNECT-IP (RFC 9484).

pub mod limits;
pub mod packet;
mod range;
mod scope;

pub use self::range::{AddressRange, InvalidRange, Routes};
pub use self::scope::{Destination, InvalidScope, Scope};
