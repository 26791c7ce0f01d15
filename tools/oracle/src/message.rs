//! Messages as lists of bytes.

use std::fmt;

/// A name and a value, as they are sent.
pub type Field = (Vec<u8>, Vec<u8>);

/// Returns a field of these bytes.
pub fn field(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Field {
    (name.as_ref().to_vec(), value.as_ref().to_vec())
}

/// The version of HTTP of a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// HTTP/1.1 over TLS.
    Http1,
    /// HTTP/2 over TLS.
    Http2,
    /// HTTP/3.
    Http3,
}

impl Version {
    /// All versions in their order.
    pub const ALL: [Self; 3] = [Self::Http1, Self::Http2, Self::Http3];
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "h1",
            Self::Http2 => "h2",
            Self::Http3 => "h3",
        })
    }
}

/// The content of a message in pieces, with its framing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Content {
    /// No content and no framing field.
    #[default]
    None,
    /// Content with Content-Length.
    Length(Vec<Vec<u8>>),
    /// Content of unknown length: chunked in HTTP/1.1, without Content-Length in the other versions.
    Unknown(Vec<Vec<u8>>),
}

impl Content {
    /// Returns content of a known length in one piece.
    pub fn length(bytes: impl AsRef<[u8]>) -> Self {
        Self::Length(vec![bytes.as_ref().to_vec()])
    }

    /// Returns content of unknown length in one piece.
    pub fn unknown(bytes: impl AsRef<[u8]>) -> Self {
        Self::Unknown(vec![bytes.as_ref().to_vec()])
    }

    /// Returns the pieces.
    pub fn pieces(&self) -> &[Vec<u8>] {
        match self {
            Self::None => &[],
            Self::Length(pieces) | Self::Unknown(pieces) => pieces,
        }
    }

    /// Returns all bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.pieces().concat()
    }
}

/// The way in which a sender ends a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ending {
    /// The end that the framing announces.
    #[default]
    Complete,
    /// The end of the connection, or of the stream in HTTP/3, before the message is complete.
    Cut,
    /// A reset of the stream, or of the connection in HTTP/1.1, before the message is complete.
    Reset,
}

/// A request or a response, with its control data (RFC 9110 §6.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message<C> {
    /// The control data.
    pub control: C,
    /// The fields, without those that the control data and the content imply.
    pub fields: Vec<Field>,
    /// The content.
    pub content: Content,
    /// The fields behind the content.
    pub trailers: Vec<Field>,
    /// The way in which it ends. All but [`Ending::Complete`] take effect behind the pieces of the content.
    pub ending: Ending,
}

/// A request.
pub type Request = Message<RequestControl>;
/// A response.
pub type Response = Message<ResponseControl>;

/// The control data of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestControl {
    /// The method.
    pub method: Vec<u8>,
    /// The scheme, for HTTP/2 and HTTP/3.
    pub scheme: Vec<u8>,
    /// The authority: Host in HTTP/1.1, `:authority` otherwise.
    pub authority: Option<Vec<u8>>,
    /// The path and the query, or the whole target in HTTP/1.1.
    pub path: Vec<u8>,
}

/// The control data of a response, and the interim responses before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResponseControl {
    /// The status and the fields of each interim response.
    pub interim: Vec<(u16, Vec<Field>)>,
    /// The status.
    pub status: u16,
}

impl<C> Message<C> {
    const fn of(control: C) -> Self {
        Self {
            control,
            fields: Vec::new(),
            content: Content::None,
            trailers: Vec::new(),
            ending: Ending::Complete,
        }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.fields.push(field(name, value));
        self
    }

    /// Sets the content.
    #[must_use]
    pub fn content(mut self, content: Content) -> Self {
        self.content = content;
        self
    }

    /// Adds a trailer field.
    #[must_use]
    pub fn trailer(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.trailers.push(field(name, value));
        self
    }

    /// Sets the way in which the message ends.
    #[must_use]
    pub const fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Returns Content-Length. A message that is cut announces one byte more than it has.
    pub(crate) fn length_field(&self) -> Option<Field> {
        let missing = usize::from(self.ending != Ending::Complete);
        let has_length = matches!(self.content, Content::Length(_));
        let length = has_length.then(|| self.content.bytes().len() + missing)?;
        Some(field("content-length", length.to_string()))
    }
}

impl Request {
    /// Returns a request for `https://localhost` with this path and without content.
    pub fn new(method: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Self {
        Self::of(RequestControl {
            method: method.as_ref().to_vec(),
            scheme: b"https".to_vec(),
            authority: Some(b"localhost".to_vec()),
            path: path.as_ref().to_vec(),
        })
    }

    /// Sets the authority.
    #[must_use]
    pub fn authority(mut self, authority: impl Into<Option<&'static str>>) -> Self {
        let authority = authority.into().map(|text| text.as_bytes().to_vec());
        self.control.authority = authority;
        self
    }

    /// Returns the field section for HTTP/2 and HTTP/3. Pseudo-header fields that are empty are left out.
    pub(crate) fn section(&self) -> Vec<Field> {
        let control = &self.control;
        let mut section = vec![field(":method", &control.method)];
        if !control.scheme.is_empty() {
            section.push(field(":scheme", &control.scheme));
        }
        if let Some(authority) = &control.authority {
            section.push(field(":authority", authority));
        }
        if !control.path.is_empty() {
            section.push(field(":path", &control.path));
        }
        section.extend(self.length_field());
        section.extend_from_slice(&self.fields);
        section
    }
}

impl Response {
    /// Returns a response without content.
    pub const fn new(status: u16) -> Self {
        Self::of(ResponseControl {
            interim: Vec::new(),
            status,
        })
    }

    /// Returns 200 with `ok` as content.
    pub fn ok() -> Self {
        Self::new(200).content(Content::length("ok"))
    }

    /// Adds an interim response.
    #[must_use]
    pub fn interim(mut self, status: u16, fields: &[(&str, &str)]) -> Self {
        let fields = fields.iter().map(|(name, value)| field(name, value));
        self.control.interim.push((status, fields.collect()));
        self
    }
}
