//! The binary against scripted ends: the tables of `courser-oracle` through `serve --proxy`, and `get` against servers that
//! answer with any bytes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use courser::Identity;
use courser_oracle::{Gateway, Lab, cases};

use crate::common::{Folder, courser, run};

/// Starts `courser serve --proxy`.
async fn start(url: &str) -> Gateway {
    let folder = Folder::new();
    let certificates = folder.path().join("dev");
    let path = certificates.to_str().expect("UTF-8").to_owned();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--json", "--proxy", url];
    let mut command = courser(&[&arguments[..], &["--tls-dev-dir", &path]].concat());
    Gateway::process(&mut command, || {
        let (chain, key) = (certificates.join("cert.pem"), certificates.join("key.pem"));
        let identity = Identity::from_pem_files(chain, key);
        identity.expect("written by the server").certificate()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_proxy_forwards_what_it_gets() {
    let mut lab = Lab::start(start).await;
    cases::content(&mut lab).await.finish();
    cases::authorities(&mut lab).await.finish();
    cases::targets(&mut lab).await.finish();
    cases::request_fields(&mut lab).await.finish();
    cases::response_fields(&mut lab).await.finish();
    cases::same_over_all_versions(&mut lab).await.finish();
}

/// Serves one connection after the other: each request gets the next answer, and the connection ends behind it.
fn serve(answers: Vec<Vec<u8>>) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else {
                return;
            };
            // A client that waits for more than it gets is a failure of the test.
            let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !request.windows(4).any(|four| four == b"\r\n\r\n") {
                match stream.read(&mut piece) {
                    Ok(length @ 1..) => request.extend_from_slice(&piece[..length]),
                    _ => break,
                }
            }
            let _ = sender.send(String::from_utf8_lossy(&request).into_owned());
            let _ = stream.write_all(&answer);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            // Read on, so that no reset overtakes the answer.
            while matches!(stream.read(&mut piece), Ok(1..)) {}
        }
    });
    (address, requests)
}

/// An answer, and what `get` makes of it.
struct Answer {
    name: &'static str,
    bytes: Vec<u8>,
    /// The exit codes that are right.
    codes: &'static [i32],
    output: &'static str,
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn answers() -> Vec<Answer> {
    let answer = |name, bytes: &str, codes, output| Answer {
        name,
        bytes: bytes.as_bytes().to_vec(),
        codes,
        output,
    };
    let ok = |name, bytes| answer(name, bytes, &[0], "ok");
    let bad = |name, bytes| answer(name, bytes, BROKEN, "");
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let many: String = (0..300)
        .map(|number| format!("x-{number}: 1\r\n"))
        .collect();
    let long = "v".repeat(20_000);
    vec![
        ok("a length", last),
        ok(
            "chunks",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
        ),
        ok(
            "chunks in upper case",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        ok(
            "extensions of chunks",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;a=\"b\"\r\nok\r\n0\r\n\r\n",
        ),
        ok(
            "trailers",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: 1\r\n\r\n",
        ),
        ok("the end of the connection", "HTTP/1.1 200 OK\r\n\r\nok"),
        ok("HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nok"),
        ok(
            "no reason phrase",
            "HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nok",
        ),
        ok(
            "no space either",
            "HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok",
        ),
        ok(
            "a reason phrase in Latin-1",
            "HTTP/1.1 200 \u{e9}\r\ncontent-length: 2\r\n\r\nok",
        ),
        ok(
            "a folded line",
            "HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 2\r\n\r\nok",
        ),
        ok("hints", &[hints, hints, last].concat()),
        ok(
            "300 fields",
            &["HTTP/1.1 200 OK\r\n", &many, "content-length: 2\r\n\r\nok"].concat(),
        ),
        ok(
            "a long field",
            &[
                "HTTP/1.1 200 OK\r\nx: ",
                &long,
                "\r\ncontent-length: 2\r\n\r\nok",
            ]
            .concat(),
        ),
        ok(
            "more than the length",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more",
        ),
        answer(
            "204 with a length",
            "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n",
            &[0],
            "",
        ),
        answer(
            "304 with a length",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
            &[0],
            "",
        ),
        answer(
            "less than the length",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok",
            &[18],
            "ok",
        ),
        answer(
            "no last chunk",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
            &[18, 56],
            "ok",
        ),
        bad(
            "a length that is none",
            "HTTP/1.1 200 OK\r\ncontent-length: 2x\r\n\r\nok",
        ),
        bad(
            "two lengths",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
        ),
        bad(
            "another coding",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        bad(
            "101",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        ),
        bad("no HTTP", "SSH-2.0-OpenSSH_9.2\r\n"),
        bad("nothing", ""),
        bad("hints for ever", &[&hints.repeat(20_000), last].concat()),
    ]
}

/// The exit codes of curl for answers that are no HTTP: 1, 8, 43, 52, 56, 61 or 92, whichever fits.
const BROKEN: &[i32] = &[1, 8, 43, 52, 56, 61, 92];

/// Rules: 9112-028, 9112-037, 9112-042, 9112-049, 9112-053, 9112-054, 9112-056, 9112-058, 9110-016, 9110-030, 9110-063, 9110-069,
/// 9110-076, 9110-159, 8297-002.
#[test]
fn get_reads_answers_as_they_are_framed() {
    let mut wrong = Vec::new();
    for answer in answers() {
        let (address, _requests) = serve(vec![answer.bytes.clone()]);
        let begun = Instant::now();
        let output = run(&[
            "get",
            "-s",
            "--max-time",
            "15",
            &format!("http://{address}/"),
        ]);
        let code = output.status.code().unwrap_or(-1);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_late = begun.elapsed() > Duration::from_secs(14);
        if !answer.codes.contains(&code) || text != answer.output || is_late {
            wrong.push(format!(
                "{}: exit code {code}, output {text:?}",
                answer.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a server sets, and the Cookie field of the next request. Rules: 6265bis-001, 6265bis-003, 6265bis-005, 6265bis-006, 6265bis-008,
/// 6265bis-010 to 6265bis-012, 6265bis-016, 6265bis-019.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn get_sends_the_cookies_that_were_set_and_no_others() {
    const PAST: &str = "Thu, 01 Jan 1970 00:00:01 GMT";
    let long = |length: usize| "v".repeat(length);
    let cases: Vec<(&str, Vec<String>, String)> = vec![
        ("a pair", vec!["a=b".into()], "a=b".into()),
        ("spaces around", vec!["  a = b  ".into()], "a=b".into()),
        ("more equals signs", vec!["a=b=c".into()], "a=b=c".into()),
        ("quotes", vec!["a=\"b c\"".into()], "a=\"b c\"".into()),
        ("commas", vec!["a=b,c=d".into()], "a=b,c=d".into()),
        ("no name", vec!["v".into()], "v".into()),
        ("an empty name", vec!["=v".into()], "v".into()),
        ("nothing", vec!["=".into()], String::new()),
        ("no value", vec!["a=".into()], "a=".into()),
        (
            "two lines",
            vec!["a=1".into(), "b=2".into()],
            "a=1; b=2".into(),
        ),
        (
            "replaced",
            vec!["a=1".into(), "b=2".into(), "a=3".into()],
            "a=3; b=2".into(),
        ),
        (
            "longer paths first",
            vec!["a=1; Path=/".into(), "b=2; Path=/x".into()],
            "b=2; a=1".into(),
        ),
        ("another path", vec!["a=1; Path=/y".into()], String::new()),
        (
            "a part of a segment",
            vec!["a=1; Path=/x/se".into()],
            String::new(),
        ),
        ("no slash", vec!["a=1; Path=y".into()], "a=1".into()),
        ("over", vec![format!("a=1; Expires={PAST}")], String::new()),
        (
            "over, in another form",
            vec!["a=1; expires=01-Jan-70 00:00:01".into()],
            String::new(),
        ),
        (
            "to come, in another form",
            vec!["a=1; expires=Mon 10 Dec 2029 17:10:12 foo".into()],
            "a=1".into(),
        ),
        ("no date", vec!["a=1; Expires=soon".into()], "a=1".into()),
        (
            "an age of zero",
            vec!["a=1; Max-Age=0".into()],
            String::new(),
        ),
        (
            "an age beside a date",
            vec![format!("a=1; Max-Age=9; Expires={PAST}")],
            "a=1".into(),
        ),
        (
            "an age that is none",
            vec!["a=1; Max-Age=x".into()],
            "a=1".into(),
        ),
        ("an empty domain", vec!["a=1; Domain=".into()], "a=1".into()),
        (
            "another domain",
            vec!["a=1; Domain=example.org".into()],
            String::new(),
        ),
        (
            "unknown attributes",
            vec!["a=1; x; y=z;;".into()],
            "a=1".into(),
        ),
        (
            "4096 bytes",
            vec![format!("a={}", long(4095))],
            format!("a={}", long(4095)),
        ),
        (
            "more than 4096 bytes",
            vec![format!("a={}", long(4096))],
            String::new(),
        ),
        (
            "a long attribute",
            vec![format!("a=1; Path=/{}", long(1100))],
            "a=1".into(),
        ),
        (
            "__Secure- without Secure",
            vec!["__Secure-a=1".into()],
            String::new(),
        ),
        (
            "__host- in lower case",
            vec!["__host-a=1; Path=/".into()],
            String::new(),
        ),
        (
            "no name, but a prefix",
            vec!["=__Secure-a=1".into()],
            String::new(),
        ),
    ];
    let mut wrong = Vec::new();
    for (name, lines, expected) in cases {
        let mut answer =
            String::from("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n");
        for line in lines {
            answer.push_str(&format!("set-cookie: {line}\r\n"));
        }
        answer.push_str("\r\n");
        let (address, requests) = serve(vec![answer.clone().into_bytes(), answer.into_bytes()]);
        let url = |path: &str| format!("http://{address}{path}");
        let output = run(&["get", "-s", "-b", "", &url("/x/set"), &url("/x/see")]);
        assert!(output.status.success(), "{name}: {output:?}");
        let second = requests.iter().nth(1).expect("two requests");
        let mut cookies = second.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("cookie")
                .then(|| value.trim().to_owned())
        });
        let seen = cookies.next().unwrap_or_default();
        if seen != expected || cookies.next().is_some() {
            wrong.push(format!("{name}: {seen:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
