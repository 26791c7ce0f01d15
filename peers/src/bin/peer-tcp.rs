//! Plain TCP as a peer, without any protection: `peer-tcp server|client`.
//!
//! In place of a handshake, the client's first byte says what the connection is for.

#[path = "../stream_program.rs"]
mod stream_program;

fn main() -> Result<(), peers::Failure> {
    stream_program::run()
}

/// The socket itself.
mod stack {
    use peers::Failure;
    use peers::command_line::{ClientOptions, ServerOptions};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use crate::stream_program::Use;

    pub(crate) type ServerStream = TcpStream;
    pub(crate) type ClientStream = TcpStream;

    /// TCP has the version of the kernel, which the head of the report names.
    pub(crate) fn version() -> String {
        "Linux".to_owned()
    }

    #[derive(Clone)]
    pub(crate) struct Acceptor;

    impl Acceptor {
        pub(crate) fn new(_: &ServerOptions) -> Result<Self, Failure> {
            Ok(Self)
        }

        pub(crate) async fn accept(
            &self,
            mut tcp: TcpStream,
        ) -> Result<(ServerStream, Use), Failure> {
            let wanted = match tcp.read_u8().await? {
                EXCHANGE => Use::Exchange,
                REQUESTS => Use::Requests,
                other => return Err(format!("a connection begins with 0 or 1, not {other}").into()),
            };
            Ok((tcp, wanted))
        }
    }

    #[derive(Clone)]
    pub(crate) struct Connector(Use);

    impl Connector {
        pub(crate) fn new(_: &ClientOptions, wanted: Use) -> Result<Self, Failure> {
            Ok(Self(wanted))
        }

        pub(crate) async fn connect(&self, mut tcp: TcpStream) -> Result<ClientStream, Failure> {
            tcp.write_u8(match self.0 {
                Use::Exchange => EXCHANGE,
                Use::Requests => REQUESTS,
            })
            .await?;
            Ok(tcp)
        }
    }

    const EXCHANGE: u8 = 0;
    const REQUESTS: u8 = 1;
}
