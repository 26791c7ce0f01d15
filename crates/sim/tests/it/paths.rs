//! Connections over several links: their sum, small transfers, links that die and return. RFC 10069.
//!
//! The bars are those of docs/design/0098.

mod lab;
mod outages;
mod shares;
