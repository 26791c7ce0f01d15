//! Several paths with the same keys. RFC 10069 §2.4, §2.5.

use super::*;

const ONE: PathId = PathId::new(1);
const TWO: PathId = PathId::new(2);

fn send_on(keys: &mut OneRttKeys, path: PathId, number: u64) -> InTransit {
    let mut packet = [&HEADER[..], b"payload", &[0; TAG_LEN]].concat();
    keys.seal_packet(path, number, &mut packet, HEADER.len());
    InTransit {
        number,
        phase: keys.key_phase(),
        payload: packet.split_off(HEADER.len()),
    }
}

fn receive_on(
    keys: &mut OneRttKeys,
    path: PathId,
    packet: &InTransit,
) -> Result<bool, OneRttOpenError> {
    let mut payload = packet.payload.clone();
    let opened = keys.open(path, packet.number, packet.phase, &HEADER, &mut payload)?;
    assert_eq!(&payload[..opened.len], b"payload");
    Ok(opened.peer_updated)
}

#[test]
fn packet_of_another_path_is_not_authentic() {
    for suite in SUITES {
        let (mut client, mut server) = ends(suite);
        let packet = send_on(&mut client, TWO, 7);
        for path in [PathId::ZERO, ONE, PathId::MAX] {
            let before = state(&server);
            let result = receive_on(&mut server, path, &packet);
            assert_eq!(result, Err(OneRttOpenError::Discard), "{suite} {path}");
            assert_eq!(state(&server), before, "{suite} {path}");
        }
        assert_eq!(receive_on(&mut server, TWO, &packet), Ok(false), "{suite}");
    }
}

#[test]
fn paths_use_the_same_packet_numbers() {
    let (mut client, mut server) = aes_ends();
    for path in [PathId::ZERO, ONE, TWO] {
        for number in 0..3 {
            let packet = send_on(&mut client, path, number);
            assert_eq!(receive_on(&mut server, path, &packet), Ok(false));
        }
    }
    assert_eq!(client.sealed(), 9, "the limits of the key count all paths");
}

#[test]
fn update_is_followed_on_each_path_by_its_own_numbers() {
    let (mut client, mut server) = aes_ends();
    exchange(&mut client, &mut server, 1000);
    let late = send_on(&mut client, ONE, 5);
    let never_seen = send_on(&mut client, TWO, 0);
    client.update();
    // The number is far below those of path 0.
    let first = send_on(&mut client, ONE, 6);
    assert_eq!(receive_on(&mut server, ONE, &first), Ok(true));
    let on_zero = send_on(&mut client, PathId::ZERO, 1001);
    assert_eq!(receive_on(&mut server, PathId::ZERO, &on_zero), Ok(false));
    // Packets of the previous phase arrive late, on a path without packets of this phase too.
    assert_eq!(receive_on(&mut server, ONE, &late), Ok(false));
    assert_eq!(receive_on(&mut server, TWO, &never_seen), Ok(false));
    let next = send_on(&mut client, TWO, 1);
    assert_eq!(receive_on(&mut server, TWO, &next), Ok(false));
}

#[test]
fn phase_that_goes_back_on_one_path_is_an_error() {
    let (mut client, mut server) = aes_ends();
    exchange(&mut client, &mut server, 0);
    let (mut old, _) = aes_ends();
    let higher = send_on(&mut old, ONE, 9);
    client.update();
    // The old key opens 9 on path 1, because nothing has arrived there in the new phase.
    let on_zero = send_on(&mut client, PathId::ZERO, 1);
    assert_eq!(receive_on(&mut server, PathId::ZERO, &on_zero), Ok(true));
    assert_eq!(receive_on(&mut server, ONE, &higher), Ok(false));
    // 8 has the new phase, although 9 had the old one.
    let lower = send_on(&mut client, ONE, 8);
    let result = receive_on(&mut server, ONE, &lower);
    assert_eq!(result, Err(OneRttOpenError::KeyUpdateError));
    // On another path nothing was received, so 8 breaks no rule there.
    let elsewhere = send_on(&mut client, TWO, 8);
    assert_eq!(receive_on(&mut server, TWO, &elsewhere), Ok(false));
}

#[test]
fn acknowledgement_on_any_path_confirms_a_phase() {
    let (mut client, mut server) = aes_ends();
    for path in [PathId::ZERO, ONE] {
        for number in 0..4 {
            let packet = send_on(&mut client, path, number);
            receive_on(&mut server, path, &packet).unwrap();
        }
    }
    client.on_packet_acked(PathId::ZERO, 0);
    client.update();
    let packet = send_on(&mut client, ONE, 4);
    receive_on(&mut server, ONE, &packet).unwrap();
    assert!(client.acknowledgment_breaks_phase(ONE, 4));
    assert!(!client.acknowledgment_breaks_phase(PathId::ZERO, 3));
    let back = send_on(&mut server, ONE, 0);
    receive_on(&mut client, ONE, &back).unwrap();
    client.on_packet_acked(PathId::ZERO, 3);
    client.on_packet_acked(ONE, 3);
    assert!(!client.is_update_acknowledged(), "both have the old phase");
    client.on_packet_acked(ONE, 4);
    assert!(client.is_update_acknowledged());
}

#[test]
fn keys_of_several_paths_are_not_stored() {
    let (mut client, _) = aes_ends();
    send_on(&mut client, ONE, 0);
    Box::new(client).store().expect_err("there are two paths");
}
