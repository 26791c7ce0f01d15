//! Checks of fields that depend on each other.

use super::fields::{AqmName, Draft};
use super::{Aqm, LinkSpec, NatSpec, QueueLimit, SpecError};

/// Assembles a specification, or returns an error for a missing or superfluous field.
pub(super) fn finish(draft: Draft) -> Result<(LinkSpec, Option<NatSpec>), SpecError> {
    let aqm = aqm(&draft)?;
    let mut spec = draft.spec;
    spec.aqm = aqm;
    if spec.rate.is_none() {
        // Without a rate there is no queue.
        if spec.queue.is_some() {
            return Err(needs_rate("queue"));
        }
        if spec.aqm != Aqm::DropTail {
            return Err(needs_rate("aqm"));
        }
    }
    let knows_rtt = spec.rtt.is_some() || spec.delay.is_some();
    if matches!(spec.queue, Some(QueueLimit::Bdp { .. })) && !knows_rtt {
        let problem = "in bdp needs the round-trip time: add rtt=50ms, or a delay of half as much";
        return Err(SpecError::new("queue", problem));
    }
    Ok((spec, draft.nat))
}

fn aqm(draft: &Draft) -> Result<Aqm, SpecError> {
    let name = draft.aqm.unwrap_or(AqmName::DropTail);
    if draft.step.is_some() && name != AqmName::L4s {
        return Err(SpecError::new(
            "step",
            "works with aqm=l4s only: add aqm=l4s or remove this field",
        ));
    }
    let has_codel = draft.target.is_some() || draft.interval.is_some();
    if has_codel && name == AqmName::DropTail {
        let field = if draft.target.is_some() {
            "target"
        } else {
            "interval"
        };
        let problem = "works with aqm=codel, aqm=codel-ecn and aqm=l4s only: add one of them or remove \
                       this field";
        return Err(SpecError::new(field, problem));
    }
    let target = draft.target.unwrap_or(Aqm::TARGET);
    let interval = draft.interval.unwrap_or(Aqm::INTERVAL);
    Ok(match name {
        AqmName::DropTail => Aqm::DropTail,
        AqmName::CoDel | AqmName::CoDelEcn => Aqm::CoDel {
            target,
            interval,
            ecn: name == AqmName::CoDelEcn,
        },
        AqmName::L4s => Aqm::L4s {
            step: draft.step.unwrap_or(Aqm::STEP),
            target,
            interval,
        },
    })
}

fn needs_rate(field: &str) -> SpecError {
    SpecError::new(field, "needs a rate: add one, such as 20mbit")
}
