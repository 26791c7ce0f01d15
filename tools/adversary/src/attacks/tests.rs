use std::collections::BTreeSet;

use super::*;

#[test]
fn names_are_unique_and_labels_belong_to_the_catalogue() {
    let names: BTreeSet<_> = ALL.iter().map(|plan| plan.name).collect();
    assert_eq!(names.len(), ALL.len(), "two attacks have the same name");
    for plan in ALL {
        assert!(!plan.labels.is_empty(), "{} has no label", plan.name);
        for label in plan.labels {
            let (kind, number) = label.split_at(1);
            assert!(
                kind == "A" && number.parse::<u32>().is_ok(),
                "{}: {label} is not a label",
                plan.name
            );
        }
    }
}

#[test]
fn attacks_are_found_by_name() {
    assert_eq!(
        find("rapid-reset").map(|plan| plan.labels),
        Some(&["A71"][..])
    );
    assert!(find("rapid_reset").is_none());
}

#[test]
fn crowd_pauses_although_the_victim_sends() {
    use std::time::Duration;

    use courser_base::Time;
    use courser_wire::Frame;

    use crate::attacker::Attacker;
    use crate::hooks::Honest;
    use crate::{Attack, client_tls, server_tls};

    let target = "10.0.0.2:443".parse().expect("the address is valid");
    let home = "10.0.0.9:1".parse().expect("the address is valid");
    let mut crowd = Crowd::new(1, |connection, _, _| connection.push(&Frame::Ping))
        .with_pause(Duration::from_secs(1));
    let mut clients = Attacker::new(target, client_tls(b"h3"), [1; 32]);
    let mut server = Attacker::new(home, client_tls(b"h3"), [2; 32]);
    server.accept_with(server_tls(b"h3"), || Box::new(Honest));
    // A turn each millisecond for almost two seconds gives one burst at the start and one after the
    // pause.
    for millis in 0..1900 {
        let now = Time::from_nanos(millis * 1_000_000);
        crowd.turn(&mut clients, now);
        clients.transmit(now);
        while let Some(mut datagram) = clients.poll_datagram() {
            server.receive(now, 0, home, &mut datagram.bytes);
        }
        server.transmit(now);
        while let Some(mut datagram) = server.poll_datagram() {
            clients.receive(now, 0, target, &mut datagram.bytes);
        }
    }
    assert_eq!(clients.counts().handshakes, 1);
    let bursts: Vec<u64> = crowd.members().map(|progress| progress.bursts).collect();
    assert_eq!(bursts, [2]);
}
