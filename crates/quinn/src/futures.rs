//! Futures with names, because programs store them.

use std::pin::Pin;

use bytes::Bytes;

use crate::{ConnectionError, RecvStream, SendDatagramError, SendStream};

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + Sync + 'a>>;

/// Defines types of futures with their outputs.
macro_rules! named {
    ($($(#[$doc:meta])* $name:ident -> $output:ty;)*) => {
        $(
            $(#[$doc])*
            #[must_use = "futures do nothing unless they are awaited"]
            pub struct $name<'a>($crate::futures::Boxed<'a, $output>);

            impl<'a> $name<'a> {
                pub(crate) fn new(
                    future: impl Future<Output = $output> + Send + Sync + 'a,
                ) -> Self {
                    Self(Box::pin(future))
                }
            }

            impl Future for $name<'_> {
                type Output = $output;

                fn poll(
                    mut self: std::pin::Pin<&mut Self>,
                    cx: &mut std::task::Context<'_>,
                ) -> std::task::Poll<$output> {
                    self.0.as_mut().poll(cx)
                }
            }

            impl std::fmt::Debug for $name<'_> {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(stringify!($name))
                }
            }
        )*
    };
}

pub(crate) use named;

named! {
    /// The future of [`Connection::open_uni`](crate::Connection::open_uni).
    OpenUni -> Result<SendStream, ConnectionError>;
    /// The future of [`Connection::open_bi`](crate::Connection::open_bi).
    OpenBi -> Result<(SendStream, RecvStream), ConnectionError>;
    /// The future of [`Connection::accept_uni`](crate::Connection::accept_uni).
    AcceptUni -> Result<RecvStream, ConnectionError>;
    /// The future of [`Connection::accept_bi`](crate::Connection::accept_bi).
    AcceptBi -> Result<(SendStream, RecvStream), ConnectionError>;
    /// The future of [`Connection::read_datagram`](crate::Connection::read_datagram).
    ReadDatagram -> Result<Bytes, ConnectionError>;
    /// The future of [`Connection::send_datagram_wait`](crate::Connection::send_datagram_wait).
    SendDatagram -> Result<(), SendDatagramError>;
}
