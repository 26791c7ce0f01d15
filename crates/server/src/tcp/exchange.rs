//! The service that hyper calls for HTTP/2 and HTTP/1.1 requests.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_http3_tokio::{HttpService, hooks};
use http::header::{ALT_SVC, CONNECTION, CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;

use super::http1::FirstRead;
use crate::alt_svc::AltSvcHeader;
use crate::cause::Cause;
use crate::exchange::RequestSettings;
use crate::exchange::body::Body;
use crate::exchange::interim::InterimSource;
use crate::exchange::marks::Marks;
use crate::http2::budgets::Refusing;
use crate::http2::held::{HeldContent, Paced};
use crate::http2::tunnel;
use crate::tally::InFlight;

/// Passes admitted requests to the user's service, and counts responses until hyper has taken them.
#[derive(Debug)]
pub(super) struct Exchange<S> {
    service: S,
    // Shared, because each request clones this struct.
    settings: Arc<RequestSettings>,
    alt_svc: Option<AltSvcHeader>,
    /// The held content of an HTTP/2 connection.
    held: Option<HeldContent>,
    /// The switch that refuses requests of an HTTP/2 connection.
    refusing: Option<Refusing>,
    /// Set if the client of an HTTP/1.1 connection uses another version.
    version: Option<FirstRead>,
    /// True if each request gets an `Interim`, which some services keep.
    adds_interim: bool,
    /// The interim responses of the connection, if services can send them.
    interim: Option<Arc<dyn InterimSource>>,
    marks: Marks,
}

impl<S> Exchange<S> {
    pub(super) fn new(
        service: S,
        settings: RequestSettings,
        alt_svc: Option<AltSvcHeader>,
        marks: Marks,
    ) -> Self {
        Self {
            service,
            settings: Arc::new(settings),
            alt_svc,
            held: None,
            refusing: None,
            version: None,
            adds_interim: false,
            interim: None,
            marks,
        }
    }

    /// Refuses requests if the client uses a version that is not supported.
    pub(super) fn refusing_version(self, version: FirstRead) -> Self {
        Self {
            version: Some(version),
            ..self
        }
    }

    /// Adds an `Interim` to each request. It sends nothing if the connection or its client supports none.
    pub(super) fn adding_interim(self, adds_interim: bool) -> Self {
        Self {
            adds_interim,
            ..self
        }
    }

    /// Lets services send interim responses.
    pub(super) fn with_interim(self, interim: Arc<dyn InterimSource>) -> Self {
        Self {
            interim: Some(interim),
            ..self
        }
    }

    /// Limits the response content that waits to be sent.
    pub(super) fn holding(self, held: HeldContent) -> Self {
        Self {
            held: Some(held),
            ..self
        }
    }

    /// Refuses HTTP/2 requests while `refusing` is on.
    pub(super) fn refusing(self, refusing: Refusing) -> Self {
        Self {
            refusing: Some(refusing),
            ..self
        }
    }
}

impl<S> Exchange<S> {
    /// Admits a request like [`RequestSettings::admit_any`], unless the client uses a version that is not supported.
    fn admit(
        &self,
        request: Request<hyper::body::Incoming>,
        malformed: Option<Cause>,
    ) -> (InFlight, Result<Request<Body>, StatusCode>) {
        let (in_flight, admitted) = self.settings.admit_any(request, malformed);
        let is_unsupported = self.version.as_ref();
        let is_unsupported = is_unsupported.is_some_and(FirstRead::is_version_unsupported);
        let admitted = match admitted {
            Ok(request) if is_unsupported => {
                let (head, _) = request.into_parts();
                let status = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
                self.settings
                    .report(Cause::UnsupportedVersion, status, Some(&head));
                Err(status)
            }
            admitted => admitted,
        };
        (in_flight, admitted)
    }
}

impl<S: Clone> Clone for Exchange<S> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
            settings: self.settings.clone(),
            alt_svc: self.alt_svc.clone(),
            held: self.held.clone(),
            refusing: self.refusing.clone(),
            version: self.version.clone(),
            adds_interim: self.adds_interim,
            interim: self.interim.clone(),
            marks: self.marks.clone(),
        }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S: HttpService<Body>> hyper::service::Service<Request<hyper::body::Incoming>> for Exchange<S> {
    type Response = Response<Paced<Counted<S::ResponseBody>>>;
    type Error = BoxError;
    type Future = BoxFuture<Result<Self::Response, BoxError>>;

    fn call(&self, request: Request<hyper::body::Incoming>) -> Self::Future {
        if self.refusing.as_ref().is_some_and(Refusing::is_on) {
            return Box::pin(async { Err(h2::Error::from(h2::Reason::REFUSED_STREAM).into()) });
        }
        let settings = &*self.settings;
        let (mut head, body) = request.into_parts();
        let malformed = self.marks.take(&mut head);
        let interim = self.interim.as_ref().and_then(|it| it.begin(&mut head));
        let request = Request::from_parts(head, body);
        let connect = Connect::of(&request);
        let (in_flight, admitted) = self.admit(request, malformed);
        let mut request = match admitted {
            Ok(request) => request,
            Err(status) => {
                let mut refused = empty(status);
                connect.close_if_refused(&mut refused);
                return Box::pin(async move {
                    Ok(refused.map(|body| paced(body, Guard::Own(in_flight), None)))
                });
            }
        };
        if self.adds_interim {
            let sink = interim.clone().map(|it| hooks::interim_to(it));
            let sink = sink.unwrap_or_else(hooks::unsupported_interim);
            request.extensions_mut().insert(sink);
        }
        let alt_svc = self.alt_svc.clone();
        let port = alt_svc.as_ref().map_or(0, |it| it.port(&request));
        let held = self.held.clone();
        let mut service = self.service.clone();
        let limit = settings.handler_timeout;
        let is_bare = request.method() == Method::HEAD && request.version() == Version::HTTP_2;
        Box::pin(async move {
            let answer = async {
                std::future::poll_fn(|cx| service.poll_ready(cx))
                    .await
                    .map_err(Into::into)?;
                let response = service.call(request).await.map_err(Into::into)?;
                let mut response = without_forbidden_content(response);
                if is_bare {
                    take_content(&mut response);
                }
                Ok::<_, BoxError>(response)
            };
            let mut response = match limit {
                None => answer.await?,
                Some(limit) => match tokio::time::timeout(limit, answer).await {
                    Ok(answered) => answered?,
                    Err(_) => empty(StatusCode::SERVICE_UNAVAILABLE),
                },
            };
            if let Some(interim) = interim {
                interim.end();
            }
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                in_flight.on_upgrade();
            }
            if let Some(alt_svc) = alt_svc
                && !response.headers().contains_key(ALT_SVC)
            {
                response.headers_mut().insert(ALT_SVC, alt_svc.value(port));
            }
            connect.close_if_refused(&mut response);
            let in_flight = match connect {
                Connect::Http2 => Guard::shared(in_flight, &response),
                Connect::Http1 | Connect::No => Guard::Own(in_flight),
            };
            Ok(response.map(|body| paced(body, in_flight, held)))
        })
    }
}

/// Whether a request is a CONNECT.
#[derive(Debug)]
enum Connect {
    No,
    Http1,
    Http2,
}

impl Connect {
    #[inline]
    fn of<B>(request: &Request<B>) -> Self {
        match (request.method(), request.version()) {
            (&Method::CONNECT, Version::HTTP_2) => Self::Http2,
            (&Method::CONNECT, _) => Self::Http1,
            _ => Self::No,
        }
    }

    /// Closes the connection of HTTP/1.1 behind the refusal of a CONNECT (RFC 9931 §8). Some clients send bytes of a program
    /// behind it before they have the response, which must not be read as requests.
    fn close_if_refused<B>(&self, response: &mut Response<B>) {
        if matches!(self, Self::Http1) && !response.status().is_success() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
    }
}

/// Counts a body until hyper has taken it, and limits what waits to be sent over HTTP/2.
fn paced<B: http_body::Body>(
    body: Option<B>,
    in_flight: Guard,
    held: Option<HeldContent>,
) -> Paced<Counted<B>> {
    let counted = Counted { body, in_flight };
    match held {
        Some(held) => held.pace(counted),
        None => Paced::unlimited(counted),
    }
}

/// Removes content and its length where a status forbids them, which hyper does not do completely (RFC 9110 §8.6,
/// §15.3.5, §15.3.6).
fn without_forbidden_content<B>(mut response: Response<B>) -> Response<Option<B>> {
    let forbids = matches!(
        response.status(),
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT
    );
    if forbids {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response.map(|body| (!forbids).then_some(body))
}

/// Removes the content of a response to HEAD and keeps its length, which hyper does over HTTP/1.1 only (RFC 9110
/// §9.3.2). A response that is empty already says nothing about the length that GET would have (§8.6).
fn take_content<B: http_body::Body>(response: &mut Response<Option<B>>) {
    let Some(body) = response.body_mut().take() else {
        return;
    };
    let length = body.size_hint().exact();
    if let Some(length @ 1..) = length
        && !response.headers().contains_key(CONTENT_LENGTH)
        && response.status() != StatusCode::NOT_MODIFIED
    {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
}

/// Returns a response without content. A client may repeat a request that the server had no memory or no time for.
fn empty<B>(status: StatusCode) -> Response<Option<B>> {
    let mut response = Response::new(None);
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, soon);
    }
    response
}

pin_project! {
    /// The body of a response, if it has one. Its request is in flight until hyper has taken or dropped all of
    /// it.
    pub(super) struct Counted<B> {
        #[pin]
        body: Option<B>,
        in_flight: Guard,
    }
}

/// Keeps a request in flight.
#[derive(Debug)]
enum Guard {
    Own(#[expect(dead_code, reason = "dropped")] InFlight),
    /// With the tunnel that the stream becomes.
    Shared(#[expect(dead_code, reason = "dropped")] Arc<InFlight>),
}

impl Guard {
    /// Creates the guard of a CONNECT with this response, just before hyper receives it.
    #[cold]
    fn shared<B>(in_flight: InFlight, response: &Response<B>) -> Self {
        if !response.status().is_success() {
            return Self::Own(in_flight);
        }
        let in_flight = Arc::new(in_flight);
        tunnel::on_accepted(&in_flight, response.extensions().get().cloned());
        Self::Shared(in_flight)
    }
}

impl<B: http_body::Body> http_body::Body for Counted<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.project().body.as_pin_mut() {
            Some(body) => body.poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or(SizeHint::with_exact(0), B::size_hint)
    }
}
