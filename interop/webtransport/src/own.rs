//! courser.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::Html;
use axum::routing::{any, get};
use courser::webtransport::{
    self, ApplicationCode, Closed, Config, Origins, Protocols, ReadError, SessionRequest,
    WriteError,
};
use courser::{ClientConfig, Connection, Endpoint, Identity, Side, h3};
use futures::stream;
use tokio::sync::OnceCell;

use crate::end::{Broken, Connect, Receiving, Sending, Session};
use crate::serve::{self, Last};

pub async fn serve((certificate, key): (&str, &str)) -> Result<()> {
    let identity = Identity::from_pem_files(certificate, key)?;
    let last = Last::default();
    let mut serving = tokio::task::JoinSet::new();
    for origins in [Origins::any(), Origins::same_host()] {
        let app = Router::new()
            .route(
                "/download",
                get(async || Html(include_str!("../download.html"))),
            )
            .route("/bytes/{count}", get(bytes).fallback(accept))
            .fallback(any(accept))
            .with_state(last.clone());
        let mut settings = h3::Config::new(Side::Server);
        let config = Config {
            origins,
            ..Config::new()
        };
        webtransport::enable(&mut settings, Side::Server, config)?;
        let server = courser::serve("127.0.0.1:0", identity.clone())
            .config(settings)
            .bind()?;
        println!("{}", server.local_addr().port());
        serving.spawn(server.service(app).into_future());
    }
    while let Some(done) = serving.join_next().await {
        done??;
    }
    Ok(())
}

/// Answers a request of a page with so many bytes.
async fn bytes(Path(count): Path<u64>) -> Body {
    let chunk = Bytes::from_static(&[0; 64 * 1024]);
    let chunks = stream::unfold(count, move |left| {
        let next = chunk.slice(..left.min(chunk.len() as u64) as usize);
        let rest = left - next.len() as u64;
        ready((!next.is_empty()).then_some((Ok::<_, Infallible>(next), rest)))
    });
    Body::from_stream(chunks)
}

async fn accept(State(last): State<Last>, mut request: Request) -> axum::response::Response {
    let path = request.uri().path().to_owned();
    let upgrade = webtransport::upgrade(&mut request).protocols(["echo"]);
    let response = upgrade.accept(async move |session: webtransport::Session| {
        eprintln!("dialect: {}", session.dialect());
        serve::session(session, &path, last).await
    });
    let response = response.await;
    if let Some(refused) = response.extensions().get::<webtransport::Refused>() {
        eprintln!("refused: {}", refused.0);
    }
    response
}

pub struct Connector {
    port: u16,
    endpoint: OnceCell<Arc<Endpoint>>,
}

impl Connector {
    pub fn new(port: u16) -> Self {
        Self {
            port,
            endpoint: OnceCell::new(),
        }
    }

    async fn client(&self) -> Result<h3::Client> {
        let endpoint = self.endpoint.get_or_try_init(|| async {
            anyhow::Ok(Arc::new(Endpoint::client("127.0.0.1:0".parse()?)?))
        });
        let config = ClientConfig::dangerous_insecure()?.alpn([h3::ALPN]);
        let address = ([127, 0, 0, 1], self.port).into();
        let connecting = endpoint.await?.connect_with(config, address, "localhost")?;
        let connection: Connection = connecting.await?;
        let mut settings = h3::Config::new(Side::Client);
        webtransport::enable(&mut settings, Side::Client, Config::new())?;
        Ok(h3::Client::with_config(connection, settings))
    }

    fn request(&self, path: &str) -> Result<SessionRequest> {
        let uri = format!("https://localhost:{}{path}", self.port).parse()?;
        Ok(SessionRequest::new(uri).protocols(Protocols::new(["echo"])?))
    }
}

impl Connect for Connector {
    type Session = webtransport::Session;

    async fn connect(&self, path: &str) -> Result<Self::Session> {
        let client = self.client().await?;
        let session = webtransport::connect(&client, self.request(path)?).await?;
        eprintln!("dialect: {}", session.dialect());
        Ok(session)
    }

    async fn two(&self) -> Option<Result<[Self::Session; 2]>> {
        let client = match self.client().await {
            Ok(client) => client,
            Err(error) => return Some(Err(error)),
        };
        let request = self.request("/echo").ok()?;
        let first = match webtransport::connect(&client, request.clone()).await {
            Ok(first) => first,
            Err(error) => return Some(Err(error.into())),
        };
        match webtransport::connect(&client, request).await {
            Ok(second) => Some(Ok([first, second])),
            Err(webtransport::ConnectError::Unavailable(_)) => None,
            Err(error) => Some(Err(error.into())),
        }
    }
}

fn code(code: Option<ApplicationCode>) -> Option<u32> {
    code.map(|ApplicationCode(code)| code)
}

impl Session for webtransport::Session {
    type Sending = webtransport::SendStream;
    type Receiving = webtransport::RecvStream;

    async fn open_bi(&self) -> Result<(Self::Sending, Self::Receiving)> {
        Ok(Self::open_bi(self).await?)
    }
    async fn open_uni(&self) -> Result<Self::Sending> {
        Ok(Self::open_uni(self).await?)
    }
    async fn accept_bi(&self) -> Result<(Self::Sending, Self::Receiving)> {
        Ok(Self::accept_bi(self).await?)
    }
    async fn accept_uni(&self) -> Result<Self::Receiving> {
        Ok(Self::accept_uni(self).await?)
    }
    fn send_datagram(&self, payload: Vec<u8>) -> Result<()> {
        Ok(self.datagrams().send(&payload)?)
    }
    async fn datagram(&self) -> Result<Vec<u8>> {
        let payload = self.datagrams().receive().await;
        Ok(payload.context("closed")?.to_vec())
    }
    fn close(&self, code: u32, reason: &str) {
        Self::close(self, code, reason);
    }
    async fn closed(&self) -> String {
        match Self::closed(self).await {
            Closed::Peer(reason) => format!("{} {}", reason.code.0, reason.message),
            other => other.to_string(),
        }
    }
    fn protocol(&self) -> Option<String> {
        Self::protocol(self).map(ToOwned::to_owned)
    }
    fn drain(&self) -> Option<()> {
        Self::drain(self);
        Some(())
    }
    async fn draining(&self) -> Option<()> {
        Self::draining(self).await;
        Some(())
    }
    fn dialect(&self) -> String {
        Self::dialect(self).to_string()
    }
}

impl Sending for webtransport::SendStream {
    async fn write_all(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        Self::write_all(self, bytes)
            .await
            .map_err(|error| match error {
                WriteError::Stopped(stopped) => Broken::new(code(stopped), error),
                _ => Broken::new(None, error),
            })
    }
    async fn finish(&mut self) {
        let _ = Self::finish(self);
    }
    fn reset(&mut self, code: u32) {
        let _ = Self::reset(self, code);
    }
}

impl Receiving for webtransport::RecvStream {
    async fn read(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let chunk = self
            .read_chunk(64 * 1024)
            .await
            .map_err(|error| match error {
                ReadError::Reset(reset) => Broken::new(code(reset), error),
                _ => Broken::new(None, error),
            })?;
        Ok(chunk.map(|chunk| chunk.to_vec()))
    }
    fn stop(&mut self, code: u32) {
        let _ = Self::stop(self, code);
    }
}
