# shellcheck shell=bash disable=SC2034 # What is set here is used by them.
# What the scripts beside this file share; to be sourced. Programs and certificates that they make
# are kept under target/interop, or $CARGO_TARGET_DIR.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-target}
target=$(mkdir -p "$target" && cd "$target" && pwd)
work=$target/interop/http3
certificate=$work/certificate.pem key=$work/key.pem root=$work/root.pem
ours=${OURS:-$target/debug/examples/interop_http3}
courser=${COURSER:-$target/debug/courser}
site=$work/site
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

# binary: the binary `courser`, in $courser; $COURSER names another one.
binary() {
    [[ -n ${COURSER-} ]] || cargo build --quiet --locked --package courser-cli
    get=("$courser" get --http3-only --ipv4 --cacert "$root" --silent --show-error)
}

# build: the library's own end, in $ours, for what the binary is not made for; $OURS names another.
build() {
    [[ -n ${OURS-} ]] || cargo build --quiet --locked --package courser --example interop_http3
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

# site SIZE...: files of 0 to 999 bytes and of these sizes in $site/bytes, each the beginning of the
# same endless pattern.
site() {
    mkdir -p "$site/bytes"
    python3 - "$site/bytes" "$@" <<'PYTHON'
import os, sys
block = bytes((n * 7 + (n >> 8)) & 0xFF for n in range(65521))
folder, sizes = sys.argv[1], map(int, sys.argv[2:])
for size in [*range(1000), *sizes]:
    path = f"{folder}/{size}"
    if os.path.exists(path) and os.path.getsize(path) == size:
        continue
    with open(path + ".part", "wb") as file:
        whole, rest = divmod(size, len(block))
        for _ in range(whole):
            file.write(block)
        file.write(block[:rest])
    os.rename(path + ".part", path)
PYTHON
}

# launch COMMAND...: in the background, until `stop`; its process is $server, what it says is in $log.
servers=() logs=()
launch() {
    log=$(mktemp "$work/server.XXXXXX")
    logs+=("$log")
    "$@" >"$log" 2>&1 &
    server=$!
    servers+=("$server")
}

# heard PATTERN: waits for the server to say this, and prints it.
heard() {
    for _ in {1..600}; do
        grep -m 1 -oE "$1" "$log" && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo "the server has not said '$1'" >&2
    return 1
}

# free_port: one for a server that cannot choose for itself.
free_port() {
    python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start COMMAND...: a server that says "listening on ADDRESS", or as `courser serve --json` does;
# the address is in $address, its port in $port.
start() {
    local said
    launch "$@"
    said=$(heard '^listening on [^ ]+|"addresses":\["[^"]+')
    address=${said##*[ \"]}
    port=${address##*:}
}

# serve [OPTIONS...]: `courser serve` on loopback with our certificate; $listen chooses a port.
serve() {
    start "$courser" serve --json --no-tcp --no-compress --listen "${listen:-127.0.0.1:0}" \
        --cert "$certificate" --key "$key" "$@"
}

# serve_both: `courser serve` twice. Files are at $port, by $server; at $uploads a server behind
# `--proxy` tells length and hash of what is sent, as the binary keeps nothing itself.
serve_both() {
    start python3 interop/http3/backend.py
    serve --proxy "http://$address"
    uploads=$port
    serve "$site"
}

# stop: ends all of them.
stop() {
    [[ ${#servers[@]} == 0 ]] || {
        kill "${servers[@]}" && wait "${servers[@]}"
    } 2>/dev/null || true
    [[ ${#logs[@]} == 0 ]] || rm -f "${logs[@]}"
    servers=() logs=()
}

finish() {
    local status=$? log
    if [[ $status -ne 0 && $status -ne 77 ]]; then
        for log in "${logs[@]}"; do
            sed 's/^/server: /' "$log" | tail -n 20 >&2
        done
    fi
    stop
}
trap finish EXIT

# expect WHAT SEEN EXPECTED
expect() {
    [[ $2 == "$3" ]] || { echo "$1: $2, expected $3" >&2; return 1; }
}

hash_of() {
    sha256sum "$1" | cut -d ' ' -f 1
}

# down PORT SIZE: `courser get` of the file of that size.
down() {
    local seen began=$EPOCHREALTIME
    seen=$("${get[@]}" --fail -o - "https://localhost:$1/bytes/$2" | sha256sum)
    expect 'hash of what was received' "${seen%% *}" "$(hash_of "$site/bytes/$2")"
    echo "$2 bytes down in $(since "$began") s, the hashes agree"
}

# up PORT SIZE: `courser get` sends that file to a server that tells length and hash.
up() {
    local seen began=$EPOCHREALTIME
    seen=$("${get[@]}" --fail -o - -X POST -T "$site/bytes/$2" "https://localhost:$1/hash")
    expect 'what was sent' "$seen" "$2 $(hash_of "$site/bytes/$2")"
    echo "$2 bytes up in $(since "$began") s, the hashes agree"
}

since() {
    awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }'
}

# not_there PORT
not_there() {
    local seen
    seen=$("${get[@]}" -o - -w '%{http_code}' "https://localhost:$1/not/there")
    expect 'status of what is not there' "${seen: -3}" 404
}

# at_once PORT COUNT [FIRST]: so many short requests of `courser get` on one connection, 300 at a
# time (it takes no more, like curl), each answer compared. COUNT is up to 1000, or so many
# thousands; the shortest answer has FIRST bytes.
at_once() {
    local first=${3:-0} rounds=1 round seen folder
    local last=$((first + $2 - 1))
    [[ $2 -lt 1000 ]] || { last=999; rounds=$(($2 / 1000)); }
    folder=$(mktemp -d "$work/got.XXXXXX")
    local began=$EPOCHREALTIME
    "${get[@]}" --fail --parallel --parallel-max 300 -o "$folder/#1.#2" -w '%{http_version} %{num_connects}\n' \
        "https://localhost:$1/bytes/[$first-$last]?[1-$rounds]" >"$folder/versions"
    seen=$(since "$began")
    expect 'answers over HTTP/3' "$(grep -c '^3 ' "$folder/versions")" "$2"
    expect 'connections' "$(awk '{ all += $2 } END { print all }' "$folder/versions")" 1
    for ((round = 1; round <= rounds; round++)); do
        (cd "$site/bytes" && seq "$first" "$last" | xargs sha256sum) | sed "s/\$/.$round/" |
            (cd "$folder" && sha256sum --check --strict --quiet)
    done
    rm -r "$folder"
    echo "$2 requests, up to 300 at a time, in $seen s, the hashes agree"
}

# ask PORT UPLOADS SIZE COUNT: all four.
ask() {
    down "$1" "$3"
    up "$2" "$3"
    not_there "$1"
    at_once "$1" "$4"
}
