use super::*;

#[test]
fn nothing_opens_before_the_limit_is_known() {
    let mut local = LocalStreams::default();
    assert_eq!(local.open(), None);
    assert_eq!(local.blocked_at(), None);
    assert!(!local.take_signal());
    assert!(local.on_limit(1));
    assert_eq!(local.open(), Some(0));
}

#[test]
fn limit_blocks_is_signalled_once_and_wakes_once() {
    let mut local = LocalStreams::default();
    assert!(!local.on_limit(2));
    assert_eq!(
        (local.open(), local.open(), local.open()),
        (Some(0), Some(1), None)
    );
    assert_eq!(local.blocked_at(), Some(2));
    assert!(local.take_signal());
    assert!(!local.take_signal());
    local.clear_signal();
    assert!(local.take_signal());
    assert!(!local.on_limit(2) && !local.on_limit(1));
    assert!(local.on_limit(3));
    assert!(!local.on_limit(4));
    assert_eq!(local.blocked_at(), None);
    assert_eq!(local.open(), Some(2));
    assert!(local.was_opened(2) && !local.was_opened(3));
    local.on_retired();
    assert_eq!(local.count(), 2);
}

#[test]
fn limit_above_what_ids_allow_is_cut() {
    let mut local = LocalStreams::default();
    local.on_limit(u64::MAX);
    assert_eq!(local.limit, Some(MAX_STREAMS));
}
