//! hyperium's HTTP/3 on courser, against itself, against courser's own HTTP/3 and on quinn.

mod datagrams;
mod endings;
mod exchange;
mod program;
mod setup;
