use proptest::prelude::*;
use serde_json::json;

use super::*;

fn data() -> Value {
    json!({
        "city": "Perth", "total": 250.5, "count": 3, "paid": false, "notes": null, "tags": ["vip", "new"],
        "owner": { "name": "Ada \"A\" Nguyen", "first-name": "Ada" }, "at": "2026-03-14T15:09:26.535897Z",
    })
}

fn holds(filter: &str) -> bool {
    filter
        .parse::<Filter>()
        .unwrap_or_else(|issue| panic!("{filter}: {}", issue.message))
        .matches(EventKind::JobCreated, &data())
}

#[test]
fn comparisons_hold_between_values_of_one_type() {
    for filter in [
        r#"data.city == "Perth""#,
        r#"data.city != "Sydney""#,
        r#"data.city < "Q" and data.city >= "Perth""#,
        "data.total == 250.50 and data.total > 250 and data.total <= 250.5",
        "data.count == 3 and data.count == 3.0 and data.count < 4",
        "data.paid == false and data.paid != true",
        "data.notes == null and data.missing == null and data.missing.deeper == null and data.count.deeper == null",
        r#"data.tags[0] == "vip" and data.tags[2] == null"#,
        r#"data.owner.name == "Ada \"A\" Nguyen" and data["owner"]["first-name"] == "Ada""#,
        r#"data.at >= "2026-03-14T00:00:00.000000Z" and data.at < "2026-03-15""#,
        r#"event == "job.created" and event in ["job.updated", "job.created"]"#,
        r#"data.count in [1, 2, 3] and not data.city in ["Sydney", null]"#,
    ] {
        assert!(holds(filter), "{filter}");
    }
    for filter in [
        r#"data.count == "3""#,
        r#"data.count < "4""#,
        r#"data.city > 1"#,
        "data.missing < 1 or data.missing >= 1 or data.notes < 1",
        "data.paid < true",
        "data.tags == null",
        r#"data.tags == "vip""#,
        r#"event != "job.created""#,
    ] {
        assert!(!holds(filter), "{filter}");
    }
}

#[test]
fn not_binds_strongest_and_or_weakest() {
    assert!(holds("data.count == 3 or data.count == 4 and data.count == 5"));
    assert!(!holds("(data.count == 3 or data.count == 4) and data.count == 5"));
    assert!(!holds("not data.count == 3 and data.count == 3"));
    assert!(holds("not (data.count == 3 and data.count == 4)"));
    assert!(holds("not not data.count == 3"));
}

#[test]
fn what_is_no_filter_is_refused_with_the_place() {
    let texts = [
        "",
        "data",
        "data.city",
        "data.city = \"Perth\"",
        "data.city == Perth",
        "data.city == 'Perth'",
        "data.city == \"Perth",
        r#"data.city == "\x""#,
        "data.total == 1.",
        "data.total == 01",
        "data.total < 1 < 2",
        "data.total == 1 && data.count == 2",
        "data.total == 1 and",
        "(data.total == 1",
        "data.total == 1)",
        "data. == 1",
        "data[-1] == 1",
        "data[1.5] == 1",
        "data.a in []",
        "data.a in [1",
        "city == 1",
        "event.kind == 1",
        "data.ü == 1 and data.é ! 2",
        "1 == data.a",
        "NOT data.a == 1",
    ];
    let issues: Vec<String> =
        texts.iter().map(|text| format!("{text}\n  {}", text.parse::<Filter>().expect_err(text).message)).collect();
    insta::assert_snapshot!(issues.join("\n"));
}

#[test]
fn a_filter_is_bounded() {
    let long = format!("data.a == \"{}\"", "a".repeat(MAX_LENGTH));
    let deep = format!("{}data.a == 1{}", "(".repeat(21), ")".repeat(21));
    let many = format!("data.a in [{}1]", "1,".repeat(100));
    let messages = [long, deep, many].map(|text| text.parse::<Filter>().unwrap_err().message.to_string());
    assert_eq!(
        messages,
        [
            "must have at most 1000 characters",
            "is no filter: at character 21, it is nested deeper than 20 levels",
            "is no filter: at character 212, it has more than 100 constants",
        ]
    );
    assert!(format!("{}data.a == 1{}", "(".repeat(19), ")".repeat(19)).parse::<Filter>().is_ok());
}

proptest! {
    #[test]
    fn no_text_panics(text in "[a-z0-9 .()\\[\\]\"\\\\=<>!,é-]{0,60}") {
        if let Ok(filter) = text.parse::<Filter>() {
            filter.matches(EventKind::JobCreated, &data());
        }
    }

    /// A filter and its negation never agree.
    #[test]
    fn a_filter_is_true_or_false(city in "[A-Z][a-z]{0,5}", total in any::<f64>(), count in any::<i32>()) {
        let filter = format!("data.city == \"{city}\" or data.total < {count} and data.count in [1, {count}]");
        let data = json!({ "city": "Perth", "total": total, "count": count });
        let [is, is_not] = [filter.clone(), format!("not ({filter})")]
            .map(|text| text.parse::<Filter>().unwrap().matches(EventKind::JobCreated, &data));
        prop_assert_ne!(is, is_not);
    }
}
