//! The flag `--ech` for Encrypted Client Hello.

use std::path::Path;
use std::sync::OnceLock;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use courser::{Ech, EchRejection};

use crate::Failure;

/// The value of the flag, which applies to the whole process. [`remedy`] needs it after a rejection.
static IN_USE: OnceLock<Ech> = OnceLock::new();

/// Reads the value of `--ech`: `grease`, `false`, an ECHConfigList in base64, or a file with one, as
/// bytes or in base64.
///
/// # Errors
/// Returns an error if the value is none of these, or the list cannot be used.
pub fn parse(text: &str) -> Result<Option<Ech>, Failure> {
    let wrong = |why: String| Failure::new(format!("cannot use --ech '{text}': {why}"));
    let ech = match text {
        "false" => return Ok(None),
        "grease" => Ech::grease(),
        text => Ech::from_config_list(&list(text).map_err(wrong)?),
    };
    let ech = ech.map_err(|error| wrong(error.to_string()))?;
    let _ = IN_USE.set(ech.clone());
    Ok(Some(ech))
}

fn list(text: &str) -> Result<Vec<u8>, String> {
    // The prefix of curl.
    if let Some(encoded) = text.strip_prefix("ecl:") {
        return decode(encoded.as_bytes());
    }
    let path = Path::new(text);
    if !path.is_file() {
        return decode(text.as_bytes())
            .map_err(|_| "neither grease, false, a file nor base64".to_owned());
    }
    let length = std::fs::metadata(path).map_or(0, |it| it.len());
    if length > MAX_LIST_FILE {
        return Err(format!(
            "the file has {length} bytes, above {MAX_LIST_FILE}"
        ));
    }
    let content = std::fs::read(path).map_err(|error| error.to_string())?;
    Ok(decode(&content).unwrap_or(content))
}

fn decode(text: &[u8]) -> Result<Vec<u8>, String> {
    let decoded = BASE64_STANDARD.decode(text.trim_ascii());
    decoded.map_err(|error| error.to_string())
}

/// Returns the advice for the user after a server rejected ECH.
pub fn remedy() -> String {
    match IN_USE.get().and_then(Ech::rejection) {
        Some(EchRejection::Retry(list)) => {
            format!("try again with --ech {}", BASE64_STANDARD.encode(list))
        }
        _ => "the server no longer supports ECH: connect without --ech".to_owned(),
    }
}

/// The longest file with an ECHConfigList (limit K189): the list has a length of two bytes, and base64
/// enlarges it by a third.
const MAX_LIST_FILE: u64 = 96 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "cannot use"),
            ("no such file!", "neither"),
            ("ecl:?", "nvalid"),
            ("AAA=", "cannot use Encrypted Client Hello"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(parse("false").is_ok_and(|ech| ech.is_none()));
    }

    #[test]
    fn files_beyond_the_limit_are_not_read() {
        let path = std::env::temp_dir().join(format!("courser-ech-{}", std::process::id()));
        std::fs::write(&path, vec![b'A'; MAX_LIST_FILE as usize + 1]).expect("written");
        let failed = parse(path.to_str().expect("UTF-8")).expect_err("too long");
        assert!(failed.to_string().contains("above 98304"), "{failed}");
        // A file of the maximum size is read, but contains no list.
        std::fs::write(&path, vec![b'A'; MAX_LIST_FILE as usize]).expect("written");
        let failed = parse(path.to_str().expect("UTF-8")).expect_err("no list");
        let _ = std::fs::remove_file(&path);
        assert!(failed.to_string().contains("cannot use"), "{failed}");
    }
}
