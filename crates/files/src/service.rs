//! The tower service.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use tower_service::Service;

use crate::age::Moment;
use crate::answer::{Answer, OpenFolder};
use crate::body::Body;
use crate::builder::Builder;
use crate::file_request::FileRequest;
use crate::folder::Folder;
use crate::respond::{error_response, other_method, vary_by_coding};
use crate::root::Root;
use crate::serve_error::{Blocking, Effort, ServeError};
use crate::stats::Stats;

/// A service for the files of a folder. Clones share the files kept in memory.
///
/// It responds to `GET` and `HEAD` with files, to `OPTIONS` with 204, to the other methods of RFC 9110 and to
/// `PATCH` with 405, and to unknown methods with 501. It never fails, is always ready, and does not read the
/// bodies of requests. Requests that wait for a disk, for a file that is being
/// written, or for a compressor need tokio with its time driver enabled.
#[derive(Clone)]
pub struct Files {
    // An `Arc`, because each request clones the service.
    shared: Arc<OpenFolder>,
}

impl Builder {
    /// Opens the folder.
    ///
    /// # Errors
    /// Fails if there is no folder at `path`, or if it cannot be opened.
    pub fn open(self, path: impl AsRef<Path>) -> io::Result<Files> {
        Files::new(path.as_ref(), self)
    }
}

impl Files {
    /// Returns default settings, to be changed and then [opened](Builder::open).
    pub fn builder() -> Builder {
        Builder::default()
    }

    fn new(path: &Path, settings: Builder) -> io::Result<Self> {
        let root = Root::new(path, settings.follow_symlinks)?;
        Ok(Self {
            shared: Arc::new(OpenFolder::new(root, settings)),
        })
    }

    /// Returns the path of the folder, free of symbolic links.
    pub fn root(&self) -> &Path {
        self.shared.root.path()
    }

    /// Returns the counters of this service.
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        let (size, threads) = (shared.memory.size(), shared.threads.in_use());
        shared.counters.with_use(size, threads)
    }

    /// Responds to a request, and passes the response through `change`.
    pub(crate) fn answer<B>(
        &self,
        request: Request<B>,
        change: impl FnOnce(Response<Body>) -> Response<Body> + Send + 'static,
    ) -> Answering {
        if let Some(response) = self.answer_now(&request) {
            return Answering(Inner::Now(Some(change(response))));
        }
        let answer = self.clone().answer_later(request.map(drop));
        Answering::later(Box::pin(async move { change(answer.await) }))
    }

    /// Responds to a request without blocking. Returns `None` if that is impossible.
    fn answer_now<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let Some(file_request) = FileRequest::from_request(request) else {
            return Some(other_method(request.method()));
        };
        match self.shared.answer(&file_request, Effort::NONBLOCKING) {
            Ok(Answer::Response(response)) => Some(response),
            Ok(Answer::Folder(_)) if self.shared.settings.on_folder.is_some() => None,
            Ok(Answer::Folder(_)) => Some(self.respond_to_error(&ServeError::NotFound)),
            Err(ServeError::WouldBlock | ServeError::Unsettled(_)) => None,
            Err(error) => Some(self.respond_to_error(&error)),
        }
    }

    /// Responds to a request with blocking calls on other threads, and waits for files to settle.
    async fn answer_later(self, request: Request<()>) -> Response<Body> {
        self.shared.counters.on_waiting();
        let mut waited = Duration::ZERO;
        let share = self.shared.share_of(request.extensions());
        let request = Arc::new(request);
        loop {
            let effort = Effort {
                blocking: Blocking::Allowed,
                accepts_unsettled: waited >= LONG_WAIT,
            };
            let (shared, shared_request) = (self.shared.clone(), request.clone());
            let attempt = move || match FileRequest::from_request(&shared_request) {
                Some(file_request) => shared.answer(&file_request, effort),
                None => Ok(Answer::Response(other_method(shared_request.method()))),
            };
            let answer = share.clone().run(attempt).await.flatten();
            let on_folder = self.shared.settings.on_folder.as_ref();
            match (answer, on_folder) {
                (Ok(Answer::Response(response)), _) => return response,
                (Ok(Answer::Folder(folder)), Some(on_folder)) => {
                    let shared = &self.shared;
                    let (root, dotfiles) = (shared.root.clone(), shared.settings.dotfiles);
                    let folder = Folder::new(root, folder, dotfiles, shared.clock.now(), share);
                    return on_folder(folder, (*request).clone()).await;
                }
                (Ok(Answer::Folder(_)), None) => {
                    return self.respond_to_error(&ServeError::NotFound);
                }
                (Err(ServeError::Unsettled(wait)), _) if waited < LONGEST_WAIT => {
                    tokio::time::sleep(wait).await;
                    waited += wait;
                }
                (Err(error), _) => return self.respond_to_error(&error),
            }
        }
    }

    fn respond_to_error(&self, error: &ServeError) -> Response<Body> {
        if let ServeError::Exhausted(error) = error {
            self.shared.counters.on_exhausted();
            let (now, last) = (
                self.shared.clock.now(),
                self.shared.last_notice.load(Relaxed),
            );
            if let Some(listener) = &self.shared.settings.on_exhausted
                && !now.is_within(Moment::of(last), NOTICE_INTERVAL)
                && self.shared.last_notice.swap(now.get(), Relaxed) == last
            {
                listener(error);
            }
        }
        let mut response = error_response(error);
        // A client that accepts another coding may receive a file.
        if self.shared.settings.precompressed {
            vary_by_coding(&mut response);
        }
        response
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("root", &self.root())
            .finish_non_exhaustive()
    }
}

impl<B> Service<Request<B>> for Files {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        self.answer(request, std::convert::identity)
    }
}

/// The future response of [`Files`] to a request.
///
/// # Cancel safety
/// If it is dropped before it is ready, at most one read continues, and its result is discarded.
pub struct Answering(Inner);

enum Inner {
    Now(Option<Response<Body>>),
    Later(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
}

impl Answering {
    pub(crate) fn later(answer: Pin<Box<dyn Future<Output = Response<Body>> + Send>>) -> Self {
        Self(Inner::Later(answer))
    }
}

impl Future for Answering {
    type Output = Result<Response<Body>, Infallible>;

    /// # Panics
    /// Panics if it is polled after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Now(response) => {
                let response = response.take();
                Poll::Ready(Ok(response.expect("not polled after it was ready")))
            }
            Inner::Later(answer) => answer.as_mut().poll(cx).map(Ok),
        }
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}

/// Wait for a file to settle after which it is served as it is, if it can be read in a single state.
const LONG_WAIT: Duration = Duration::from_millis(100);
/// Wait for a file that cannot be read in a single state after which the request is refused.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
const NOTICE_INTERVAL: Duration = Duration::from_secs(10);
