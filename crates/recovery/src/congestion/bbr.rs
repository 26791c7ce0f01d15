//! BBR version 3, draft-ietf-ccwg-bbr-06 and the changes made to it until 2026-08-03
//! (commit 4ce5e87 of its repository).
//!
//! BBR models the path by the rate at which it delivers and by the round-trip time without a queue.
//! It sends according to the model: paced at about the rate, with little more in flight than the
//! path holds. It cycles through phases that accelerate (Startup, ProbeBW_UP), decelerate (Drain,
//! ProbeBW_DOWN), hold the rate (ProbeBW_CRUISE, ProbeBW_REFILL) and empty the queue (ProbeRTT).
//! Functions have the names of the draft, where their behaviour is specified.
//!
//! ```text
//!   Startup → Drain → ProbeBW_DOWN → ProbeBW_CRUISE → ProbeBW_REFILL → ProbeBW_UP ─┐
//!      ↑                ↑   ↑                                                     │
//!      │                │   └─────────────────────────────────────────────────────┘
//!      └── ProbeRTT ────┘      from every state, back to Startup or ProbeBW
//! ```
//!
//! Each part has a file of its own:
//! - `model.rs` measures the path in every phase,
//! - `phase.rs` and one file per phase hold the phases: each owns the state that only it needs, and
//!   decides from a `View` of the rest when it ends,
//! - `feedback.rs` keeps the results of probes, which outlive the phase that probes,
//! - `control.rs` derives the window and the pacing rate from model and phase,
//! - `resuming.rs` starts from the rate of an earlier connection (RFC 9959),
//! - `state_machine.rs` calls the parts in the draft's order and moves between phases.
//!
//! The draft leaves some points open. They are settled as follows:
//! - Classic ECN (§3.7): a CE mark counts like a loss, and ends a probe for bandwidth.
//! - Retransmission timeouts are persistent congestion (RFC 9002 §7.6), which sets the window
//!   to RFC 9002's minimum.
//! - Recovery ends with the acknowledgement of a packet that was sent in it (RFC 9002 §7.3.2).
//!   It was spurious if each packet that was declared lost is acknowledged.
//! - Reno coexistence (§5.3.3.8) counts in datagrams, as the reasoning there does.
//!
//! Deviates: from the draft in seven points. The reasons are given in the code:
//! - loss that occurs without a queue is not taken for congestion (`model.rs`,
//!   `ambient_loss.rs`),
//! - on paths of more than 100 ms an empty queue postpones ProbeRTT (`model.rs`),
//! - the state to restore after spurious losses is saved once per flight (`Bbr::note_loss`),
//! - a probe checks before it raises the long-term bound if the bound limits it
//!   (`state_machine.rs`), and compares the bound with the bytes in flight before the
//!   acknowledgement (`probe_bw/up.rs`),
//! - a path that is known to be full is probed when CUBIC would have filled it
//!   (`probe_bw/wait.rs`), and the bound rises with the rate on a path that has grown
//!   (`probe_bw/up.rs`).

mod aggregation;
mod ambient_loss;
mod app_limited;
mod bandwidth;
mod bounds;
mod control;
mod drain;
mod feedback;
mod full_pipe;
mod idle;
mod loss;
mod min_rtt;
mod model;
mod phase;
mod probe_bw;
mod probe_rtt;
mod random;
mod resuming;
mod rounds;
mod sample;
mod startup;
mod state_machine;
mod undo;
mod view;

pub use state_machine::Bbr;

#[cfg(test)]
mod tests;
