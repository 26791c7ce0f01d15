//! Dashes and markers of plots and legends.

use crate::path::pixels;
use crate::series::Shape;
use crate::{Marker, Series};

/// Returns the dash attribute of a series, so that lines differ in more than their colour.
pub(crate) fn dashes(series: &Series, index: usize) -> &'static str {
    const DASHES: [&str; 4] = [
        "",
        " stroke-dasharray=\"7 2.5\"",
        " stroke-dasharray=\"2.5 2\"",
        " stroke-dasharray=\"9 2.5 2 2.5\"",
    ];
    match series.shape {
        Shape::Area => "",
        _ if series.is_dashed => " stroke-dasharray=\"5 4\"",
        _ => DASHES[index % DASHES.len()],
    }
}

/// Returns the `<path>` of a marker at a point in pixels.
pub(crate) fn marker(marker: Marker, x: f64, y: f64) -> String {
    let at = format!("{} {}", pixels(x), pixels(y));
    let shape = match marker {
        Marker::Circle => "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z",
        Marker::Cross => "m-3.2-3.2l6.4 6.4m0-6.4l-6.4 6.4",
        Marker::Triangle => "m0-4.2l4 7h-8z",
        Marker::Square => "m-3-3h6v6h-6z",
        Marker::Diamond => "m0-4.4l4.4 4.4l-4.4 4.4l-4.4-4.4z",
    };
    let class = if marker == Marker::Cross {
        "line"
    } else {
        "sign"
    };
    format!("<path class=\"{class}\" d=\"M{at}{shape}\"/>")
}
