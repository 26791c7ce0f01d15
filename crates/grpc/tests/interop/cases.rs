//! The cases of gRPC's interoperability tests, from their public descriptions. Each panics if its server differs.

use std::time::Duration;

use courser_grpc::Channel;
use futures_util::{StreamExt as _, stream};
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request};

use super::pb::test_service_client::TestServiceClient;
use super::pb::unimplemented_service_client::UnimplementedServiceClient;
use super::pb::{self, SimpleRequest, StreamingInputCallRequest, StreamingOutputCallRequest};
use super::service::{INITIAL, TRAILING};

type Client = TestServiceClient<Channel>;
type Running = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
type Case = fn(Channel) -> Running;

/// All cases by name.
pub const CASES: &[(&str, Case)] = &[
    ("empty_unary", |it| Box::pin(empty_unary(it))),
    ("large_unary", |it| Box::pin(large_unary(it))),
    ("client_streaming", |it| Box::pin(client_streaming(it))),
    ("server_streaming", |it| Box::pin(server_streaming(it))),
    ("ping_pong", |it| Box::pin(ping_pong(it))),
    ("empty_stream", |it| Box::pin(empty_stream(it))),
    ("custom_metadata", |it| Box::pin(custom_metadata(it))),
    ("status_code_and_message", |it| {
        Box::pin(status_code_and_message(it))
    }),
    ("special_status_message", |it| {
        Box::pin(special_status_message(it))
    }),
    ("unimplemented_method", |it| {
        Box::pin(unimplemented_method(it))
    }),
    ("unimplemented_service", |it| {
        Box::pin(unimplemented_service(it))
    }),
    ("cancel_after_begin", |it| Box::pin(cancel_after_begin(it))),
    ("cancel_after_first_response", |it| {
        Box::pin(cancel_after_first_response(it))
    }),
    ("timeout_on_sleeping_server", |it| {
        Box::pin(timeout_on_sleeping_server(it))
    }),
    ("client_compressed_unary", |it| {
        Box::pin(client_compressed_unary(it))
    }),
    ("server_compressed_unary", |it| {
        Box::pin(server_compressed_unary(it))
    }),
    ("client_compressed_streaming", |it| {
        Box::pin(client_compressed_streaming(it))
    }),
    ("server_compressed_streaming", |it| {
        Box::pin(server_compressed_streaming(it))
    }),
    ("rpc_soak", |it| Box::pin(rpc_soak(it))),
];

const REQUEST_SIZES: [usize; 4] = [27182, 8, 1828, 45904];
const RESPONSE_SIZES: [i32; 4] = [31415, 9, 2653, 58979];

fn payload(size: usize) -> Option<pb::Payload> {
    Some(pb::Payload {
        r#type: 0,
        body: vec![0; size],
    })
}

fn size(payload: Option<pb::Payload>) -> i32 {
    let size = payload.map_or(0, |payload| payload.body.len());
    i32::try_from(size).expect("small")
}

fn large() -> SimpleRequest {
    SimpleRequest {
        response_size: 314_159,
        payload: payload(271_828),
        ..SimpleRequest::default()
    }
}

fn output(size: i32, content: usize) -> StreamingOutputCallRequest {
    StreamingOutputCallRequest {
        response_parameters: vec![pb::ResponseParameters {
            size,
            ..pb::ResponseParameters::default()
        }],
        payload: payload(content),
        ..StreamingOutputCallRequest::default()
    }
}

async fn empty_unary(channel: Channel) {
    let response = Client::new(channel).empty_call(pb::Empty {}).await;
    assert_eq!(response.expect("answered").into_inner(), pb::Empty {});
}

async fn large_unary(channel: Channel) {
    let response = Client::new(channel).unary_call(large()).await;
    assert_eq!(
        size(response.expect("answered").into_inner().payload),
        314_159
    );
}

async fn client_streaming(channel: Channel) {
    let requests = REQUEST_SIZES.map(|size| StreamingInputCallRequest {
        payload: payload(size),
        expect_compressed: None,
    });
    let response = Client::new(channel)
        .streaming_input_call(stream::iter(requests))
        .await;
    assert_eq!(
        response
            .expect("answered")
            .get_ref()
            .aggregated_payload_size,
        74922
    );
}

async fn server_streaming(channel: Channel) {
    let parameter = |size| pb::ResponseParameters {
        size,
        ..pb::ResponseParameters::default()
    };
    let request = StreamingOutputCallRequest {
        response_parameters: RESPONSE_SIZES.map(parameter).to_vec(),
        ..StreamingOutputCallRequest::default()
    };
    let response = Client::new(channel).streaming_output_call(request).await;
    let messages: Vec<_> = response.expect("started").into_inner().collect().await;
    let sizes: Vec<_> = messages
        .into_iter()
        .map(|it| size(it.expect("a message").payload))
        .collect();
    assert_eq!(sizes, RESPONSE_SIZES);
}

async fn ping_pong(channel: Channel) {
    let (feed, requests) = tokio::sync::mpsc::unbounded_channel();
    let requests = stream::unfold(requests, |mut it| async { Some((it.recv().await?, it)) });
    feed.send(output(RESPONSE_SIZES[0], REQUEST_SIZES[0]))
        .expect("open");
    let response = Client::new(channel).full_duplex_call(requests).await;
    let mut responses = response.expect("started").into_inner();
    for index in 0..4 {
        let response = responses
            .message()
            .await
            .expect("no error")
            .expect("a message");
        assert_eq!(size(response.payload), RESPONSE_SIZES[index]);
        if let Some(next) = RESPONSE_SIZES.get(index + 1) {
            feed.send(output(*next, REQUEST_SIZES[index + 1]))
                .expect("open");
        }
    }
    drop(feed);
    assert_eq!(responses.message().await.expect("status 0"), None);
}

async fn empty_stream(channel: Channel) {
    let response = Client::new(channel).full_duplex_call(stream::empty()).await;
    let end = response.expect("started").into_inner().message().await;
    assert_eq!(end.expect("status 0"), None);
}

async fn custom_metadata(channel: Channel) {
    let value = MetadataValue::from_bytes(&[0xab, 0xab, 0xab]);
    let initial = "test_initial_metadata_value";
    fn add<T>(
        request: &mut Request<T>,
        initial: &'static str,
        value: &MetadataValue<tonic::metadata::Binary>,
    ) {
        let metadata = request.metadata_mut();
        metadata.insert(INITIAL, MetadataValue::from_static(initial));
        metadata.insert_bin(TRAILING, value.clone());
    }
    let mut client = Client::new(channel);
    let mut request = Request::new(large());
    add(&mut request, initial, &value);
    let response = client.unary_call(request).await.expect("answered");
    assert_eq!(response.metadata().get(INITIAL).expect("present"), initial);
    assert_eq!(
        response
            .metadata()
            .get_bin(TRAILING)
            .expect("merged from the trailers"),
        value
    );

    let mut request = Request::new(stream::iter([output(314_159, 271_828)]));
    add(&mut request, initial, &value);
    let response = client.full_duplex_call(request).await.expect("started");
    assert_eq!(response.metadata().get(INITIAL).expect("present"), initial);
    let mut responses = response.into_inner();
    assert!(responses.message().await.expect("no error").is_some());
    let trailers = responses
        .trailers()
        .await
        .expect("no error")
        .expect("present");
    assert_eq!(trailers.get_bin(TRAILING).expect("present"), value);
}

async fn status_code_and_message(channel: Channel) {
    expect_echo(channel, "test status message").await;
}

async fn special_status_message(channel: Channel) {
    let message = "\t\ntest with whitespace\r\nand Unicode BMP \u{263a} and non-BMP \u{1f608}\t\n";
    expect_echo(channel, message).await;
}

async fn expect_echo(channel: Channel, message: &str) {
    let status = Some(pb::EchoStatus {
        code: 2,
        message: message.to_owned(),
    });
    let mut client = Client::new(channel);
    let request = SimpleRequest {
        response_status: status.clone(),
        ..SimpleRequest::default()
    };
    let error = client.unary_call(request).await.expect_err("a status");
    assert_eq!((error.code(), error.message()), (Code::Unknown, message));
    let request = StreamingOutputCallRequest {
        response_status: status,
        ..StreamingOutputCallRequest::default()
    };
    let error = match client.full_duplex_call(stream::iter([request])).await {
        Ok(response) => response.into_inner().message().await.expect_err("a status"),
        Err(error) => error,
    };
    assert_eq!((error.code(), error.message()), (Code::Unknown, message));
}

async fn unimplemented_method(channel: Channel) {
    let error = Client::new(channel).unimplemented_call(pb::Empty {}).await;
    assert_eq!(error.expect_err("a status").code(), Code::Unimplemented);
}

async fn unimplemented_service(channel: Channel) {
    let mut client = UnimplementedServiceClient::new(channel);
    let error = client.unimplemented_call(pb::Empty {}).await;
    assert_eq!(error.expect_err("a status").code(), Code::Unimplemented);
}

/// A call that is dropped before it has begun to answer leaves its connection usable.
async fn cancel_after_begin(channel: Channel) {
    let mut client = Client::new(channel.clone());
    let call = client.streaming_input_call(stream::pending());
    let ended = tokio::time::timeout(Duration::from_millis(50), call).await;
    assert!(ended.is_err(), "the call has no end of its own");
    empty_unary(channel).await;
}

async fn cancel_after_first_response(channel: Channel) {
    let mut client = Client::new(channel.clone());
    let requests = stream::iter([output(31415, 27182)]).chain(stream::pending());
    let mut responses = client
        .full_duplex_call(requests)
        .await
        .expect("started")
        .into_inner();
    let first = responses
        .message()
        .await
        .expect("no error")
        .expect("a message");
    assert_eq!(size(first.payload), 31415);
    drop(responses);
    empty_unary(channel).await;
}

async fn timeout_on_sleeping_server(channel: Channel) {
    let requests = stream::iter([output(31415, 27182)]).chain(stream::pending());
    let mut request = Request::new(requests);
    request.set_timeout(Duration::from_millis(1));
    let error = match Client::new(channel).full_duplex_call(request).await {
        Err(error) => error,
        Ok(response) => {
            let mut responses = response.into_inner();
            loop {
                match responses.message().await {
                    Ok(message) => {
                        assert!(message.is_some(), "the call ended without its deadline")
                    }
                    Err(error) => break error,
                }
            }
        }
    };
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
}

async fn client_compressed_unary(channel: Channel) {
    let expect = |value| SimpleRequest {
        expect_compressed: Some(pb::BoolValue { value }),
        ..large()
    };
    // The probe: the server must notice that the message is not compressed.
    let mut plain = Client::new(channel.clone());
    let error = plain
        .unary_call(expect(true))
        .await
        .expect_err("not compressed");
    assert_eq!(error.code(), Code::InvalidArgument);
    let response = plain.unary_call(expect(false)).await.expect("answered");
    assert_eq!(size(response.into_inner().payload), 314_159);
    let mut coding = Client::new(channel).send_compressed(CompressionEncoding::Gzip);
    let response = coding.unary_call(expect(true)).await.expect("answered");
    assert_eq!(size(response.into_inner().payload), 314_159);
}

async fn server_compressed_unary(channel: Channel) {
    let mut client = Client::new(channel).accept_compressed(CompressionEncoding::Gzip);
    for value in [true, false] {
        let request = SimpleRequest {
            response_compressed: Some(pb::BoolValue { value }),
            ..large()
        };
        let response = client.unary_call(request).await.expect("answered");
        assert_eq!(size(response.into_inner().payload), 314_159);
    }
}

async fn client_compressed_streaming(channel: Channel) {
    let request = |expected, size| StreamingInputCallRequest {
        expect_compressed: Some(pb::BoolValue { value: expected }),
        payload: payload(size),
    };
    let mut plain = Client::new(channel.clone());
    let error = plain
        .streaming_input_call(stream::iter([request(true, 27182)]))
        .await;
    assert_eq!(
        error.expect_err("not compressed").code(),
        Code::InvalidArgument
    );
    let mut coding = Client::new(channel).send_compressed(CompressionEncoding::Gzip);
    let requests = stream::iter([request(true, 27182), request(false, 45904)]);
    let response = coding
        .streaming_input_call(requests)
        .await
        .expect("answered");
    assert_eq!(response.get_ref().aggregated_payload_size, 73086);
}

async fn server_compressed_streaming(channel: Channel) {
    let parameter = |(size, value)| pb::ResponseParameters {
        size,
        interval_us: 0,
        compressed: Some(pb::BoolValue { value }),
    };
    let request = StreamingOutputCallRequest {
        response_parameters: [(31415, true), (92653, false)].map(parameter).to_vec(),
        ..StreamingOutputCallRequest::default()
    };
    let mut client = Client::new(channel).accept_compressed(CompressionEncoding::Gzip);
    let response = client
        .streaming_output_call(request)
        .await
        .expect("started");
    let messages: Vec<_> = response.into_inner().collect().await;
    let sizes: Vec<_> = messages
        .into_iter()
        .map(|it| size(it.expect("a message").payload))
        .collect();
    assert_eq!(sizes, [31415, 92653]);
}

/// Many large calls one after the other, on the same channel.
async fn rpc_soak(channel: Channel) {
    for _ in 0..100 {
        large_unary(channel.clone()).await;
    }
}
