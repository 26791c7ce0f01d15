//! Frames that carry addresses: observed ones, and candidates for direct paths.
//!
//! draft-ietf-quic-address-discovery-00 §4.1, and the variant of draft-seemann-quic-nat-traversal that the
//! field uses: its frame types are those of the draft plus 0x100.
//!
//! An address has four or sixteen bytes, which the type of the frame distinguishes. It is encoded in its canonical
//! form: an IPv4-mapped IPv6 address as the IPv4 address.

mod add_address;
mod numbered;
mod observed_address;
mod reach_out;
mod remove_address;

pub use add_address::AddAddress;
pub use observed_address::ObservedAddress;
pub use reach_out::ReachOut;
pub use remove_address::RemoveAddress;

#[cfg(test)]
mod tests;
