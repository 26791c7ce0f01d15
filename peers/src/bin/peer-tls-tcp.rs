//! TLS over TCP as a peer: `peer-tls-tcp server|client`.

#[path = "../stream_program.rs"]
mod stream_program;

fn main() -> Result<(), peers::Failure> {
    stream_program::run()
}

/// TLS of rustls.
mod stack {
    use std::sync::Arc;

    use peers::command_line::{ClientOptions, ServerOptions};
    use peers::settings::{ALPN, ALPN_REQUESTS, SERVER_NAME};
    use peers::{Failure, tls};
    use rustls::pki_types::ServerName;
    use tokio::net::TcpStream;
    use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

    use crate::stream_program::Use;

    pub(crate) type ServerStream = server::TlsStream<TcpStream>;
    pub(crate) type ClientStream = client::TlsStream<TcpStream>;

    pub(crate) fn version() -> String {
        format!("rustls {}", peers::locked_version("rustls"))
    }

    #[derive(Clone)]
    pub(crate) struct Acceptor(TlsAcceptor);

    impl Acceptor {
        pub(crate) fn new(options: &ServerOptions) -> Result<Self, Failure> {
            let config = tls::server(&options.identity, &[ALPN, ALPN_REQUESTS])?;
            Ok(Self(TlsAcceptor::from(Arc::new(config))))
        }

        pub(crate) async fn accept(&self, tcp: TcpStream) -> Result<(ServerStream, Use), Failure> {
            let stream = self.0.accept(tcp).await?;
            let wanted = match stream.get_ref().1.alpn_protocol() {
                Some(ALPN_REQUESTS) => Use::Requests,
                _ => Use::Exchange,
            };
            Ok((stream, wanted))
        }
    }

    #[derive(Clone)]
    pub(crate) struct Connector(TlsConnector);

    impl Connector {
        pub(crate) fn new(options: &ClientOptions, wanted: Use) -> Result<Self, Failure> {
            let alpn = match wanted {
                Use::Exchange => ALPN,
                Use::Requests => ALPN_REQUESTS,
            };
            let config = tls::client(&options.identity, &[alpn])?;
            Ok(Self(TlsConnector::from(Arc::new(config))))
        }

        pub(crate) async fn connect(&self, tcp: TcpStream) -> Result<ClientStream, Failure> {
            Ok(self
                .0
                .connect(ServerName::try_from(SERVER_NAME)?, tcp)
                .await?)
        }
    }
}
