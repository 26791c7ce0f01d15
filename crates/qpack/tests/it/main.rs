//! QPACK against the vectors of its implementers.

mod qifs;
