//! BBR version 3, draft-ietf-ccwg-bbr-06 and the changes made to it until 2026-08-03
//! (commit 4ce5e87 of its repository).
//!
//! Models the path, the rate at which it delivers and the round-trip time without a queue, and
//! sends by the model: paced at about the rate, with little more in flight than the path holds.
//! It cycles through phases that ask for more (Startup, ProbeBW_UP), give way (Drain,
//! ProbeBW_DOWN), hold (ProbeBW_CRUISE, ProbeBW_REFILL) and empty the queue (ProbeRTT). Functions
//! carry the draft's names.
//!
//! ```text
//!   Startup → Drain → ProbeBW_DOWN → ProbeBW_CRUISE → ProbeBW_REFILL → ProbeBW_UP ─┐
//!      ↑                ↑   ↑                                                     │
//!      │                │   └─────────────────────────────────────────────────────┘
//!      └── ProbeRTT ────┘      from every state, back to Startup or ProbeBW
//! ```
//!
//! The parts, each with a file of its own:
//! - `model.rs` measures the path, whatever the phase is,
//! - `phase.rs` and a file per phase: each owns what only it needs, and decides by a `View` of the
//!   rest when it is over,
//! - `feedback.rs` keeps what probes have found, which outlives the phase that probes,
//! - `control.rs` makes the window and the pacing rate of them,
//! - `state_machine.rs` calls them in the draft's order and moves from phase to phase.
//!
//! What the draft leaves open, and how it is settled here:
//! - Classic ECN (§3.7): a CE mark counts as a loss does, and ends a probe for bandwidth.
//! - Retransmission timeouts are persistent congestion (RFC 9002 §7.6), which sets the window
//!   to RFC 9002's minimum.
//! - Recovery ends with the acknowledgement of a packet that was sent in it (RFC 9002 §7.3.2).
//!   It was spurious when each packet that it counted as lost has arrived.
//! - Reno-coexistence (§5.3.3.8) counts in datagrams, as the reasoning there does.
//!
//! Deviates: from the draft in seven points, each with its reason where it is made:
//! - loss that is there without a queue is not taken for congestion (`model.rs`,
//!   `ambient_loss.rs`),
//! - on paths of more than 100 ms an empty queue puts off ProbeRTT (`model.rs`),
//! - the state to return to after spurious losses is saved once per flight (`Bbr::note_loss`),
//! - whether the long-term bound limits a probe is asked before the bound rises, and whether it was
//!   touched is asked of what was in flight before the acknowledgement (`probe_bw/up.rs`),
//! - a path that is known to be full is probed when CUBIC would have filled it, and the bound rises
//!   with the rate on one that has grown (`probe_bw/wait.rs`, `probe_bw/up.rs`).

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
mod rounds;
mod sample;
mod startup;
mod state_machine;
mod undo;
mod view;

pub use state_machine::Bbr;

#[cfg(test)]
mod tests;
