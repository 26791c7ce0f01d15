use super::RangeSet;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn appending_in_order_keeps_one_range() {
    let mut set = RangeSet::new();
    for value in 0..1000 {
        assert!(set.insert_one(value));
    }
    assert_eq!(set.len(), 1);
    assert!(!set.insert_one(500));
    assert_eq!(
        (set.min(), set.max(), set.count()),
        (Some(0), Some(999), 1000)
    );
}

#[test]
fn touching_ranges_merge() {
    let mut set = RangeSet::new();
    set.insert(10..20);
    set.insert(30..40);
    set.insert(20..30);
    assert_eq!(set.iter().collect::<Vec<_>>(), vec![10..40]);
}

#[test]
fn removing_the_middle_splits() {
    let mut set = RangeSet::new();
    set.insert(0..100);
    set.remove(40..60);
    assert_eq!(set.iter().collect::<Vec<_>>(), vec![0..40, 60..100]);
    set.remove_below(70);
    assert_eq!(set.pop_first(), Some(70..100));
    assert!(set.is_empty());
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u64, u64),
    InsertOne(u64),
    Remove(u64, u64),
    RemoveBelow(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        (0u64..200, 0u64..30).prop_map(|(start, len)| Operation::Insert(start, start + len)),
        (0u64..200).prop_map(Operation::InsertOne),
        (0u64..200, 0u64..30).prop_map(|(start, len)| Operation::Remove(start, start + len)),
        (0u64..200).prop_map(Operation::RemoveBelow),
    ]
}

proptest! {
    #[test]
    fn behaves_like_a_set_of_integers(operations in prop::collection::vec(operation(), 0..60)) {
        let mut set = RangeSet::new();
        let mut model = BTreeSet::new();
        for operation in operations {
            match operation {
                Operation::Insert(start, end) => {
                    set.insert(start..end);
                    model.extend(start..end);
                }
                Operation::InsertOne(value) => {
                    prop_assert_eq!(set.insert_one(value), model.insert(value));
                }
                Operation::Remove(start, end) => {
                    set.remove(start..end);
                    model.retain(|value| !(start..end).contains(value));
                }
                Operation::RemoveBelow(end) => {
                    set.remove_below(end);
                    model.retain(|value| *value >= end);
                }
            }
            prop_assert_eq!(set.iter().flatten().collect::<Vec<_>>(),
                            model.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.count(), model.len() as u64);
            let ranges: Vec<_> = set.iter().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert!((0..240).all(|value| set.contains(value) == model.contains(&value)));
        }
    }
}
