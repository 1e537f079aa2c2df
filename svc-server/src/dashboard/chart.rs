//! Charts as SVG, rendered on the server. Colours come from classes, as the policy of the page allows no style attributes.

use maud::{Markup, html};

use super::components::number;

/// The height of a chart and the width of a column with the gap beside it, in units of its view box.
const HEIGHT: u64 = 120;
const COLUMN: usize = 20;
const GAP: usize = 4;

/// A series of values, which the legend names.
pub(super) struct Series {
    pub(super) name: &'static str,
    /// The class of its colour: `good`, `bad`, `warn`, `neutral` or `accent`.
    pub(super) class: &'static str,
}

/// The values of one column, in the order of the series, and what the column stands for, such as an hour.
pub(super) struct Column {
    pub(super) label: String,
    pub(super) values: Vec<u64>,
}

/// Returns stacked bars. `label` says what the chart shows, for those who do not see it.
pub(super) fn bars(label: &str, series: &[Series], columns: &[Column]) -> Markup {
    let highest = columns.iter().map(|column| column.values.iter().sum::<u64>()).max().unwrap_or_default();
    let titles: Vec<String> = columns.iter().map(|column| title(series, column)).collect();
    html! {
        figure.chart {
            figcaption {
                ul.legend {
                    @for (at, series) in series.iter().enumerate() {
                        li class=(series.class) {
                            (series.name) " "
                            b { (number(columns.iter().filter_map(|column| column.values.get(at)).sum())) }
                        }
                    }
                }
            }
            (plot(label, &number(highest), series, columns, highest, &titles))
        }
    }
}

/// Returns the bars of a chart with their axes. `titles` are what each column says when it is pointed at.
fn plot(label: &str, scale: &str, series: &[Series], columns: &[Column], highest: u64, titles: &[String]) -> Markup {
    let width = columns.len() * COLUMN;
    html! {
        div.plot {
            span.highest aria-hidden="true" { (scale) }
            svg viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
                @for (at, (column, title)) in columns.iter().zip(titles).enumerate() {
                    g {
                        title { (title) }
                        rect.ground x=(at * COLUMN) y="0" width=(COLUMN) height=(HEIGHT) {}
                        @for (class, y, height) in stack(series, column, highest) {
                            rect class=(class) x=(at * COLUMN + GAP / 2) y=(y) width=(COLUMN - GAP) height=(height) {}
                        }
                    }
                }
            }
        }
        div.axis aria-hidden="true" {
            @if let (Some(first), Some(last)) = (columns.first(), columns.last()) {
                span { (first.label) }
                span { (columns[columns.len() / 2].label) }
                span { (last.label) }
            }
        }
    }
}

/// Two values of one column, of which the second is the higher one: the median and the 95th percentile. `None` without any.
pub(super) struct Span {
    pub(super) label: String,
    pub(super) values: Option<(u64, u64)>,
}

/// Returns bars of medians, each with what lies between it and the 95th percentile. `unit` is that of the values.
pub(super) fn spans(label: &str, unit: &str, columns: &[Span]) -> Markup {
    let series = [Series { name: "median", class: "accent" }, Series { name: "up to 95 %", class: "neutral" }];
    let bars: Vec<Column> = columns
        .iter()
        .map(|column| {
            let (median, high) = column.values.unwrap_or_default();
            Column { label: column.label.clone(), values: vec![median, high.saturating_sub(median)] }
        })
        .collect();
    let highest = columns.iter().filter_map(|column| column.values).map(|(_, high)| high).max().unwrap_or_default();
    let titles = columns.iter().map(|column| match column.values {
        Some((median, high)) => {
            format!("{}: median {} {unit}, 95 % within {} {unit}", column.label, number(median), number(high))
        }
        None => format!("{}: nothing", column.label),
    });
    html! {
        figure.chart {
            figcaption {
                ul.legend {
                    @for series in &series { li class=(series.class) { (series.name) } }
                }
            }
            (plot(label, &format!("{} {unit}", number(highest)), &series, &bars, highest, &titles.collect::<Vec<_>>()))
        }
    }
}

/// Returns the class, the position and the height of each part of a bar, from the bottom up. A value that is not zero is
/// seen, however small.
fn stack<'s>(series: &'s [Series], column: &Column, highest: u64) -> Vec<(&'s str, u64, u64)> {
    let mut bottom = HEIGHT;
    let mut parts = Vec::new();
    for (series, value) in series.iter().zip(&column.values) {
        let height = value.saturating_mul(HEIGHT).checked_div(highest).unwrap_or_default();
        let height = height.max(if *value > 0 { 2 } else { 0 }).min(bottom);
        bottom -= height;
        parts.push((series.class, bottom, height));
    }
    parts
}

fn title(series: &[Series], column: &Column) -> String {
    let values = series.iter().zip(&column.values).filter(|(_, value)| **value > 0);
    let values: Vec<String> = values.map(|(series, value)| format!("{} {}", number(*value), series.name)).collect();
    let values = if values.is_empty() { "nothing".to_owned() } else { values.join(", ") };
    format!("{}: {values}", column.label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_bar_stand_on_each_other() {
        let series = [Series { name: "sent", class: "good" }, Series { name: "failed", class: "bad" }];
        let column = |values| Column { label: "10:00".to_owned(), values };
        assert_eq!(stack(&series, &column(vec![30, 10]), 40), [("good", 30, 90), ("bad", 0, 30)]);
        assert_eq!(stack(&series, &column(vec![0, 1]), 1_000_000), [("good", 120, 0), ("bad", 118, 2)]);
        assert_eq!(stack(&series, &column(vec![0, 0]), 0), [("good", 120, 0), ("bad", 120, 0)]);
        assert_eq!(title(&series, &column(vec![0, 1_000])), "10:00: 1,000 failed");
    }
}
