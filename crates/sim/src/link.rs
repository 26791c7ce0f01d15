//! Links made of stacked effects, from [`courser_link`].

pub use courser_link::{
    Aqm, Blackhole, Change, DropList, Dropped, DuplexSpec, Gilbert, Histogram, Link, LinkSpec,
    LinkStats, Mtu, Nat, NatSpec, Policer, Probability, QueueLimit, QueueState, Remark, RemarkTo,
    Reorder, Repeated, SpecError, Step,
};
