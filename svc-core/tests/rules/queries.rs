//! Query strings (docs/contract.md, "Lists and incremental sync"): limits, filters and unknown parameters.

use svc_core::input::{Fields, Input};
use svc_core::pages::ListParams;
use svc_core::resources::contacts::ContactFilter;
use svc_core::resources::jobs::{JobFilter, JobStatus};

use super::refusal;

fn fields(query: &str) -> Fields {
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
    Fields::from_query(query.split('&').filter(|part| !part.is_empty()).map(pair).collect())
}

fn read<F: Input>(query: &str) -> Result<(ListParams, F), svc_core::error::Error> {
    let mut fields = fields(query);
    let params = ListParams::take(&mut fields);
    let filter = F::take(&mut fields);
    assert_eq!(fields.first_unknown(), None, "{query}");
    fields.finish(params.zip(filter))
}

#[test]
fn valid_parameters_are_parsed() {
    let (params, filter) = read::<ContactFilter>("limit=7&include_deleted=true&email=Ada@Example.com").unwrap();
    assert_eq!(params.limit.unwrap().get(), 7);
    assert_eq!((params.cursor, params.updated_since), (None, None));
    assert_eq!(filter.include_deleted, Some(true));
    assert_eq!(filter.email.unwrap().as_str(), "Ada@Example.com");
    let (params, filter) = read::<JobFilter>("updated_since=2026-03-14T15:09:26.1234561Z&status=on_hold").unwrap();
    assert_eq!(params.updated_since.unwrap().0.to_string(), "2026-03-14T15:09:26.123457Z");
    assert_eq!((filter.status, filter.job_number), (Some(JobStatus::OnHold), None));
    assert!(read::<JobFilter>("").is_ok());
}

#[test]
fn every_failing_parameter_is_reported() {
    for (query, want) in [
        ("limit=0", "limit out_of_range"),
        ("limit=201", "limit out_of_range"),
        ("limit=1.5", "limit invalid_type"),
        ("limit=", "limit too_short"),
        ("limit=1&limit=1", "limit duplicate_key"),
        ("updated_since=2026-03-14", "updated_since invalid_format"),
        ("email=ada", "email invalid_format"),
        ("include_deleted=1", "include_deleted invalid_type"),
        ("include_deleted=yes&limit=x&email=", "email too_short, limit invalid_type, include_deleted invalid_type"),
    ] {
        assert_eq!(refusal(read::<ContactFilter>(query)), want, "{query}");
    }
    assert_eq!(refusal(read::<JobFilter>("status=done")), "status invalid_enum");
}

#[test]
fn the_first_unknown_parameter_is_reported() {
    let mut fields = fields("limit=1&Limit=2&page=3");
    assert!(ListParams::take(&mut fields).is_some());
    assert_eq!(fields.first_unknown(), Some("Limit"));
}
