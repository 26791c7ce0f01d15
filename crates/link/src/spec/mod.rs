//! Specifications of links as data.
//!
//! Command lines, scenario files and code use the same grammar. [`LinkSpec`] lists its fields.

mod check;
mod display;
mod drop_list;
mod duplex_spec;
mod error;
mod fields;
mod link_spec;
mod nat;
mod parse;
mod parts;
mod table;

pub use self::drop_list::DropList;
pub use self::duplex_spec::DuplexSpec;
pub use self::error::SpecError;
pub use self::link_spec::LinkSpec;
pub use self::nat::NatSpec;
pub use self::parts::{
    Aqm, Blackhole, Change, Gilbert, Mtu, Policer, QueueLimit, Remark, RemarkTo, Reorder, Repeated,
    Step,
};

#[cfg(test)]
mod tests;
