use crate::{Axis, Chart, Marks, Reference, Series, Unit};

fn chart() -> Chart {
    Chart::new("Queue", Axis::time(), Axis::new("queue", Unit::Bytes))
}

#[test]
fn table_has_every_value_in_base_units() {
    let csv = chart()
        .series(Series::line("a", [(0.25, 1500.0), (0.5, f64::NAN)]))
        .series(Series::band("b", [(1.0, 2.0, 3.0)]))
        .marks(Marks::lines("state", [(2.5, "Drain")]))
        .reference(Reference::new("limit", 64_000.0))
        .to_csv();
    let expected = "kind,name,time [s],queue [B],low,label\r\n\
        series,a,0.25,1500,,\r\n\
        series,a,0.5,,,\r\n\
        series,b,1,3,2,\r\n\
        mark,state,2.5,,,Drain\r\n\
        reference,limit,,64000,,\r\n";
    assert_eq!(csv, expected);
}

#[test]
fn cells_are_quoted_and_never_formulas() {
    assert_eq!(super::field("a,b"), "\"a,b\"");
    assert_eq!(super::field("say \"x\"\n"), "\"say \"\"x\"\"\n\"");
    assert_eq!(super::field("=1+1"), "'=1+1");
    assert_eq!(super::field("@x,y"), "\"'@x,y\"");
    assert_eq!(super::field("plain"), "plain");
}

#[test]
fn thinned_table_has_the_first_and_last_row() {
    let points = (0..1000).map(|index| (f64::from(index), 0.0));
    let chart = chart().series(Series::line("a", points));
    let csv = chart.to_csv_thinned(11);
    let rows: Vec<_> = csv.lines().skip(1).collect();
    assert_eq!(rows.len(), 11);
    assert_eq!((rows[0], rows[10]), ("series,a,0,0,,", "series,a,999,0,,"));
    assert_eq!(chart.to_csv().lines().count(), 1001);
}
