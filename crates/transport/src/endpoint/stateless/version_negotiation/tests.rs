use super::*;

/// Returns the answer of a server that accepts all versions.
fn answer(datagram: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    super::answer(datagram, Versions::ALL, rng)
}

fn rng() -> Rng {
    Rng::new([5; 32])
}

/// Returns a datagram of 1200 bytes with the long header of some version.
fn datagram(version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xc3];
    bytes.extend(version.to_be_bytes());
    for id in [destination, source] {
        bytes.push(u8::try_from(id.len()).unwrap());
        bytes.extend(id);
    }
    bytes.resize(MIN_INITIAL_DATAGRAM, 0);
    bytes
}

#[test]
fn unknown_version_is_answered() {
    let trigger = datagram(0x1234_5678, &[1; 8], &[2; 5]);
    let answer = answer(&trigger, &mut rng()).unwrap();
    let decoded = version_negotiation::decode(&answer).unwrap();
    assert_eq!(decoded.destination, [2; 5]);
    assert_eq!(decoded.source, [1; 8]);
    let versions: Vec<_> = decoded.versions().collect();
    assert_eq!(versions.len(), 3);
    assert_eq!(versions[..2], Version::ALL.map(Version::value));
    assert!(version::is_reserved(versions[2]));
    assert!(answer.len() < trigger.len());
}

#[test]
fn ids_of_any_length_are_echoed_swapped() {
    for len in 0..=255 {
        let (destination, source) = (vec![0xdd; len], vec![0x55; 255 - len]);
        let answer = answer(&datagram(7, &destination, &source), &mut rng()).unwrap();
        let decoded = version_negotiation::decode(&answer).unwrap();
        assert_eq!(decoded.destination, source, "destination of {len} bytes");
        assert_eq!(decoded.source, destination, "destination of {len} bytes");
    }
    assert!(answer(&datagram(7, &[1; 255], &[2; 255]), &mut rng()).is_some());
}

#[test]
fn datagrams_below_1200_bytes_are_dropped() {
    let trigger = datagram(7, &[1; 8], &[2; 8]);
    for len in 0..MIN_INITIAL_DATAGRAM {
        assert_eq!(answer(&trigger[..len], &mut rng()), None, "{len} bytes");
    }
}

#[test]
fn version_negotiation_is_never_answered() {
    assert_eq!(answer(&datagram(0, &[1; 8], &[2; 8]), &mut rng()), None);
    let mut own = answer(&datagram(7, &[1; 8], &[2; 8]), &mut rng()).unwrap();
    own.resize(1200, 0);
    assert_eq!(answer(&own, &mut rng()), None);
}

#[test]
fn our_own_version_is_not_answered() {
    for version in Version::ALL {
        let own = datagram(version.value(), &[1; 8], &[2; 8]);
        assert_eq!(answer(&own, &mut rng()), None, "{version}");
    }
}

#[test]
fn unsupported_version_is_answered_with_the_supported_ones() {
    let trigger = datagram(Version::V2.value(), &[1; 8], &[2; 8]);
    let answer = super::answer(&trigger, Versions::V1, &mut rng()).unwrap();
    let decoded = version_negotiation::decode(&answer).unwrap();
    let versions: Vec<_> = decoded.versions().collect();
    assert_eq!((versions.len(), versions[0]), (2, Version::V1.value()));
}

#[test]
fn short_header_is_not_answered() {
    let mut trigger = datagram(7, &[1; 8], &[2; 8]);
    trigger[0] = 0x43;
    assert_eq!(answer(&trigger, &mut rng()), None);
}

/// The fixed bit belongs to version 1, as does the rest of the first byte.
#[test]
fn first_byte_of_an_unknown_version_does_not_matter() {
    for first_byte in 0x80..=0xff {
        let mut trigger = datagram(7, &[1; 8], &[2; 8]);
        trigger[0] = first_byte;
        assert!(
            answer(&trigger, &mut rng()).is_some(),
            "first byte {first_byte:#x}"
        );
    }
}

/// Two lengths of 255 always fit into 1200 bytes, so nothing is cut off; random bytes are answered
/// or ignored.
#[test]
fn random_datagrams_are_answered_or_ignored() {
    let mut rng = rng();
    let mut bytes = vec![0; 1300];
    let mut answers = 0;
    for round in 0..20_000 {
        rng.fill(&mut bytes);
        let len = 1100 + round % 200;
        if let Some(answer) = answer(&bytes[..len], &mut rng) {
            assert!(answer.len() < len);
            answers += 1;
        }
    }
    assert!(answers > 1000);
}

#[test]
fn reserved_version_of_the_client_is_not_offered_to_it() {
    let mut rng = rng();
    for high in 0..0x1000u32 {
        let offered = version::reserved(high << 20 | high << 4);
        let same_draw = reserved_version(offered, &mut rng);
        assert!(
            version::is_reserved(same_draw) && same_draw != offered,
            "{offered:#x}"
        );
    }
    // The client offers the very version that would be drawn.
    let drawn = reserved_version(7, &mut Rng::new([9; 32]));
    let other = reserved_version(drawn, &mut Rng::new([9; 32]));
    assert!(version::is_reserved(other) && other != drawn);
}
