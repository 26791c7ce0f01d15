//! The memory of each shard of an endpoint.

use std::sync::atomic::AtomicU64;

/// The bytes that each shard of an endpoint holds. Only that shard writes its number.
///
/// It has cache lines of its own, because each shard reads it for nearly every packet and other cores write
/// the adjacent fields.
#[derive(Debug)]
#[repr(align(64))]
pub struct Ledger {
    pub used: Box<[Line]>,
    /// The time at which any shard has last closed a connection for lack of memory, in nanoseconds.
    pub shed: AtomicU64,
}

/// A number in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Line(pub AtomicU64);

impl Ledger {
    /// Creates the ledger of this many shards.
    pub fn new(shards: usize) -> Self {
        Self {
            used: std::iter::repeat_with(Line::default).take(shards).collect(),
            shed: AtomicU64::new(0),
        }
    }
}
