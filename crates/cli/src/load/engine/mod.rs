//! What sends requests and counts what becomes of them.

mod alarm;
mod connect;
mod connection;
mod metered;
mod schedule;
mod sender;
mod slot;
mod tally;
mod worker;

pub(super) use schedule::Schedule;
pub(super) use tally::{Agreed, ConnectionRecord, QuicRecord};
pub(super) use worker::{Finished, run};
