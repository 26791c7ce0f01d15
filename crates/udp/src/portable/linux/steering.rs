//! The filter that picks a socket of a group for each datagram (`SO_ATTACH_REUSEPORT_CBPF`).
//!
//! The kernel runs it on the UDP payload of a datagram, or on that of the first one of a batch, and takes
//! the result as the number of a socket, in the order in which they were bound. A result that is no such
//! number leaves the choice to the kernel's hash of the addresses.

use std::io;
use std::os::fd::BorrowedFd;

use libc::{
    BPF_A, BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_MOD,
    BPF_RET, BPF_W, sock_filter,
};

use super::sockopt;
use crate::steering::Steering;

/// Attaches the filter for a group of `sockets` sockets to one of them, which does it for all.
pub(super) fn attach(socket: BorrowedFd<'_>, steering: Steering, sockets: u16) -> io::Result<()> {
    sockopt::attach_reuseport_filter(socket, &filter(steering, sockets))
}

/// Returns the filter. [`Steering`] states its rule; jumps have the numbers of instructions.
///
/// A load beyond the end of the datagram ends the filter with 0. Such datagrams are no packets of QUIC.
fn filter(steering: Steering, sockets: u16) -> [sock_filter; FILTER_LEN] {
    let (id_len, offset) = (u32::from(steering.id_len), u32::from(steering.offset));
    let sockets = u32::from(sockets);
    [
        load(BPF_B, 0),
        jump(1, BPF_JSET, LONG_HEADER, 5, 2),
        // 2: a short header, whose ID is one of ours.
        load(BPF_B, SHORT_ID + offset),
        step(BPF_ALU | BPF_MOD | BPF_K, sockets),
        step(BPF_RET | BPF_A, 0),
        // 5: a long header. Version Negotiation has version 0 and no type.
        load(BPF_W, VERSION),
        jump(6, BPF_JEQ, 0, 17, 7),
        jump(7, BPF_JEQ, VERSION_1, 8, 12),
        // 8: in version 1, clients choose the IDs of types 0 and 1 (Initial and 0-RTT).
        load(BPF_B, 0),
        step(BPF_ALU | BPF_AND | BPF_K, TYPE),
        jump(10, BPF_JEQ, 0x00, 22, 11),
        jump(11, BPF_JEQ, 0x10, 22, 17),
        // 12: in version 2, those of types 1 and 2 (RFC 9369 §3.2).
        jump(12, BPF_JEQ, VERSION_2, 13, 22),
        load(BPF_B, 0),
        step(BPF_ALU | BPF_AND | BPF_K, TYPE),
        jump(15, BPF_JEQ, 0x10, 22, 16),
        jump(16, BPF_JEQ, 0x20, 22, 17),
        // 17: another packet, whose ID is one of ours if it is as long.
        load(BPF_B, LONG_ID - 1),
        jump(18, BPF_JEQ, id_len, 19, 22),
        load(BPF_B, LONG_ID + offset),
        step(BPF_ALU | BPF_MOD | BPF_K, sockets),
        step(BPF_RET | BPF_A, 0),
        // 22: the kernel decides.
        step(BPF_RET | BPF_K, NO_SOCKET),
    ]
}

fn load(size: u32, at: u32) -> sock_filter {
    step(BPF_LD | size | BPF_ABS, at)
}

/// Goes from instruction `here` to `yes` or `no`, which are later ones.
fn jump(here: u8, test: u32, value: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter {
        jt: yes - here - 1,
        jf: no - here - 1,
        ..step(BPF_JMP | test | BPF_K, value)
    }
}

fn step(code: u32, k: u32) -> sock_filter {
    sock_filter {
        code: u16::try_from(code).expect("codes have 8 bits"),
        jt: 0,
        jf: 0,
        k,
    }
}

const FILTER_LEN: usize = 23;
/// The bit of the first byte that all long headers have (RFC 8999 §5.1), and those of the type.
const LONG_HEADER: u32 = 0x80;
const TYPE: u32 = 0x30;
/// Offsets of the version and of the Destination Connection ID.
const VERSION: u32 = 1;
const SHORT_ID: u32 = 1;
const LONG_ID: u32 = 6;
const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;
/// A number that no socket has, with which the kernel decides.
const NO_SOCKET: u32 = u32::MAX;
