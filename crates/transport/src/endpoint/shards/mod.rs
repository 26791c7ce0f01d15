//! Several shards of one endpoint, which share what must hold for all of them.

mod creation;
mod outbox;
pub mod place;
pub mod stray;

pub use self::creation::MAX_SHARDS;
