use super::*;

#[test]
fn tickets_are_opened_and_all_differ() {
    let tickets = ticketer().unwrap();
    assert!(tickets.enabled());
    assert_eq!(tickets.lifetime(), 12 * 60 * 60);
    let sessions: [&[u8]; 3] = [b"", b"session", &[9; 3000]];
    for session in sessions {
        let ticket = tickets.encrypt(session).unwrap();
        assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(session));
        assert_ne!(tickets.encrypt(session).unwrap(), ticket);
    }
}

#[test]
fn changed_tickets_and_those_of_other_keys_are_refused() {
    let key = TicketKey::new().unwrap();
    let ticket = key.encrypt(b"session").unwrap();
    for position in 0..ticket.len() {
        let mut changed = ticket.clone();
        changed[position] ^= 1;
        assert_eq!(key.decrypt(&changed), None, "byte {position}");
        assert_eq!(key.decrypt(&ticket[..position]), None, "{position} bytes");
    }
    let other = TicketKey::new().unwrap();
    other.encrypt(b"session").unwrap();
    assert_eq!(other.decrypt(&ticket), None);
}

#[test]
fn longer_tickets_than_were_made_are_not_opened() {
    let key = TicketKey::new().unwrap();
    let ticket = key.encrypt(b"session").unwrap();
    let longer = [&ticket[..], &[0]].concat();
    assert_eq!(key.decrypt(&longer), None);
    let fresh = TicketKey::new().unwrap();
    assert_eq!(fresh.decrypt(&ticket), None);
}
