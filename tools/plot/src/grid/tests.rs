use roxmltree::Document;

use super::*;
use crate::{Axis, Series, Unit};

fn chart(high: f64) -> Chart {
    Chart::new("a < b", Axis::time(), Axis::new("queue", Unit::Bytes))
        .size(300.0, 200.0)
        .series(Series::line("queue", [(0.0, 0.0), (1.0, high)]))
}

#[test]
fn charts_are_laid_out_in_rows_and_columns() {
    let grid = (0..5).fold(Grid::new("all & more", 2), |grid, _| grid.chart(chart(5.0)));
    let svg = grid.to_svg();
    let document = Document::parse(&svg).expect("well-formed");
    let root = document.root_element();
    assert_eq!(root.attribute("width"), Some("600"));
    assert_eq!(root.attribute("height"), Some("634"));
    let cells = root
        .children()
        .filter(|node| node.tag_name().name() == "svg");
    let places: Vec<_> = cells
        .map(|cell| (cell.attribute("x"), cell.attribute("y")))
        .collect();
    assert_eq!(places.len(), 5);
    assert_eq!(places[3], (Some("300"), Some("234")));
}

#[test]
fn same_height_gives_all_charts_one_range() {
    let grid = Grid::new("", 2)
        .chart(chart(10.0))
        .chart(chart(100.0))
        .same_height();
    assert!(grid.charts.iter().all(|chart| chart.y.high == Some(100.0)));
}

#[test]
fn empty_grid_is_an_image() {
    Document::parse(&Grid::new("nothing", 3).to_svg()).expect("well-formed");
}

#[test]
fn grid_of_long_series_is_small() {
    let long =
        (0..50_000_u32).map(|x| (f64::from(x), f64::from(x.wrapping_mul(2_654_435_761) >> 9)));
    let chart = chart(1.0).series(Series::line("long", long));
    let grid = (0..12).fold(Grid::new("", 4), |grid, _| grid.chart(chart.clone()));
    let svg = grid.to_svg();
    assert!(svg.len() < 150_000, "{} bytes", svg.len());
}
