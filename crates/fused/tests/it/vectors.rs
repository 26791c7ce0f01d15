//! Vectors of Wycheproof and of NIST.

use courser_fused::{Forged, IV_LEN, PacketKey, TAG_LEN};

use crate::kernels;

#[test]
fn published_vectors_are_sealed_and_opened() {
    let vectors: Vec<Vector> = include_str!("vectors.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(Vector::new)
        .collect();
    let forged = vectors.iter().filter(|vector| !vector.is_valid).count();
    assert_eq!((vectors.len(), forged), (EXPECTED, FORGED));
    for kernel in kernels() {
        for vector in &vectors {
            let case = format!("{kernel}: {}", vector.name);
            // The nonce of packet 0 is the IV.
            let key = PacketKey::with_kernel(kernel, &vector.key, &vector.iv)
                .expect("the kernel is available");
            let mut opened = vector.ciphertext.clone();
            let result = key.open(0, &vector.header, &mut opened, &vector.tag);
            let mut sealed = vector.plaintext.clone();
            let mut tag = [0; TAG_LEN];
            key.seal(0, &vector.header, &mut sealed, &mut tag);
            assert_eq!(sealed, vector.ciphertext, "{case}");
            if vector.is_valid {
                assert_eq!(result, Ok(()), "{case}");
                assert_eq!(opened, vector.plaintext, "{case}");
                assert_eq!(tag, vector.tag, "{case}");
            } else {
                assert_eq!(result, Err(Forged), "{case}");
                assert_eq!(opened, vec![0; vector.ciphertext.len()], "{case}");
                assert_ne!(tag, vector.tag, "{case}");
            }
        }
    }
}

struct Vector {
    name: String,
    key: Vec<u8>,
    iv: [u8; IV_LEN],
    header: Vec<u8>,
    plaintext: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: [u8; TAG_LEN],
    is_valid: bool,
}

impl Vector {
    fn new(line: &str) -> Self {
        let fields: Vec<&str> = line.split(' ').collect();
        let [name, key, iv, header, plaintext, ciphertext, tag, result] = fields[..] else {
            panic!("eight fields: {line}");
        };
        Self {
            name: name.to_owned(),
            key: bytes(key),
            iv: bytes(iv).try_into().expect("the IV has 12 bytes"),
            header: bytes(header),
            plaintext: bytes(plaintext),
            ciphertext: bytes(ciphertext),
            tag: bytes(tag).try_into().expect("the slice has 16 bytes"),
            is_valid: match result {
                "valid" => true,
                "invalid" => false,
                other => panic!("{name}: {other} is no result"),
            },
        }
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    if hex == "-" {
        return Vec::new();
    }
    assert!(hex.len().is_multiple_of(2), "whole bytes");
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// Number of vectors, and of those that must be refused.
const EXPECTED: usize = 256;
const FORGED: usize = 54;
