//! Header sections of responses (§4.3.2).

use http::{Response, StatusCode, Version};

use super::{Collector, FieldsError};

impl Collector<'_> {
    /// Returns the section as an interim or final response, and the length that its content should have.
    pub(crate) fn finish_response(&mut self) -> Result<(Response<()>, Option<u64>), FieldsError> {
        self.finish()?;
        let status = self
            .pseudo
            .status
            .ok_or(FieldsError::Malformed("no :status"))?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(FieldsError::Malformed("status 101"));
        }
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.version_mut() = Version::HTTP_3;
        *response.headers_mut() = std::mem::take(&mut self.headers);
        Ok((response, self.content_length))
    }
}
