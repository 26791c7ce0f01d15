//! The pictures of the video, and their size.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use courser::webtransport::Session;

pub const FRAMES_PER_SECOND: u32 = 30;
/// Frames of a group. A client may begin with each group, and the size changes there.
pub const GROUP: u32 = 15;
/// Widths in pixels: 0.7 to 29 Mbit/s.
const WIDTHS: [u32; 10] = [64, 80, 100, 128, 160, 200, 240, 280, 340, 400];
/// Bytes before the pixels: group, width and time in milliseconds.
const HEADER: u32 = 16;

/// Follows the link: at once when it carries less, and a step each second when it may carry more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    step: usize,
    /// Groups since the last change that the link could carry.
    calm: u32,
}

impl Size {
    pub fn adapt(&mut self, session: &Session) {
        let Some(estimate) = session.send_rate() else {
            return;
        };
        let available = estimate.rate.as_bytes_per_second() * 9 / 10;
        let fits = |step: usize| u64::from(bytes(WIDTHS[step]) * FRAMES_PER_SECOND) <= available;
        if estimate.is_app_limited || fits(self.step) {
            self.calm += 1;
        } else {
            self.step = (0..self.step).rev().find(|step| fits(*step)).unwrap_or(0);
            self.calm = 0;
        }
        // Only sending more shows whether the link carries more.
        if self.calm > 2 && self.step + 1 < WIDTHS.len() {
            self.step += 1;
            self.calm = 0;
        }
    }

    pub fn width(&self) -> u32 {
        WIDTHS[self.step]
    }
}

fn bytes(width: u32) -> u32 {
    HEADER + width * width * 3 / 4
}

/// Draws a moving disc, one byte a pixel.
pub fn draw(group: u32, number: u32, width: u32) -> Bytes {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut frame = Vec::with_capacity(bytes(width) as usize);
    frame.extend(group.to_be_bytes());
    frame.extend(width.to_be_bytes());
    frame.extend((now.as_millis() as u64).to_be_bytes());
    let angle = (group * GROUP + number) as f32 / 20.0;
    let center = [0.5 + 0.3 * angle.cos(), 0.4 + 0.25 * angle.sin()];
    frame.extend((0..width * width * 3 / 4).map(|pixel| {
        let at = [pixel % width, pixel / width].map(|part| part as f32 / width as f32);
        let distance = (at[0] - center[0]).hypot(at[1] - center[1]);
        if distance < 0.1 {
            255
        } else {
            (at[0] * 200.0) as u8
        }
    }));
    frame.into()
}
