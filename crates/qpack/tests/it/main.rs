//! Tests of QPACK against the vectors of other implementations.

mod qifs;
