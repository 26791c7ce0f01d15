//! What sends requests and counts what becomes of them.

mod alarm;
mod connect;
mod connection;
mod label;
mod lock;
mod metered;
mod run;
mod schedule;
mod sender;
mod slot;
mod tally;
mod worker;

pub(super) use run::{Progress, run};
pub(super) use tally::{Agreed, ConnectionRecord, Finished, QuicRecord};
