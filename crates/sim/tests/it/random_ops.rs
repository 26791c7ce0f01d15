//! Random operations of two applications over random faults: the invariants hold regardless of
//! operations and network.
//!
//! Faults have the numbers of `docs/FAULTS.md`. The table shows the faults that each run draws and
//! where they are injected. Faults that are not drawn have scenarios of their own:
//!
//! | faults | what | where | scenarios |
//! |---|---|---|---|
//! | F01, F02 | loss, in bursts | link: `loss`, `gilbert` | `loss.rs`, `faults.rs` |
//! | F03 | exact masks | link: `mask`, `every` | `handshake.rs`, `retry.rs`, `faults.rs` |
//! | F04, F05 | blackholes | link: `blackhole` | `faults.rs`, `idle.rs` |
//! | F06 to F09 | late, twice, changed, cut, longer | link: `reorder`, `duplicate`, `corrupt`, `truncate`, `extend` | `reordering.rs`, `faults.rs` |
//! | F10 | datagrams split and joined | machine: `MachineFaults::recut` | `attacks.rs` |
//! | F11 to F13 | delay, jitter, rate that jump | link: `delay@`, `jitter`, `rate@` | `faults.rs`, `congestion.rs` |
//! | F14, F15 | queues, policer | link: `queue`, `policer` | `queues.rs`, `congestion.rs` |
//! | F16 | ECN | link: `ecn` | `ecn.rs` |
//! | F17, F18 | MTU that drops, below 1200 | link: `mtu`, `mtu@` | `mtu.rs` |
//! | F19 | ICMP | not drawn: an endpoint gets none; socket of an async machine: `SocketFaults::receive_errors` | `sockets.rs` |
//! | F20, F21 | NAT rebinding | link: `rebind`, `rebind=addr:` | `migration.rs` |
//! | F22 | NAT mappings that expire | link: `rebind=idle:` | `attacks.rs` |
//! | F23 | client that moves to and fro | machine: `MachineFaults::address_changes`, at a second address of the world | `attacks.rs` |
//! | F24 | preferred address without a machine | not drawn: no setting offers one; transport parameters are changed on their way | `unreachable_preferred_address_costs_nothing` of the transport |
//! | F25 | copies that race | `Attack::race`, from the address of a third machine | `attacks.rs` |
//! | F26 | forged packets | `Attack::forge`, such as must be ignored | `attacks.rs`, those that need not be too |
//! | F27 | replays | `Attack::replay`, from either address | `attacks.rs`, of whole sessions too |
//! | F28 | clocks forward, back, frozen | machine: `MachineFaults::clock` | `attacks.rs`; in steps `faults.rs` |
//! | F29 to F31 | late timers, no processor, a machine that sleeps | machine: `MachineFaults::lateness`, `sleep` | `faults.rs` |
//! | F33 to F39, F44 | sockets that are full, refuse, take a part, lose their address | machine: `MachineFaults::socket`; socket of an async machine: `SocketFaults` | `attacks.rs`, `sockets.rs` |
//!
//! `COURSER_RUNS=100000` runs that many seeds, and `COURSER_SEED=17` runs one. `COURSER_SHOW=1`
//! prints the choices and operations of each run, and `COURSER_SHOW=packets` also the packets sent
//! and received.

mod actor;
mod book;
mod invariants;
mod network;
mod run;
mod settings;
mod stream;

use std::collections::BTreeMap;

use crate::common;
use courser_sim::trace::TraceEvent;
use invariants::check_invariants;
use run::Run;

#[test]
fn invariants_hold_for_random_operations_and_faults() {
    let mut done = BTreeMap::new();
    common::for_each_seed(2000, |seed| {
        let mut run = Run::new(seed);
        let shows = std::env::var_os("COURSER_SHOW").is_some();
        if shows {
            eprintln!("seed {seed}: {:#?}", run.choices);
        }
        if std::env::var("COURSER_SHOW").is_ok_and(|it| it == "packets") {
            let show = |event: &TraceEvent| eprintln!("{event:?}");
            run.world.on_trace(Box::new(show));
        }
        run.chaos();
        run.calm();
        let ended_at = run.end();
        check_invariants(&run, ended_at);
        for (what, count) in &run.book.borrow().done {
            *done.entry(*what).or_insert(0) += count;
        }
        if shows {
            eprintln!("seed {seed}: {:#?}", run.book.borrow());
        }
    });
    eprintln!("{done:?}");
}
