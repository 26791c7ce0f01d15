//! The capacity of links.

use std::time::Duration;

use courser_base::{Rate, Time};

use crate::link::{Change, LinkSpec};

/// Returns the rate of a link at a time: that of its slowest hop, including policers. Returns
/// `None` without any rate.
pub(super) fn rate_at(spec: &LinkSpec, at: Time) -> Option<Rate> {
    let elapsed = at - Time::ZERO;
    let of_hop = |hop: &LinkSpec| {
        let mut rate = hop.rate;
        let mut policed = hop.policer.map(|policer| policer.rate);
        for step in hop.steps.iter().filter(|step| step.at <= elapsed) {
            match step.change {
                Change::Rate(new) => rate = Some(new),
                Change::Policer(new) => policed = Some(new.rate),
                _ => {}
            }
        }
        rate.into_iter().chain(policed).min()
    };
    spec.hops().filter_map(of_hop).min()
}

/// Returns the bytes that a link can carry between two times, or `None` if it has no rate.
pub(super) fn bytes_between(spec: &LinkSpec, from: Time, to: Time) -> Option<u64> {
    let mut edges: Vec<Time> = spec
        .hops()
        .flat_map(|hop| &hop.steps)
        .map(|step| Time::ZERO + step.at)
        .filter(|at| (from..to).contains(at))
        .collect();
    edges.extend([from, to]);
    edges.sort_unstable();
    edges.windows(2).try_fold(0_u64, |sum, piece| {
        let time: Duration = piece[1] - piece[0];
        let bytes = rate_at(spec, piece[0])?.bytes_in(time);
        Some(sum.saturating_add(bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> Time {
        Time::ZERO + Duration::from_secs(n)
    }

    #[test]
    fn capacity_follows_the_steps() {
        let spec: LinkSpec = "8mbit,10ms,rate@2s=4mbit"
            .parse()
            .expect("the link specification is valid");
        assert_eq!(bytes_between(&spec, Time::ZERO, second(4)), Some(3_000_000));
        assert_eq!(bytes_between(&spec, second(2), second(4)), Some(1_000_000));
    }

    #[test]
    fn slowest_hop_counts() {
        let spec: LinkSpec = "100mbit,1ms,policer=8mbit:64k"
            .parse()
            .expect("the link specification is valid");
        assert_eq!(bytes_between(&spec, Time::ZERO, second(1)), Some(1_000_000));
        let later: LinkSpec = "100mbit,1ms,policer@1s=8mbit:64k"
            .parse()
            .expect("the link specification is valid");
        assert_eq!(
            bytes_between(&later, Time::ZERO, second(2)),
            Some(13_500_000)
        );
        let free: LinkSpec = "10ms".parse().expect("the link specification is valid");
        assert_eq!(bytes_between(&free, Time::ZERO, second(1)), None);
    }
}
