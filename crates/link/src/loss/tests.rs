use super::*;
use crate::Probability;

fn chance(percent: u32, burst: Option<u32>) -> Chance {
    let rule = Repeated {
        probability: Probability::from_percent(percent),
        burst,
    };
    Chance::new(rule, 5, 0, Effect::Loss)
}

#[test]
fn hits_in_a_row_stay_below_the_limit() {
    let mut chance = chance(90, Some(3));
    let (mut row, mut longest, mut hits) = (0, 0, 0_u32);
    for index in 1..=10_000 {
        row = if chance.hits(index) { row + 1 } else { 0 };
        hits += u32::from(row > 0);
        longest = longest.max(row);
    }
    assert_eq!(longest, 3);
    // A chain of states 0 to 3 hits in a row: (.9 + .81 + .729) / (1 + .9 + .81 + .729).
    assert!((6_950..7_240).contains(&hits), "{hits}");
}

#[test]
fn certain_event_with_a_limit_spares_one_packet_each_time() {
    let mut chance = chance(100, Some(2));
    let hits: Vec<bool> = (1..=6).map(|index| chance.hits(index)).collect();
    assert_eq!(hits, [true, true, false, true, true, false]);
}

#[test]
fn hits_in_a_row_are_unlimited_by_default() {
    let mut chance = chance(50, None);
    let mut rows = Vec::new();
    let mut row = 0_u32;
    for index in 1..=20_000 {
        if chance.hits(index) {
            row += 1;
        } else if row > 0 {
            rows.push(row);
            row = 0;
        }
    }
    let mean = f64::from(rows.iter().sum::<u32>()) / rows.len() as f64;
    assert!((1.95..2.05).contains(&mean), "{mean}");
    assert!(rows.iter().max() > Some(&8));
}
