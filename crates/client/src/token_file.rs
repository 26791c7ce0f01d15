//! Address validation tokens in a file (RFC 9000 §8.1.3).
//!
//! The first line is `courser-tokens 1`. Each further line has a server, a tab, and a token in hexadecimal
//! digits. A server is a name, followed by the port unless it is 443. The oldest tokens come first.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use courser_base::{Mutex, replace_file};
use courser_quic::TokenStore;

/// A token store in a file, with which later processes save a round trip to servers that validate addresses (RFC
/// 9000 §8.1.3).
///
/// [`open`](Self::open) reads the file, and [`save`](Self::save) replaces it. A new file is readable only by its
/// owner, because a token links the visits of a client. If two processes use the file at the same time, the last
/// one to save wins.
///
/// TLS sessions are not stored, because rustls cannot serialize those of a client.
///
/// ```
/// use std::sync::Arc;
///
/// use courser_client::{Client, FileTokenStore};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("courser-tokens-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("tokens");
/// let tokens = Arc::new(FileTokenStore::open(&path)?);
/// let client = Client::builder().token_store(tokens.clone()).build()?;
/// // … requests …
/// tokens.save()?;
/// # drop(client);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FileTokenStore {
    path: PathBuf,
    tokens: Mutex<Tokens>,
}

#[derive(Debug, Default)]
struct Tokens {
    /// Server names and tokens, oldest first.
    all: VecDeque<(String, Bytes)>,
    is_changed: bool,
}

/// An error for a file that cannot be used for tokens. Its text names the file and the reason in one line.
#[derive(Debug)]
pub struct TokenFileError {
    path: PathBuf,
    reason: TokenFileReason,
}

/// The reason why a file cannot be used for tokens.
#[derive(Debug)]
#[non_exhaustive]
pub enum TokenFileReason {
    /// The file cannot be read.
    Io(io::Error),
    /// The path is a folder, a pipe or a device.
    NotAFile,
    /// The file belongs to another user. Detected on Linux only.
    OtherUser,
    /// Other users may read or write the file. Detected on Unix only.
    OpenToOthers,
    /// The file is longer than 512 KiB.
    TooLong,
    /// The file has another format or a later version.
    Format,
}

impl FileTokenStore {
    /// Reads a file. A missing or empty file has no tokens.
    ///
    /// # Errors
    /// [`TokenFileError`] if the file must not or cannot be used. The file is not changed.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TokenFileError> {
        let path = path.into();
        match read(&path) {
            Ok(all) => {
                let tokens = Tokens {
                    all,
                    is_changed: false,
                };
                Ok(Self {
                    path,
                    tokens: Mutex::new(tokens),
                })
            }
            Err(reason) => Err(TokenFileError { path, reason }),
        }
    }

    /// Replaces the file atomically if the tokens have changed.
    ///
    /// # Errors
    /// The error of the file system. The file is not changed in that case.
    pub fn save(&self) -> io::Result<()> {
        let mut tokens = self.tokens.lock();
        if !tokens.is_changed {
            return Ok(());
        }
        replace_file(&self.path, format(&tokens.all).as_bytes())?;
        tokens.is_changed = false;
        Ok(())
    }
}

impl TokenStore for FileTokenStore {
    fn put(&self, server_name: &str, token: Bytes) {
        let mut tokens = self.tokens.lock();
        let is_changed = insert(&mut tokens.all, server_name, token);
        tokens.is_changed |= is_changed;
    }

    fn take(&self, server_name: &str) -> Option<Bytes> {
        let mut tokens = self.tokens.lock();
        let newest = tokens.all.iter().rposition(|(name, _)| name == server_name);
        let (_, token) = tokens.all.remove(newest?)?;
        tokens.is_changed = true;
        Some(token)
    }
}

/// Adds a token, and removes tokens beyond the limits. Returns false if the token was not added.
fn insert(all: &mut VecDeque<(String, Bytes)>, name: &str, token: Bytes) -> bool {
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_name || token.is_empty() || token.len() > MAX_TOKEN {
        return false;
    }
    let is_known = |(known, kept): &(String, Bytes)| known == name && *kept == token;
    if all.iter().any(is_known) {
        return false;
    }
    let of_server = |(known, _): &(String, Bytes)| known == name;
    if all.iter().filter(|entry| of_server(entry)).count() >= MAX_TOKENS_OF_SERVER
        && let Some(oldest) = all.iter().position(of_server)
    {
        all.remove(oldest);
    }
    if all.len() >= MAX_TOKENS {
        all.pop_front();
    }
    all.push_back((name.to_owned(), token));
    true
}

fn read(path: &Path) -> Result<VecDeque<(String, Bytes)>, TokenFileReason> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(VecDeque::new()),
        // Opening a pipe would block.
        Ok(known) if !known.is_file() => return Err(TokenFileReason::NotAFile),
        _ => {}
    }
    let file = File::open(path).map_err(TokenFileReason::Io)?;
    check(&file.metadata().map_err(TokenFileReason::Io)?)?;
    let mut bytes = Vec::new();
    let limit = MAX_FILE as u64 + 1;
    let result = file.take(limit).read_to_end(&mut bytes);
    result.map_err(TokenFileReason::Io)?;
    if bytes.len() > MAX_FILE {
        return Err(TokenFileReason::TooLong);
    }
    if bytes.is_empty() {
        return Ok(VecDeque::new());
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| TokenFileReason::Format)?;
    parse(text).ok_or(TokenFileReason::Format)
}

/// Checks that no other user may write or read a file.
fn check(known: &Metadata) -> Result<(), TokenFileReason> {
    if !known.is_file() {
        return Err(TokenFileReason::NotAFile);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        // The folder of a process in /proc belongs to its user.
        let own = fs::metadata("/proc/self").ok().map(|own| own.uid());
        check_user(known.uid(), own, known.mode())?;
    }
    Ok(())
}

#[cfg(unix)]
fn check_user(owner: u32, own: Option<u32>, mode: u32) -> Result<(), TokenFileReason> {
    if own.is_some_and(|own| own != owner) {
        Err(TokenFileReason::OtherUser)
    } else if mode & 0o077 != 0 {
        Err(TokenFileReason::OpenToOthers)
    } else {
        Ok(())
    }
}

fn parse(text: &str) -> Option<VecDeque<(String, Bytes)>> {
    let lines = text.strip_prefix(HEADER)?.strip_prefix('\n')?.lines();
    let mut all = VecDeque::new();
    for line in lines {
        let (name, token) = line.split_once('\t')?;
        insert(&mut all, name, parse_hex(token)?);
    }
    Some(all)
}

fn format(all: &VecDeque<(String, Bytes)>) -> String {
    let mut text = format!("{HEADER}\n");
    for (name, token) in all {
        let _ = write!(text, "{name}\t");
        for byte in token {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

fn parse_hex(text: &str) -> Option<Bytes> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let byte = |at: usize| {
        let digits = text.get(at..at + 2)?;
        // `from_str_radix` accepts a sign.
        let is_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_digits.then(|| u8::from_str_radix(digits, 16).ok())?
    };
    (0..text.len()).step_by(2).map(byte).collect()
}

impl TokenFileError {
    /// Returns the reason why the file cannot be used.
    pub fn reason(&self) -> &TokenFileReason {
        &self.reason
    }
}

impl fmt::Display for TokenFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use {} for tokens: ", self.path.display())?;
        match &self.reason {
            TokenFileReason::Io(error) => write!(f, "{error}"),
            TokenFileReason::NotAFile => f.write_str("it is not a regular file"),
            TokenFileReason::OtherUser => f.write_str("it belongs to another user"),
            TokenFileReason::OpenToOthers => f.write_str("other users may read or write it"),
            TokenFileReason::TooLong => write!(f, "it has more than {MAX_FILE} bytes"),
            TokenFileReason::Format => {
                write!(f, "its first line is not '{HEADER}', or it is damaged")
            }
        }
    }
}

impl std::error::Error for TokenFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            TokenFileReason::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// The first line of a file: the format and its version.
const HEADER: &str = "courser-tokens 1";
/// Largest size of a file in bytes (limit K240). Tokens within the other limits need less.
const MAX_FILE: usize = 512 << 10;
/// Largest number of tokens in a file (limit K241).
const MAX_TOKENS: usize = 256;
/// Largest number of tokens per server, and longest server name with its port and version (limit K242): 255
/// bytes of a DNS name and those of `:65535#quic-v2`.
const MAX_TOKENS_OF_SERVER: usize = 2;
const MAX_NAME: usize = 269;
/// Largest size of a token in bytes (limit K243).
const MAX_TOKEN: usize = 512;

#[cfg(test)]
mod tests;
