use super::*;

/// An RSA key of 512 bits, which nothing uses, in PKCS #1.
const RSA_512_PKCS1: &str = "-----BEGIN RSA PRIVATE KEY-----
MIIBPAIBAAJBAK3Biqpx3I3tEFpMKUr2gM7LOIX4yZe5lPmY9Ido16B0mcHACnBN
WyJFNelJlTBir6i879AoS5MI8rpKUHwg5oMCAwEAAQJATG7v7axqpfAbmm0YWQZ4
gP86XQykuV6EnwtevdYrzEPktVhrQkSRTGx/x6maQhmVBs6mFxyyf5I5TO5gXVlK
mQIhAN4mXqn0wX1DWe6qD0nBehz8pRrx0d2m6TXQzeCgBpU1AiEAyDtsK2arz8vP
qzK/fFZ2oholKUZHfyx4dWjKuE4JG9cCIQCwJ7zpCCxmKAIoPrHgyosKcUx7EUZZ
fQFwqyKV/E88AQIhAIa/tqPejHFi73Z+yG6coWmlvqxwJ11mSAp7YzF1EpwxAiEA
2iJGPfpRluKtdQ/wOeOYLIxEsoDAFwCce/h+64o1CzY=
-----END RSA PRIVATE KEY-----
";

/// An RSA key of 512 bits, which nothing uses, in PKCS #8.
const RSA_512_PKCS8: &str = "-----BEGIN PRIVATE KEY-----
MIIBVAIBADANBgkqhkiG9w0BAQEFAASCAT4wggE6AgEAAkEAmLAJXj7UdQRQveSQ
1CsvrljkiMqBygdWTote4wp9x5Np6mEHGJhVrjKzRQMStpu0armn3nOQqyAnAoyo
EyeVIwIDAQABAkBeBpneRcbDwMKQDb76SRX1wZwKeNpwNRB7Eex+2CkYysU/n2jj
23XJuFQLo50ZKbXhAEXkVHj9kPNiQJzdv9uxAiEAxpuhAEr0ETLSOI0Rm3fEWyxc
dB18pvg59IlFxyw+OJ0CIQDEz1+4bla66ks35jABXuUOWdeLcFB7y7obD0GUx+04
vwIhALokwxFzLq2v5Df8f7Qm3HJXcY+i02Hq5Oa8ghna7bZBAiBdk+CGd+hDHY3A
OXHP5QfyR+OFyFRsWFTX8uwSyvDPTwIgSClcMpci/O5BJUQQygjdHDt5CH6SmGO1
dlRjDRoK77Y=
-----END PRIVATE KEY-----
";

fn generated() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("random numbers");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

#[test]
fn byte_order_marks_are_skipped() {
    let (chain, pem) = generated();
    let mark = |text: &str| [b"\xef\xbb\xbf", text.as_bytes()].concat();
    assert_eq!(certificates(&mark(&chain)), certificates(chain.as_bytes()));
    assert_eq!(certificates(&mark(&chain)).expect("one").len(), 1);
    assert_eq!(key(&mark(&pem)), key(pem.as_bytes()));
}

#[test]
fn files_that_are_not_pem_are_named() {
    let pkcs12 = [0x30, 0x82, 0x00, 0x05, 0x02, 0x01, 0x03, 0x30, 0x00];
    let der = [0x30, 0x82, 0x00, 0x05, 0x30, 0x03, 0x02, 0x01, 0x02];
    for (file, expected) in [
        (&pkcs12[..], "PKCS#12"),
        (&der, "binary (DER)"),
        (b"\xff\xfe-\0-\0", "UTF-16"),
        (b" \n", "is empty"),
        (b"hello", "has no line -----BEGIN "),
        (b"", "is empty"),
        (&[0x30], "binary (DER)"),
    ] {
        let error = certificates(file).expect_err(expected);
        assert!(error.contains(expected), "{error}");
        let error = key(file).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn swapped_files_are_noticed() {
    let (chain, pem) = generated();
    let error = certificates(pem.as_bytes()).expect_err("a key");
    assert!(error.contains("swapped"), "{error}");
    let error = key(chain.as_bytes()).expect_err("a certificate");
    assert!(error.contains("swapped"), "{error}");
}

#[test]
fn encrypted_keys_are_named() {
    for text in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n         -----END EC PRIVATE KEY-----\n",
    ] {
        let error = key(text.as_bytes()).expect_err("encrypted");
        assert!(error.contains("openssl pkey -in"), "{error}");
    }
}

#[test]
fn short_rsa_keys_are_refused_with_their_length() {
    for text in [RSA_512_PKCS1, RSA_512_PKCS8] {
        let error = key(text.as_bytes()).expect_err("short");
        assert!(error.contains("has 512 bits"), "{error}");
    }
    let (_, ecdsa) = generated();
    let ecdsa = key(ecdsa.as_bytes()).expect("a key");
    assert_eq!(rsa_bits(&ecdsa), None);
}

#[test]
fn damaged_der_is_survived() {
    let whole = key_bytes(RSA_512_PKCS8);
    for len in 0..whole.len() {
        let cut = PrivateKeyDer::Pkcs8(whole[..len].to_vec().into());
        assert_eq!(rsa_bits(&cut), None, "{len} bytes");
    }
    for at in 0..40 {
        for value in [0, 0x7f, 0x80, 0x84, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            let _ = rsa_bits(&PrivateKeyDer::Pkcs8(changed.into()));
        }
    }
}

fn key_bytes(pem: &str) -> Vec<u8> {
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).expect("a key");
    key.secret_der().to_vec()
}
