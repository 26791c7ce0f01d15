//! Tests of hyperium's `h3` on courser, against itself, on quinn, and against courser's own HTTP/3.

mod datagrams;
mod endings;
mod exchange;
mod program;
mod setup;
