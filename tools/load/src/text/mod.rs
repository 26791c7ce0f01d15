//! Formats reports as text.

mod h2load;
mod oha;

pub use h2load::{before as before_h2load, text as h2load};
pub use oha::text as oha;
