//! Rules of RFC 9110 about fields that the server adds to the responses of any service.

use std::time::SystemTime;

use courser_oracle::{Client, Ending, Framing, Request, Seen, Version, field, h2, h3};

use crate::frames::answer;
use crate::serving::{self, Answer};

/// Sends CONNECT and returns the response.
async fn connect(client: &mut Client) -> Seen {
    let fields = [
        field(":method", "CONNECT"),
        field(":authority", "localhost:443"),
    ];
    match client {
        Client::Http1(wire) => {
            wire.send(b"CONNECT localhost:443 HTTP/1.1\r\nhost: localhost:443\r\n\r\n")
                .await;
            let head = wire.take_until(b"\r\n\r\n").await.expect("a response");
            let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
            assert!(!head.contains("content-length"), "{head}");
            assert!(!head.contains("transfer-encoding"), "{head}");
            let mut seen = Seen::nothing(courser_oracle::End::Complete);
            seen.start = head[9..12].to_owned();
            seen
        }
        Client::Http2(connection) => {
            let stream = connection.open();
            connection.send(&h2::headers(stream, &fields, false)).await;
            loop {
                assert!(connection.step().await, "a response");
                let seen = connection.response_on(stream);
                if seen.status() > 0 {
                    return seen;
                }
            }
        }
        Client::Http3(connection) => {
            connection
                .raw(&h3::headers(&fields), Ending::Complete)
                .await
        }
    }
}

/// RFC 9110 §9.3.6: behind a 2xx response to CONNECT begins the tunnel, which is no content.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_tunnels_have_no_length() {
    let accept = async |_: http::Request<courser::server::Body>| Answer::default();
    let (gateway, _) = serving::start_function(accept, |server| server);
    for version in Version::ALL {
        let mut client = Client::connect(version, &gateway).await;
        let seen = connect(&mut client).await;
        assert_eq!(seen.status(), 200, "{version}: {seen}");
        assert_eq!(seen.framing, Framing::None, "{version}: {seen}");
    }
}

/// Returns the seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds(date: &str) -> u64 {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let number =
        |from: usize, length: usize| -> u64 { date[from..from + length].parse().expect("digits") };
    let (day, year) = (number(5, 2), number(12, 4));
    let month = MONTHS.find(&date[8..11]).expect("a month") / 3 + 1;
    let month = u64::try_from(month).expect("at most 12");
    // January and February count as the last months of the year before, so that leap days are at its end.
    let (month, year) = match month {
        1 | 2 => (month + 12, year - 1),
        _ => (month, year),
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * (month - 3) + 2) / 5 + day;
    let days = days - 719_469;
    (days * 24 + number(17, 2)) * 3600 + number(20, 2) * 60 + number(23, 2)
}

/// RFC 9110 §6.6.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dates_are_those_of_the_clock() {
    assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
    assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), 784_111_777);
    let now = || {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.expect("after 1970").as_secs()
    };
    let (gateway, _) = serving::start_function(answer, |server| server);
    for version in Version::ALL {
        let mut client = Client::connect(version, &gateway).await;
        let before = now();
        let seen = client.exchange(&Request::new("GET", "/1")).await;
        let date = seconds(&seen.get("date"));
        // hyper renews its date every second.
        assert!((before - 1..=now()).contains(&date), "{version}: {seen}");
    }
}
