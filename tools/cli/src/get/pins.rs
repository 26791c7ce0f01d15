//! `--pinnedpubkey`: hashes of public keys.

use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::exit::{FAILED_INIT, Failed, PINNED_KEY};

/// Parses `sha256//BASE64`, several of them separated by semicolons.
pub(crate) fn read(text: &str) -> Result<Vec<[u8; 32]>, Failed> {
    if !text.starts_with(PREFIX) {
        let text = match Path::new(text).exists() {
            true => format!("--pinnedpubkey: hashes are needed, not the key {text}: {REMEDY}"),
            false => format!("--pinnedpubkey '{text}' is not sha256//BASE64"),
        };
        return Err(Failed::new(FAILED_INIT, text));
    }
    let hashes = text.split(';').map(|hash| {
        let coded = hash.trim().strip_prefix(PREFIX);
        let bytes = coded.and_then(|coded| BASE64_STANDARD.decode(coded).ok());
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| {
                let text = format!("--pinnedpubkey '{hash}' is not sha256//BASE64 of 32 bytes");
                Failed::new(PINNED_KEY, text)
            })
    });
    hashes.collect()
}

const PREFIX: &str = "sha256//";
const REMEDY: &str =
    "openssl pkey -pubin -in KEY -outform der | openssl dgst -sha256 -binary | base64";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_decoded() {
        let one = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        assert_eq!(read(one), Ok(vec![[0; 32]]));
        assert_eq!(read(&format!("{one};{one}")).map(|all| all.len()), Ok(2));
        for wrong in ["", "sha256//", "sha256//AAAA", "key.pem"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
