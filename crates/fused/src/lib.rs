//! AES-GCM in one pass for packets of QUIC, on the instructions of the processor.
//!
//! A general AES-GCM prepares counters, hashes the header, encrypts, hashes the rest and finishes the tag
//! in separate steps, whose fixed cost every packet of 1452 bytes pays. This crate seals or opens a packet in
//! one pass over its bytes, with precomputed powers of the hash key and round keys (`docs/design/0035`).
//!
//! [`PacketKey`] protects payloads (RFC 9001 §5.3) and [`HeaderKey`] computes the masks of headers
//! (RFC 9001 §5.4). Both exist only where the processor has the instructions: [`Kernel::best`] returns
//! the fastest one, or `None`, in which case the caller uses another implementation.
//!
//! The time of every function depends only on lengths. No branch and no address depends on a key, a
//! plaintext or a tag: AES and carry-less multiplication are instructions of constant time, and tags
//! are compared as one vector. Keys are erased when they are dropped.
//!
//! `unsafe` is confined to the modules that are named for a processor, and to the two that their kernels share:
//! `blocks` and `text`. The only other crate with `unsafe` is `courser-udp`.

#![deny(unsafe_code)]

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod blocks;
mod kernel;
mod key;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod none;
mod schedule;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod text;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
use arm as processor;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use none as processor;
#[cfg(target_arch = "x86_64")]
use x86 as processor;

pub use kernel::Kernel;
pub use key::{Forged, HeaderKey, PacketKey};
pub use schedule::{IV_LEN, MASK_LEN, SAMPLE_LEN, TAG_LEN};
