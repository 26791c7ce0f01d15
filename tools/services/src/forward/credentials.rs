//! The clients of a forward proxy: passwords and tokens in a file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::rand;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use courser_base::Mutex;
use http::HeaderValue;
use tokio::sync::Semaphore;

/// The clients in a file, with their passwords and tokens. Clones share the file.
///
/// Each line is `name:hash`; `#` begins a comment. The hash is one of:
///
/// - bcrypt (`$2y$…`, also `$2a$` and `$2b$`), as `htpasswd -nB NAME` prints it: the client sends its password with
///   Basic (RFC 7617),
/// - `sha256:` and 64 hexadecimal digits, of a random token of at least 128 bits: the client sends the token with
///   Bearer (RFC 6750), or as the password of Basic. [`new_token`] makes one.
///
/// A name can have several lines, so that a password can be replaced without a gap.
#[derive(Clone, Debug)]
pub struct Credentials {
    path: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    entries: Mutex<Arc<[Entry]>>,
    /// Passwords that were correct, by a keyed digest, because bcrypt takes milliseconds.
    correct: Mutex<HashMap<Digest, Arc<str>>>,
    /// The key of `correct`, unknown to everybody.
    key: [u8; 32],
    /// Passwords that are compared at a time.
    comparisons: Arc<Semaphore>,
}

type Digest = [u8; 32];

#[derive(Clone, Debug)]
struct Entry {
    name: Arc<str>,
    secret: Secret,
}

#[derive(Clone, Debug)]
enum Secret {
    Bcrypt(Arc<str>),
    Sha256(Digest),
}

/// A request without the credentials of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unknown {
    /// The request has none.
    Missing,
    /// They are malformed, or those of no client.
    Wrong,
    /// There were too many wrong ones, so that they were not compared.
    Blocked,
}

impl Credentials {
    /// Reads a file.
    ///
    /// # Errors
    /// A message for the user, with the number of the line.
    pub fn read(path: &Path) -> Result<Self, String> {
        let mut key = [0; 32];
        rand::fill(&mut key).map_err(|_| "the system has no random numbers".to_owned())?;
        Ok(Self {
            path: path.to_owned(),
            shared: Arc::new(Shared {
                entries: Mutex::new(read(path)?),
                correct: Mutex::default(),
                key,
                comparisons: Arc::new(Semaphore::new(AT_A_TIME)),
            }),
        })
    }

    /// Reads the file again. Clients that it no longer names are unknown from then on; their open tunnels stay.
    ///
    /// # Errors
    /// A message for the user. The old clients stay.
    pub fn reload(&self) -> Result<(), String> {
        let entries = read(&self.path)?;
        *self.shared.entries.lock() = entries;
        self.shared.correct.lock().clear();
        Ok(())
    }

    /// Returns the number of lines with clients.
    pub fn len(&self) -> usize {
        self.shared.entries.lock().len()
    }

    /// Returns true if the file names no client.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the name of the client with the credentials of a field `Proxy-Authorization`.
    ///
    /// Nothing but tokens, which nobody guesses, is compared while `is_blocked` is true. It is asked again when a password
    /// has waited for others: of hundreds that one address sends at once, as few are compared as of those that it sends
    /// one by one.
    pub(crate) async fn client(
        &self,
        field: Option<&HeaderValue>,
        is_blocked: impl Fn() -> bool,
    ) -> Result<Arc<str>, Unknown> {
        let field = field.ok_or(Unknown::Missing)?;
        let wrong = || match is_blocked() {
            true => Unknown::Blocked,
            false => Unknown::Wrong,
        };
        let text = field.to_str().map_err(|_| wrong())?;
        let (scheme, value) = text.split_once(' ').ok_or_else(wrong)?;
        let value = value.trim();
        if value.len() > LONGEST {
            return Err(wrong());
        }
        if scheme.eq_ignore_ascii_case("bearer") {
            return self.of_token(None, value.as_bytes()).ok_or_else(wrong);
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(wrong());
        }
        let pair = BASE64_STANDARD.decode(value).map_err(|_| wrong())?;
        let pair = String::from_utf8(pair).map_err(|_| wrong())?;
        let (name, password) = pair.split_once(':').ok_or_else(wrong)?;
        if let Some(name) = self.of_token(Some(name), password.as_bytes()) {
            return Ok(name);
        }
        self.of_password(name, password, &is_blocked).await
    }

    /// Returns the client with a token, and with this name if there is one.
    fn of_token(&self, name: Option<&str>, token: &[u8]) -> Option<Arc<str>> {
        let hash = digest::digest(&SHA256, token);
        let entries = self.shared.entries.lock().clone();
        let mut found = entries.iter().filter(|entry| match &entry.secret {
            Secret::Sha256(known) => {
                let is_named = name.is_none_or(|name| *name == *entry.name);
                is_named && verify_slices_are_equal(known, hash.as_ref()).is_ok()
            }
            Secret::Bcrypt(_) => false,
        });
        found.next().map(|entry| entry.name.clone())
    }

    async fn of_password(
        &self,
        name: &str,
        password: &str,
        is_blocked: &impl Fn() -> bool,
    ) -> Result<Arc<str>, Unknown> {
        let digest = self.keyed(name, password);
        if let Some(name) = self.remembered(&digest, is_blocked)? {
            return Ok(name);
        }
        let comparisons = self.shared.comparisons.clone();
        let permit = comparisons.acquire_owned().await;
        let permit = permit.map_err(|_| Unknown::Wrong)?;
        // Another request of the client may have compared the same password meanwhile.
        if let Some(name) = self.remembered(&digest, is_blocked)? {
            return Ok(name);
        }
        let entries = self.shared.entries.lock().clone();
        let mut hashes = hashes_of(&entries, name);
        let is_known = !hashes.is_empty();
        if !is_known {
            // The time of the answer must not tell which names exist: it is that of some client, always of the same one.
            hashes = hashes_of(&entries, stand_in(&entries, &self.keyed(name, "")));
        }
        let password = password.to_owned();
        let compared = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let is_equal = |hash: &Arc<str>| bcrypt::verify(&password, hash).unwrap_or(false);
            // All of them, for the same reason.
            hashes.iter().filter(|hash| is_equal(hash)).count() > 0
        });
        if !(compared.await.unwrap_or(false) && is_known) {
            return Err(Unknown::Wrong);
        }
        let name: Arc<str> = name.into();
        let mut correct = self.shared.correct.lock();
        if correct.len() >= REMEMBERED {
            correct.clear();
        }
        // A file that was read meanwhile may have another password.
        if Arc::ptr_eq(&entries, &self.shared.entries.lock()) {
            correct.insert(digest, name.clone());
        }
        Ok(name)
    }

    /// Returns the client whose password was correct before. While guesses are blocked, nothing tells whether it was.
    fn remembered(
        &self,
        digest: &Digest,
        is_blocked: impl Fn() -> bool,
    ) -> Result<Option<Arc<str>>, Unknown> {
        match is_blocked() {
            true => Err(Unknown::Blocked),
            false => Ok(self.shared.correct.lock().get(digest).cloned()),
        }
    }

    fn keyed(&self, name: &str, password: &str) -> Digest {
        let mut context = digest::Context::new(&SHA256);
        context.update(&self.shared.key);
        context.update(&name.len().to_be_bytes());
        context.update(name.as_bytes());
        context.update(password.as_bytes());
        to_array(context.finish().as_ref())
    }
}

/// Returns the hashes of the passwords of a name.
fn hashes_of(entries: &[Entry], name: &str) -> Vec<Arc<str>> {
    let hashes = entries.iter().filter_map(|entry| match &entry.secret {
        Secret::Bcrypt(hash) if *entry.name == *name => Some(hash.clone()),
        _ => None,
    });
    hashes.collect()
}

/// Returns a name with passwords that is chosen by a digest, or an empty one if there is none.
fn stand_in<'a>(entries: &'a [Entry], digest: &Digest) -> &'a str {
    let names = || {
        let all = entries.iter();
        all.filter(|entry| matches!(entry.secret, Secret::Bcrypt(_)))
    };
    let count = names().count().max(1);
    let number = digest
        .iter()
        .take(4)
        .fold(0_usize, |all, byte| all << 8 | usize::from(*byte));
    let chosen = names().nth(number % count);
    chosen.map_or("", |entry| &*entry.name)
}

/// Returns a new random token of 256 bits, and its line for a file of [`Credentials`].
///
/// # Errors
/// A message for the user: the name is empty, or has a colon, a control character or a `#` at its beginning.
pub fn new_token(name: &str) -> Result<(String, String), String> {
    check_name(name)?;
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| "the system has no random numbers".to_owned())?;
    let token = BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let hash = digest::digest(&SHA256, token.as_bytes());
    let digits: String = hash.as_ref().iter().map(|it| format!("{it:02x}")).collect();
    let line = format!("{name}:sha256:{digits}");
    Ok((token, line))
}

fn read(path: &Path) -> Result<Arc<[Entry]>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let lines = text.lines().enumerate();
    let lines = lines.map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let entries =
        lines.map(|(number, line)| entry(line).map_err(|error| format!("line {number}: {error}")));
    let entries: Arc<[Entry]> = entries.collect::<Result<_, _>>()?;
    if entries.is_empty() {
        return Err(
            "the file names no client: write lines such as those of htpasswd -nB NAME".to_owned(),
        );
    }
    Ok(entries)
}

fn entry(line: &str) -> Result<Entry, String> {
    let (name, hash) = line
        .split_once(':')
        .ok_or("there is no colon between a name and a hash")?;
    check_name(name)?;
    let secret = match hash.strip_prefix("sha256:") {
        Some(digits) => Secret::Sha256(sha256(digits)?),
        None if hash.starts_with("$2") => Secret::Bcrypt(checked_bcrypt(hash)?.into()),
        // The line may have the password itself: it is not repeated.
        None => {
            return Err(format!(
                "the hash of {name} is neither bcrypt ($2y$..., from htpasswd -nB) nor sha256: and 64 hexadecimal \
                 digits (from courser proxy --make-token)"
            ));
        }
    };
    Ok(Entry {
        name: name.into(),
        secret,
    })
}

fn check_name(name: &str) -> Result<(), String> {
    let is_valid = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !name.starts_with('#')
        && !name.contains(|c: char| c == ':' || c.is_control());
    match is_valid {
        true => Ok(()),
        false => Err(format!(
            "a name has 1 to {LONGEST_NAME} bytes without colons and control characters, and does not begin with #"
        )),
    }
}

fn sha256(digits: &str) -> Result<Digest, String> {
    let wrong = || {
        format!(
            "sha256: is followed by {} bytes, not 64 hexadecimal digits",
            digits.len()
        )
    };
    let mut hash = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return Err(wrong());
    }
    for (byte, pair) in hash.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
        // `+1` is a number for the parser.
        if !pair.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok(hash)
}

/// Returns a bcrypt hash that is well-formed and takes less than seconds.
fn checked_bcrypt(hash: &str) -> Result<&str, String> {
    let parts: bcrypt::HashParts = hash
        .parse()
        .map_err(|error| format!("the bcrypt hash is malformed: {error}"))?;
    let cost = parts.get_cost();
    match (4..=HIGHEST_COST).contains(&cost) {
        true => Ok(hash),
        false => Err(format!(
            "the cost of the bcrypt hash is {cost}, allowed is 4 to {HIGHEST_COST}: each doubles the time of a check"
        )),
    }
}

fn to_array(bytes: &[u8]) -> Digest {
    let mut array = [0; 32];
    let len = bytes.len().min(32);
    array[..len].copy_from_slice(&bytes[..len]);
    array
}

/// Longest credentials in a field, in bytes (limit K650).
const LONGEST: usize = 4096;
/// Longest name of a client, in bytes.
const LONGEST_NAME: usize = 128;
/// Highest cost of a bcrypt hash (limit K650): about a second.
const HIGHEST_COST: u32 = 14;
/// Passwords that are compared at a time (limit K650).
const AT_A_TIME: usize = 2;
/// Passwords that are remembered as correct (limit K650).
const REMEMBERED: usize = 4096;

#[cfg(test)]
mod tests;
