//! SOCKS proxies of the environment and of `--proxy`, and the exit codes of curl.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use super::server::{Server, unused_port};
use super::{code, command};

/// A SOCKS5 proxy that requires `user` and `pw`, and resolves every name to this machine. It reports
/// the requested hosts.
fn proxy() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepted");
            let sender = sender.clone();
            std::thread::spawn(move || {
                let Some(target) = negotiate(&mut stream) else {
                    return;
                };
                let (_, port) = target.rsplit_once(':').expect("a port");
                let there = TcpStream::connect(format!("127.0.0.1:{port}"));
                let _ = sender.send(target.clone());
                let reply = if there.is_ok() { 0 } else { 5 };
                let _ = stream.write_all(&[5, reply, 0, 1, 0, 0, 0, 0, 0, 0]);
                if let Ok(there) = there {
                    join(stream, there);
                }
            });
        }
    });
    (port, receiver)
}

/// Reads a request (RFC 1928, RFC 1929). Returns `None` if the client is not authorized or has disconnected.
fn negotiate(stream: &mut TcpStream) -> Option<String> {
    let offered = {
        let count = bytes(stream, 2)?[1];
        bytes(stream, count.into())?
    };
    if !offered.contains(&2) {
        stream.write_all(&[5, 0xff]).ok()?;
        return None;
    }
    stream.write_all(&[5, 2]).ok()?;
    bytes(stream, 1)?;
    let (user, password) = (counted(stream)?, counted(stream)?);
    let is_known = (user.as_str(), password.as_str()) == ("user", "pw");
    stream.write_all(&[1, u8::from(!is_known)]).ok()?;
    if !is_known {
        return None;
    }
    let kind = bytes(stream, 4)?[3];
    let host = match kind {
        1 => {
            let ip: [u8; 4] = bytes(stream, 4)?.try_into().ok()?;
            std::net::Ipv4Addr::from(ip).to_string()
        }
        3 => counted(stream)?,
        _ => return None,
    };
    let port = bytes(stream, 2)?;
    Some(format!("{host}:{}", u16::from_be_bytes([port[0], port[1]])))
}

fn bytes(stream: &mut TcpStream, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn counted(stream: &mut TcpStream) -> Option<String> {
    let count = bytes(stream, 1)?[0];
    String::from_utf8(bytes(stream, count.into())?).ok()
}

/// Forwards bytes until both directions have ended.
fn join(one: TcpStream, other: TcpStream) {
    let (mut from, mut to) = (
        one.try_clone().expect("a copy"),
        other.try_clone().expect("a copy"),
    );
    let back = std::thread::spawn(move || {
        let (mut from, mut to) = (other, one);
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
    let _ = back.join();
}

#[test]
fn proxies_of_the_environment_and_of_the_flag_are_used() {
    let server = Server::start();
    let (port, targets) = proxy();
    // Only the proxy can resolve this name.
    let url = format!("https://hidden.invalid:{}/echo", server.port());
    let proxy = |scheme: &str| format!("{scheme}://user:pw@127.0.0.1:{port}");
    let format = "%{http_version} %{proxy_used}";
    let common = ["-s", "-k", "--http3", "-o", "/dev/null", "-w", format, &url];
    let flag = command(&[&["-x", &proxy("socks5h")], &common[..]].concat()).output();
    let environment = command(&common).env("ALL_PROXY", proxy("socks5h")).output();
    for output in [flag, environment] {
        let output = output.expect("the binary starts");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2 1");
        let target = targets.recv().expect("a request");
        assert_eq!(target, format!("hidden.invalid:{}", server.port()));
    }
    // With the other scheme the name is resolved locally, which fails.
    assert_eq!(code(&["-s", "-x", &proxy("socks5"), &url]), 6);
    let url = server.url("/echo");
    assert_eq!(code(&["-s", "-k", "-x", &proxy("socks5"), &url]), 0);
    let target = targets.recv().expect("a request");
    assert_eq!(target, format!("127.0.0.1:{}", server.port()));
    // Excluded hosts do not use the proxy.
    let direct = [
        "-s",
        "-k",
        "-x",
        &proxy("socks5h"),
        "--noproxy",
        "localhost",
    ];
    assert_eq!(code(&[&direct[..], &[&url]].concat()), 0);
    assert!(targets.try_recv().is_err());
}

#[test]
fn exit_codes_of_socks_are_those_of_curl() {
    let (port, _targets) = proxy();
    let through = |proxy: &str| code(&["-s", "-k", "-x", proxy, "https://localhost:9/"]);
    assert_eq!(through(&format!("socks5h://127.0.0.1:{port}")), 97);
    assert_eq!(through(&format!("socks5h://user:no@127.0.0.1:{port}")), 97);
    // The proxy accepts the client, but the port has no listener.
    let url = format!("https://localhost:{}/", unused_port());
    let proxy = format!("socks5h://user:pw@127.0.0.1:{port}");
    assert_eq!(code(&["-s", "-k", "-x", &proxy, &url]), 97);
    assert_eq!(through("socks5h://no-such-proxy.invalid"), 5);
    assert_eq!(through(&format!("socks5://127.0.0.1:{}", unused_port())), 7);
    assert_eq!(through("socks6://127.0.0.1"), 7);
    let error = super::refusal(&["get", "-x", "socks6://127.0.0.1", "http://a.test/"]);
    assert!(error.contains("socks5h"), "{error}");
}
