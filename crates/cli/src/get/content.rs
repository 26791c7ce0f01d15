//! What is sent: forms, files, standard input.

use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use tokio::io::AsyncReadExt as _;

use super::args::RequestArguments;
use super::encoding::percent_encode;
use super::exit::{Failed, READ_ERROR};

pub(crate) type RequestBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// The content of a request, which may be sent several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    None,
    Bytes {
        bytes: Bytes,
        kind: Option<String>,
    },
    /// Read while it is sent.
    File {
        path: String,
        len: u64,
    },
    /// Read while it is sent, once.
    Stdin,
}

/// What is sent with each request. Read once: standard input cannot be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) content: Content,
    /// What --get puts behind URLs.
    pub(crate) query: Option<String>,
}

impl Prepared {
    /// What the flags say.
    pub(crate) fn of(request: &RequestArguments) -> Result<Self, Failed> {
        if !request.get {
            let content = Content::of(request)?;
            return Ok(Self {
                content,
                query: None,
            });
        }
        let query = data(request)?.map(|data| String::from_utf8_lossy(&data).into_owned());
        Ok(Self {
            content: Content::None,
            query,
        })
    }
}

impl Content {
    fn of(request: &RequestArguments) -> Result<Self, Failed> {
        if let Some(path) = &request.upload_file {
            return file(path);
        }
        if !request.form.is_empty() || !request.form_string.is_empty() {
            return super::form::content(request);
        }
        let Some(data) = data(request)? else {
            return Ok(Self::None);
        };
        Ok(Self::Bytes {
            bytes: data.into(),
            kind: Some("application/x-www-form-urlencoded".to_owned()),
        })
    }

    /// Opens it for sending.
    pub(crate) async fn open(&self) -> Result<RequestBody, Failed> {
        let whole = |bytes: Bytes| {
            Full::new(bytes)
                .map_err(|never| match never {})
                .boxed_unsync()
        };
        match self {
            Self::None => Ok(whole(Bytes::new())),
            Self::Bytes { bytes, .. } => Ok(whole(bytes.clone())),
            Self::File { path, len } => {
                let file = tokio::fs::File::open(path)
                    .await
                    .map_err(|error| unreadable(path, &error))?;
                // No more than was announced, should it grow.
                Ok(stream(file.take(*len)))
            }
            Self::Stdin => Ok(stream(tokio::io::stdin())),
        }
    }

    /// How long it is, if that is known.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Bytes { bytes, .. } => Some(bytes.len() as u64),
            Self::File { len, .. } => Some(*len),
            Self::Stdin => None,
        }
    }

    /// The media type, if there is one to name.
    pub(crate) fn kind(&self) -> Option<&str> {
        match self {
            Self::Bytes { kind, .. } => kind.as_deref(),
            _ => None,
        }
    }
}

/// All --data, joined.
fn data(request: &RequestArguments) -> Result<Option<Vec<u8>>, Failed> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for data in &request.data {
        let mut bytes = at_file(data)?;
        if data.starts_with('@') {
            bytes.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
        }
        parts.push(bytes);
    }
    parts.extend(
        request
            .data_raw
            .iter()
            .map(|data| data.clone().into_bytes()),
    );
    for data in &request.data_binary {
        parts.push(at_file(data)?);
    }
    for data in &request.data_urlencode {
        parts.push(url_encoded(data)?.into_bytes());
    }
    Ok((!parts.is_empty()).then(|| parts.join(&b'&')))
}

fn at_file(data: &str) -> Result<Vec<u8>, Failed> {
    match data.strip_prefix('@') {
        Some(path) => read(path),
        None => Ok(data.as_bytes().to_vec()),
    }
}

/// `content`, `=content`, `name=content`, `@file` or `name@file`.
fn url_encoded(data: &str) -> Result<String, Failed> {
    let (name, content) = match data.find(['=', '@']) {
        None => ("", data.as_bytes().to_vec()),
        Some(at) => {
            let (name, rest) = data.split_at(at);
            let content = match rest.strip_prefix('@') {
                Some(path) => read(path)?,
                None => rest.as_bytes()[1..].to_vec(),
            };
            (name, content)
        }
    };
    let encoded = percent_encode(&content);
    Ok(if name.is_empty() {
        encoded
    } else {
        format!("{name}={encoded}")
    })
}

/// A file, or standard input for `-`.
pub(super) fn read(path: &str) -> Result<Vec<u8>, Failed> {
    read_bytes(path).map_err(|error| unreadable(path, &error))
}

/// The same, for those who can do without.
pub(super) fn read_bytes(path: &str) -> std::io::Result<Vec<u8>> {
    if path != "-" {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn file(path: &str) -> Result<Content, Failed> {
    if path == "-" || path == "." {
        return Ok(Content::Stdin);
    }
    let metadata = std::fs::metadata(Path::new(path)).map_err(|error| unreadable(path, &error))?;
    Ok(Content::File {
        path: path.to_owned(),
        len: metadata.len(),
    })
}

fn unreadable(path: &str, error: &std::io::Error) -> Failed {
    Failed::new(READ_ERROR, format!("cannot read {path}: {error}"))
}

fn stream(source: impl tokio::io::AsyncRead + Send + Unpin + 'static) -> RequestBody {
    let frames = futures_util::stream::try_unfold(source, |mut source| async move {
        let mut chunk = bytes::BytesMut::with_capacity(CHUNK);
        let read = source.read_buf(&mut chunk).await?;
        Ok::<_, std::io::Error>((read > 0).then(|| (Frame::data(chunk.freeze()), source)))
    });
    StreamBody::new(frames).boxed_unsync()
}

const CHUNK: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_joined_with_ampersands() {
        let request = RequestArguments {
            data: vec!["a=1".to_owned()],
            data_raw: vec!["@b".to_owned()],
            data_urlencode: vec!["c=x y".to_owned(), "=&".to_owned(), "plain text".to_owned()],
            ..RequestArguments::default()
        };
        let data = data(&request).expect("no files").expect("data");
        assert_eq!(
            String::from_utf8(data).expect("text"),
            "a=1&@b&c=x%20y&%26&plain%20text"
        );
        assert_eq!(Content::of(&RequestArguments::default()), Ok(Content::None));
    }

    #[test]
    fn file_that_is_not_there_is_a_read_error() {
        let failed = at_file("@/no/such/file").expect_err("not there");
        assert_eq!(failed.code, READ_ERROR);
        assert!(failed.text.contains("/no/such/file"), "{failed}");
    }
}
