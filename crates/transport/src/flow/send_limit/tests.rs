use super::*;

#[test]
fn lower_or_equal_limit_has_no_effect() {
    let mut limit = SendLimit::new(10);
    limit.consume(4);
    assert!(!limit.raise(10));
    assert!(!limit.raise(3));
    assert_eq!(limit.available(), 6);
    assert!(limit.raise(11));
    assert_eq!((limit.available(), limit.limit(), limit.used()), (7, 11, 4));
}

#[test]
fn largest_limit_does_not_overflow() {
    let mut limit = SendLimit::new(0);
    assert!(limit.raise((1 << 62) - 1));
    limit.consume(5);
    assert_eq!(limit.available(), (1 << 62) - 6);
}

#[test]
fn blocked_is_signalled_once_per_limit() {
    let mut limit = SendLimit::new(3);
    assert!(!limit.take_signal());
    limit.consume(3);
    assert!(limit.take_signal());
    assert!(!limit.take_signal());
    assert!(limit.raise(4));
    assert!(!limit.take_signal());
    limit.consume(1);
    assert!(limit.take_signal());
    limit.clear_signal();
    assert!(limit.take_signal());
}
