//! The records of HTTP/3 and QPACK that sinks of connections receive.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use courser::telemetry::{
    Detail, Http3Frame, Http3Record, Http3StreamType, QpackRecord, Record, Sink,
};
use courser::{Connection, h3};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};

use super::{full, tower_of};
use crate::common::pair;

/// Keeps the records of HTTP/3 and QPACK.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Record>>>);

struct Keeping(Kept, Detail);

impl Sink for Keeping {
    fn record(&mut self, _now: courser_base::Time, record: &Record) {
        if matches!(record, Record::Http3(_) | Record::Qpack(_)) {
            let Kept(records) = &self.0;
            records.lock().expect("no panic").push(record.clone());
        }
    }

    fn detail(&self) -> Detail {
        self.1
    }
}

impl Kept {
    fn attach(&self, connection: &Connection, detail: Detail) {
        connection.set_sink(Some(Box::new(Keeping(self.clone(), detail))));
    }

    fn all(&self) -> Vec<Record> {
        self.0.lock().expect("no panic").clone()
    }

    fn http3(&self) -> Vec<Http3Record> {
        let records = self.all().into_iter();
        let http3 = records.filter_map(|record| match record {
            Record::Http3(record) => Some(record),
            _ => None,
        });
        http3.collect()
    }

    /// Describes the records of a stream.
    fn of_stream(&self, wanted: u64) -> Vec<String> {
        let records = self.http3().into_iter();
        let texts = records.filter_map(|record| match record {
            Http3Record::StreamTypeSet {
                by_peer,
                stream,
                stream_type,
            } => (stream == wanted).then(|| format!("{stream_type:?} {by_peer}")),
            Http3Record::FrameCreated { stream, frame } => {
                (stream == wanted).then(|| format!("created {}", describe(&frame)))
            }
            Http3Record::FrameParsed { stream, frame } => {
                (stream == wanted).then(|| format!("parsed {}", describe(&frame)))
            }
            Http3Record::PriorityUpdated { stream, new, .. } => {
                (stream == wanted).then(|| format!("priority {new}"))
            }
            _ => None,
        });
        texts.collect()
    }
}

fn describe(frame: &Http3Frame) -> String {
    let Http3Frame::Headers { section, .. } = frame else {
        return format!("{frame:?}");
    };
    let text = String::from_utf8_lossy;
    let lines = section.fields.iter().map(|field| {
        let value = field.value.as_deref().map_or("hidden".into(), text);
        format!("{}={value}", text(&field.name))
    });
    lines.collect::<Vec<_>>().join(" ")
}

fn request() -> Request<Full<Bytes>> {
    Request::post("https://localhost/form?a=b")
        .header("authorization", "Basic c2VjcmV0")
        .header("priority", "u=1")
        .body(Full::new(Bytes::from_static(b"content")))
        .expect("a request")
}

async fn respond(request: Request<h3::Body>) -> super::Answer {
    let len = request
        .into_body()
        .collect()
        .await
        .expect("complete")
        .to_bytes()
        .len();
    let mut response = Response::new(full(vec![b'r'; 3 * len]));
    *response.status_mut() = StatusCode::CREATED;
    let cookie = http::HeaderValue::from_static("id=secret");
    response.headers_mut().insert("set-cookie", cookie);
    let date = http::HeaderValue::from_static("today");
    response.headers_mut().insert("date", date);
    response
}

/// A configuration without reserved frames.
fn plain(side: courser::Side) -> h3::Config {
    let mut config = h3::Config::new(side);
    config.grease = false;
    config
}

#[tokio::test]
async fn both_ends_record_a_request_with_exact_fields() {
    let pair = pair();
    let (near, far) = pair.connect().await;
    let (client_kept, server_kept) = (Kept::default(), Kept::default());
    client_kept.attach(&near, Detail::Messages);
    server_kept.attach(&far, Detail::Messages);
    let serving = h3::serve(far, tower_of(respond)).config(plain(courser::Side::Server));
    crate::common::spawn(serving.into_future());
    let client = h3::Client::with_config(near, plain(courser::Side::Client));
    let response = client.send(request()).await.expect("a response");
    let body = response
        .into_body()
        .collect()
        .await
        .expect("complete")
        .to_bytes();
    assert_eq!(body.len(), 21);
    client.settings().await.expect("settings");

    let asked = ":method=POST :scheme=https :authority=localhost :path=/form?a=b \
                 content-length=7 authorization=hidden priority=u=1";
    let answered = ":status=201 content-length=21 set-cookie=hidden date=today";
    assert_eq!(
        client_kept.of_stream(0),
        [
            "Request false".to_owned(),
            format!("created {asked}"),
            "created Data { len: 7 }".to_owned(),
            format!("parsed {answered}"),
            "parsed Data { len: 21 }".to_owned(),
        ]
    );
    assert_eq!(
        server_kept.of_stream(0),
        [
            "Request true".to_owned(),
            format!("parsed {asked}"),
            "priority u=1".to_owned(),
            "parsed Data { len: 7 }".to_owned(),
            format!("created {answered}"),
            "created Data { len: 21 }".to_owned(),
        ]
    );
    for (kept, own) in [(&client_kept, 2), (&server_kept, 3)] {
        let records = kept.http3();
        let settings = |by_peer| {
            records.iter().any(|record| {
                matches!(record, Http3Record::ParametersSet { by_peer: by, parameters }
                    if *by == by_peer && parameters.max_table_capacity == 4096)
            })
        };
        assert!(settings(false) && settings(true), "{records:?}");
        let control = kept.of_stream(own);
        assert_eq!(control[0], format!("{:?} false", Http3StreamType::Control));
        assert!(control[1].starts_with("created Settings"), "{control:?}");
        let control = kept.of_stream(5 - own);
        assert_eq!(control[0], format!("{:?} true", Http3StreamType::Control));
        assert!(control[1].starts_with("parsed Settings"), "{control:?}");
        let all = format!("{:?}", kept.all());
        assert!(
            !all.contains("c2VjcmV0") && !all.contains("id=secret"),
            "{all}"
        );
    }
    pair.finish().await;
}

#[tokio::test]
async fn records_begin_and_end_with_the_sink_of_a_running_connection() {
    let pair = pair();
    let (near, far) = pair.connect().await;
    crate::common::spawn(h3::serve(far.clone(), tower_of(respond)).into_future());
    let client = h3::Client::new(near);
    let ask = || async {
        let response = client.send(request()).await.expect("a response");
        response.into_body().collect().await.expect("complete");
    };
    ask().await;
    let kept = Kept::default();
    // Packets are wanted, messages are not.
    kept.attach(&far, Detail::Packets);
    ask().await;
    assert_eq!(kept.all(), []);
    kept.attach(&far, Detail::Messages);
    ask().await;
    // The records begin with what still holds.
    let records = kept.http3();
    assert!(
        matches!(
            records[0],
            Http3Record::ParametersSet { by_peer: false, .. }
        ),
        "{records:?}"
    );
    assert!(
        matches!(records[1], Http3Record::ParametersSet { by_peer: true, .. }),
        "{records:?}"
    );
    assert_eq!(kept.of_stream(8).len(), 6, "{:?}", kept.of_stream(8));
    let insertions = kept
        .all()
        .into_iter()
        .filter(|record| matches!(record, Record::Qpack(QpackRecord::InstructionCreated(_))));
    // Section Acknowledgments at least.
    assert!(insertions.count() > 0);
    far.set_sink(None);
    let before = kept.all().len();
    ask().await;
    assert_eq!(kept.all().len(), before);
    pair.finish().await;
}
