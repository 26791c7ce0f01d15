//! The loss recovery timer of all packet number spaces, RFC 9002 §6.2.1, appendix A.8.

use std::time::Duration;

use courser_base::Time;

use crate::pto::Pto;
use crate::rtt::RttEstimator;

/// The times of one packet number space that the timer depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpaceTimes {
    /// [`LossDetector::loss_time`](crate::LossDetector::loss_time) of the space.
    pub loss_time: Option<Time>,
    /// The time at which the last ack-eliciting packet was sent; `None` if none is in flight.
    pub last_ack_eliciting: Option<Time>,
}

/// The inputs of [`LossTimer::next`].
#[derive(Clone, Copy, Debug)]
pub struct LossTimerInputs<'a> {
    /// The spaces in order: Initial, Handshake, Application.
    pub spaces: [SpaceTimes; 3],
    /// The round-trip time of the path.
    pub rtt: &'a RttEstimator,
    /// The probe timeout of the connection, with its backoff.
    pub pto: &'a Pto,
    /// The transport parameter `max_ack_delay` of the peer, which is added to timeouts of the
    /// Application space.
    pub max_ack_delay: Duration,
    /// The time at which a packet was last sent or received. A client's timeout with nothing in
    /// flight starts here. The present time would move the deadline with every call.
    pub last_activity: Time,
    /// True if Handshake keys are available.
    pub has_handshake_keys: bool,
    /// True if the handshake is confirmed.
    pub is_handshake_confirmed: bool,
    /// True if the peer has validated our address; always true on a server. RFC 9002 §6.2.2.1.
    pub is_address_validated_by_peer: bool,
    /// True for a server that must not send before it receives more bytes.
    pub is_at_amplification_limit: bool,
}

/// The loss recovery timer: its time and the action when it fires. `space` is an index into
/// [`LossTimerInputs::spaces`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossTimer {
    /// Packets pass the time threshold: detect lost packets in this space.
    TimeThreshold {
        /// The time at which the timer fires.
        at: Time,
        /// The packet number space in which to detect losses or probe.
        space: usize,
    },
    /// No acknowledgement has arrived for a long time: send one or two ack-eliciting packets in
    /// this space.
    Probe {
        /// The time at which the timer fires.
        at: Time,
        /// The packet number space in which to detect losses or probe.
        space: usize,
    },
}

impl LossTimer {
    /// Returns the time at which the timer fires.
    pub fn at(self) -> Time {
        match self {
            Self::TimeThreshold { at, .. } | Self::Probe { at, .. } => at,
        }
    }

    /// Returns the timer that fires first; `None` if no timer is needed.
    pub fn next(inputs: &LossTimerInputs<'_>) -> Option<Self> {
        let loss_times = inputs.spaces.iter().enumerate();
        let loss_times = loss_times.filter_map(|(space, times)| Some((times.loss_time?, space)));
        if let Some((at, space)) = loss_times.min() {
            // The probe timeout is not armed while the time threshold is pending: RFC 9002 §6.2.1.
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

/// Returns the probe timeout of a client with nothing in flight. It keeps probing, because the
/// server may have spent its amplification budget on lost packets. RFC 9002 §6.2.2.1.
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
            // The peer may lack the keys to acknowledge before confirmation: RFC 9002 §6.2.1.
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
