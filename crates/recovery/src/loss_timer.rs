//! The one timer of loss recovery over all packet number spaces, RFC 9002 §6.2.1, appendix A.8.

use std::time::Duration;

use courser_base::Time;

use crate::pto::Pto;
use crate::rtt::RttEstimator;

/// What the timer needs to know of one packet number space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpaceTimes {
    /// [`LossDetector::loss_time`](crate::LossDetector::loss_time) of the space.
    pub loss_time: Option<Time>,
    /// When its last ack-eliciting packet was sent; `None` while none is in flight.
    pub last_ack_eliciting: Option<Time>,
}

/// All that [`LossTimer::next`] looks at. Spaces are Initial, Handshake, Application in order.
#[derive(Clone, Copy, Debug)]
pub struct LossTimerInputs<'a> {
    /// The spaces.
    pub spaces: [SpaceTimes; 3],
    /// Round-trip time of the path.
    pub rtt: &'a RttEstimator,
    /// Backoff of the connection.
    pub pto: &'a Pto,
    /// The peer's `max_ack_delay`.
    pub max_ack_delay: Duration,
    /// The start of a client's timeout with nothing in flight: when a packet was last sent or
    /// received. Not the present time, which would push the deadline ahead with every question.
    pub last_activity: Time,
    /// Handshake keys are there.
    pub has_handshake_keys: bool,
    /// The handshake is confirmed.
    pub is_handshake_confirmed: bool,
    /// The peer has validated our address; always true on a server. RFC 9002 §6.2.2.1.
    pub is_address_validated_by_peer: bool,
    /// A server that may send nothing until more bytes arrive.
    pub is_at_amplification_limit: bool,
}

/// Why the timer fires. `space` is the index into [`LossTimerInputs::spaces`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossTimer {
    /// Packets pass the time threshold: detect lost packets in this space.
    TimeThreshold {
        /// When.
        at: Time,
        /// Where.
        space: usize,
    },
    /// Nothing was acknowledged for long: send one or two ack-eliciting packets in this space.
    Probe {
        /// When.
        at: Time,
        /// Where.
        space: usize,
    },
}

impl LossTimer {
    /// When it fires.
    pub fn at(self) -> Time {
        match self {
            Self::TimeThreshold { at, .. } | Self::Probe { at, .. } => at,
        }
    }

    /// The timer that is due first; `None` when there is nothing to wait for.
    pub fn next(inputs: &LossTimerInputs<'_>) -> Option<Self> {
        let loss_times = inputs.spaces.iter().enumerate();
        let loss_times = loss_times.filter_map(|(space, times)| Some((times.loss_time?, space)));
        if let Some((at, space)) = loss_times.min() {
            // No probe timeout while this one runs: RFC 9002 §6.2.1.
            return Some(Self::TimeThreshold { at, space });
        }
        if inputs.is_at_amplification_limit {
            return None;
        }
        let (at, space) = if inputs
            .spaces
            .iter()
            .all(|times| times.last_ack_eliciting.is_none())
        {
            anti_deadlock(inputs)?
        } else {
            probe_timeout(inputs)?
        };
        Some(Self::Probe { at, space })
    }
}

/// A client keeps probing with nothing in flight, because the server may have spent its
/// amplification budget on packets that were lost. RFC 9002 §6.2.2.1.
fn anti_deadlock(inputs: &LossTimerInputs<'_>) -> Option<(Time, usize)> {
    if inputs.is_address_validated_by_peer {
        return None;
    }
    let space = if inputs.has_handshake_keys {
        HANDSHAKE
    } else {
        INITIAL
    };
    Some((
        inputs.last_activity + inputs.pto.duration(inputs.rtt, Duration::ZERO),
        space,
    ))
}

fn probe_timeout(inputs: &LossTimerInputs<'_>) -> Option<(Time, usize)> {
    let deadlines = inputs
        .spaces
        .iter()
        .enumerate()
        .filter_map(|(space, times)| {
            let sent = times.last_ack_eliciting?;
            if space < APPLICATION {
                return Some((
                    sent + inputs.pto.duration(inputs.rtt, Duration::ZERO),
                    space,
                ));
            }
            let duration = inputs.pto.duration(inputs.rtt, inputs.max_ack_delay);
            // Before confirmation the peer may lack the keys to acknowledge: RFC 9002 §6.2.1.
            inputs
                .is_handshake_confirmed
                .then_some((sent + duration, space))
        });
    deadlines.min().or_else(|| anti_deadlock(inputs))
}

const INITIAL: usize = 0;
const HANDSHAKE: usize = 1;
const APPLICATION: usize = 2;

#[cfg(test)]
mod tests;
