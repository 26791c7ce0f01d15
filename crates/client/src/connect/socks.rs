//! SOCKS proxies: version 5 (RFC 1928) with user and password (RFC 1929), version 4 and 4a.
//!
//! This is our own implementation, because the crate tokio-socks loses the reply of the proxy, which `courser
//! get` prints. hyper-util's connectors do not suffice either: they offer only one authentication method where
//! curl offers two, which `ssh -D` refuses, they limit user, password and host to 262 bytes together, and they
//! block the thread to resolve names.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::Uri;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::super::core::Core;
use super::super::error::{Error, ErrorKind};
use super::super::origin::Origin;

/// The version of SOCKS that the scheme of a proxy URL selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Socks {
    /// SOCKS4, which supports only IPv4 addresses.
    V4,
    /// SOCKS4a, which supports IPv4 addresses and names.
    V4a,
    /// SOCKS5 with addresses; the client resolves names.
    V5,
    /// SOCKS5 with addresses and names; the proxy resolves names.
    V5h,
}

/// The destination to which the proxy should connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Address(SocketAddr),
    Name(String, u16),
}

impl Socks {
    pub(super) fn of(proxy: &Uri) -> Option<Self> {
        match proxy.scheme_str()? {
            "socks4" => Some(Self::V4),
            "socks4a" => Some(Self::V4a),
            "socks5" => Some(Self::V5),
            "socks5h" => Some(Self::V5h),
            _ => None,
        }
    }

    const fn resolves_names(self) -> bool {
        matches!(self, Self::V4a | Self::V5h)
    }

    const fn carries(self, ip: IpAddr) -> bool {
        ip.is_ipv4() || matches!(self, Self::V5 | Self::V5h)
    }

    /// Returns the destination for the proxy: a name if the proxy resolves names, so that the client sends no
    /// DNS query, and an address otherwise.
    pub(super) async fn target(self, core: &Arc<Core>, origin: &Origin) -> Result<Target, Error> {
        let (host, port) = core.settings.destination(origin);
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(Target::Address(SocketAddr::from((ip, port))));
        }
        if self.resolves_names() {
            return Ok(Target::Name(host, port));
        }
        let addresses = core.lookup(&host, port).await?;
        let usable = addresses.into_iter().find(|it| self.carries(it.ip()));
        usable
            .map(Target::Address)
            .ok_or_else(|| no_ipv4_address(&host))
    }

    /// Requests a connection to `target`. Afterwards the stream carries its bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Socks`] with the reply of the proxy.
    pub(super) async fn connect<S>(
        self,
        stream: &mut S,
        target: &Target,
        credentials: Option<(&str, &str)>,
    ) -> Result<(), Error>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        match self {
            Self::V4 | Self::V4a => {
                let user = credentials.map_or("", |(user, _)| user);
                send(stream, &request_4(target, user)?).await?;
                answer_4(read(stream).await?, target)
            }
            Self::V5 | Self::V5h => {
                authenticate(stream, credentials).await?;
                send(stream, &request_5(target)?).await?;
                answer_5(stream, target).await
            }
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// Negotiates an authentication method, and authenticates if the proxy requires it.
async fn authenticate<S>(stream: &mut S, credentials: Option<(&str, &str)>) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let offer: &[u8] = match credentials {
        Some(_) => &[VERSION_5, 2, NO_LOGIN, PASSWORD],
        None => &[VERSION_5, 1, NO_LOGIN],
    };
    send(stream, offer).await?;
    let [version, method] = read(stream).await?;
    if version != VERSION_5 {
        return Err(not_socks("SOCKS5", version));
    }
    match (method, credentials) {
        (NO_LOGIN, _) => Ok(()),
        (PASSWORD, Some((user, password))) => {
            let mut message = vec![VERSION_PASSWORD];
            push_counted(&mut message, "user", user)?;
            push_counted(&mut message, "password", password)?;
            send(stream, &message).await?;
            let [_, status] = read(stream).await?;
            if status == 0 {
                return Ok(());
            }
            Err(refused(
                "the SOCKS proxy rejected the user name and password",
            ))
        }
        (NONE_ACCEPTABLE, Some(_)) => Err(refused(
            "the SOCKS proxy requires an authentication method other than user name and password",
        )),
        (NONE_ACCEPTABLE, None) => Err(refused(
            "the SOCKS proxy requires authentication: add user name and password to its URL",
        )),
        (other, _) => {
            let text = format!(
                "the SOCKS proxy chose authentication method {other}, which was not offered"
            );
            Err(refused(text))
        }
    }
}

/// Encodes a request (RFC 1928 §4).
fn request_5(target: &Target) -> Result<Vec<u8>, Error> {
    let mut message = vec![VERSION_5, CONNECT, 0];
    let port = match target {
        Target::Address(address) => {
            match address.ip() {
                IpAddr::V4(ip) => {
                    message.push(IPV4);
                    message.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    message.push(IPV6);
                    message.extend_from_slice(&ip.octets());
                }
            }
            address.port()
        }
        Target::Name(name, port) => {
            message.push(NAME);
            push_counted(&mut message, "host", name)?;
            *port
        }
    };
    message.extend_from_slice(&port.to_be_bytes());
    Ok(message)
}

/// Reads the reply to a request (RFC 1928 §6).
async fn answer_5<S: AsyncRead + Unpin>(stream: &mut S, target: &Target) -> Result<(), Error> {
    let [version, reply, _, kind] = read(stream).await?;
    if version != VERSION_5 {
        return Err(not_socks("SOCKS5", version));
    }
    let why = match reply {
        0 => {
            // The address from which the proxy connects. It is not used, but must be read.
            let mut rest = [0; 255 + 2];
            let len = match kind {
                IPV4 => 4,
                IPV6 => 16,
                NAME => usize::from(read::<_, 1>(stream).await?[0]),
                other => {
                    let text = format!("the SOCKS proxy sent an address of unknown type {other}");
                    return Err(refused(text));
                }
            };
            let rest = &mut rest[..len + 2];
            return stream
                .read_exact(rest)
                .await
                .map(drop)
                .map_err(connection_error);
        }
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "TTL expired",
        7 => "it does not support CONNECT",
        8 => "it does not support this address type",
        other => {
            return Err(refused(format!(
                "the SOCKS proxy cannot connect to {target}: reply {other}"
            )));
        }
    };
    let text = format!("the SOCKS proxy cannot connect to {target}: {why} (reply {reply})");
    Err(refused(text))
}

/// Encodes a SOCKS4 or 4a request as in Ying-Da Lee's memos. In 4a, a name follows an invalid address.
fn request_4(target: &Target, user: &str) -> Result<Vec<u8>, Error> {
    let (ip, port, name) = match target {
        Target::Address(address) => match address.ip() {
            IpAddr::V4(ip) => (ip.octets(), address.port(), None),
            IpAddr::V6(_) => return Err(no_ipv4_address(&address.ip().to_string())),
        },
        Target::Name(name, port) => (NO_ADDRESS, *port, Some(name)),
    };
    let mut message = vec![VERSION_4, CONNECT];
    message.extend_from_slice(&port.to_be_bytes());
    message.extend_from_slice(&ip);
    for text in [Some(user), name.map(String::as_str)].into_iter().flatten() {
        if text.contains('\0') || text.len() > MAX_COUNTED {
            return Err(refused(format!(
                "SOCKS4 allows at most {MAX_COUNTED} bytes for user and host, without zero bytes"
            )));
        }
        message.extend_from_slice(text.as_bytes());
        message.push(0);
    }
    Ok(message)
}

fn answer_4([version, reply, ..]: [u8; 8], target: &Target) -> Result<(), Error> {
    if version != 0 {
        return Err(not_socks("SOCKS4", version));
    }
    let why = match reply {
        0x5a => return Ok(()),
        0x5b => "rejected or failed",
        0x5c => "it cannot reach identd on this machine",
        0x5d => "identd on this machine reports another user",
        _ => "unknown reason",
    };
    let text = format!("the SOCKS proxy cannot connect to {target}: {why} (reply {reply})");
    Err(refused(text))
}

fn push_counted(message: &mut Vec<u8>, what: &str, text: &str) -> Result<(), Error> {
    let len = u8::try_from(text.len()).map_err(|_| {
        let len = text.len();
        refused(format!(
            "the {what} has {len} bytes, SOCKS5 allows {MAX_COUNTED}"
        ))
    })?;
    message.push(len);
    message.extend_from_slice(text.as_bytes());
    Ok(())
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, message: &[u8]) -> Result<(), Error> {
    stream.write_all(message).await.map_err(connection_error)?;
    stream.flush().await.map_err(connection_error)
}

async fn read<S: AsyncRead + Unpin, const N: usize>(stream: &mut S) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    stream
        .read_exact(&mut bytes)
        .await
        .map_err(connection_error)?;
    Ok(bytes)
}

fn refused(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Socks, text)
}

fn no_ipv4_address(host: &str) -> Error {
    refused(format!(
        "SOCKS4 supports IPv4 only, and {host} has no IPv4 address: use socks5:// or socks5h://"
    ))
}

fn not_socks(version: &str, byte: u8) -> Error {
    refused(format!(
        "the proxy does not speak {version}, its response begins with byte {byte}: use http:// for HTTP proxies"
    ))
}

fn connection_error(error: io::Error) -> Error {
    let text = match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the SOCKS proxy closed the connection: does it speak this version of SOCKS?".to_owned()
        }
        _ => format!("the connection to the SOCKS proxy failed: {error}"),
    };
    refused(text).with_source(error)
}

const VERSION_4: u8 = 4;
const VERSION_5: u8 = 5;
/// The version of the messages of RFC 1929.
const VERSION_PASSWORD: u8 = 1;
const CONNECT: u8 = 1;
/// Authentication methods (RFC 1928 §3).
const NO_LOGIN: u8 = 0;
const PASSWORD: u8 = 2;
const NONE_ACCEPTABLE: u8 = 0xff;
/// Address types (RFC 1928 §5).
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// An address `0.0.0.x` with x above 0, which selects the name that follows.
const NO_ADDRESS: [u8; 4] = [0, 0, 0, 1];
/// Longest string whose length is encoded in one byte.
const MAX_COUNTED: usize = 255;

#[cfg(test)]
mod tests;
