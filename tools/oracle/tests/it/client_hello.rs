//! The first message of TLS, written and read byte by byte (RFC 8446 §4.1.2, RFC 5246 §7.4.1.2).

/// The extension `server_name` (RFC 6066 §3).
pub(crate) const SERVER_NAME: u16 = 0;
/// The extension of ALPN (RFC 7301 §3.1).
pub(crate) const ALPN: u16 = 16;
/// The extension `supported_versions` (RFC 8446 §4.2.1).
pub(crate) const SUPPORTED_VERSIONS: u16 = 43;
/// The extension `post_handshake_auth` (RFC 8446 §4.2.6).
pub(crate) const POST_HANDSHAKE_AUTH: u16 = 49;

/// A ClientHello.
#[derive(Debug)]
pub(crate) struct ClientHello {
    /// The version, which is that of TLS 1.2 for all later ones too.
    pub(crate) version: u16,
    pub(crate) suites: Vec<u16>,
    pub(crate) compressions: Vec<u8>,
    /// The types of the extensions with their content.
    pub(crate) extensions: Vec<(u16, Vec<u8>)>,
}

impl ClientHello {
    /// Returns one for localhost and `h2` that TLS up to version 1.2 can answer.
    pub(crate) fn new(version: u16, suites: &[u16], compressions: &[u8]) -> Self {
        Self {
            version,
            suites: suites.to_vec(),
            compressions: compressions.to_vec(),
            extensions: vec![
                (
                    SERVER_NAME,
                    prefixed(&[&[0][..], &prefixed(b"localhost")].concat()),
                ),
                // supported_groups: x25519 and secp256r1.
                (10, prefixed(&[0, 0x1d, 0, 0x17])),
                // ec_point_formats: uncompressed.
                (11, vec![1, 0]),
                // signature_algorithms: ECDSA with P-256, RSA-PSS and RSA, each with SHA-256.
                (13, prefixed(&[4, 3, 8, 4, 4, 1])),
                (ALPN, prefixed(&[2, b'h', b'2'])),
                // extended_master_secret.
                (23, Vec::new()),
            ],
        }
    }

    /// Returns the record.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut hello = self.version.to_be_bytes().to_vec();
        hello.extend([7; 32]);
        hello.push(0);
        let suites = self.suites.iter().flat_map(|suite| suite.to_be_bytes());
        hello.extend(prefixed(&suites.collect::<Vec<_>>()));
        hello.push(u8::try_from(self.compressions.len()).expect("few"));
        hello.extend(&self.compressions);
        let extensions = self
            .extensions
            .iter()
            .flat_map(|(kind, content)| [&kind.to_be_bytes()[..], &prefixed(content)].concat());
        hello.extend(prefixed(&extensions.collect::<Vec<_>>()));
        let length = u32::try_from(hello.len()).expect("short").to_be_bytes();
        let message = [&[1][..], &length[1..], &hello].concat();
        [&[22, 3, 1][..], &prefixed(&message)].concat()
    }

    /// Reads the message behind the header of its record.
    pub(crate) fn decode(message: &[u8]) -> Self {
        let mut rest = &message[4..];
        let version = u16::from_be_bytes(take(&mut rest, 2).try_into().expect("two bytes"));
        take(&mut rest, 32);
        let session = usize::from(take(&mut rest, 1)[0]);
        take(&mut rest, session);
        let suites = take_prefixed(&mut rest).chunks(2).map(number).collect();
        let compressions = usize::from(take(&mut rest, 1)[0]);
        let compressions = take(&mut rest, compressions).to_vec();
        let mut unread = take_prefixed(&mut rest);
        let mut extensions = Vec::new();
        while !unread.is_empty() {
            let kind = number(take(&mut unread, 2));
            extensions.push((kind, take_prefixed(&mut unread).to_vec()));
        }
        Self {
            version,
            suites,
            compressions,
            extensions,
        }
    }

    /// Returns the content of an extension.
    pub(crate) fn extension(&self, kind: u16) -> Option<&[u8]> {
        let found = self.extensions.iter().find(|(other, _)| *other == kind);
        found.map(|(_, content)| &**content)
    }

    /// Returns the protocols of ALPN.
    pub(crate) fn protocols(&self) -> Vec<String> {
        let mut names = &self.extension(ALPN).expect("ALPN")[2..];
        let mut protocols = Vec::new();
        while !names.is_empty() {
            let length = usize::from(take(&mut names, 1)[0]);
            let name = take(&mut names, length).to_vec();
            protocols.push(String::from_utf8(name).expect("text"));
        }
        protocols
    }
}

/// Returns bytes behind their length, which has two bytes.
fn prefixed(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("short").to_be_bytes();
    [&length[..], bytes].concat()
}

fn number(bytes: &[u8]) -> u16 {
    u16::from_be_bytes(bytes.try_into().expect("two bytes"))
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = from.split_at(length);
    *from = rest;
    taken
}

fn take_prefixed<'a>(from: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::from(number(take(from, 2)));
    take(from, length)
}
