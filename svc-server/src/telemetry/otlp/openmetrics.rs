//! From the text of `/metrics` (OpenMetrics) to metrics of OTLP.
//!
//! Names are those of the families, so a counter has no `_total`: what receives OTLP for Prometheus adds it. Units become those of
//! UCUM. The buckets of a histogram count what is up to their bound in OpenMetrics, and what is between two bounds in OTLP.

use opentelemetry_proto::tonic::common::v1::any_value::Value as AttributeValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

/// Returns the metrics that a text of `/metrics` has. Its counters began at `started`; both times are in nanoseconds since 1970.
pub(super) fn read(text: &str, started: u64, now: u64) -> Vec<Metric> {
    let mut families = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some(described) => describe(&mut families, described),
            None => {
                if let (Some(family), Some(sample)) = (families.last_mut(), Sample::read(line)) {
                    family.add(sample, started, now);
                }
            }
        }
    }
    families.into_iter().filter_map(Family::into_metric).collect()
}

#[derive(Default)]
struct Family {
    name: String,
    kind: String,
    unit: &'static str,
    help: String,
    numbers: Vec<NumberDataPoint>,
    histograms: Vec<HistogramDataPoint>,
}

/// Reads a line such as `HELP NAME TEXT`. The first of a family begins it.
fn describe(families: &mut Vec<Family>, line: &str) {
    let mut words = line.splitn(3, ' ');
    let (Some(what), Some(name), Some(text)) = (words.next(), words.next(), words.next()) else { return };
    if families.last().is_none_or(|family| family.name != name) {
        families.push(Family { name: name.to_owned(), ..Family::default() });
    }
    let Some(family) = families.last_mut() else { return };
    match what {
        "HELP" => text.trim_end_matches('.').clone_into(&mut family.help),
        "TYPE" => text.clone_into(&mut family.kind),
        "UNIT" => {
            family.unit = match text {
                "seconds" => "s",
                "bytes" => "By",
                _ => "",
            }
        }
        _ => {}
    }
}

impl Family {
    fn add(&mut self, sample: Sample, started: u64, now: u64) {
        if self.kind == "histogram" {
            return self.add_to_histogram(sample, started, now);
        }
        let value = match sample.value.parse() {
            Ok(whole) => Value::AsInt(whole),
            Err(_) => Value::AsDouble(sample.value.parse().unwrap_or(f64::NAN)),
        };
        self.numbers.push(NumberDataPoint {
            attributes: attributes(sample.labels),
            start_time_unix_nano: if self.kind == "counter" { started } else { 0 },
            time_unix_nano: now,
            value: Some(value),
            ..NumberDataPoint::default()
        });
    }

    fn add_to_histogram(&mut self, mut sample: Sample, started: u64, now: u64) {
        let bound = sample.labels.iter().position(|(name, _)| name == "le").map(|at| sample.labels.remove(at).1);
        let attributes = attributes(sample.labels);
        // The samples of a point follow each other.
        if self.histograms.last().is_none_or(|point| point.attributes != attributes) {
            self.histograms.push(HistogramDataPoint {
                attributes,
                start_time_unix_nano: started,
                time_unix_nano: now,
                ..HistogramDataPoint::default()
            });
        }
        let Some(point) = self.histograms.last_mut() else { return };
        match sample.name.strip_prefix(&self.name).unwrap_or_default() {
            "_sum" => point.sum = sample.value.parse().ok(),
            "_count" => point.count = sample.value.parse().unwrap_or_default(),
            "_bucket" => {
                let up_to: u64 = sample.value.parse().unwrap_or_default();
                let below: u64 = point.bucket_counts.iter().sum();
                point.bucket_counts.push(up_to.saturating_sub(below));
                // The last bucket, up to infinity, has no bound.
                let bound = bound.and_then(|bound| bound.parse().ok()).filter(|bound: &f64| bound.is_finite());
                point.explicit_bounds.extend(bound);
            }
            _ => {}
        }
    }

    fn into_metric(self) -> Option<Metric> {
        if self.numbers.is_empty() && self.histograms.is_empty() {
            return None;
        }
        let aggregation_temporality = AggregationTemporality::Cumulative.into();
        let data = match self.kind.as_str() {
            "histogram" => Data::Histogram(Histogram { data_points: self.histograms, aggregation_temporality }),
            "counter" => Data::Sum(Sum { data_points: self.numbers, aggregation_temporality, is_monotonic: true }),
            _ => Data::Gauge(Gauge { data_points: self.numbers }),
        };
        // As Prometheus shows it.
        let name = if self.kind == "info" { format!("{}_info", self.name) } else { self.name };
        Some(Metric { name, description: self.help, unit: self.unit.to_owned(), data: Some(data), ..Metric::default() })
    }
}

fn attributes(labels: Vec<(String, String)>) -> Vec<KeyValue> {
    let attribute = |(key, value)| KeyValue {
        key,
        value: Some(AnyValue { value: Some(AttributeValue::StringValue(value)) }),
        ..KeyValue::default()
    };
    labels.into_iter().map(attribute).collect()
}

/// A line such as `NAME{LABEL="VALUE"} 1`.
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: String,
}

impl Sample {
    fn read(line: &str) -> Option<Self> {
        let (name, mut rest) = line.split_at(line.find(['{', ' '])?);
        let mut labels = Vec::new();
        while let Some(after) = rest.strip_prefix(['{', ',']) {
            let (label, quoted) = after.split_once("=\"")?;
            let (value, left) = unquote(quoted)?;
            labels.push((label.to_owned(), value));
            rest = left.strip_prefix('}').unwrap_or(left);
        }
        let value = rest.trim_start().split(' ').next()?;
        Some(Self { name: name.to_owned(), labels, value: value.to_owned() })
    }
}

/// Reads a value up to its closing quote, and returns it with what follows the quote.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            _ => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::*;
    use crate::metrics::Metrics;

    fn find<'m>(metrics: &'m [Metric], name: &str) -> &'m Metric {
        let found = metrics.iter().find(|metric| metric.name == name);
        found.unwrap_or_else(|| unreachable!("{name} is not among {metrics:#?}"))
    }

    fn labels(attributes: &[KeyValue]) -> Vec<(&str, &str)> {
        attributes
            .iter()
            .filter_map(|attribute| match attribute.value.as_ref()?.value.as_ref()? {
                AttributeValue::StringValue(value) => Some((attribute.key.as_str(), value.as_str())),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn each_metric_of_the_text_is_a_metric_of_the_message() {
        let metrics = Metrics::default();
        metrics.request(Some("contacts.list"), StatusCode::OK, Duration::from_millis(3));
        metrics.request(Some("contacts.list"), StatusCode::OK, Duration::from_secs(100));
        metrics.overdue(Duration::from_millis(1500));
        let read = read(&metrics.render(), 5, 7);

        let requests = find(&read, "svc_http_requests");
        assert!(requests.description.starts_with("Requests that were responded to"), "{requests:?}");
        let Some(Data::Sum(sum)) = &requests.data else { unreachable!("{requests:?}") };
        let point = &sum.data_points[0];
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano, point.value), (5, 7, Some(Value::AsInt(2))));
        assert_eq!(labels(&point.attributes), [("operation", "contacts.list"), ("status", "200")]);

        let durations = find(&read, "svc_http_request_duration_seconds");
        let Some(Data::Histogram(histogram)) = &durations.data else { unreachable!("{durations:?}") };
        let point = &histogram.data_points[0];
        assert_eq!((durations.unit.as_str(), point.count, point.sum), ("s", 2, Some(100.003)));
        assert_eq!(labels(&point.attributes), [("operation", "contacts.list")]);
        assert_eq!((point.bucket_counts.len(), point.explicit_bounds.len()), (17, 16));
        let counted: Vec<_> = point.bucket_counts.iter().enumerate().filter(|(_, count)| **count > 0).collect();
        // Up to 4 ms, and more than 8.192 s.
        assert_eq!((counted, point.explicit_bounds[4]), (vec![(4, &1), (16, &1)], 0.004));

        let overdue = find(&read, "svc_deliveries_overdue_seconds");
        let Some(Data::Gauge(gauge)) = &overdue.data else { unreachable!("{overdue:?}") };
        assert_eq!(gauge.data_points[0].value, Some(Value::AsDouble(1.5)));
        let Some(Data::Gauge(build)) = &find(&read, "svc_build_info").data else { unreachable!() };
        assert_eq!(labels(&build.data_points[0].attributes), [("version", env!("CARGO_PKG_VERSION"))]);
        assert_eq!(find(&read, "svc_process_resident_bytes").unit, "By");
        // A family without samples has nothing to export.
        assert!(read.iter().all(|metric| metric.name != "svc_rate_limited"));
    }

    #[test]
    fn quotes_and_lines_of_labels_are_read() {
        let sample = Sample::read(r#"a{b="c \"d\" \\ }",e="f\ng"} 1.5 # {} 1"#).unwrap();
        let expected = [("b", "c \"d\" \\ }"), ("e", "f\ng")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!((sample.labels, sample.value.as_str()), (expected.to_vec(), "1.5"));
        assert!(Sample::read("").is_none() && Sample::read(r#"a{b="c} 1"#).is_none());
    }
}
