//! Packets on a link, from [`courser_link`].

pub use courser_link::{Packet, TooBig};
