//! Reads the settings of one server in a QUIC-LB configuration from a file.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use courser::{ServerIdError, ServerIdGenerator};

/// The reason why a QUIC-LB configuration cannot be used.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("cannot use the QUIC-LB configuration {}: {reason}", .path.display())]
pub struct ServerIdsError {
    /// The path that was passed to [`read_server_ids`].
    pub path: PathBuf,
    /// The I/O error, or the line and its mistake.
    pub reason: String,
}

/// Reads the connection ID settings of a server behind a load balancer (draft-ietf-quic-load-balancers-21 §5.3)
/// from a file.
///
/// Each line consists of a name, `=` and a value; `#` begins a comment. Bytes are hexadecimal.
///
/// | name | value |
/// |---|---|
/// | `config-id` | 0 to 6 |
/// | `server-id` | 1 to 15 bytes, another for each server |
/// | `nonce-length` | 4 to 18, and at most 19 with the server ID |
/// | `key` | 16 bytes, the same for all servers; without it, IDs are in clear |
/// | `first-octet` | `random`, or `length` if the lower bits describe the length of the ID; by default `random` |
///
/// # Errors
/// The file cannot be read or is longer than 4096 bytes, or a line or value is invalid. No reason contains the
/// key.
pub fn read_server_ids(path: &Path) -> Result<ServerIdGenerator, ServerIdsError> {
    let failed = |reason: String| ServerIdsError {
        path: path.to_owned(),
        reason,
    };
    let text = read(path).map_err(|error| failed(error.to_string()))?;
    parse(&text).map_err(failed)
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let mut file = std::fs::File::open(path)?.take(MAX_FILE + 1);
    file.read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        let long = format!("the file has more than {MAX_FILE} bytes");
        return Err(std::io::Error::other(long));
    }
    Ok(text)
}

/// Parses the text of a file.
fn parse(text: &str) -> Result<ServerIdGenerator, String> {
    let mut settings = Settings::default();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            let read = settings.read(line);
            read.map_err(|reason| format!("line {number}: {reason}"))?;
        }
    }
    settings.generator()
}

#[derive(Default)]
struct Settings {
    config_id: Option<u8>,
    server_id: Option<Vec<u8>>,
    nonce_length: Option<usize>,
    key: Option<[u8; 16]>,
    has_length: Option<bool>,
}

impl Settings {
    fn read(&mut self, line: &str) -> Result<(), String> {
        let (name, value) = line
            .split_once('=')
            .ok_or("'=' is missing: write 'name = value'")?;
        let (name, value) = (name.trim(), value.trim());
        match name {
            "config-id" => set(&mut self.config_id, name, number(value)?),
            "server-id" => set(&mut self.server_id, name, bytes(value)?),
            "nonce-length" => set(&mut self.nonce_length, name, number(value)?),
            "key" => {
                let key = bytes(value)?;
                let has = key.len();
                let key = key
                    .try_into()
                    .map_err(|_| format!("the key has {has} bytes, not 16"))?;
                set(&mut self.key, name, key)
            }
            "first-octet" => {
                let has_length = match value {
                    "random" => false,
                    "length" => true,
                    _ => return Err(format!("'{value}' is neither random nor length")),
                };
                set(&mut self.has_length, name, has_length)
            }
            _ => Err(format!("'{name}' is not a setting: use {NAMES}")),
        }
    }

    fn generator(self) -> Result<ServerIdGenerator, String> {
        let missing = |name| move || format!("{name} is missing");
        let generator = ServerIdGenerator::new(
            self.config_id.ok_or_else(missing("config-id"))?,
            &self.server_id.ok_or_else(missing("server-id"))?,
            self.nonce_length.ok_or_else(missing("nonce-length"))?,
        );
        let mut generator = generator.map_err(|error: ServerIdError| error.to_string())?;
        if let Some(key) = &self.key {
            generator = generator.encrypt(key);
        }
        if self.has_length == Some(true) {
            generator = generator.describe_length();
        }
        Ok(generator)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

fn set<T>(setting: &mut Option<T>, name: &str, value: T) -> Result<(), String> {
    match setting.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{name} is given twice")),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let number = text.parse();
    number.map_err(|_| format!("'{text}' is not a number in the allowed range"))
}

/// Parses hexadecimal bytes. The error does not contain the text, which may be a key.
fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        let is_hex = text.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_hex.then(|| u8::from_str_radix(text, 16).ok()).flatten()
    };
    let read = match digits.len() % 2 {
        0 => digits.chunks(2).map(byte).collect(),
        _ => None,
    };
    read.ok_or_else(|| "the value is not an even number of hexadecimal digits".to_owned())
}

const NAMES: &str = "config-id, server-id, nonce-length, key or first-octet";

/// Largest size of a file in bytes; a usual one has five short lines.
const MAX_FILE: u64 = 4096;

#[cfg(test)]
mod tests {
    use courser::ConnectionIdGenerator as _;

    use super::*;

    const CLEAR: &str = "config-id = 2\nserver-id=ed793a51d49b8f5f\n\nnonce-length = 8 # bytes\n";
    const KEY: &str = "key = 8f95f09245765f80256934e50c66207F\n";

    fn parsed(text: &str) -> ServerIdGenerator {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Test vector of draft-ietf-quic-load-balancers-21 §B.2.
    #[test]
    fn file_with_a_key_opens_the_vector_of_the_draft() {
        let generator = parsed(&format!(
            "# of the draft\n{CLEAR}{KEY}first-octet = length\n"
        ));
        assert_eq!(generator.length(), 17);
        let mut id = 0x4dd2_d05a_7b0d_e9b2_b990_7afb_5ecf_8cc3_u128
            .to_be_bytes()
            .to_vec();
        id.insert(0, 0x50);
        let server_id = 0xed79_3a51_d49b_8f5f_u64.to_be_bytes();
        assert_eq!(generator.open(&mut id), Some(&server_id[..]));
        assert_ne!(generator, parsed(&format!("{CLEAR}{KEY}")));
    }

    #[test]
    fn file_without_a_key_leaves_server_ids_in_clear() {
        let generator = parsed(CLEAR);
        let mut rng = courser::Rng::new([7; 32]);
        let id = generator.generate(&mut rng);
        assert_eq!(id[1..9], 0xed79_3a51_d49b_8f5f_u64.to_be_bytes());
    }

    #[test]
    fn mistakes_are_reported_with_their_line_and_without_the_key() {
        for (text, reason) in [
            ("", "config-id is missing"),
            ("config-id = 2\n", "server-id is missing"),
            ("config-id = 2\nserver-id = 01", "nonce-length is missing"),
            ("config-id 2", "line 1: '=' is missing"),
            ("\nport = 1", "line 2: 'port' is not a setting"),
            (
                "config-id = 300",
                "line 1: '300' is not a number in the allowed range",
            ),
            ("config-id = -1", "line 1: '-1' is not a number"),
            (
                "server-id = 012",
                "line 1: the value is not an even number of",
            ),
            (
                "server-id = +1",
                "line 1: the value is not an even number of",
            ),
            (
                "server-id = €",
                "line 1: the value is not an even number of",
            ),
            ("key = 8f95", "line 1: the key has 2 bytes, not 16"),
            ("key = secret!!", "line 1: the value is not an even"),
            (
                "first-octet = 3",
                "line 1: '3' is neither random nor length",
            ),
            (
                "config-id=1\nconfig-id=1",
                "line 2: config-id is given twice",
            ),
            (
                "config-id=7\nserver-id=01\nnonce-length=4",
                "configuration is 7, allowed is 0 to 6",
            ),
            (
                "config-id=1\nserver-id=01\nnonce-length=3",
                "the nonce has 3 bytes",
            ),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(reason), "{text}: {error}");
            assert!(
                !error.contains("secret") && !error.contains('\n'),
                "{error}"
            );
        }
    }

    #[test]
    fn file_is_read_up_to_the_limit() {
        let folder = std::env::temp_dir().join(format!("courser-ids-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("ids");
        let comment = |length| format!("{CLEAR}#{}", "x".repeat(length));
        std::fs::write(&path, comment(4096 - CLEAR.len() - 1)).expect("a file");
        assert!(read_server_ids(&path).is_ok());
        std::fs::write(&path, comment(4096 - CLEAR.len())).expect("a file");
        let error = read_server_ids(&path).expect_err("too long").to_string();
        assert!(
            error.ends_with("ids: the file has more than 4096 bytes"),
            "{error}"
        );
        std::fs::remove_dir_all(&folder).expect("it exists");
        let error = read_server_ids(&path)
            .expect_err("the file was removed")
            .to_string();
        assert!(
            error.starts_with("cannot use the QUIC-LB configuration "),
            "{error}"
        );
    }
}
