//! Functions that split and change handshake messages, to simulate misbehaving peers.

pub(crate) const CLIENT_HELLO: u8 = 1;
pub(crate) const SERVER_HELLO: u8 = 2;
pub(crate) const ENCRYPTED_EXTENSIONS: u8 = 8;

pub(crate) const COMPRESSED_CERTIFICATE: u8 = 25;

pub(crate) const ALPN: u16 = 16;
pub(crate) const EARLY_DATA: u16 = 42;
pub(crate) const SUPPORTED_VERSIONS: u16 = 43;
pub(crate) const TRANSPORT_PARAMETERS: u16 = 57;

/// Returns a message of this type with `body`.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind], &len[1..], body].concat()
}

/// Splits bytes into whole messages.
pub(crate) fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let len = 4 + usize::from(bytes[1]) * 65536 + usize::from(read_u16(&bytes[2..]));
        let (message, rest) = bytes.split_at(len);
        messages.push(message.to_vec());
        bytes = rest;
    }
    messages
}

/// Returns the types and contents of the extensions of a message.
pub(crate) fn extensions(message: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut rest = &message[extensions_offset(message) + 2..];
    let mut extensions = Vec::new();
    while !rest.is_empty() {
        let len = usize::from(read_u16(&rest[2..]));
        extensions.push((read_u16(rest), rest[4..4 + len].to_vec()));
        rest = &rest[4 + len..];
    }
    extensions
}

/// Returns the content of one extension.
pub(crate) fn extension(message: &[u8], kind: u16) -> Option<Vec<u8>> {
    extensions(message)
        .into_iter()
        .find(|(seen, _)| *seen == kind)
        .map(|(_, content)| content)
}

/// Returns the message with one extension replaced or removed.
pub(crate) fn with_extension(message: &[u8], kind: u16, content: Option<&[u8]>) -> Vec<u8> {
    let mut list = Vec::new();
    for (seen, old) in extensions(message) {
        let content = if seen == kind {
            content
        } else {
            Some(&old[..])
        };
        if let Some(content) = content {
            list.extend_from_slice(&seen.to_be_bytes());
            list.extend_from_slice(&u16::try_from(content.len()).unwrap().to_be_bytes());
            list.extend_from_slice(content);
        }
    }
    let len = u16::try_from(list.len()).unwrap().to_be_bytes();
    let head = &message[4..extensions_offset(message)];
    self::message(message[0], &[head, &len, &list].concat())
}

/// Returns the ClientHello with these suites instead.
pub(crate) fn with_suites(client_hello: &[u8], suites: &[u16]) -> Vec<u8> {
    let start = suites_offset(client_hello);
    let end = start + 2 + usize::from(read_u16(&client_hello[start..]));
    let len = u16::try_from(suites.len() * 2).unwrap().to_be_bytes();
    let list: Vec<u8> = suites
        .iter()
        .flat_map(|suite| suite.to_be_bytes())
        .collect();
    message(
        CLIENT_HELLO,
        &[&client_hello[4..start], &len, &list, &client_hello[end..]].concat(),
    )
}

/// Returns the ClientHello with this legacy_session_id.
pub(crate) fn with_session_id(client_hello: &[u8], id: &[u8]) -> Vec<u8> {
    let rest = &client_hello[suites_offset(client_hello)..];
    let len = [u8::try_from(id.len()).unwrap()];
    message(
        CLIENT_HELLO,
        &[&client_hello[4..SESSION_ID], &len, id, rest].concat(),
    )
}

/// Returns the legacy_session_id of a hello message.
pub(crate) fn session_id(hello: &[u8]) -> &[u8] {
    &hello[SESSION_ID + 1..][..usize::from(hello[SESSION_ID])]
}

fn suites_offset(hello: &[u8]) -> usize {
    SESSION_ID + 1 + usize::from(hello[SESSION_ID])
}

fn extensions_offset(message: &[u8]) -> usize {
    match message[0] {
        CLIENT_HELLO => {
            let suites = suites_offset(message);
            let compression = suites + 2 + usize::from(read_u16(&message[suites..]));
            compression + 1 + usize::from(message[compression])
        }
        SERVER_HELLO => suites_offset(message) + 3,
        ENCRYPTED_EXTENSIONS => 4,
        other => panic!("message type {other} has no extensions"),
    }
}

fn read_u16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

const SESSION_ID: usize = 38;
