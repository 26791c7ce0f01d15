//! `multipath-witness identity FOLDER` makes a certificate. `multipath-witness STACK-server FOLDER ADDRESS` serves as many bytes as a
//! request asks for. `multipath-witness STACK-client FOLDER SERVER SECOND BYTES` receives that many over two paths, and prints the
//! seconds. STACK is `courser`, whose SECOND is the interface of the second path, or `noq`, whose SECOND is a second address of the
//! server. `-` is for one path.

mod courser_end;
mod noq_end;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

const ALPN: &str = "bytes";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| {
        arguments
            .get(at)
            .map(String::as_str)
            .context("an argument is missing")
    };
    let folder = Path::new(argument(1)?);
    let begin = Instant::now();
    match argument(0)? {
        "identity" => {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
            std::fs::write(folder.join("cert.pem"), made.cert.pem())?;
            std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem())?;
            return Ok(());
        }
        "courser-server" => return courser_end::serve(folder, argument(2)?.parse()?).await,
        "noq-server" => return noq_end::serve(folder, argument(2)?.parse()?).await,
        client => {
            let (server, second) = (
                argument(2)?.parse()?,
                Some(argument(3)?).filter(|it| *it != "-"),
            );
            let bytes: u64 = argument(4)?.parse()?;
            match client {
                "courser-client" => courser_end::receive(folder, server, second, bytes).await?,
                "noq-client" => noq_end::receive(folder, server, second, bytes).await?,
                other => bail!("unknown role {other}"),
            }
        }
    }
    println!("{:.3}", begin.elapsed().as_secs_f64());
    Ok(())
}
