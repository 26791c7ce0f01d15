use super::*;

/// Writes a file with these lines, and removes it at the end.
struct File(PathBuf);

impl File {
    fn new(name: &str, lines: &str) -> Self {
        let name = format!("courser-credentials-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, lines).expect("a file");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn bcrypt_of(password: &str) -> String {
    bcrypt::hash(password, 4).expect("random numbers")
}

async fn client(of: &Credentials, field: &str) -> Result<String, Unknown> {
    let field = HeaderValue::from_str(field).expect("a value");
    of.client(Some(&field), || false)
        .await
        .map(|name| name.to_string())
}

fn basic(pair: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

#[tokio::test]
async fn clients_are_found_by_password_and_by_token() {
    let (token, line) = new_token("robot").expect("a name");
    let lines = format!(
        "# clients\n\nalice:{}\nalice:{}\n{line}\n",
        bcrypt_of("old"),
        bcrypt_of("new:er")
    );
    let file = File::new("found", &lines);
    let all = Credentials::read(&file.0).expect("a valid file");
    assert_eq!(all.len(), 3);
    // The second time is the one that is remembered.
    for _ in 0..2 {
        for (field, expected) in [
            (basic("alice:old"), Ok("alice")),
            (basic("alice:new:er"), Ok("alice")),
            (basic("alice:wrong"), Err(Unknown::Wrong)),
            (basic("bob:old"), Err(Unknown::Wrong)),
            (basic("alice"), Err(Unknown::Wrong)),
            (basic(&format!("robot:{token}")), Ok("robot")),
            (basic(&format!("alice:{token}")), Err(Unknown::Wrong)),
            (format!("bearer {token}"), Ok("robot")),
            ("Bearer old".to_owned(), Err(Unknown::Wrong)),
            (
                "Bearer ".to_owned() + &"x".repeat(5000),
                Err(Unknown::Wrong),
            ),
            ("Basic !".to_owned(), Err(Unknown::Wrong)),
            ("Digest x".to_owned(), Err(Unknown::Wrong)),
            ("x".to_owned(), Err(Unknown::Wrong)),
        ] {
            let found = client(&all, &field).await;
            assert_eq!(found.as_deref().map_err(|it| *it), expected, "{field}");
        }
    }
    assert_eq!(all.client(None, || false).await, Err(Unknown::Missing));
}

#[tokio::test]
async fn reload_forgets_clients_that_are_gone() {
    let file = File::new("reload", &format!("alice:{}\n", bcrypt_of("x")));
    let all = Credentials::read(&file.0).expect("a valid file");
    assert!(client(&all, &basic("alice:x")).await.is_ok());
    std::fs::write(&file.0, "alice\n").expect("a file");
    assert!(all.reload().is_err());
    assert!(client(&all, &basic("alice:x")).await.is_ok());
    std::fs::write(&file.0, format!("alice:{}\n", bcrypt_of("y"))).expect("a file");
    all.reload().expect("a valid file");
    assert!(client(&all, &basic("alice:x")).await.is_err());
    assert!(client(&all, &basic("alice:y")).await.is_ok());
}

/// Limit K650.
#[test]
fn lines_that_are_no_clients_are_explained() {
    let costly = bcrypt_of("x").replace("$04$", "$20$");
    for (lines, word) in [
        ("", "names no client"),
        ("# only\n", "names no client"),
        ("alice\n", "line 1: there is no colon"),
        ("\nalice:secret\n", "line 2: the hash of alice is neither"),
        (":$2y$x\n", "a name has"),
        ("alice:sha256:12\n", "not 64 hexadecimal digits"),
        ("alice:$2y$04$short\n", "malformed"),
        (
            &format!("alice:{costly}\n"),
            "cost of the bcrypt hash is 20",
        ),
    ] {
        let file = File::new("mistakes", lines);
        let error = Credentials::read(&file.0).expect_err(lines);
        assert!(error.contains(word), "{lines}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    assert!(new_token("a:b").is_err());
}

/// Limit K650: passwords beyond those compared at a time wait, and remembered ones do not.
#[tokio::test]
async fn comparisons_at_a_time_are_bounded() {
    let file = File::new("bounded", &format!("alice:{}\n", bcrypt_of("x")));
    let all = Credentials::read(&file.0).expect("a valid file");
    assert!(client(&all, &basic("alice:x")).await.is_ok());
    let permits = all.shared.comparisons.clone();
    let held = permits.acquire_many(AT_A_TIME as u32).await.expect("open");
    let field = HeaderValue::from_str(&basic("alice:wrong")).expect("a value");
    let mut waiting = Box::pin(all.client(Some(&field), || false));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx)));
    assert!(polled.await.is_pending());
    assert!(client(&all, &basic("alice:x")).await.is_ok());
    drop(held);
    assert_eq!(waiting.await, Err(Unknown::Wrong));
    for number in 0..=REMEMBERED {
        let mut correct = all.shared.correct.lock();
        correct.insert(all.keyed("x", &number.to_string()), "x".into());
    }
    std::fs::write(&file.0, format!("alice:{}\n", bcrypt_of("z"))).expect("a file");
    // Without a reload.
    assert!(client(&all, &basic("alice:x")).await.is_ok());
    let before = all.shared.correct.lock().len();
    assert!(before > REMEMBERED);
    all.shared.correct.lock().remove(&all.keyed("alice", "x"));
    assert!(client(&all, &basic("alice:x")).await.is_ok());
    assert_eq!(all.shared.correct.lock().len(), 1);
}

/// Attack A403: passwords that wait for others are not compared once there were too many wrong ones, and tokens always are.
#[tokio::test]
async fn waiting_passwords_of_an_address_are_blocked_with_it() {
    let (token, line) = new_token("robot").expect("a name");
    let file = File::new("blocked", &format!("alice:{}\n{line}\n", bcrypt_of("x")));
    let all = Credentials::read(&file.0).expect("a valid file");
    let is_blocked = std::sync::atomic::AtomicBool::new(false);
    let blocked = || is_blocked.load(std::sync::atomic::Ordering::Relaxed);
    let field = |pair: &str| HeaderValue::from_str(&basic(pair)).expect("a value");
    let permits = all.shared.comparisons.clone();
    let held = permits.acquire_many(AT_A_TIME as u32).await.expect("open");
    let (right, wrong) = (field("alice:x"), field("alice:wrong"));
    let mut waiting = Box::pin(all.client(Some(&wrong), blocked));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx)));
    assert!(polled.await.is_pending());
    is_blocked.store(true, std::sync::atomic::Ordering::Relaxed);
    drop(held);
    assert_eq!(waiting.await, Err(Unknown::Blocked));
    assert_eq!(
        all.client(Some(&right), blocked).await,
        Err(Unknown::Blocked)
    );
    let token = field(&format!("robot:{token}"));
    assert!(all.client(Some(&token), blocked).await.is_ok());
    is_blocked.store(false, std::sync::atomic::Ordering::Relaxed);
    assert!(all.client(Some(&right), blocked).await.is_ok());
    // What was correct tells nothing while guesses are blocked.
    is_blocked.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(
        all.client(Some(&right), blocked).await,
        Err(Unknown::Blocked)
    );
}

/// Attack A403: a browser opens many tunnels at once, before the first password is compared.
#[tokio::test]
async fn equal_passwords_that_wait_are_compared_once() {
    let file = File::new("once", &format!("alice:{}\n", bcrypt_of("x")));
    let all = Credentials::read(&file.0).expect("a valid file");
    let permits = all.shared.comparisons.clone();
    let held = permits.acquire_many(AT_A_TIME as u32).await.expect("open");
    let field = HeaderValue::from_str(&basic("alice:x")).expect("a value");
    let mut waiting = Box::pin(all.client(Some(&field), || false));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx)));
    assert!(polled.await.is_pending());
    let name: Arc<str> = "somebody".into();
    all.shared
        .correct
        .lock()
        .insert(all.keyed("alice", "x"), name.clone());
    drop(held);
    assert_eq!(waiting.await, Ok(name));
}

/// Attack A378: hashes of different costs tell nothing, since each unknown name has those of some client.
#[test]
fn unknown_names_cost_as_much_as_one_of_the_known_ones() {
    let entry = |name: &str, secret| Entry {
        name: name.into(),
        secret,
    };
    let entries = [
        entry("robot", Secret::Sha256([0; 32])),
        entry("alice", Secret::Bcrypt("cheap".into())),
        entry("bob", Secret::Bcrypt("costly".into())),
    ];
    let chosen = |byte| stand_in(&entries, &[byte; 32]);
    let names: Vec<_> = (0..=255).map(chosen).collect();
    assert!(names.iter().all(|it| ["alice", "bob"].contains(it)));
    assert!(names.contains(&"alice") && names.contains(&"bob"));
    assert_eq!(stand_in(&entries[..1], &[7; 32]), "");
    assert_eq!(hashes_of(&entries, "bob").len(), 1);
    assert!(hashes_of(&entries, "robot").is_empty());
}
