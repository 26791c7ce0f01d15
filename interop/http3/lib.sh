# What the scripts beside this file share; to be sourced. Programs and certificates that they make
# are kept under target/interop, or $CARGO_TARGET_DIR.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-target}
target=$(mkdir -p "$target" && cd "$target" && pwd)
work=$target/interop/http3
certificate=$work/certificate.pem key=$work/key.pem root=$work/root.pem
ours=$target/debug/examples/interop_http3
mkdir -p "$work"

# skip WHY: what is needed cannot be had here.
skip() {
    echo "skipped: $1" >&2
    exit 77
}

# quietly COMMAND...: its output only if it fails.
quietly() {
    local log
    log=$(mktemp "$work/log.XXXXXX")
    if ! "$@" >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm "$log"
        return 1
    fi
    rm "$log"
}

# build [PROFILE-FLAG]: our end.
build() {
    cargo build --quiet --locked --package courser --example interop_http3 "$@"
}

# certificates: a root, and a server's certificate from it for localhost.
certificates() {
    [[ ! -s $certificate ]] || return 0
    local curve=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
    quietly openssl req -x509 "${curve[@]}" -days 30 -subj '/CN=courser interop root' \
        -addext 'keyUsage=critical,keyCertSign' -keyout "$work/root.key" -out "$root"
    quietly openssl req "${curve[@]}" -subj /CN=localhost -keyout "$key" -out "$work/request.pem"
    quietly openssl x509 -req -in "$work/request.pem" -CA "$root" -CAkey "$work/root.key" \
        -CAcreateserial -days 10 -out "$certificate" -extfile <(
        echo 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1'
        echo 'basicConstraints=critical,CA:FALSE'
        echo 'keyUsage=critical,digitalSignature'
        echo 'extendedKeyUsage=serverAuth'
    )
}

# python REQUIREMENTS...: a virtual environment with these packages, its interpreter in $python.
python() {
    local environment=$work/venv-${1%%[=<>]*}
    python=$environment/bin/python
    if ! "$python" -c '' 2>/dev/null || [[ $(cat "$environment/wanted" 2>/dev/null) != "$*" ]]; then
        python3 -m venv --clear "$environment" || skip 'Python with venv is needed'
        quietly "$python" -m pip install --disable-pip-version-check "$@" ||
            skip "the package index has no $*"
        echo "$*" >"$environment/wanted"
    fi
}

# start COMMAND...: a server that says "listening on ADDRESS" first; the address is in $address.
server=
start() {
    local line output
    coproc SERVER { exec "$@" 2>"$work/server.log"; }
    server=$SERVER_PID
    output=${SERVER[0]}
    exec {output}<&"$output"
    if ! read -r -t 60 line <&"$output" || [[ $line != 'listening on '* ]]; then
        echo "the server says: ${line-nothing}" >&2
        cat "$work/server.log" >&2
        return 1
    fi
    # What else it says is of use when something goes wrong.
    cat <&"$output" >>"$work/server.log" &
    address=${line#listening on }
    port=${address##*:}
}

# stop: ends that server.
stop() {
    [[ -n $server ]] || return 0
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
}

finish() {
    local status=$?
    if [[ $status -ne 0 && $status -ne 77 && -s $work/server.log ]]; then
        sed 's/^/server: /' "$work/server.log" | tail -n 20 >&2
    fi
    stop
}
trap finish EXIT
