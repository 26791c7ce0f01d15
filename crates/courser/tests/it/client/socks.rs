//! SOCKS proxies: names they receive, authentication, refusals.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use courser::client::{ErrorKind, HttpVersion, Proxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::server::{Protocols, Server, echo};
use super::{builder, text, timing, within};

/// A proxy for SOCKS4, 4a and 5 that resolves every name to this machine, and records a line for
/// each request. With a login, SOCKS5 requires it.
struct SocksServer {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl SocksServer {
    async fn start(login: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        crate::common::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                crate::common::spawn(serve(stream, login, log.clone()));
            }
        });
        Self { address, seen }
    }

    fn through(&self, scheme: &str, credentials: &str) -> Proxy {
        Proxy::Url {
            url: format!("{scheme}://{credentials}{}", self.address),
            except: String::new(),
        }
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().expect("no panic"))
    }
}

type Served = std::io::Result<()>;

async fn serve(
    mut stream: TcpStream,
    login: Option<&'static str>,
    log: Arc<Mutex<Vec<String>>>,
) -> Served {
    let version = stream.read_u8().await?;
    let (target, user) = match version {
        4 => read_socks4_target(&mut stream).await?,
        5 => {
            let user = log_in(&mut stream, login).await?;
            (read_socks5_target(&mut stream).await?, user)
        }
        other => panic!("version {other}"),
    };
    let mark = if user.is_empty() { "" } else { " as " };
    log.lock()
        .expect("no panic")
        .push(format!("{version} {target}{mark}{user}"));
    let (_, port) = target.rsplit_once(':').expect("a port");
    let port = port.parse().expect("a number");
    let there = TcpStream::connect(("127.0.0.1", port)).await;
    let (granted, refused): (&[u8], &[u8]) = match version {
        4 => (&[0, 0x5a, 0, 0, 0, 0, 0, 0], &[0, 0x5b, 0, 0, 0, 0, 0, 0]),
        _ => (
            &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0],
            &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
    };
    let Ok(mut there) = there else {
        return stream.write_all(refused).await;
    };
    stream.write_all(granted).await?;
    tokio::io::copy_bidirectional(&mut stream, &mut there).await?;
    Ok(())
}

/// Implements RFC 1928 §3 and RFC 1929.
async fn log_in(stream: &mut TcpStream, login: Option<&'static str>) -> std::io::Result<String> {
    let methods = stream.read_u8().await?;
    let mut offered = vec![0; methods.into()];
    stream.read_exact(&mut offered).await?;
    let Some(login) = login else {
        assert!(offered.contains(&0), "no login is always good enough");
        stream.write_all(&[5, 0]).await?;
        return Ok(String::new());
    };
    if !offered.contains(&2) {
        stream.write_all(&[5, 0xff]).await?;
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    stream.write_all(&[5, 2]).await?;
    assert_eq!(stream.read_u8().await?, 1);
    let user = counted(stream).await?;
    let password = counted(stream).await?;
    let given = format!("{user}:{password}");
    stream.write_all(&[1, u8::from(given != login)]).await?;
    if given != login {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    Ok(user)
}

async fn counted(stream: &mut TcpStream) -> std::io::Result<String> {
    let len = stream.read_u8().await?;
    let mut text = vec![0; len.into()];
    stream.read_exact(&mut text).await?;
    Ok(String::from_utf8(text).expect("text"))
}

/// Implements RFC 1928 §4.
async fn read_socks5_target(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    assert_eq!(head[..3], [5, 1, 0]);
    let host = match head[3] {
        1 => std::net::Ipv4Addr::from_bits(stream.read_u32().await?).to_string(),
        3 => counted(stream).await?,
        other => panic!("address of kind {other}"),
    };
    Ok(format!("{host}:{}", stream.read_u16().await?))
}

async fn read_socks4_target(stream: &mut TcpStream) -> std::io::Result<(String, String)> {
    assert_eq!(stream.read_u8().await?, 1);
    let port = stream.read_u16().await?;
    let ip = stream.read_u32().await?;
    let user = terminated(stream).await?;
    let host = match ip {
        1..=255 => terminated(stream).await?,
        ip => std::net::Ipv4Addr::from_bits(ip).to_string(),
    };
    Ok((format!("{host}:{port}"), user))
}

async fn terminated(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut text = Vec::new();
    loop {
        match stream.read_u8().await? {
            0 => return Ok(String::from_utf8(text).expect("text")),
            byte => text.push(byte),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_scheme_decides_where_names_are_resolved() {
    let server = Server::start(Protocols::Both, echo()).await;
    let port = server.address.port();
    let proxy = SocksServer::start(None).await;
    // `resolve` gives the address of example.test only to the client.
    for (scheme, expected) in [
        ("socks5h", format!("5 example.test:{port}")),
        ("socks5", format!("5 127.0.0.1:{port}")),
        ("socks4a", format!("4 example.test:{port} as me")),
        ("socks4", format!("4 127.0.0.1:{port} as me")),
    ] {
        let credentials = if scheme.starts_with("socks4") {
            "me@"
        } else {
            ""
        };
        let client = builder(&server)
            .proxy(proxy.through(scheme, credentials))
            .version(HttpVersion::Http3)
            .build()
            .expect("a client");
        for _ in 0..2 {
            let url = format!("https://example.test:{port}/a");
            let response = within(client.get(&url)).await.expect(scheme);
            assert!(timing(&response).is_proxied);
            assert_eq!(text(response).await, "HTTP/2.0 GET /a", "{scheme}");
        }
        assert_eq!(proxy.seen(), [expected], "one connection carries both");
    }
    assert_eq!(server.connections.counts(), (0, 4), "and never over QUIC");
}

/// Only the proxy can resolve this name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_only_the_proxy_knows_are_reached() {
    let server = Server::start(Protocols::Plain, echo()).await;
    let url = format!("http://hidden.invalid:{}/a?b", server.address.port());
    let proxy = SocksServer::start(None).await;
    let client = |scheme| {
        let builder = builder(&server).proxy(proxy.through(scheme, ""));
        builder.build().expect("a client")
    };
    let response = within(client("socks5h").get(&url)).await.expect("answered");
    // In origin form, because the proxy does not process HTTP.
    assert_eq!(text(response).await, "HTTP/1.1 GET /a");
    let error = within(client("socks5").get(&url))
        .await
        .expect_err("cannot be resolved here");
    assert_eq!(error.kind(), ErrorKind::Resolve, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_are_sent_to_proxies_that_ask() {
    let server = Server::start(Protocols::Tcp, echo()).await;
    let closed = SocksServer::start(Some("user:p@ss")).await;
    let open = SocksServer::start(None).await;
    let get = |proxy: Proxy| {
        let client = builder(&server).proxy(proxy).build().expect("a client");
        let url = server.url("/");
        async move { within(client.get(&url)).await }
    };
    let good = "user:p%40ss@";
    get(closed.through("socks5h", good))
        .await
        .expect("accepted");
    let port = server.address.port();
    assert_eq!(closed.seen(), [format!("5 localhost:{port} as user")]);
    get(open.through("socks5h", good))
        .await
        .expect("no password needed");
    for (credentials, text) in [
        ("", "add user name and password to its URL"),
        ("user:wrong@", "rejected the user name and password"),
    ] {
        let error = get(closed.through("socks5h", credentials)).await;
        let error = error.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Socks);
        assert!(
            error.is_connect() && error.to_string().contains(text),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_failures_are_distinguished_from_server_failures() {
    let server = Server::start(Protocols::Plain, echo()).await;
    let proxy = SocksServer::start(None).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let unused = listener.local_addr().expect("bound");
    drop(listener);
    let url = format!("http://{unused}/");
    let get = |proxy: Proxy| {
        let client = builder(&server).proxy(proxy).build().expect("a client");
        let url = url.clone();
        async move { within(client.get(&url)).await.expect_err("not listening") }
    };
    let error = get(proxy.through("socks5h", "")).await;
    assert_eq!(error.kind(), ErrorKind::Socks);
    assert!(error.to_string().contains("connection refused"), "{error}");
    let error = get(proxy.through("socks4", "")).await;
    assert_eq!(error.kind(), ErrorKind::Socks);
    let absent = |host: String| Proxy::Url {
        url: format!("socks5h://{host}"),
        except: String::new(),
    };
    let error = get(absent(unused.to_string())).await;
    assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
    let error = get(absent("no-such-proxy.invalid".to_owned())).await;
    assert_eq!(error.kind(), ErrorKind::ResolveProxy, "{error}");
    // An HTTP proxy answers `HTTP/1.1 400`, or closes.
    let error = get(absent(server.address.to_string())).await;
    assert_eq!(error.kind(), ErrorKind::Socks, "{error}");
}
