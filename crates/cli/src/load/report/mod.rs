//! What a run has come to, for humans and programs.

mod json;
mod text_h2load;
mod text_oha;

pub(super) use json::document;
pub(super) use text_h2load::{before as before_h2load, text as text_h2load};
pub(super) use text_oha::text as text_oha;
