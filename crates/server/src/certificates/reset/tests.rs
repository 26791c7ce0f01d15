use super::*;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

#[test]
fn key_is_the_same_again_and_another_for_each_address() {
    let secret = ResetSecret::of_user([7; 32]);
    let key = secret.key_for(address("127.0.0.1:443"));
    assert!(key.is_some());
    assert_eq!(
        key,
        ResetSecret::of_user([7; 32]).key_for(address("127.0.0.1:443"))
    );
    for other in ["127.0.0.1:444", "127.0.0.2:443", "[::]:443"] {
        assert_ne!(key, secret.key_for(address(other)), "{other}");
    }
    assert_ne!(
        key,
        ResetSecret::of_user([8; 32]).key_for(address("127.0.0.1:443"))
    );
}

#[test]
fn port_of_the_systems_choice_has_no_key() {
    let secret = ResetSecret::of_user([7; 32]);
    assert_eq!(secret.key_for(address("127.0.0.1:0")), None);
}

#[test]
fn machines_with_one_secret_differ() {
    let here = ResetSecret {
        secret: [7; 32],
        machine: b"here".to_vec(),
    };
    let there = ResetSecret {
        machine: b"there".to_vec(),
        ..here.clone()
    };
    let at = address("[::]:443");
    assert_ne!(here.key_for(at), there.key_for(at));
}

#[test]
fn kept_secret_is_read_again_and_a_damaged_one_is_named() {
    let name = format!("courser-reset-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let first = ResetSecret::kept_in(&folder).expect("made");
    let second = ResetSecret::kept_in(&folder).expect("read");
    assert_eq!(first.secret, second.secret);
    std::fs::write(folder.join("reset.key"), [1; 31]).expect("written");
    let error = ResetSecret::kept_in(&folder).expect_err("too short");
    assert!(
        error.to_string().contains("31 bytes instead of 32"),
        "{error}"
    );
    std::fs::remove_dir_all(&folder).expect("ours");
}

#[cfg(target_os = "linux")]
#[test]
fn private_keys_give_secrets_of_their_own() {
    let identities = [(); 2].map(|()| Identity::dev().expect("random numbers"));
    let [one, other] = identities.map(|identity| {
        let twice = [(); 2].map(|()| ResetSecret::of_identity(&identity).expect("a machine"));
        assert_eq!(twice[0].secret, twice[1].secret);
        twice[0].secret
    });
    assert_ne!(one, other);
}
