//! Responses, §4.3.2.

use http::{Response, StatusCode, Version};

use super::collect::Collected;
use super::{Collector, FieldsError};

impl Collector<'_> {
    /// As a response, interim or final, and the length that its content should have.
    pub(crate) fn finish_response(&mut self) -> Result<(Response<()>, Option<u64>), FieldsError> {
        let Collected {
            pseudo,
            headers,
            content_length,
        } = self.finish()?;
        let status = pseudo.status.ok_or(FieldsError::Malformed("no :status"))?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(FieldsError::Malformed("status 101"));
        }
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.version_mut() = Version::HTTP_3;
        *response.headers_mut() = headers;
        Ok((response, content_length))
    }
}
