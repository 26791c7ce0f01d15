//! Responses that are not those of a gRPC server.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use courser_client::Body;
use http::{HeaderMap, Response, StatusCode, header};
use tonic::Status;

use crate::status::code_of_http;

/// Returns the response, or the status that a response of something else than a gRPC server means.
pub(super) fn check(mut response: Response<Body>) -> Result<Response<Body>, Status> {
    clean(response.headers_mut());
    let (status, headers) = (response.status(), response.headers());
    if headers.contains_key(Status::GRPC_STATUS) {
        return Ok(response);
    }
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()));
    let is_grpc = kind
        .as_ref()
        .is_none_or(|kind| kind.starts_with("application/grpc"));
    if status == StatusCode::OK && is_grpc {
        return Ok(response);
    }
    let kind = kind.map_or(String::new(), |kind| {
        format!(" with content of the type '{kind}'")
    });
    let text = format!("the response is not that of a gRPC server: HTTP status {status}{kind}");
    Err(Status::new(code_of_http(status), text))
}

/// Removes details that tonic 0.14 would panic on: it expects valid Base64.
pub(super) fn clean(fields: &mut HeaderMap) {
    let details = fields.get(Status::GRPC_STATUS_DETAILS);
    if details.is_some_and(|details| LENIENT.decode(details.as_bytes()).is_err()) {
        fields.remove(Status::GRPC_STATUS_DETAILS);
    }
}

/// Base64 with or without padding, as gRPC allows.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
