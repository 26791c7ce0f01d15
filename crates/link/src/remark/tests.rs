use std::time::Duration;

use super::*;
use crate::Probability;

const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

fn remarker(to: RemarkTo, percent: u32, from: Duration) -> Remarker {
    let probability = Probability::from_percent(percent);
    let rule = Remark {
        to,
        probability,
        from,
    };
    Remarker::new(rule, 1, 0)
}

#[test]
fn each_rule_maps_each_mark() {
    let table = [
        (
            RemarkTo::NotEct,
            [Ecn::NotEct, Ecn::NotEct, Ecn::NotEct, Ecn::NotEct],
        ),
        (
            RemarkTo::Ect0,
            [Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ect0],
        ),
        (
            RemarkTo::Ect1,
            [Ecn::NotEct, Ecn::Ect1, Ecn::Ect1, Ecn::Ect1],
        ),
        (RemarkTo::Ce, [Ecn::NotEct, Ecn::Ce, Ecn::Ce, Ecn::Ce]),
        (
            RemarkTo::Swapped,
            [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce],
        ),
    ];
    for (to, expected) in table {
        let remarker = remarker(to, 100, Duration::ZERO);
        let got = ALL.map(|mark| remarker.apply(Time::ZERO, 1, mark));
        assert_eq!(got, expected, "{to:?}");
    }
}

#[test]
fn remarking_starts_on_time_and_changes_its_share() {
    let remarker = remarker(RemarkTo::Ce, 5, Duration::from_secs(1));
    let hits = |now| {
        let hit = |&index: &u64| remarker.apply(now, index, Ecn::Ect0) == Ecn::Ce;
        (1..=20_000).filter(hit).count()
    };
    assert_eq!(hits(Time::from_nanos(999_999_999)), 0);
    let share = hits(Time::from_nanos(1_000_000_000));
    assert!((880..1_120).contains(&share), "{share}");
}
