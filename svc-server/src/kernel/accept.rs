//! The media types that a client takes: its `Accept` (RFC 9110 §12.5.1).

use http::HeaderMap;
use http::header::ACCEPT;

/// Returns the media ranges of `Accept` in lower case, without their parameters, each with its weight. A weight that is no
/// number is 0.
pub(crate) fn ranges(request: &HeaderMap) -> impl Iterator<Item = (String, f32)> {
    let lines = request.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let range = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        (range, weight.map_or(1.0, |text| text.parse().unwrap_or(0.0)))
    })
}

/// Returns the weight that a client gives a media type, such as `application/json`: that of the range which is most exact. It is
/// 1 without `Accept`, and 0 for a type that the client does not take.
pub(crate) fn weight(request: &HeaderMap, media_type: &str) -> f32 {
    if !request.contains_key(ACCEPT) {
        return 1.0;
    }
    let of_kind = media_type.split('/').next().map(|kind| format!("{kind}/*")).unwrap_or_default();
    let weight = |wanted: &str| {
        let weights = ranges(request).filter(|(range, _)| range == wanted).map(|(_, weight)| weight);
        weights.reduce(f32::max)
    };
    weight(media_type).or_else(|| weight(&of_kind)).or_else(|| weight("*/*")).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_most_exact_range_says_how_much_a_type_is_wanted() {
        for (accept, expected) in [
            ("application/json", 1.0),
            ("APPLICATION/JSON; charset=utf-8", 1.0),
            ("text/event-stream, application/json;q=0.5", 0.5),
            ("*/*", 1.0),
            ("application/*;q=0.3, */*;q=0.8", 0.3),
            ("*/*, application/json;q=0", 0.0),
            ("*/*, application/json;Q=0", 0.0),
            ("application/json;q=0.1, application/json;q=0.9", 0.9),
            ("text/html", 0.0),
            ("application/jsonx", 0.0),
            ("application/json;q=high", 0.0),
            ("", 0.0),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert!((weight(&headers, "application/json") - expected).abs() < f32::EPSILON, "{accept}");
        }
        assert!((weight(&HeaderMap::new(), "application/json") - 1.0).abs() < f32::EPSILON);
        let mut lines = HeaderMap::new();
        for line in ["text/html", "application/json;q=0.4"] {
            lines.append(ACCEPT, HeaderValue::from_static(line));
        }
        assert!((weight(&lines, "application/json") - 0.4).abs() < f32::EPSILON);
    }
}
