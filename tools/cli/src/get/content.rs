//! The content of requests: bytes, files or standard input.

use std::io::Read as _;
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::try_unfold;
use http_body::{Body as _, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use tokio::io::AsyncReadExt as _;

use super::exit::{Failed, READ_ERROR};
use super::speed::Pace;

pub(crate) type RequestBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// The content of a request, which can be sent again unless it is standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    None,
    Bytes {
        bytes: Bytes,
        kind: Option<String>,
    },
    /// A file, which is read while it is sent.
    File {
        path: String,
        len: u64,
    },
    /// Standard input, which is read while it is sent, and only once.
    Stdin,
}

impl Content {
    /// Opens the content for sending.
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
                // Sends no more than the announced length, even if the file grows.
                Ok(stream(file.take(*len)))
            }
            Self::Stdin => Ok(stream(tokio::io::stdin())),
        }
    }

    /// Returns the length in bytes; `None` for standard input.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Bytes { bytes, .. } => Some(bytes.len() as u64),
            Self::File { len, .. } => Some(*len),
            Self::Stdin => None,
        }
    }

    /// Returns the media type if there is one.
    pub(crate) fn kind(&self) -> Option<&str> {
        match self {
            Self::Bytes { kind, .. } => kind.as_deref(),
            _ => None,
        }
    }
}

/// Reads a file, or standard input for `-`.
pub(super) fn read(path: &str) -> Result<Vec<u8>, Failed> {
    read_bytes(path).map_err(|error| unreadable(path, &error))
}

/// Reads a file, or standard input for `-`. Returns the system's error, for callers that can continue.
pub(super) fn read_bytes(path: &str) -> std::io::Result<Vec<u8>> {
    if path != "-" {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn unreadable(path: &str, error: &std::io::Error) -> Failed {
    Failed::new(READ_ERROR, format!("cannot read {path}: {error}"))
}

/// Calls `on_bytes` with the size of each frame of a body that is sent, and limits its rate.
pub(super) fn watched(
    body: RequestBody,
    rate: Option<u64>,
    on_bytes: impl Fn(u64) + Send + Sync + 'static,
) -> RequestBody {
    let count = move |frame: Frame<Bytes>| {
        on_bytes(frame.data_ref().map_or(0, Bytes::len) as u64);
        frame
    };
    let body = body.map_frame(count);
    let Some(rate) = rate.filter(|_| !body.is_end_stream()) else {
        return body.boxed_unsync();
    };
    let pace = Pace::new(rate, Instant::now());
    let frames = try_unfold((body, pace), |(mut body, mut pace)| async move {
        let Some(frame) = body.frame().await.transpose()? else {
            return Ok::<_, std::io::Error>(None);
        };
        let len = frame.data_ref().map_or(0, Bytes::len);
        tokio::time::sleep(pace.on_bytes(len, Instant::now())).await;
        Ok(Some((frame, (body, pace))))
    });
    StreamBody::new(Box::pin(frames)).boxed_unsync()
}

fn stream(source: impl tokio::io::AsyncRead + Send + Unpin + 'static) -> RequestBody {
    let frames = try_unfold(source, |mut source| async move {
        let mut chunk = bytes::BytesMut::with_capacity(CHUNK);
        let read = source.read_buf(&mut chunk).await?;
        Ok::<_, std::io::Error>((read > 0).then(|| (Frame::data(chunk.freeze()), source)))
    });
    StreamBody::new(frames).boxed_unsync()
}

const CHUNK: usize = 64 * 1024;
