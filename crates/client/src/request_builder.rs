//! Requests that are built step by step.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request};
use tower_service::Service;

use super::Client;
use super::body::Body;
use super::error::{Error, ErrorKind};
use super::multipart::Form;
use super::request_timeout::RequestTimeout;
use super::response::Response;
use super::url::{self, IntoUrl};
use super::version::HttpVersion;

/// A request that is being built. It is sent by [`send`](Self::send), or by awaiting it.
///
/// Errors of all steps, such as an invalid URL, are returned by [`send`](Self::send) and [`build`](Self::build).
///
/// ```no_run
/// # mod courser { pub use courser_client::{self as client, Client}; }
/// # async fn example(client: courser::Client) -> Result<(), courser::client::Error> {
/// use std::time::Duration;
///
/// let response = client
///     .put("https://example.org/documents/7")
///     .bearer_auth("token")
///     .header("content-type", "text/plain")
///     .body("content")
///     .timeout(Duration::from_secs(10))
///     .await?
///     .error_for_status()?;
/// # drop(response);
/// # Ok(()) }
/// ```
#[must_use = "a request is sent by awaiting it or send"]
pub struct RequestBuilder {
    client: Client,
    request: Result<Request<Body>, Error>,
    /// The credentials of the URL, for a request without an Authorization field.
    credentials: Option<HeaderValue>,
}

impl Client {
    /// Begins a GET request.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # async fn example(client: courser::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.get("https://example.org/").await?;
    /// println!("{:?} {}", response.version(), response.status());
    /// let text = response.text().await?;
    /// # drop(text);
    /// # Ok(()) }
    /// ```
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    /// Begins a POST request.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// # async fn example(client: courser::Client) -> Result<(), courser::client::Error> {
    /// let response = client.post("https://example.org/notes").body("a note").await?;
    /// # drop(response);
    /// # Ok(()) }
    /// ```
    pub fn post(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::POST, url)
    }

    /// Begins a PUT request.
    pub fn put(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::PUT, url)
    }

    /// Begins a PATCH request.
    pub fn patch(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::PATCH, url)
    }

    /// Begins a DELETE request.
    pub fn delete(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::DELETE, url)
    }

    /// Begins a HEAD request.
    pub fn head(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::HEAD, url)
    }

    /// Begins a request with any method.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// # async fn example(client: courser::Client) -> Result<(), courser::client::Error> {
    /// let response = client.request(http::Method::OPTIONS, "https://example.org/").await?;
    /// # drop(response);
    /// # Ok(()) }
    /// ```
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        let mut credentials = None;
        let request = url.into_uri().and_then(|mut uri| {
            credentials = url::take_credentials(&mut uri)?;
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method;
            *request.uri_mut() = uri;
            Ok(request)
        });
        RequestBuilder {
            client: self.clone(),
            request,
            credentials,
        }
    }
}

impl RequestBuilder {
    /// Adds a header field. Fields of the same name are kept.
    pub fn header<N, V>(self, name: N, value: V) -> Self
    where
        HeaderName: TryFrom<N>,
        <HeaderName as TryFrom<N>>::Error: Into<http::Error>,
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        self.try_change(|request| {
            let name = HeaderName::try_from(name).map_err(|error| not_a_field(error.into()))?;
            let value = HeaderValue::try_from(value).map_err(|error| {
                let text = format!("the value of '{name}' cannot be sent: {}", error.into());
                Error::new(ErrorKind::Send, text)
            })?;
            request.headers_mut().append(name, value);
            Ok(())
        })
    }

    /// Sets header fields. They replace earlier ones of the same names.
    pub fn headers(self, headers: HeaderMap) -> Self {
        self.change(|request| {
            let fields = request.headers_mut();
            for name in headers.keys() {
                fields.remove(name);
            }
            // An iterator of a map has a name for the first of its values only.
            let mut name = None;
            for (next, value) in headers {
                name = next.or(name);
                if let Some(name) = &name {
                    fields.append(name, value);
                }
            }
        })
    }

    /// Sets Basic credentials (RFC 7617). They stay with the origin of the URL when a redirect leads elsewhere.
    pub fn basic_auth<U, P>(self, user: U, password: Option<P>) -> Self
    where
        U: fmt::Display,
        P: fmt::Display,
    {
        self.try_change(|request| {
            let password = password.map(|password| password.to_string());
            let password = password.unwrap_or_default();
            let value = url::basic(user.to_string().as_bytes(), password.as_bytes())?;
            request.headers_mut().insert(header::AUTHORIZATION, value);
            Ok(())
        })
    }

    /// Sets a bearer token (RFC 6750). It stays with the origin of the URL when a redirect leads elsewhere.
    pub fn bearer_auth(self, token: impl fmt::Display) -> Self {
        self.try_change(|request| {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            // The text of the error has no token.
            let mut value = value.map_err(|error| {
                Error::new(
                    ErrorKind::Send,
                    format!("the token cannot be sent: {error}"),
                )
            })?;
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
            Ok(())
        })
    }

    /// Adds parameters to the query of the URL, from any type that serde serializes as pairs: a slice of tuples, a
    /// map or a structure. A sequence repeats its key, and `None` is omitted.
    ///
    /// ```
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let request = courser::Client::new()?
    ///     .get("https://example.org/search?lang=en")
    ///     .query(&[("q", "a b"), ("page", "2")])
    ///     .build()?;
    /// assert_eq!(request.uri().query(), Some("lang=en&q=a+b&page=2"));
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "form")]
    pub fn query<T: serde::Serialize + ?Sized>(self, parameters: &T) -> Self {
        self.try_change(|request| {
            let added = serde_html_form::to_string(parameters).map_err(|error| {
                let text = format!("the parameters cannot be serialized: {error}");
                Error::new(ErrorKind::Url, text).with_source(error)
            })?;
            if added.is_empty() {
                return Ok(());
            }
            let path = request.uri().path();
            let target = match request.uri().query() {
                None | Some("") => format!("{path}?{added}"),
                Some(query) => format!("{path}?{query}&{added}"),
            };
            *request.uri_mut() = with_target(request.uri().clone(), target)?;
            Ok(())
        })
    }

    /// Sets the content to a form (application/x-www-form-urlencoded), with the pairs of `query`, and
    /// the `content-type` field unless the request has one.
    #[cfg(feature = "form")]
    pub fn form<T: serde::Serialize + ?Sized>(self, parameters: &T) -> Self {
        self.try_change(|request| {
            let content = serde_html_form::to_string(parameters).map_err(|error| {
                let text = format!("the form cannot be serialized: {error}");
                Error::new(ErrorKind::RequestBody, text).with_source(error)
            })?;
            let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
            let fields = request.headers_mut();
            fields.entry(header::CONTENT_TYPE).or_insert(kind);
            *request.body_mut() = content.into();
            Ok(())
        })
    }

    /// Sets the content to JSON (RFC 8259), and the `content-type` field unless the request has one.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// # async fn example(client: courser::Client) -> Result<(), courser::client::Error> {
    /// use std::collections::HashMap;
    ///
    /// let answer: HashMap<String, String> = client
    ///     .post("https://example.org/api")
    ///     .json(&HashMap::from([("name", "value")]))
    ///     .await?
    ///     .error_for_status()?
    ///     .json()
    ///     .await?;
    /// # drop(answer);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "json")]
    pub fn json<T: serde::Serialize + ?Sized>(self, value: &T) -> Self {
        self.try_change(|request| {
            let content = serde_json::to_vec(value).map_err(|error| {
                let text = format!("the content cannot be serialized as JSON: {error}");
                Error::new(ErrorKind::RequestBody, text).with_source(error)
            })?;
            let kind = HeaderValue::from_static("application/json");
            let fields = request.headers_mut();
            fields.entry(header::CONTENT_TYPE).or_insert(kind);
            *request.body_mut() = content.into();
            Ok(())
        })
    }

    /// Sets the content to a form with files, and the `content-type` field to its type and boundary.
    pub fn multipart(self, form: Form) -> Self {
        self.change(|request| {
            let kind = form.content_type();
            request.headers_mut().insert(header::CONTENT_TYPE, kind);
            *request.body_mut() = form.into_body();
        })
    }

    /// Sets the content: text, bytes, a file, or a [`Body`] from a stream or of another type.
    pub fn body(self, body: impl Into<Body>) -> Self {
        self.change(|request| *request.body_mut() = body.into())
    }

    /// Sets the time limit of this request, including redirects and the content of the response. It replaces that of
    /// [`ClientBuilder::timeout`](super::ClientBuilder::timeout).
    pub fn timeout(self, limit: Duration) -> Self {
        self.extension(RequestTimeout(limit))
    }

    /// Sets the versions of HTTP that this request and its redirects may use: a [`HttpVersion`], or an
    /// [`http::Version`](http::Version). They replace those of
    /// [`ClientBuilder::version`](super::ClientBuilder::version). Requests with different versions share no
    /// connections.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// # async fn example(client: courser::Client) -> Result<(), courser::client::Error> {
    /// use courser::client::HttpVersion;
    ///
    /// let response = client.get("https://example.org/").version(HttpVersion::Http3Only).await?;
    /// assert_eq!(response.version(), http::Version::HTTP_3);
    /// let response = client.get("https://example.org/").version(http::Version::HTTP_11).await?;
    /// assert_eq!(response.version(), http::Version::HTTP_11);
    /// # Ok(()) }
    /// ```
    pub fn version(self, version: impl Into<HttpVersion>) -> Self {
        self.extension(version.into())
    }

    /// Adds an extension, such as [`OnInterim`](courser_http3_tokio::OnInterim) or
    /// [`Priority`](courser_http3_tokio::Priority).
    pub fn extension<T: Clone + Send + Sync + 'static>(self, extension: T) -> Self {
        self.change(|request| {
            request.extensions_mut().insert(extension);
        })
    }

    /// Returns a copy, or `None` if the content is not in memory.
    pub fn try_clone(&self) -> Option<Self> {
        let request = self.request.as_ref().ok()?;
        let mut copy = Request::new(request.body().try_clone()?);
        copy.method_mut().clone_from(request.method());
        copy.uri_mut().clone_from(request.uri());
        *copy.version_mut() = request.version();
        copy.headers_mut().clone_from(request.headers());
        copy.extensions_mut().clone_from(request.extensions());
        Some(Self {
            client: self.client.clone(),
            request: Ok(copy),
            credentials: self.credentials.clone(),
        })
    }

    /// Returns the request, for [`Client::send`] and for services.
    ///
    /// # Errors
    /// The first error of the steps before.
    pub fn build(self) -> Result<Request<Body>, Error> {
        let mut request = self.request?;
        if let Some(credentials) = self.credentials {
            let authorization = request.headers_mut().entry(header::AUTHORIZATION);
            authorization.or_insert(credentials);
        }
        Ok(request)
    }

    /// Sends the request, follows redirects, and waits for the header section of the response.
    ///
    /// # Errors
    /// The errors of [`Client::send`], and the first error of the steps before. A response with status 404 or 500 is
    /// not an error, but [`Response::error_for_status`] makes it one.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready cancels the request.
    pub async fn send(self) -> Result<Response, Error> {
        let client = self.client.clone();
        let response = client.send(self.build()?).await?;
        let limit = client.0.settings.content_limit;
        Ok(Response::new(response, limit))
    }

    /// Sends the request with a service, such as the client within layers of tower.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// # async fn example(client: courser::Client) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use std::time::Duration;
    ///
    /// use tower::ServiceBuilder;
    ///
    /// let mut limited = ServiceBuilder::new()
    ///     .rate_limit(10, Duration::from_secs(1))
    ///     .service(client.clone());
    /// let response = client.get("https://example.org/").send_with(&mut limited).await?;
    /// # drop(response);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of the service, and the first error of the steps before.
    pub async fn send_with<S, B>(self, service: &mut S) -> Result<Response, S::Error>
    where
        S: Service<Request<Body>, Response = http::Response<B>>,
        S::Error: From<Error>,
        B: Into<Body>,
    {
        let limit = self.client.0.settings.content_limit;
        let request = self.build()?;
        std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
        let response = service.call(request).await?;
        Ok(Response::new(response.map(Into::into), limit))
    }

    fn change(mut self, change: impl FnOnce(&mut Request<Body>)) -> Self {
        if let Ok(request) = &mut self.request {
            change(request);
        }
        self
    }

    fn try_change(mut self, change: impl FnOnce(&mut Request<Body>) -> Result<(), Error>) -> Self {
        if let Ok(request) = &mut self.request
            && let Err(error) = change(request)
        {
            self.request = Err(error);
        }
        self
    }
}

impl IntoFuture for RequestBuilder {
    type Output = Result<Response, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RequestBuilder");
        match &self.request {
            Ok(request) => debug
                .field("method", request.method())
                .field("uri", request.uri())
                .field("headers", request.headers()),
            Err(error) => debug.field("error", error),
        };
        debug.finish_non_exhaustive()
    }
}

fn not_a_field(error: http::Error) -> Error {
    Error::new(
        ErrorKind::Send,
        format!("not the name of a header field: {error}"),
    )
}

#[cfg(feature = "form")]
fn with_target(uri: http::Uri, target: String) -> Result<http::Uri, Error> {
    let wrong = |error: http::Error| {
        Error::new(
            ErrorKind::Url,
            format!("the URL with its query is no URL: {error}"),
        )
    };
    let mut parts = uri.into_parts();
    let target = http::uri::PathAndQuery::try_from(target).map_err(|error| wrong(error.into()))?;
    parts.path_and_query = Some(target);
    http::Uri::from_parts(parts).map_err(|error| wrong(error.into()))
}

#[cfg(test)]
mod tests;
