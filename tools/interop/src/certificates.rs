//! The certificates of a run: a chain of any length below a root of its own.

use std::fs;
use std::io;
use std::path::Path;

use courser_measure::Failure;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Writes `ca.pem`, `cert.pem` and `priv.key` into a folder. `chain` is the number of certificates
/// in `cert.pem`, at least 1. As the runner does, a longer chain makes the server's own certificate
/// large.
pub(crate) fn write(folder: &Path, chain: usize) -> Result<(), Failure> {
    let files = make(chain)
        .map_err(|error| Failure::new(format!("cannot make the certificates of a run: {error}")))?;
    let written: io::Result<()> = files
        .iter()
        .try_for_each(|(name, text)| fs::write(folder.join(name), text));
    written.map_err(|error| {
        Failure::new(format!(
            "cannot write certificates to {}: {error}",
            folder.display()
        ))
    })
}

fn make(chain: usize) -> Result<[(&'static str, String); 3], rcgen::Error> {
    let key = KeyPair::generate()?;
    let root = authority("interop root")?;
    let root_certificate = root.self_signed(&key)?.pem();
    let mut issuer = Issuer::new(root, key);
    let mut pem = String::new();
    for number in 1..chain {
        let key = KeyPair::generate()?;
        let intermediate = authority(&format!("interop intermediate {number}"))?;
        pem.insert_str(0, &intermediate.signed_by(&key, &issuer)?.pem());
        issuer = Issuer::new(intermediate, key);
    }
    let mut names: Vec<String> = [
        "localhost",
        "127.0.0.1",
        "::1",
        "server",
        "server4",
        "server6",
        "server46",
    ]
    .map(str::to_owned)
    .to_vec();
    if chain > 1 {
        names.extend((0..FILLERS).map(filler));
    }
    let mut leaf = CertificateParams::new(names)?;
    leaf.distinguished_name
        .push(DnType::CommonName, "interop leaf");
    let key = KeyPair::generate()?;
    pem.insert_str(0, &leaf.signed_by(&key, &issuer)?.pem());
    Ok([
        ("ca.pem", root_certificate),
        ("cert.pem", pem),
        ("priv.key", key.serialize_pem()),
    ])
}

fn authority(name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Ok(params)
}

/// Returns a name of 250 characters that no server has.
fn filler(number: usize) -> String {
    let label = format!("{number:02}").repeat(31);
    [label.as_str(); 4].join(".")[..250].to_owned()
}

/// Additional names in the server's own certificate.
const FILLERS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_chain_exceeds_the_amplification_limit_of_the_first_flight() {
        for (chain, least, most) in [(1, 300, 1000), (9, 7500, 20_000)] {
            let [_, (_, pem), _] = make(chain).expect("certificates");
            assert_eq!(pem.matches("BEGIN CERTIFICATE").count(), chain);
            let len = pem.len() * 3 / 4;
            assert!((least..most).contains(&len), "{chain}: {len} bytes");
        }
    }
}
