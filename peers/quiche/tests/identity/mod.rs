//! Certificates.

use std::fs;
use std::path::{Path, PathBuf};

use boring::asn1::Asn1Time;
use boring::ec::{EcGroup, EcKey};
use boring::hash::MessageDigest;
use boring::nid::Nid;
use boring::pkey::PKey;
use boring::x509::extension::SubjectAlternativeName;
use boring::x509::{X509, X509Name};
use peers_common::Failure;

/// A folder with a certificate like the runner's.
pub(crate) fn identity(name: &str) -> Result<PathBuf, Failure> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder)?;
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let key = PKey::from_ec_key(EcKey::generate(&group)?)?;
    let mut subject = X509Name::builder()?;
    subject.append_entry_by_text("CN", "localhost")?;
    let subject = subject.build();
    let mut certificate = X509::builder()?;
    certificate.set_version(2)?;
    certificate.set_subject_name(&subject)?;
    certificate.set_issuer_name(&subject)?;
    certificate.set_pubkey(&key)?;
    let (begin, end) = (Asn1Time::days_from_now(0)?, Asn1Time::days_from_now(1)?);
    certificate.set_not_before(&begin)?;
    certificate.set_not_after(&end)?;
    let context = certificate.x509v3_context(None, None);
    let names = SubjectAlternativeName::new()
        .dns("localhost")
        .build(&context)?;
    certificate.append_extension(&names)?;
    certificate.sign(&key, MessageDigest::sha256())?;
    let certificate = certificate.build().to_pem()?;
    fs::write(folder.join("certificate.pem"), certificate)?;
    let key = key.private_key_to_pem_pkcs8()?;
    fs::write(folder.join("key.pem"), key)?;
    Ok(folder)
}
