use super::*;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

#[test]
fn key_is_stable_and_differs_for_each_address() {
    let secret = ResetSecret::from_user([7; 32]);
    let key = secret.key_for(address("127.0.0.1:443"));
    assert!(key.is_some());
    assert_eq!(
        key,
        ResetSecret::from_user([7; 32]).key_for(address("127.0.0.1:443"))
    );
    for other in ["127.0.0.1:444", "127.0.0.2:443", "[::]:443"] {
        assert_ne!(key, secret.key_for(address(other)), "{other}");
    }
    assert_ne!(
        key,
        ResetSecret::from_user([8; 32]).key_for(address("127.0.0.1:443"))
    );
}

#[test]
fn port_chosen_by_the_system_has_no_key() {
    let secret = ResetSecret::from_user([7; 32]);
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
fn stored_secret_is_read_again_and_an_invalid_one_is_reported() {
    let name = format!("courser-reset-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let first = ResetSecret::in_folder(&folder).expect("a new secret");
    let second = ResetSecret::in_folder(&folder).expect("read");
    assert_eq!(first.secret, second.secret);
    std::fs::write(folder.join("reset.key"), [1; 31]).expect("written");
    let error = ResetSecret::in_folder(&folder).expect_err("too short");
    assert!(
        error.to_string().contains("31 bytes instead of 32"),
        "{error}"
    );
    std::fs::remove_dir_all(&folder).expect("write access to the test folder");
}

#[cfg(target_os = "linux")]
#[test]
fn each_private_key_has_its_own_secret() {
    let identities = [(); 2].map(|()| Identity::dev().expect("random numbers"));
    let [one, other] = identities.map(|identity| {
        let twice = [(); 2].map(|()| ResetSecret::from_identity(&identity).expect("a machine"));
        assert_eq!(twice[0].secret, twice[1].secret);
        twice[0].secret
    });
    assert_ne!(one, other);
}
