//! A session request as the argument of a handler of axum.

use std::convert::Infallible;

use axum_core::extract::FromRequestParts;
use http::Request;
use http::request::Parts;

use crate::upgrade::{Upgrade, upgrade};

/// Never fails: [`Upgrade::accept`] answers requests for which there is no session.
impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let mut request = Request::new(());
        request.method_mut().clone_from(&parts.method);
        request.uri_mut().clone_from(&parts.uri);
        request.headers_mut().clone_from(&parts.headers);
        std::mem::swap(request.extensions_mut(), &mut parts.extensions);
        let upgrade = upgrade(&mut request);
        std::mem::swap(request.extensions_mut(), &mut parts.extensions);
        Ok(upgrade)
    }
}
