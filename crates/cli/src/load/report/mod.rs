//! The reports of a run, for humans.

mod text_h2load;
mod text_oha;

pub(super) use text_h2load::{before as before_h2load, text as text_h2load};
pub(super) use text_oha::text as text_oha;
