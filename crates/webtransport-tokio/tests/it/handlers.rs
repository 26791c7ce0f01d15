//! Session requests as arguments of handlers of axum.

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::any;
use courser_http3_tokio as h3;
use courser_quic::{Side, TransportConfig};
use courser_webtransport_tokio::{self as webtransport, Config, Session, Upgrade};

use crate::{connections, wish, within};

async fn chat(upgrade: Upgrade) -> Response {
    upgrade
        .accept(|session: Session| async move { session.close(7, "from axum").await })
        .await
}

#[tokio::test]
async fn a_handler_of_axum_accepts_sessions_as_its_argument() {
    let (near, far, _endpoints) = connections(TransportConfig::default()).await;
    let mut settings = h3::Config::new(Side::Server);
    webtransport::enable(&mut settings, Side::Server, Config::new()).expect("free numbers");
    let app = axum::Router::new().route("/chat", any(chat));
    tokio::spawn(h3::serve(far, app).config(settings).into_future());
    let mut settings = h3::Config::new(Side::Client);
    webtransport::enable(&mut settings, Side::Client, Config::new()).expect("free numbers");
    let client = h3::Client::with_config(near, settings);
    let session = within(webtransport::connect(&client, wish())).await;
    let closed = within(session.expect("accepted").closed()).await;
    let reason = closed.reason().expect("a reason");
    assert_eq!((reason.code.0, reason.message.as_str()), (7, "from axum"));
    // Requests for something else are answered, and do not fail.
    let request = http::Request::get("https://localhost/chat").body(h3::Empty);
    let response = within(client.send(request.expect("valid"))).await;
    let status = response.expect("answered").status();
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
}
