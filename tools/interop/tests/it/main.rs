//! Both ends of the interop runner's contract, against each other.

mod ends;
