//! The task of a session, which reads and writes its CONNECT stream.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use courser_base::Time;
use courser_http3_tokio::{Code, Error, Origin, Upgraded};
use courser_quic::hooks::ConnectionHooks as _;
use courser_quic::runtime::{self, Sleep};
use courser_webtransport::{self as sans, Output, Sessions};
use tokio::io::AsyncWrite;

use crate::error::var_int;
use crate::shared::Shared;

/// Starts the task of a session.
pub(crate) fn start(shared: Arc<Shared>, stream: Upgraded) {
    let extension = shared.streams.extension().clone();
    let mut driver = Driver {
        shared,
        stream: Some(stream),
        going_away: Some(Box::pin(async move { extension.going_away().await })),
        content: Bytes::new(),
        has_ended: false,
        timer: None,
        reports_delivery: false,
    };
    runtime::spawn(async move { poll_fn(|cx| driver.poll(cx)).await });
}

struct Driver {
    shared: Arc<Shared>,
    /// `None` after a reset.
    stream: Option<Upgraded>,
    /// Content that the stream has not accepted.
    content: Bytes,
    /// True if the peer's half of the stream has ended.
    has_ended: bool,
    timer: Option<(Time, Pin<Box<Sleep>>)>,
    /// A task waits for the acknowledgement of the end.
    reports_delivery: bool,
    /// Completes with a GOAWAY of either end. `None` once it has.
    going_away: Option<GoingAway>,
}

type GoingAway = Pin<Box<dyn Future<Output = Option<Origin>> + Send>>;

impl Driver {
    /// Runs until both halves of the CONNECT stream have ended. Reading never waits for writing.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let is_over = self.shared.drive(cx, |session| session.is_over());
            if is_over || self.stream.is_none() {
                self.stream = None;
                return Poll::Ready(());
            }
            self.shared.take_unsent();
            self.poll_going_away(cx);
            let has_written = self.poll_write(cx).is_ready();
            let has_read = self.poll_read(cx).is_ready();
            let has_expired = self.poll_timer(cx).is_ready();
            if !(has_written || has_read || has_expired) {
                return Poll::Pending;
            }
        }
    }

    /// GOAWAY of either end asks to end all sessions (draft-ietf-webtrans-http3-16 §4.7). A peer that does not look at
    /// it learns the same from a capsule.
    fn poll_going_away(&mut self, cx: &mut Context<'_>) {
        let Some(going_away) = &mut self.going_away else {
            return;
        };
        let Poll::Ready(origin) = going_away.as_mut().poll(cx) else {
            return;
        };
        self.going_away = None;
        match origin {
            Some(Origin::Local) => self.shared.update(|session, _| {
                session.on_goaway();
                session.drain();
            }),
            Some(Origin::Peer) => {
                self.shared.table.with(Sessions::on_goaway);
                self.shared.update(|session, _| session.on_goaway());
            }
            None => {}
        }
    }

    /// Carries out the next step of the session, when everything before is written.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(stream) = &mut self.stream else {
            return Poll::Pending;
        };
        let mut writer = Pin::new(stream);
        while !self.content.is_empty() {
            match writer.as_mut().poll_write(cx, &self.content) {
                Poll::Ready(Ok(written)) => self.content.advance(written),
                Poll::Ready(Err(error)) => return self.on_write_error(&error),
                Poll::Pending => return self.poll_reset(cx),
            }
        }
        match writer.as_mut().poll_flush(cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return self.on_write_error(&error),
            Poll::Pending => return self.poll_reset(cx),
        }
        match self.shared.drive(cx, |session| session.poll_output()) {
            Some(Output::Content(content)) => self.content = content,
            // Everything is written, so that it is ready at once.
            Some(Output::Finish) => {
                drop(writer.as_mut().poll_shutdown(cx));
                self.report_delivery();
            }
            Some(Output::Reset(code)) => self.reset(code),
            None => return Poll::Pending,
        }
        Poll::Ready(())
    }

    /// Reports when the peer has acknowledged the end of the session.
    fn report_delivery(&mut self) {
        let Some(stream) = &self.stream else { return };
        self.reports_delivery = true;
        let (acknowledged, shared) = (stream.acknowledged(), self.shared.clone());
        runtime::spawn(async move {
            let is_delivered = acknowledged.await.is_ok();
            shared.on_delivered(is_delivered);
        });
    }

    /// Resets the stream although it does not accept content: after a violation of the peer, and once the time for its end
    /// has passed.
    fn poll_reset(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.shared.ended().is_none() {
            return Poll::Pending;
        }
        match self.shared.drive(cx, sans::Session::poll_reset) {
            Some(code) => self.reset(code),
            None => return Poll::Pending,
        }
        Poll::Ready(())
    }

    fn reset(&mut self, code: Code) {
        let id = self.shared.id.stream();
        // Both halves with this code: dropping the stream would stop the receiving one without an error.
        self.shared.quic().abort_stream(id, var_int(code));
        self.stream = None;
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(stream) = self.stream.as_mut().filter(|_| !self.has_ended) else {
            return Poll::Pending;
        };
        let Poll::Ready(read) = pin!(stream.read_chunk()).poll(cx) else {
            return Poll::Pending;
        };
        match read {
            Ok(Some(chunk)) => self
                .shared
                .update(|session, now| session.on_content(now, chunk)),
            Ok(None) => {
                self.has_ended = true;
                self.shared
                    .update(|session, now| session.on_content_end(now));
            }
            Err(error) => {
                self.has_ended = true;
                let code = code_of(&error);
                self.shared.update(|session, now| match code {
                    Some(code) => session.on_content_reset(now, code),
                    None => session.on_connection_lost(now),
                });
            }
        }
        Poll::Ready(())
    }

    fn on_write_error(&mut self, error: &std::io::Error) -> Poll<()> {
        self.content = Bytes::new();
        let inner = error.get_ref().and_then(|error| error.downcast_ref());
        let code = inner.and_then(code_of);
        self.shared.update(|session, now| match code {
            Some(code) => session.on_stopped(now, code),
            None => session.on_connection_lost(now),
        });
        Poll::Ready(())
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let due = self.shared.drive(cx, |session| session.next_timeout());
        let Some(due) = due else {
            self.timer = None;
            return Poll::Pending;
        };
        if self.timer.as_ref().is_none_or(|(at, _)| *at != due) {
            let sleep = runtime::sleep_until(self.shared.table.instant(due));
            self.timer = Some((due, Box::pin(sleep)));
        }
        if let Some((_, sleep)) = &mut self.timer
            && sleep.as_mut().poll(cx).is_ready()
        {
            self.timer = None;
            self.shared.update(|session, now| session.on_timeout(now));
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Drop for Driver {
    /// A runtime that ends drops the task, and nothing would tell the application.
    fn drop(&mut self) {
        if !self.reports_delivery {
            self.shared.on_delivered(false);
        }
        self.shared
            .update(|session, now| session.on_connection_lost(now));
    }
}

/// Returns the code with which the peer has reset or stopped the stream.
fn code_of(error: &Error) -> Option<Code> {
    match error {
        Error::Http { code, .. } => Some(*code),
        _ => None,
    }
}
