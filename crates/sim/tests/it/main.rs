//! Named scenarios, and random operations: real endpoints on links with faults, in virtual time.

mod common;

mod amplification;
mod attacks;
mod careful_resume;
mod close;
mod congestion;
mod datagrams;
mod early_data;
mod ecn;
mod faults;
mod flow_control;
mod handshake;
mod http3;
mod icmp;
mod idle;
mod kernels;
mod key_update;
mod loss;
mod migration;
mod moves;
mod mtu;
mod outages;
mod pacing;
mod queues;
mod random_ops;
mod reconnect;
mod reordering;
mod retry;
mod slow_ends;
mod sockets;
mod stream_rates;
mod stream_reads;
mod streams;
