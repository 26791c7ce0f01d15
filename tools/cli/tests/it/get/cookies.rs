//! `--cookie` and `--cookie-jar`: cookies are stored, sent, and exchanged with curl.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use super::server::Server;
use super::{get, run};
use crate::common::{Folder, skipped};

/// Serves HTTP/1.1 without TLS. The query names the cookies to set: `/?a=1;%20Path=/&b=2`. The path
/// `/go/NAME` redirects to `/show` at that host. The content lists the cookies of the request.
struct Plain {
    port: u16,
}

impl Plain {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("accepted");
                std::thread::spawn(move || while serve(&stream, port).is_some() {});
            }
        });
        Self { port }
    }

    fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    /// Runs `courser get` with every name resolved to this server.
    fn get(&self, arguments: &[&str]) -> String {
        let rule = format!("*:{}:127.0.0.1", self.port);
        get(&[&["-s", "--resolve", &rule], arguments].concat())
    }
}

fn serve(stream: &TcpStream, port: u16) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let line = lines.next()?;
    let target = line.split(' ').nth(1).expect("a target").to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut cookies = Vec::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').expect("a field");
        if name.eq_ignore_ascii_case("cookie") {
            cookies.push(value.trim().to_owned());
        }
    }
    assert!(
        cookies.len() <= 1,
        "more than one Cookie field: {cookies:?}"
    );
    let content = format!("[{}]\n", cookies.join(""));
    let mut head = String::from("HTTP/1.1 200 OK\r\n");
    if let Some(host) = path.strip_prefix("/go/") {
        head = format!("HTTP/1.1 302 Found\r\nLocation: http://{host}:{port}/show\r\n");
    }
    for cookie in query.split('&').filter(|it| !it.is_empty()) {
        head.push_str(&format!("Set-Cookie: {}\r\n", cookie.replace("%20", " ")));
    }
    let mut stream = stream;
    write!(
        stream,
        "{head}content-length: {}\r\n\r\n{content}",
        content.len()
    )
    .ok()
}

fn read(path: &std::path::Path) -> String {
    fs::read_to_string(path).expect("a file")
}

/// Returns the cookies of a file without their expiry.
fn cookies_in(jar: &str) -> Vec<String> {
    let is_cookie = |line: &&str| line.starts_with("#HttpOnly_") || !line.starts_with('#');
    let lines = jar
        .lines()
        .filter(|line| !line.is_empty())
        .filter(is_cookie);
    let mut found: Vec<_> = lines
        .map(|line| {
            let mut parts: Vec<_> = line.split('\t').collect();
            assert_eq!(parts.len(), 7, "{line}");
            if parts[4] != "0" {
                parts[4] = "later";
            }
            parts.join(" ")
        })
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn cookies_are_sent_after_redirects_and_to_the_next_url() {
    let server = Plain::start();
    let first = server.url("a.test", "/go/a.test?x=1&y=2;%20Path=/;%20HttpOnly");
    let next = server.url("a.test", "/go/there");
    let elsewhere = server.url("b.test", "/");
    let urls = ["-L", &first, &elsewhere];
    assert_eq!(
        server.get(&[&["-b", ""], &urls[..]].concat()),
        "[y=2]\n[]\n"
    );
    assert_eq!(server.get(&urls), "[]\n[]\n", "no cookies without -b");
    // The default path of the first cookie is /go.
    let urls = ["-b", "", &first, &next];
    assert_eq!(server.get(&urls), "[]\n[x=1; y=2]\n");
    // Cookies of the command line are sent to its host only, after the others.
    let urls = ["-L", "-b", "", "-b", "mine=3", &first];
    assert_eq!(server.get(&urls), "[y=2; mine=3]\n");
    let away = server.url("a.test", "/go/b.test?z=1;%20Path=/");
    assert_eq!(server.get(&["-L", "-b", "", "-b", "mine=3", &away]), "[]\n");
    let gone = server.url("a.test", "/?y=;%20Max-Age=0;%20Path=/");
    assert_eq!(
        server.get(&["-b", "", &first, &gone, &server.url("a.test", "/go/x")]),
        "[]\n[y=2]\n[x=1]\n"
    );
}

#[test]
fn cookies_work_with_all_versions() {
    let server = Server::start();
    let (set, echo) = (server.url("/set-cookie"), server.url("/echo"));
    for flag in ["--http3-only", "--http2", "--http1.1"] {
        let trusted = ["-s", "--cacert", &server.cert, flag];
        let text = get(&[&trusted[..], &["-b", "", &set, &echo]].concat());
        assert!(text.contains("\ncookie: kept=1\n"), "{flag}: {text}");
    }
}

#[test]
fn jar_is_written_and_read() {
    let server = Plain::start();
    let folder = Folder::new();
    let path = folder.path().join("jar");
    let jar = path.to_str().expect("UTF-8");
    let set = server.url(
        "x.a.test",
        "/d/?one=1;%20Domain=a.test;%20Max-Age=1000;%20HttpOnly&two=2&three=3;%20Path=/;%20Max-Age=9",
    );
    // The file does not exist before the first run.
    assert_eq!(server.get(&["-b", jar, "-c", jar, &set]), "[]\n");
    let text = read(&path);
    assert!(text.starts_with("# Netscape HTTP Cookie File\n"), "{text}");
    let expected = [
        "#HttpOnly_.a.test TRUE /d FALSE later one 1",
        "x.a.test FALSE / FALSE later three 3",
        "x.a.test FALSE /d FALSE 0 two 2",
    ];
    assert_eq!(cookies_in(&text), expected);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "cookies are credentials");
    }
    let (here, there) = (
        server.url("x.a.test", "/d/e"),
        server.url("y.a.test", "/d/e"),
    );
    let request = |flags: &[&str]| server.get(&[flags, &[&here, &there]].concat());
    assert_eq!(request(&["-b", jar]), "[one=1; two=2; three=3]\n[one=1]\n");
    assert_eq!(request(&["-j", "-b", jar]), "[one=1; three=3]\n[one=1]\n");
    assert_eq!(read(&path), text, "-b alone writes nothing");
    // --cookie-jar alone does not read the file.
    assert_eq!(request(&["-c", jar]), "[]\n[]\n");
    assert_eq!(cookies_in(&read(&path)), Vec::<String>::new());
    let shown = server.get(&["-c", "-", &server.url("a.test", "/?x=1")]);
    assert!(
        shown.ends_with("\na.test\tFALSE\t/\tFALSE\t0\tx\t1\n"),
        "{shown}"
    );
    let left: Vec<_> = fs::read_dir(folder.path()).expect("our file").collect();
    assert_eq!(left.len(), 1, "more than the jar: {left:?}");
}

#[test]
fn cookies_are_read_from_response_headers() {
    let server = Plain::start();
    let folder = Folder::new();
    let head = folder.path().join("head");
    let head = head.to_str().expect("UTF-8");
    let set = server.url("x.a.test", "/?one=1;%20Domain=a.test&nowhere=2");
    server.get(&["-D", head, &set]);
    let there = server.url("y.a.test", "/");
    assert_eq!(server.get(&["-b", head, &there]), "[one=1]\n");
}

#[test]
fn jars_are_exchanged_with_curl() {
    if Command::new("curl").arg("-V").output().is_err() {
        skipped("curl is not installed");
        return;
    }
    let server = Plain::start();
    let folder = Folder::new();
    let path = folder.path().join("jar");
    let jar = path.to_str().expect("UTF-8");
    let rules = ["x.a.test", "y.a.test"].map(|host| format!("{host}:{}:127.0.0.1", server.port));
    let curl = |arguments: &[&str]| {
        let rules = [
            "-q",
            "-s",
            "--noproxy",
            "*",
            "--resolve",
            &rules[0],
            "--resolve",
            &rules[1],
        ];
        let output = Command::new("curl").args(rules).args(arguments).output();
        let output = output.expect("the binary starts");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    // curl ends default paths with a slash, RFC 6265 §5.1.4 does not.
    let set = server.url(
        "x.a.test",
        "/d/?one=1;%20Path=/d;%20Domain=a.test;%20Max-Age=1000;%20HttpOnly&two=%222%22;%20Path=/d&three=;%20Path=/;%20Max-Age=9",
    );
    let (here, there) = (
        server.url("x.a.test", "/d/e"),
        server.url("y.a.test", "/d/e"),
    );
    server.get(&["-c", jar, &set]);
    let ours = cookies_in(&read(&path));
    let content = server.get(&["-b", jar, &here, &there]);
    assert!(
        content.contains("one=1") && content.contains("two=%222%22"),
        "{content}"
    );
    // curl reads the file of courser, and writes the same.
    let as_set = |text: &str| {
        let mut lines = Vec::new();
        for line in text.lines() {
            let mut cookies: Vec<_> = line.trim_matches(['[', ']']).split("; ").collect();
            cookies.sort_unstable();
            lines.push(cookies.join("; "));
        }
        lines
    };
    let by_curl = curl(&["-b", jar, "-c", jar, &here, &there]);
    assert_eq!(as_set(&by_curl), as_set(&content));
    assert_eq!(cookies_in(&read(&path)), ours);
    // courser reads the file of curl.
    fs::remove_file(&path).expect("our file");
    curl(&["-c", jar, &set]);
    assert_eq!(cookies_in(&read(&path)), ours);
    let again = server.get(&["-b", jar, &here, &there]);
    assert_eq!(as_set(&again), as_set(&content));
}

#[test]
fn secure_cookies_are_not_sent_over_http() {
    let (plain, secure) = (Plain::start(), Server::start());
    let folder = Folder::new();
    let jar = folder.file(
        "jar",
        "a.test\tFALSE\t/\tTRUE\t0\tsecret\t1\na.test\tFALSE\t/\tFALSE\t0\topen\t2\n",
    );
    let url = plain.url("a.test", "/");
    assert_eq!(plain.get(&["-b", &jar, &url]), "[open=2]\n");
    let port = secure.port();
    let rule = format!("a.test:{port}:127.0.0.1");
    let url = format!("https://a.test:{port}/echo");
    let text = get(&["-s", "-k", "--resolve", &rule, "-b", &jar, &url]);
    assert!(text.contains("\ncookie: secret=1; open=2\n"), "{text}");
    // Insecure connections cannot set secure cookies.
    let (set, show) = (
        plain.url("a.test", "/?s=1;%20Secure&o=2"),
        plain.url("a.test", "/"),
    );
    assert_eq!(plain.get(&["-b", "", &set, &show]), "[]\n[o=2]\n");
}

#[test]
fn cookies_for_other_domains_are_rejected() {
    let server = Plain::start();
    let rule = format!("*:{}:127.0.0.1", server.port);
    let set = server.url(
        "x.a.co.uk",
        "/?foreign=1;%20Domain=b.co.uk&all=1;%20Domain=co.uk&below=1;%20Domain=y.x.a.co.uk\
         &near=1;%20Domain=a.co.uk&__Host-x=1",
    );
    let shows = ["x.a.co.uk", "z.a.co.uk", "b.co.uk", "y.x.a.co.uk"];
    let shows = shows.map(|host| server.url(host, "/"));
    let arguments = [
        "-v",
        "--resolve",
        &rule,
        "-b",
        "",
        &set,
        &shows[0],
        &shows[1],
        &shows[2],
        &shows[3],
    ];
    let output = run(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "[]\n[near=1]\n[near=1]\n[]\n[near=1]\n");
    let log = String::from_utf8_lossy(&output.stderr);
    for line in [
        "* Added cookie near for a.co.uk, path /",
        "'co.uk' is a public suffix",
        "'__Host-x' must be secure",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
}

#[test]
fn unusable_files_are_reported_without_failure() {
    let server = Plain::start();
    let folder = Folder::new();
    let folder = folder.path().to_str().expect("UTF-8");
    let url = server.url("127.0.0.1", "/");
    for (arguments, what) in [
        (["-b", folder], "cannot read cookies from"),
        (
            ["-c", "/no/such/folder/jar"],
            "cannot save cookies in /no/such/folder/jar",
        ),
    ] {
        let output = run(&[&arguments[..], &["-sS", &url]].concat());
        assert!(output.status.success(), "as with curl: {output:?}");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains(what) && log.lines().count() == 1, "{log}");
        let output = run(&[&arguments[..], &["-s", &url]].concat());
        assert!(output.stderr.is_empty(), "no output with --silent");
    }
}
