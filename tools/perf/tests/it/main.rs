//! The perf protocol over loopback, with peers that are old, new or hostile.

mod datagram;
