//! TLS over TCP as a peer, with records that the kernel protects: `peer-ktls server|client`.
//!
//! rustls does the handshake and hands its keys to the kernel. `peer-ktls check` says whether the
//! kernel takes them.

#[path = "../stream_program.rs"]
mod stream_program;

fn main() -> Result<(), peers::Failure> {
    if std::env::args().nth(1).as_deref() == Some("check") {
        return stack::check();
    }
    stream_program::run()
}

/// TLS of the kernel.
mod stack {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use ktls::{CorkStream, KtlsStream};
    use nix::sys::socket::{setsockopt, sockopt};
    use peers::command_line::{ClientOptions, ServerOptions};
    use peers::settings::{ALPN, ALPN_REQUESTS, SERVER_NAME};
    use peers::{Failure, tls};
    use rustls::pki_types::ServerName;
    use tokio::net::TcpStream;
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use crate::stream_program::Use;

    pub(crate) type ServerStream = KtlsStream<TcpStream>;
    pub(crate) type ClientStream = KtlsStream<TcpStream>;

    pub(crate) fn version() -> String {
        format!("ktls {}", peers::locked_version("ktls"))
    }

    /// Asks the kernel whether it has TLS, with a connection to itself.
    pub(crate) fn check() -> Result<(), Failure> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
        let answer = setsockopt(&stream, sockopt::TcpUlp::default(), b"tls");
        println!("{}", if answer.is_ok() { "yes" } else { "no" });
        Ok(())
    }

    #[derive(Clone)]
    pub(crate) struct Acceptor(TlsAcceptor);

    impl Acceptor {
        pub(crate) fn new(options: &ServerOptions) -> Result<Self, Failure> {
            let mut config = tls::server(&options.identity, &[ALPN, ALPN_REQUESTS])?;
            config.enable_secret_extraction = true;
            Ok(Self(TlsAcceptor::from(Arc::new(config))))
        }

        pub(crate) async fn accept(&self, tcp: TcpStream) -> Result<(ServerStream, Use), Failure> {
            let stream = self.0.accept(CorkStream::new(tcp)).await?;
            let wanted = match stream.get_ref().1.alpn_protocol() {
                Some(ALPN_REQUESTS) => Use::Requests,
                _ => Use::Exchange,
            };
            Ok((ktls::config_ktls_server(stream).await?, wanted))
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
            let mut config = tls::client(&options.identity, &[alpn])?;
            config.enable_secret_extraction = true;
            Ok(Self(TlsConnector::from(Arc::new(config))))
        }

        pub(crate) async fn connect(&self, tcp: TcpStream) -> Result<ClientStream, Failure> {
            let name = ServerName::try_from(SERVER_NAME)?;
            let stream = self.0.connect(name, CorkStream::new(tcp)).await?;
            Ok(ktls::config_ktls_client(stream).await?)
        }
    }
}
