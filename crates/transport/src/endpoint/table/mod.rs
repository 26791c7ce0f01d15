//! The connections of an endpoint: their records, their memory, their timers and what they have to do.

pub mod entries;
pub mod handle;
pub mod in_use;
pub mod ledger;
pub mod memory;
pub mod ready;
pub mod stage;
