//! `courser get` against real servers: output and exit codes.

mod cookies;
mod curl;
mod moves;
mod server;
mod socks;
mod tokens;
#[cfg(target_os = "linux")]
mod warnings;

use std::process::{Command, Output, Stdio};

use crate::common;
use crate::common::{Folder, refusal};
use serde_json::Value;
use server::Server;

/// Returns the binary with `get` and these arguments, without proxies of the environment.
fn command(arguments: &[&str]) -> Command {
    let mut command = common::courser(&[&["get"], arguments].concat());
    for name in [
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "QLOGDIR",
    ] {
        command.env_remove(name);
    }
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary starts")
}

/// Runs `get`, expects success, and returns standard output.
fn get(arguments: &[&str]) -> String {
    let output = run(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn code(arguments: &[&str]) -> i32 {
    run(arguments).status.code().expect("not killed")
}

#[test]
fn body_is_on_standard_output_over_all_versions() {
    let server = Server::start();
    for (flag, version) in [
        ("--http3-only", "HTTP/3.0"),
        ("--http3", "HTTP/3.0"),
        ("--http2", "HTTP/2.0"),
        ("--http1.1", "HTTP/1.1"),
    ] {
        let output = run(&["--cacert", &server.cert, flag, &server.url("/hello")]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            error, "",
            "{flag}: nothing but the body when it is not a terminal"
        );
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.starts_with(&format!("{version} GET /hello\n")),
            "{flag}: {text}"
        );
        assert!(text.contains("user-agent: courser/"), "{flag}: {text}");
        assert!(text.contains("accept: */*"), "{flag}: {text}");
    }
}

#[test]
fn exit_codes_are_those_of_curl() {
    let server = Server::start();
    let url = server.url("/");
    let trusted = ["-s", "--cacert", &server.cert];
    let with = |arguments: &[&str]| code(&[&trusted, arguments].concat());
    assert_eq!(with(&[&url]), 0);
    assert_eq!(with(&["ftp://localhost/"]), 1);
    assert_eq!(with(&["http://"]), 3);
    assert_eq!(with(&["--http3-only", "http://127.0.0.1:1/"]), 3);
    assert_eq!(with(&["--http3-only", "-x", "http://127.0.0.1:1", &url]), 3);
    assert_eq!(with(&["https://no-such-host.invalid/"]), 6);
    let closed = server::unused_port();
    assert_eq!(with(&[&format!("https://localhost:{closed}/")]), 7);
    assert_eq!(
        with(&["--http3-only", &format!("https://localhost:{closed}/")]),
        7
    );
    assert_eq!(with(&["-f", &server.url("/status/404")]), 22);
    assert_eq!(with(&["--fail-with-body", &server.url("/status/503")]), 22);
    assert_eq!(with(&[&server.url("/status/404")]), 0);
    assert_eq!(with(&["-o", "/no/such/folder/x", &url]), 23);
    assert_eq!(with(&["-d", "@/no/such/file", &url]), 26);
    assert_eq!(with(&["-m", "0.3", &server.url("/slow")]), 28);
    assert_eq!(
        with(&["--http3-only", "-m", "0.3", &server.url("/slow")]),
        28
    );
    assert_eq!(with(&["-L", &server.url("/circle")]), 47);
    assert_eq!(with(&["-L", &server.url("/to-a-file")]), 1);
    assert_eq!(with(&[&server.url("/to-a-file")]), 0);
    assert_eq!(with(&["--max-filesize", "10", &server.url("/big")]), 63);
    assert_eq!(code(&["-s", &url]), 60);
    assert_eq!(code(&["-s", "--http3-only", &url]), 60);
    assert_eq!(code(&["-s", "-k", &url]), 0);
    assert_eq!(code(&["-s", "--cacert", "/no/such/file", &url]), 77);
    let plain = server::raw(b"");
    assert_eq!(code(&["-s", &format!("http://127.0.0.1:{plain}/")]), 52);
    assert_eq!(code(&["-s", &format!("https://127.0.0.1:{plain}/")]), 35);
    let cut = server::raw(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n123");
    assert_eq!(code(&["-s", &format!("http://127.0.0.1:{cut}/")]), 18);
}

#[test]
fn quic_timeout_has_its_own_exit_code() {
    let hole = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = hole.local_addr().expect("bound").port();
    let url = format!("https://127.0.0.1:{port}/");
    assert_eq!(
        code(&["-s", "-k", "--http3-only", "--connect-timeout", "0.5", &url]),
        28
    );
}

#[test]
fn errors_are_one_line_with_advice() {
    let server = Server::start();
    let line = refusal(&["get", "-s", "-S", &server.url("/")]);
    assert!(
        line.starts_with("courser: (60)") && line.contains("not trusted"),
        "{line}"
    );
    let line = refusal(&["get", "http://a/[9-1]"]);
    assert!(
        line.contains("[9-1]") && line.contains("--globoff"),
        "{line}"
    );
    let line = refusal(&["get", "--resolve", "nonsense", "http://a/"]);
    assert!(line.contains("host:port:address"), "{line}");
    let output = run(&["-s", &server.url("/")]);
    assert!(output.stderr.is_empty(), "no output with --silent");
}

#[test]
fn heads_are_written_as_the_flags_say() {
    let server = Server::start();
    let folder = Folder::new();
    let dumped = folder.file("head", "");
    let text = get(&[
        "-i",
        "-D",
        &dumped,
        "--cacert",
        &server.cert,
        &server.url("/hello"),
    ]);
    let head = std::fs::read_to_string(&dumped).expect("written");
    assert!(text.starts_with(&head), "{head} {text}");
    assert!(
        head.starts_with("HTTP/2 200 \r\n") && head.ends_with("\r\n\r\n"),
        "{head:?}"
    );
    let text = get(&["-I", "--cacert", &server.cert, &server.url("/hello")]);
    assert!(
        text.starts_with("HTTP/2 200 \r\n") && text.ends_with("\r\n\r\n"),
        "{text:?}"
    );
    let output = run(&[
        "-sv",
        "--http3-only",
        "--cacert",
        &server.cert,
        "-u",
        "a:b",
        &server.url("/hello"),
    ]);
    let log = String::from_utf8_lossy(&output.stderr);
    for line in [
        "* Trying udp 127.0.0.1",
        "> GET /hello HTTP/3",
        "< HTTP/3 200",
    ] {
        assert!(
            log.lines().any(|seen| seen.starts_with(line)),
            "{line}: {log}"
        );
    }
    assert!(!log.contains("YTpi"), "credentials stay out of logs: {log}");
}

#[test]
fn interim_responses_are_shown() {
    let server = Server::start();
    let plain = server::raw(
        b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n\
          HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
    );
    let plain = format!("http://127.0.0.1:{plain}/");
    let hints = server.url("/hints");
    let trusted = ["-s", "--cacert", &server.cert];
    for (arguments, version, reason) in [
        (["--http3-only", &hints], "HTTP/3", ["", ""]),
        (["--http1.1", &plain], "HTTP/1.1", ["Early Hints", "OK"]),
    ] {
        let heads = format!(
            "{version} 103 {}\r\nlink: </style.css>\r\n\r\n{version} 200 {}\r\n",
            reason[0], reason[1]
        );
        let text = get(&[&trusted[..], &["-i"], &arguments].concat());
        assert!(text.starts_with(&heads), "{text:?}");
        let text = get(&[&trusted[..], &["-D", "-", "-o", "/dev/null"], &arguments].concat());
        assert!(text.starts_with(&heads), "{text:?}");
        let output = run(&[&trusted[..], &["-v"], &arguments].concat());
        let log = String::from_utf8_lossy(&output.stderr);
        let lines = format!("< {version} 103\n< link: </style.css>\n< \n< {version} 200\n");
        assert!(log.contains(&lines), "{log}");
        let body = String::from_utf8_lossy(&output.stdout);
        assert!(!body.contains("103"), "{body}");
    }
}

#[test]
fn variables_are_written_after_the_transfer() {
    let server = Server::start();
    let format = "%{http_version} %{response_code} %{size_download} %{num_connects} %{remote_ip} \
                  %{method} %{scheme} %header{x-kind}\\n";
    for (flag, version) in [
        ("--http3-only", "3"),
        ("--http2", "2"),
        ("--http1.1", "1.1"),
    ] {
        let written = get(&[
            "-s",
            "-o",
            "/dev/null",
            "-w",
            format,
            flag,
            "--cacert",
            &server.cert,
            &server.url("/big"),
        ]);
        assert_eq!(
            written,
            format!("{version} 200 1000000 1 127.0.0.1 GET https test\n")
        );
    }
    let all = get(&[
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{json}",
        "--http3-only",
        "--cacert",
        &server.cert,
        &server.url("/big"),
    ]);
    let all: Value = serde_json::from_str(&all).expect("JSON");
    let time = |name: &str| {
        all[name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {all}"))
    };
    assert!(time("time_connect") > 0.0);
    assert!(time("time_connect") <= time("time_appconnect"));
    assert!(time("time_appconnect") <= time("time_starttransfer"));
    assert!(time("time_starttransfer") <= time("time_total"));
    assert!(
        all["quic_rtt"].as_f64().is_some_and(|rtt| rtt > 0.0),
        "{all}"
    );
}

#[test]
fn quic_version_is_chosen_and_shown() {
    let server = Server::start();
    let url = server.url("/hello");
    for (flags, version) in [(&[][..], "1"), (&["--quic-version", "2"], "2")] {
        let common = ["--http3-only", "--cacert", &server.cert, &url];
        let write = ["-s", "-o", "/dev/null", "-w", "%{quic_version}"];
        let written = get(&[&common[..], &write, flags].concat());
        assert_eq!(written, version, "{flags:?}");
        let timed = ["-s", "-o", "/dev/null", "--timing"];
        let chart = get(&[&common[..], &timed, flags].concat());
        let line = format!("QUIC version {version}: rtt");
        assert!(chart.contains(&line), "{flags:?}: {chart}");
    }
}

#[test]
fn timing_is_not_mixed_with_the_body() {
    let server = Server::start();
    let url = server.url("/hello");
    let common = ["-s", "--http3-only", "--cacert", &server.cert, &url];
    let chart = get(&[&common[..], &["--timing", "-o", "/dev/null"]].concat());
    for word in ["QUIC and TLS", "server", "content", "total", "rtt"] {
        assert!(chart.contains(word), "{word}: {chart}");
    }
    let output = run(&[&common[..], &["--timing"]].concat());
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("HTTP/3.0 GET"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("QUIC and TLS"));
    let document = get(&[&common[..], &["--timing-json", "-o", "/dev/null"]].concat());
    let document: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["attempts"][0]["outcome"], "won", "{document}");
    assert_eq!(document["attempts"][0]["transport"], "udp", "{document}");
}

/// Steps of attempts that lost the race are not part of the sum.
#[test]
fn steps_add_up_to_the_total() {
    let server = Server::start();
    let closed = format!("https://localhost:{}/", server::unused_port());
    let (plain, redirected) = (server.url("/hello"), server.url("/moved"));
    for arguments in [
        &["--http3", &plain][..],
        &["--http2", &plain],
        &["--http1.1", &plain],
        &["--http2", "-L", &redirected],
        &["--http2", &closed],
        // The second transfer uses the connection of the first.
        &["--http2", &plain, &plain, "-o", "/dev/null"],
    ] {
        let common = [
            "-s",
            "--timing-json",
            "--cacert",
            &server.cert,
            "-o",
            "/dev/null",
        ];
        let output = run(&[&common[..], arguments].concat());
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(!text.is_empty(), "{arguments:?}");
        for line in text.lines() {
            let document: Value = serde_json::from_str(line).expect("JSON");
            let mut at = 0.0;
            for step in document["steps"].as_array().expect("a list") {
                if step["is_aside"] == false {
                    assert_eq!(step["from_ms"].as_f64(), Some(at), "{arguments:?}: {step}");
                    at = step["to_ms"].as_f64().expect("a number");
                }
            }
            assert!(at > 0.0, "{arguments:?}: {document}");
            assert_eq!(document["total_ms"].as_f64(), Some(at), "{arguments:?}");
        }
    }
}

#[test]
fn flags_are_read_from_a_file() {
    let server = Server::start();
    let folder = Folder::new();
    let text = format!(
        "# what all requests share\n\ncacert = {}\n--silent\nheader = \"x-blank: a b\"\n\
         -X PUT\nuser-agent: file\nurl = \"{}\"\n",
        server.cert,
        server.url("/echo")
    );
    let file = folder.file("flags", &text);
    let output = get(&["-K", &file]);
    assert!(output.contains("PUT /echo"), "{output}");
    assert!(output.contains("x-blank: a b"), "{output}");
    // The last of several flags counts.
    let output = get(&["--http2", &format!("-sK{file}"), "-A", "line"]);
    assert!(output.contains("user-agent: line"), "{output}");
    let output = get(&["-A", "line", &format!("--config={file}")]);
    assert!(output.contains("user-agent: file"), "{output}");
    let wrong = folder.file("wrong", "silent\nno-such-flag = 1\n");
    let output = refusal(&["get", "-K", &wrong]);
    assert!(
        output.contains("line 2") && output.contains("no-such-flag"),
        "{output}"
    );
    assert_eq!(code(&["-K", "/no/such/file"]), 26);
}

#[test]
fn flags_change_the_request() {
    let server = Server::start();
    let url = server.url("/echo");
    let folder = Folder::new();
    let file = folder.file("data.txt", "line one\nline two\n");
    let request =
        |arguments: &[&str]| get(&[&["-s", "--cacert", &server.cert, &url], arguments].concat());
    let text = request(&["-d", "a=1", "-d", "b=2"]);
    assert!(
        text.contains("POST /echo") && text.ends_with("\n\na=1&b=2"),
        "{text}"
    );
    assert!(
        text.contains("content-type: application/x-www-form-urlencoded"),
        "{text}"
    );
    assert!(text.contains("content-length: 7"), "{text}");
    assert!(request(&["-d", &format!("@{file}")]).ends_with("\n\nline oneline two"));
    assert!(request(&["--data-binary", &format!("@{file}")]).ends_with("\n\nline one\nline two\n"));
    let text = request(&["-T", &file]);
    assert!(
        text.contains("PUT /echo") && text.ends_with("line two\n"),
        "{text}"
    );
    assert!(text.contains("content-length: 18"), "{text}");
    let text = request(&["-F", "a=1", "-F", &format!("f=@{file};type=text/plain")]);
    assert!(text.contains("multipart/form-data; boundary="), "{text}");
    assert!(
        text.contains("name=\"f\"; filename=\"data.txt\"\r\nContent-Type: text/plain"),
        "{text}"
    );
    let text = request(&[
        "-X", "PURGE", "-H", "X-A: 1", "-H", "Accept:", "-A", "me", "-e", "there", "-u", "a:b",
        "-b", "c=d",
    ]);
    for line in [
        "PURGE /echo",
        "x-a: 1",
        "user-agent: me",
        "referer: there",
        "authorization: Basic YTpi",
        "cookie: c=d",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("accept:"), "{text}");
    assert!(request(&["-G", "-d", "q=1"]).contains("GET /echo?q=1"));
    assert!(request(&["-r", "0-3"]).contains("range: bytes=0-3"));
    let mut child = command(&["-s", "--cacert", &server.cert, "-T", "-", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), b"from a pipe")
        .expect("read");
    let output = child.wait_with_output().expect("an exit status");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("from a pipe"));
}

#[test]
fn redirects_are_followed_with_a_flag() {
    let server = Server::start();
    let url = server.url("/moved");
    let request =
        |arguments: &[&str]| get(&[&["-s", "--cacert", &server.cert, &url], arguments].concat());
    assert_eq!(
        request(&["-w", "%{response_code}", "-o", "/dev/null"]),
        "302"
    );
    let format = "%{num_redirects} %{url_effective} %{num_connects}";
    let written = request(&["-L", "-w", format, "-o", "/dev/null"]);
    assert_eq!(written, format!("1 {} 1", server.url("/echo")));
    assert!(request(&["-L", "-d", "x"]).contains("GET /echo"));
    assert!(request(&["-L", "-d", "x", "-X", "POST"]).contains("POST /echo"));
    let both = request(&["-L", "-i"]);
    assert!(
        both.starts_with("HTTP/2 302 ") && both.contains("HTTP/2 200 "),
        "{both}"
    );
}

#[test]
fn responses_of_several_urls_are_written_to_files() {
    let server = Server::start();
    let folder = Folder::new();
    let marker = folder.file("marker", "");
    let directory = std::path::Path::new(&marker).parent().expect("a folder");
    let directory = directory.to_str().expect("UTF-8");
    let read = |name: &str| std::fs::read_to_string(format!("{directory}/{name}")).expect(name);
    let pattern = server.url("/{a,b}/[1-3]");
    for parallel in [&[][..], &["-Z", "--parallel-max", "2"]] {
        let arguments = [
            &[
                "-s",
                "--http3-only",
                "--cacert",
                &server.cert,
                "--output-dir",
                directory,
                "-o",
                "#1_#2.txt",
                &pattern,
            ],
            parallel,
        ];
        get(&arguments.concat());
        for (letter, number) in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3)] {
            let name = format!("{letter}_{number}.txt");
            assert!(
                read(&name).contains(&format!("GET /{letter}/{number}\n")),
                "{name}"
            );
            std::fs::remove_file(format!("{directory}/{name}")).expect("our file");
        }
    }
    get(&[
        "-s",
        "-O",
        "--output-dir",
        directory,
        "--cacert",
        &server.cert,
        &server.url("/x/named.txt?q"),
    ]);
    assert!(read("named.txt").contains("GET /x/named.txt"));
    get(&[
        "-s",
        "-O",
        "-J",
        "--output-dir",
        directory,
        "--cacert",
        &server.cert,
        &server.url("/attachment"),
    ]);
    assert!(read("chosen.txt").contains("GET /attachment"));
    let again = [
        "-s",
        "-O",
        "-J",
        "--output-dir",
        directory,
        "--cacert",
        &server.cert,
        &server.url("/attachment"),
    ];
    assert_eq!(code(&again), 23, "a server must not overwrite a file");
}

#[test]
fn downloads_are_resumed() {
    let server = Server::start();
    let folder = Folder::new();
    let file = folder.file("part", &"x".repeat(400_000));
    let resume = |path: &str| {
        code(&[
            "-s",
            "-C",
            "-",
            "-o",
            &file,
            "--cacert",
            &server.cert,
            &server.url(path),
        ])
    };
    assert_eq!(resume("/ranges"), 0);
    assert_eq!(std::fs::metadata(&file).expect("a file").len(), 1_000_000);
    assert_eq!(resume("/ranges"), 0, "complete already");
    assert_eq!(std::fs::metadata(&file).expect("a file").len(), 1_000_000);
    std::fs::write(&file, "short").expect("our file");
    assert_eq!(resume("/big"), 33, "the server does not support ranges");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "short");
}

/// curl refuses these two flags too, with the same exit code.
#[test]
fn files_that_the_server_names_are_not_resumed() {
    let server = Server::start();
    let folder = Folder::new();
    let file = folder.file("chosen.txt", "mine");
    let directory = folder.path().to_str().expect("UTF-8");
    for offset in ["-", "4"] {
        let output = run(&[
            "-sSOJ",
            "-C",
            offset,
            "--output-dir",
            directory,
            "--cacert",
            &server.cert,
            &server.url("/attachment"),
        ]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "-C {offset}: {error}");
        let names_both = error.contains("--remote-header-name") && error.contains("--continue-at");
        assert!(names_both, "{error}");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "mine");
}

#[test]
fn credentials_stay_out_of_verbose_output() {
    let server = Server::start();
    for version in ["--http1.1", "--http2", "--http3-only"] {
        for (flags, field) in [
            (&["--oauth2-bearer", "s3cret"][..], "> authorization: "),
            (&["-H", "Authorization: Bearer s3cret"], "> authorization: "),
            (
                &["-H", "Proxy-Authorization: s3cret"],
                "> proxy-authorization: ",
            ),
            (&["-b", "a=s3cret"], "> cookie: "),
            (&["-H", "Cookie: a=s3cret"], "> cookie: "),
        ] {
            let url = server.url("/hello");
            let common = ["-sv", version, "--cacert", &server.cert, &url];
            let output = run(&[&common[..], flags].concat());
            let log = String::from_utf8_lossy(&output.stderr);
            assert!(!log.contains("s3cret"), "{version} {flags:?}: {log}");
            let line = format!("{field}[redacted]");
            assert!(
                log.lines().any(|seen| seen == line),
                "{version} {flags:?}: {log}"
            );
            let sent = String::from_utf8_lossy(&output.stdout);
            assert!(sent.contains("s3cret"), "{version} {flags:?}: {sent}");
        }
        // The second request sends the cookie of the first response.
        let urls = [server.url("/set-cookie"), server.url("/hello")];
        let common = ["-sv", version, "-b", "", "--cacert", &server.cert];
        let output = run(&[&common[..], &[&urls[0], &urls[1]]].concat());
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(!log.contains("kept=1"), "{version}: {log}");
        for line in ["< set-cookie: [redacted]", "> cookie: [redacted]"] {
            assert!(log.lines().any(|seen| seen == line), "{version}: {log}");
        }
    }
}

#[test]
fn requests_to_busy_servers_are_repeated() {
    let server = Server::start();
    let arguments = [
        "-s",
        "--retry",
        "3",
        "--retry-delay",
        "0.05",
        "--cacert",
        &server.cert,
    ];
    let url = server.url("/busy");
    let text = get(&[&arguments[..], &["-w", " %{num_retries}", &url]].concat());
    assert!(text.contains("GET /busy") && text.ends_with(" 2"), "{text}");
    assert!(
        !text.contains("too busy"),
        "content of a failed attempt: {text}"
    );
}

#[test]
fn compressed_content_is_decoded_and_errors_reported() {
    let server = Server::start();
    let text = get(&[
        "-s",
        "--compressed",
        "--cacert",
        &server.cert,
        &server.url("/gzip"),
    ]);
    assert_eq!(text, "hello hello hello");
    let broken = server.url("/broken-gzip");
    assert_eq!(
        code(&["-s", "--compressed", "--cacert", &server.cert, &broken]),
        61
    );
}

#[test]
fn alt_svc_cache_is_kept_in_a_file() {
    let server = Server::start();
    let folder = Folder::new();
    let file = folder.file("alt-svc", "");
    let mut versions = Vec::new();
    for _ in 0..2 {
        versions.push(get(&[
            "-s",
            "--alt-svc",
            &file,
            "-o",
            "/dev/null",
            "-w",
            "%{http_version}",
            "--cacert",
            &server.cert,
            &server.url("/announce"),
        ]));
    }
    assert_eq!(versions, ["2", "3"]);
    let text = std::fs::read_to_string(&file).expect("written");
    assert!(text.contains("h2 localhost "), "{text}");
}

#[test]
fn traces_are_written() {
    let server = Server::start();
    let folder = Folder::new();
    let marker = folder.file("marker", "");
    let directory = std::path::Path::new(&marker).parent().expect("a folder");
    let traces = directory.join("traces");
    let path = traces.to_str().expect("UTF-8");
    get(&[
        "-s",
        "--http3-only",
        "--qlog",
        path,
        "--cacert",
        &server.cert,
        &server.url("/hello"),
    ]);
    let count = std::fs::read_dir(&traces).expect("a folder").count();
    assert_eq!(count, 1);
}
