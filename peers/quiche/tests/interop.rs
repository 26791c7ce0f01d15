//! The interop program against itself: both ends, as the matrix starts them.

mod identity;

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command};

use peers_common::Failure;

use crate::identity::identity;

type Result<T = ()> = std::result::Result<T, Failure>;

#[test]
fn files_arrive_in_every_case() -> Result {
    for case in [
        "handshake",
        "transfer",
        "multiconnect",
        "retry",
        "resumption",
        "zerortt",
        "http3",
    ] {
        let folder = identity(&format!("interop-{case}"))?;
        fs::rename(folder.join("certificate.pem"), folder.join("cert.pem"))?;
        fs::rename(folder.join("key.pem"), folder.join("priv.key"))?;
        let (www, downloads) = (folder.join("www"), folder.join("downloads"));
        fs::create_dir_all(&www)?;
        fs::create_dir_all(&downloads)?;
        // More than the windows of a stream and of the connection, and nothing at all.
        let files = [("large", 3 << 20), ("small", 10), ("empty", 0)];
        for (place, (name, length)) in files.iter().enumerate() {
            fs::write(www.join(name), vec![place as u8; *length])?;
        }
        let address = free_address()?;
        let server = Server::start(case, address, &folder)?;
        let urls = files.map(|(name, _)| format!("https://{address}/{name}"));
        let status = program(case)
            .arg("client")
            .env("REQUESTS", urls.join(" "))
            .env("DOWNLOADS", &downloads)
            .status()?;
        assert!(status.success(), "{case}: {status}");
        drop(server);
        for (name, _) in files {
            let (sent, received) = (fs::read(www.join(name))?, fs::read(downloads.join(name))?);
            assert!(sent == received, "{case}: {name}");
        }
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}

#[test]
fn unsupported_cases_have_exit_code_127() -> Result {
    for (case, role) in [("v2", "server"), ("v2", "client"), ("chacha20", "client")] {
        let status = program(case).arg(role).status()?;
        assert_eq!(status.code(), Some(127), "{case} {role}");
    }
    Ok(())
}

/// A server, which ends with this value.
struct Server(Child);

impl Server {
    fn start(case: &str, listen: SocketAddr, folder: &Path) -> Result<Self> {
        let mut server = program(case);
        server.arg("server").env("LISTEN", listen.to_string());
        server.env("CERTS", folder).env("WWW", folder.join("www"));
        Ok(Self(server.spawn()?))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The only error is that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(case: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interop-quiche"));
    command.env("TESTCASE", case);
    command
}

fn free_address() -> Result<SocketAddr> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?)
}
