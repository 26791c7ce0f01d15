# The programs and tests that use quinn, one function each. Sourced by run.
# shellcheck shell=bash

all=(quinn h3 hickory libp2p wtransport web_transport quincy bevy_quinnet qcp msg_transport quic_reverse
    memberlist wrpc tycho salvo solana_streamer solana_client oha)

# quinn's own examples, unit tests and test of many connections.
quinn() {
    local source copy=$work/quinn-programs
    source=$(source_of quinn 0.11.12)
    rm -rf "$copy"
    mkdir -p "$copy/src"
    cp -r "$source/examples" "$source/tests" "$copy"
    rm -f "$copy/tests/post_quantum.rs"
    cp "$source/src/tests.rs" "$copy/src"
    # The unit tests are a module of quinn, and use these names of it.
    cat > "$copy/src/lib.rs" <<'END'
pub use quinn::*;
#[cfg(test)]
use std::time::{Duration, Instant};
#[cfg(test)]
mod runtime {
    pub use quinn::TokioRuntime;
}
#[cfg(test)]
mod tests;
END
    cat > "$copy/Cargo.toml" <<'END'
[package]
name = "quinn-programs"
version = "0.0.0"
edition = "2021"
[workspace]
[features]
default = ["rustls-ring"]
rustls-aws-lc-rs = []
rustls-ring = ["quinn/rustls-ring"]
[dependencies]
quinn = "0.11"
proto = { package = "quinn-proto", version = "0.11" }
rustls = { version = "0.23", default-features = false, features = ["std"] }
[dev-dependencies]
anyhow = "1"
bytes = "1"
clap = { version = "4", features = ["derive"] }
crc = "3"
directories-next = "2"
rand = "0.10.1"
rcgen = "0.14"
tokio = { version = "1", features = ["sync", "rt", "rt-multi-thread", "time", "macros"] }
tracing = "0.1"
tracing-futures = { version = "0.2", default-features = false, features = ["std-future"] }
tracing-subscriber = { version = "0.3", default-features = false, features = ["env-filter", "fmt", "ansi", "time", "local-time"] }
url = "2"
END
    patch_lines >> "$copy/Cargo.toml"
    cd "$copy"
    tests quinn --lib --test many_connections -- --include-ignored
    local log=$work/examples.log
    if ! cargo build --quiet --examples > "$log" 2>&1; then
        result quinn examples fail "$(grep -m1 '^error' "$log" || true)"
        cd "$root"
        return
    fi
    local bin=$CARGO_TARGET_DIR/debug/examples name
    for name in connection insecure_connection single_socket; do
        if timeout 20 "$bin/$name" > "$work/$name.out" 2>&1; then
            result quinn "example $name" pass ''
        else
            result quinn "example $name" fail "$(tail -1 "$work/$name.out")"
        fi
    done
    files quinn "$bin"
    cd "$root"
}

# The server of files and its client, with a Retry, and with a client that moves.
files() {
    # The programs exchange their certificate through it.
    local home=$work/home
    rm -rf "$home" "$work/www"
    mkdir -p "$home" "$work/www"
    head -c 3000000 /dev/urandom > "$work/www/file"
    HOME=$home "$2/server" "$work/www" --listen 127.0.0.1:0 --stateless-retry > "$work/server.out" 2>&1 &
    local server=$! port
    for _ in $(seq 50); do
        grep -q listening "$work/server.out" && break
        sleep 0.1
    done
    port=$(sed -n 's/.*:\([0-9]*\)$/\1/p' "$work/server.out" | head -1)
    local options
    for options in '' --rebind; do
        # shellcheck disable=SC2086
        HOME=$home timeout 20 "$2/client" "https://127.0.0.1:$port/file" --host localhost $options > "$work/got" 2> "$work/client.err" || true
        if cmp -s "$work/got" "$work/www/file"; then
            result "$1" "example client and server${options:+ $options}" pass ''
        else
            result "$1" "example client and server${options:+ $options}" fail "$(tail -1 "$work/client.err")"
        fi
    done
    kill "$server" || true
}

# The tests of hyperium's h3, which run on h3-quinn.
h3() {
    # They include it as a module, from the folder beside.
    rm -rf "$work/h3-quinn"
    cp -r "$(source_of h3-quinn 0.0.10)" "$work/h3-quinn"
    cd "$(patched h3 0.0.8)"
    tests h3 --lib --all-features -- tests::connection:: tests::request::
    cd "$root"
}

libp2p() {
    cd "$(patched libp2p-quic 0.14.0)"
    # Its other test needs a crate that is not published.
    tests libp2p-quic --features tokio --test smoke
    cd "$root"
}

# DNS over QUIC. Its test reads certificates beside the package, and uses a crate that is not published.
hickory() {
    local beside=$work/hickory
    rm -rf "$beside"
    mkdir -p "$beside/test-support/src" "$beside/tests/test-data"
    printf '[package]\nname = "test-support"\nversion = "0.0.0"\n[workspace]\n' > "$beside/test-support/Cargo.toml"
    echo 'pub fn subscribe() {}' > "$beside/test-support/src/lib.rs"
    (
        cd "$beside/tests/test-data"
        openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=ca -keyout ca.key -out ca.pem
        openssl req -newkey rsa:2048 -nodes -subj /CN=ns.example.com -keyout cert.key -out cert.csr
        openssl x509 -req -in cert.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out cert.pem \
            -extfile <(echo subjectAltName=DNS:ns.example.com)
    ) > "$work/openssl.log" 2>&1
    cd "$(patched hickory-net 0.26.3)"
    printf '\n[dev-dependencies.test-support]\npath = "%s"\n' "$beside/test-support" >> Cargo.toml
    TDNS_WORKSPACE_ROOT=$beside tests hickory-net --lib --features quic-aws-lc-rs -- quic
    cd "$root"
}

# WebTransport: the examples of client and server, which use port 4433 of [::1].
wtransport() {
    cd "$(patched wtransport 0.7.2)"
    if uses_patch wtransport; then
        local log=$work/wtransport.log
        if cargo build --quiet --features dangerous-configuration --example client --example server > "$log" 2>&1; then
            "$CARGO_TARGET_DIR/debug/examples/server" > "$work/wtransport.out" 2>&1 &
            local server=$!
            sleep 2
            if timeout 20 "$CARGO_TARGET_DIR/debug/examples/client" >> "$log" 2>&1; then
                result wtransport 'examples client and server' pass ''
            else
                result wtransport 'examples client and server' fail "$(tail -1 "$log")"
            fi
            kill "$server" || true
        else
            result wtransport build fail "$(grep -m1 '^error' "$log" || true)"
        fi
    fi
    cd "$root"
}

web_transport() {
    cd "$(patched web-transport-quinn 0.13.5)"
    tests web-transport-quinn --all-targets
    cd "$root"
}

# A VPN.
quincy() {
    cd "$(patched quincy 3.1.1)"
    if uses_patch quincy; then
        local log=$work/quincy.log
        if timeout 3600 cargo build --quiet > "$log" 2>&1; then
            result quincy build pass ''
        else
            result quincy build fail "$(grep -m1 '^error' "$log" || true)"
        fi
    fi
    cd "$root"
}

# Networking of games. It and the three below leave the provider of rustls to quinn's features.
bevy_quinnet() {
    # Its tests build the sound and the gamepads of bevy.
    local header
    for header in alsa:libasound2-dev libudev:libudev-dev; do
        if ! pkg-config --exists "${header%:*}"; then
            echo "bevy_quinnet: not run, it needs ${header%:*} (apt-get install ${header#*:})"
            return
        fi
    done
    cd "$(patched bevy_quinnet 0.20.0)"
    # It leaves a type open (E0283, with quinn too) that has two choices since the codec of tokio-util 0.7.20.
    cargo update --quiet --package tokio-util --precise 0.7.16
    # The certificate that its tests compare with a fingerprint is not published: they get another one with its own.
    local fingerprint
    mkdir -p assets/tests
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1 \
        -keyout assets/tests/key.pem.test -out assets/tests/cert.pem.test 2> "$work/openssl.log"
    fingerprint=$(openssl x509 -in assets/tests/cert.pem.test -outform der | openssl dgst -sha256 -binary | base64)
    sed -i "/^const TEST_CERT_FINGERPRINT_B64/s|\".*\"|\"$fingerprint\"|" tests/certificates.rs
    tests bevy_quinnet --tests
    cd "$root"
}

# Copies files like scp.
qcp() {
    cd "$(patched qcp 0.9.1)"
    mkdir -p "$work/home-of-nobody"
    QCP_MANPAGE_OUT_DIR=$work/home-of-nobody unprivileged tests qcp --lib
    cd "$root"
}

# Messages between services.
msg_transport() {
    cd "$(patched msg-transport 0.1.6)"
    tests msg-transport --lib --features quic -- quic::
    cd "$root"
}

# Streams that the other end opens: an edge device, which offers services, and its relay.
quic_reverse() {
    cd "$(patched quic-reverse 0.1.2)"
    tests quic-reverse --all-targets
    local log=$work/quic-reverse.out
    if cargo build --quiet --examples >> "$log" 2>&1; then
        "$CARGO_TARGET_DIR/debug/examples/relay" 127.0.0.1:18983 > "$log" 2>&1 &
        local relay=$!
        sleep 1
        timeout 5 "$CARGO_TARGET_DIR/debug/examples/edge" 127.0.0.1:18983 > "$work/quic-reverse-edge.out" 2>&1 || true
        if grep -q 'Received timestamp from edge' "$log"; then
            result quic-reverse 'examples relay and edge' pass ''
        else
            result quic-reverse 'examples relay and edge' fail "$(tail -1 "$log")"
        fi
        kill "$relay" || true
    fi
    cd "$root"
}

# Membership of clusters by gossip.
memberlist() {
    cd "$(patched memberlist-quic 0.8.5)"
    tests memberlist-quic --lib --features tokio,test
    cd "$root"
}

# Calls between WebAssembly components. Its test uses a crate that is not published, which connects two ends.
wrpc() {
    local beside=$work/wrpc-test
    rm -rf "$beside"
    mkdir -p "$beside/src"
    cat > "$beside/Cargo.toml" <<'END'
[package]
name = "wrpc-test"
version = "0.0.0"
edition = "2021"
[dependencies]
anyhow = "1"
quinn = { version = "0.11", default-features = false, features = ["runtime-tokio", "rustls-ring"] }
rcgen = "0.14"
tokio = { version = "1", features = ["macros"] }
END
    cat > "$beside/src/lib.rs" <<'END'
use std::{future::Future, net::Ipv4Addr, sync::Arc};
use quinn::rustls::{pki_types::PrivateKeyDer, RootCertStore};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig};

/// Calls a function with the two ends of a connection.
pub async fn with_quic<T, R: Future<Output = anyhow::Result<T>>>(
    run: impl FnOnce(Connection, Connection) -> R,
) -> anyhow::Result<T> {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
    let config = ServerConfig::with_single_cert(vec![own.cert.der().clone()], key)?;
    let server = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone())?;
    let mut client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let connecting = async { anyhow::Ok(client.connect(server.local_addr()?, "localhost")?.await?) };
    let accepting = async { anyhow::Ok(server.accept().await.expect("the endpoint is open").await?) };
    let (client, server) = tokio::try_join!(connecting, accepting)?;
    run(client, server).await
}
END
    cd "$(patched wrpc-transport-quic 0.6.0)"
    printf '\n[dev-dependencies.wrpc-test]\npath = "%s"\n' "$beside" >> Cargo.toml
    tests wrpc-transport-quic --test loopback
    cd "$root"
}

# The overlay network of a blockchain, with names that are keys.
tycho() {
    cd "$(patched tycho-network 1.0.0)"
    tests tycho-network --lib
    cd "$root"
}

# HTTP/3 and WebTransport of a web framework.
salvo() {
    cd "$(patched salvo_core 1.1.0)"
    tests salvo_core --features quinn --test 'h3_*'
    cd "$root"
}

# How validators of a blockchain receive transactions: limits by the stake of the client, floods included.
solana_streamer() {
    cd "$(patched solana-streamer 3.1.14)"
    tests solana-streamer --lib --features agave-unstable-api,dev-context-only-utils -- quic qos
    cd "$root"
}

# The counterpart: connections kept for many servers.
solana_client() {
    cd "$(patched solana-quic-client 3.1.14)"
    tests solana-quic-client --features agave-unstable-api --test quic_client
    cd "$root"
}

# A load generator for HTTP/3.
oha() {
    cd "$(patched oha 1.16.0)"
    tests oha --features http3 --test tests
    cd "$root"
}
