//! Draws the table as a picture: pages per operation over the size, which has a logarithmic axis.

use std::fmt::Write as _;

use super::{Cost, Growth};

const PANEL_WIDTH: f64 = 300.0;
const PANEL_HEIGHT: f64 = 220.0;
const MARGIN: f64 = 60.0;
/// Colours of the operations, which differ in lightness as well, readable on white and on black.
const COLOURS: [&str; 5] = ["#3b78c2", "#c2571a", "#3f9152", "#a04ba0", "#8a7a1f"];

/// Returns the picture in SVG.
pub(super) fn draw(all: &[Growth]) -> String {
    let (width, height) = (all.len() as f64 * (PANEL_WIDTH + MARGIN) + MARGIN, PANEL_HEIGHT + 3.0 * MARGIN);
    let most = all.iter().flat_map(|growth| &growth.sizes).flat_map(|(_, costs)| costs).map(pages).fold(1.0, f64::max);
    // Writing to a string does not fail.
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"22\" font-size=\"14\">Pages that one operation reads from files and writes</text>\n"
    );
    let mut operations = Vec::new();
    for operation in all.iter().flat_map(|growth| &growth.operations) {
        if !operations.contains(operation) {
            operations.push(*operation);
        }
    }
    let colour = |operation: &str| {
        let position = operations.iter().position(|other: &&str| *other == operation).unwrap_or_default();
        COLOURS[position % COLOURS.len()]
    };
    for (index, growth) in all.iter().enumerate() {
        panel(&mut svg, growth, MARGIN + index as f64 * (PANEL_WIDTH + MARGIN), most, colour);
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, growth: &Growth, left: f64, most: f64, colour: impl Fn(&str) -> &'static str) {
    let (top, bottom) = (MARGIN, MARGIN + PANEL_HEIGHT);
    let sizes: Vec<f64> = growth.sizes.iter().map(|(size, _)| f64::from(*size).log10()).collect();
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return };
    let x = |size: f64| left + (size - first) / (last - first).max(1.0) * PANEL_WIDTH;
    let y = |pages: f64| bottom - pages / most * PANEL_HEIGHT;
    let right = left + PANEL_WIDTH;
    let _ = writeln!(svg, "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#555\"/>");
    for share in [0.0, 0.5, 1.0] {
        let (pages, at) = (most * share, y(most * share) + 4.0);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{at:.0}\" text-anchor=\"end\">{pages:.0}</text>", left - 6.0);
    }
    for size in &sizes {
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{}\" text-anchor=\"middle\">10<tspan dy=\"-4\" font-size=\"8\">{size:.0}</tspan></text>",
            x(*size),
            bottom + 16.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        (left + right) / 2.0,
        bottom + 34.0,
        growth.what
    );
    for (index, operation) in growth.operations.iter().enumerate() {
        let colour = colour(operation);
        let points: Vec<String> = growth
            .sizes
            .iter()
            .zip(&sizes)
            .map(|((_, costs), size)| format!("{:.1},{:.1}", x(*size), y(pages(&costs[index]))))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             <text x=\"{left}\" y=\"{}\" fill=\"{colour}\">{operation}</text>",
            points.join(" "),
            bottom + 52.0 + 13.0 * index as f64
        );
    }
}

fn pages(cost: &Cost) -> f64 {
    cost.read + cost.written
}
