use super::*;

/// MQ-udp-016.
#[test]
fn each_end_has_its_own_ids() {
    let mut client = Contexts::new(Side::Client);
    let mut server = Contexts::new(Side::Server);
    assert_eq!([client.allocate(), client.allocate()], [Ok(2), Ok(4)]);
    assert_eq!([server.allocate(), server.allocate()], [Ok(1), Ok(3)]);
    for id in [0, 2, 8] {
        assert_eq!(client.on_registered(id), Err(ContextError::NotOfPeer(id)));
    }
    for id in [0, 1, 7] {
        assert_eq!(server.on_registered(id), Err(ContextError::NotOfPeer(id)));
    }
    assert_eq!(client.on_registered(5), Ok(()));
    for id in [5, 3] {
        assert_eq!(client.on_registered(id), Err(ContextError::Used(id)));
    }
    assert!(client.close(5) && !client.close(5));
    assert_eq!(client.on_registered(5), Err(ContextError::Used(5)));
    assert!(!client.on_datagram(5));
}

/// MQ-udp-017, attack A354.
#[test]
fn floods_of_unknown_contexts_are_counted_only() {
    let mut contexts = Contexts::new(Side::Server);
    for id in 1..100_000 {
        assert!(!contexts.on_datagram(id));
    }
    assert_eq!(contexts.dropped(), 99_999);
    assert_eq!(contexts.open.capacity(), 0);
}

#[test]
fn open_contexts_are_bounded() {
    let mut contexts = Contexts::new(Side::Client);
    for _ in 0..8 {
        assert!(contexts.allocate().is_ok());
    }
    for id in 0..8 {
        assert_eq!(contexts.on_registered(2 * id + 1), Ok(()));
    }
    assert_eq!(contexts.allocate(), Err(ContextError::TooMany));
    assert_eq!(contexts.on_registered(101), Err(ContextError::TooMany));
    assert!(contexts.close(2));
    assert_eq!(contexts.allocate(), Ok(18));
}
