//! Interim responses over HTTP/1.1, whose number and size are limited. Frames of HTTP/2 are counted where they are
//! read, and `courser-http3` has the same limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use courser_http3_tokio::{OnInterim, hooks};
use http::{Request, Response};
use tokio::sync::Notify;

use super::error::{Error, ErrorKind};

/// Counts the interim responses of a request.
#[derive(Debug)]
pub(super) struct InterimLimit(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    responses: AtomicU32,
    bytes: AtomicUsize,
    is_exceeded: AtomicBool,
    exceeded: Notify,
}

impl InterimLimit {
    /// Counts the interim responses to a request that is sent over HTTP/1.1, and passes them on.
    pub(super) fn watch<B>(request: &mut Request<B>) -> Self {
        let counts = Arc::<Counts>::default();
        let on_interim = request.extensions().get::<OnInterim>().cloned();
        let counting = counts.clone();
        hyper::ext::on_informational(request, move |interim| {
            let fields = interim.headers().iter();
            let size = fields.map(|(name, value)| name.as_str().len() + value.len() + 4);
            if !counting.add(size.sum()) {
                return;
            }
            if let Some(on_interim) = &on_interim {
                let mut response = Response::new(());
                *response.status_mut() = interim.status();
                *response.version_mut() = interim.version();
                *response.headers_mut() = interim.headers().clone();
                hooks::call(on_interim, response);
            }
        });
        Self(counts)
    }

    /// Returns the response, or an error as soon as the server has sent too many interim responses.
    ///
    /// # Cancel safety
    /// Dropping the future drops that of the response.
    pub(super) async fn guard<T>(
        &self,
        response: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            response = response => match self.0.is_exceeded.load(Ordering::Acquire) {
                false => response,
                true => Err(too_many()),
            },
            () = self.0.exceeded.notified() => Err(too_many()),
        }
    }
}

impl Counts {
    /// Counts an interim response. Returns false if it exceeds the limit.
    fn add(&self, bytes: usize) -> bool {
        let responses = self.responses.fetch_add(1, Ordering::AcqRel) + 1;
        let bytes = self.bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let is_within = responses <= MAX_INTERIM && bytes <= MAX_BYTES;
        if !is_within {
            self.is_exceeded.store(true, Ordering::Release);
            self.exceeded.notify_one();
        }
        is_within
    }
}

fn too_many() -> Error {
    let text = format!(
        "the server sent more than {MAX_INTERIM} interim responses, or more than {} KiB of them",
        MAX_BYTES / 1024
    );
    Error::new(ErrorKind::Protocol, text)
}

/// The largest number of interim responses before a final one (limit K381), as over HTTP/3 (limit K51).
pub(super) const MAX_INTERIM: u32 = 8;
/// The largest size of all interim responses of a request (limit K381).
const MAX_BYTES: usize = 300 * 1024;
