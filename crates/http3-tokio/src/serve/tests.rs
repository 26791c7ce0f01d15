use std::convert::Infallible;
use std::task::Context;

use tower_service::Service;

use super::*;

/// A service whose future has this size.
#[derive(Clone)]
struct Sized<const SIZE: usize>;

struct Answer<const SIZE: usize>([u8; SIZE]);

impl<const SIZE: usize> Service<Request<Body>> for Sized<SIZE> {
    type Response = Response<Empty>;
    type Error = Infallible;
    type Future = Answer<SIZE>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        Answer([0; SIZE])
    }
}

impl<const SIZE: usize> Future for Answer<SIZE> {
    type Output = Result<Response<Empty>, Infallible>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(self.0.iter().all(|byte| *byte == 0));
        Poll::Ready(Ok(Response::new(Empty)))
    }
}

fn size_of_result<A, B, C, F>(_: impl Fn(A, B, C) -> F) -> usize {
    size_of::<F>()
}

/// The future of a request is moved and stored for each request, so it must reserve memory for the future of its
/// service only once.
#[test]
fn future_of_a_request_holds_that_of_its_service_once() {
    let small = size_of_result(answer::<Sized<8>, AdmitAll>);
    let larger = size_of_result(answer::<Sized<4096>, AdmitAll>);
    assert!(small < 2048, "{small} bytes");
    assert!(larger < 4096 + small, "{larger} bytes instead of {small}");
}
