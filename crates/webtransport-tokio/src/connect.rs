//! Sessions of clients.

use courser_base::Side;
use courser_http3_tokio::{self as h3, Body, Client};
use courser_webtransport::{Answer, InvalidRequest, SessionId, SessionRequest, Unavailable, code};
use http::Response;

use crate::driver;
use crate::session::Session;
use crate::shared::{Origin, Shared};
use crate::table::Table;

/// The reason why a session was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The configuration of the connection has no WebTransport.
    #[error("the connection was made without WebTransport: call `enable` with its configuration")]
    NotEnabled,
    /// The server does not support sessions, or allows no further one.
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
    /// The request cannot be made as it is.
    #[error("{0}")]
    Request(#[from] InvalidRequest),
    /// The server has refused the session with this response.
    #[error("the server has refused the session with {}", .0.status())]
    Refused(Box<Response<Body>>),
    /// The server has chosen none of the application protocols of the request.
    #[error("the server has chosen none of the protocols that were offered")]
    WrongProtocol,
    /// The request has failed.
    #[error("{0}")]
    Http(h3::Error),
}

impl From<h3::Error> for ConnectError {
    fn from(error: h3::Error) -> Self {
        match error {
            h3::Error::Refused(response) => Self::Refused(response),
            error => Self::Http(error),
        }
    }
}

/// Opens a session on a connection of HTTP/3 whose configuration has [enabled](crate::enable) it. Waits for the settings
/// of the server and for its response.
///
/// # Errors
/// Returns a [`ConnectError`] if the server does not support WebTransport, refuses the session, or is lost.
///
/// # Cancel safety
/// Dropping the future before it is ready cancels the request.
pub async fn connect(client: &Client, request: SessionRequest) -> Result<Session, ConnectError> {
    Ok(request_session(client, request).await?.into_body())
}

/// Opens a session like [`connect`], and returns the response of the server with it.
///
/// # Errors
/// The errors of [`connect`].
///
/// # Cancel safety
/// Dropping the future before it is ready cancels the request.
pub async fn request_session(
    client: &Client,
    request: SessionRequest,
) -> Result<Response<Session>, ConnectError> {
    debug_assert_eq!(client.quic().side(), Side::Client);
    let (group, table) = Table::of(&client.extension()).ok_or(ConnectError::NotEnabled)?;
    if !table.on_server(&group, client).await {
        return Err(ConnectError::Http(lost(client)));
    }
    let dialect = table.with(|sessions| sessions.check_available())?;
    let place = table.monitor.take_place().map_err(Unavailable::TooMany)?;
    let (parts, stream) = client
        .connect(request.to_request(dialect)?)
        .await?
        .into_parts();
    let response = Response::from_parts(parts, ());
    let Answer::Established(protocol) = request.answer(&response) else {
        group.refuse_session(stream.stream());
        stream.reset(code::ALPN_ERROR);
        return Err(ConnectError::WrongProtocol);
    };
    let Ok(id) = SessionId::new(stream.stream().value()) else {
        return Err(ConnectError::Http(lost(client)));
    };
    let opened = table.with(|sessions| {
        let session = sessions.on_requested(id)?;
        sessions.on_accepted(id);
        Ok::<_, Unavailable>((session, sessions.agreement().copied()))
    })?;
    let (session, Some(agreement)) = opened else {
        return Err(Unavailable::NotYet.into());
    };
    let (Some(streams), Some(datagrams)) =
        (group.session(stream.stream()), stream.datagrams().cloned())
    else {
        table.on_ended(id);
        return Err(ConnectError::NotEnabled);
    };
    let origin = Origin {
        agreement,
        protocol,
        uri: request.uri().clone(),
        page: request.page().cloned(),
        place,
        streams,
        datagrams,
        table,
    };
    let shared = Shared::new(session, id, origin);
    let session = Session::new(shared.clone());
    driver::start(shared, stream);
    Ok(response.map(|()| session))
}

fn lost(client: &Client) -> h3::Error {
    match client.quic().close_reason() {
        Some(reason) => h3::Error::Connection(reason),
        None => h3::Error::GoingAway,
    }
}
