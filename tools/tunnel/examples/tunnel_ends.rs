//! The ends of courser for `interop/tunnel/run`, without the command line.
//!
//! ```text
//! tunnel_ends proxy ADDRESS CERTIFICATE KEY POOL...     a proxy of IP, which prints its warnings
//! tunnel_ends client PROXY ROOT DEVICE ROUTE...         a tunnel, until SIGINT
//! ```

#[cfg(target_os = "linux")]
mod ends {
    use std::path::PathBuf;
    use std::time::Duration;

    use courser::masque::{self, IpProxy, Policy, Prefix};
    use courser::{Identity, Side, h3};
    use courser_measure::tls::Trust;
    use courser_tunnel::{Config, Wishes, ip_transport, serve_ip, template};

    type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

    #[tokio::main]
    pub(crate) async fn main() -> Result {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match arguments.as_slice() {
            ["proxy", address, certificate, key, pool @ ..] => {
                proxy(
                    address,
                    Identity::from_pem_files(certificate, key)?,
                    &prefixes(pool)?,
                )
                .await
            }
            ["client", proxy, root, device, routes @ ..] => {
                let config = Config {
                    template: template(proxy)?,
                    trust: Trust::File(PathBuf::from(root)),
                    headers: Vec::new(),
                    name: Some((*device).to_owned()),
                    wishes: Wishes {
                        routes: prefixes(routes)?,
                        ..Wishes::default()
                    },
                    timeout: Duration::from_secs(10),
                };
                let mut report = |event: courser_tunnel::Event| println!("{event}");
                tokio::select! {
                    result = courser_tunnel::run(&config, &mut report) => Ok(result?),
                    _ = tokio::signal::ctrl_c() => Ok(()),
                }
            }
            _ => Err("see the comment at the beginning of the source".into()),
        }
    }

    async fn proxy(address: &str, identity: Identity, pool: &[Prefix]) -> Result {
        let network = serve_ip(pool, Some("courser1"))?;
        for warning in &network.warnings {
            println!("{warning}");
        }
        // The target of a test has a private address. Packets without ports, such as pings, have port 0.
        let mut policy = Policy::public_only();
        for prefix in ["10.0.0.0/8", "198.18.0.0/15", "fd00::/8"] {
            policy = policy.allow(prefix.parse()?, 0..=65_535);
        }
        let service = IpProxy::new(pool.to_vec(), policy, network.device)
            .open_to_all()
            .path("/vpn")?;
        let mut settings = h3::Config::new(Side::Server);
        masque::enable(&mut settings, Side::Server);
        let server = courser::serve(address, identity)
            .config(settings)
            .transport(ip_transport())
            .bind()?;
        println!("listening on {}", server.local_addr());
        server.service(service).await?;
        Ok(())
    }

    fn prefixes(texts: &[&str]) -> Result<Vec<Prefix>> {
        Ok(texts
            .iter()
            .map(|it| it.parse())
            .collect::<std::result::Result<_, _>>()?)
    }
}

#[cfg(target_os = "linux")]
fn main() {
    if let Err(error) = ends::main() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("TUN devices of Linux only");
}
