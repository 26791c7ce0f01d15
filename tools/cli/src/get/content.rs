//! The content of requests: bytes, files or standard input.

use std::io::Read as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::try_unfold;
use http_body::{Body as _, Frame, SizeHint};
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
                Ok(sized(stream(file.take(*len)), Some(*len)))
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

/// Calls `on_data` with the data of each frame of a body that is sent, and limits its rate.
pub(super) fn watched(
    body: RequestBody,
    rate: Option<u64>,
    on_data: impl Fn(&[u8]) + Send + Sync + 'static,
) -> RequestBody {
    let count = move |frame: Frame<Bytes>| {
        on_data(frame.data_ref().map_or(&[], |data| data));
        frame
    };
    let length = body.size_hint().exact();
    let body = body.map_frame(count);
    let Some(rate) = rate.filter(|_| !body.is_end_stream()) else {
        return sized(body.boxed_unsync(), length);
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
    sized(StreamBody::new(Box::pin(frames)).boxed_unsync(), length)
}

/// Returns a body that reports its length, if that is known.
fn sized(body: RequestBody, length: Option<u64>) -> RequestBody {
    match length {
        Some(left) => Sized { body, left }.boxed_unsync(),
        None => body,
    }
}

/// A body whose length is known.
struct Sized {
    body: RequestBody,
    /// The number of bytes that have not been returned.
    left: u64,
}

impl http_body::Body for Sized {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let sent = frame.data_ref().map_or(0, Bytes::len) as u64;
            self.left = self.left.saturating_sub(sent);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
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
