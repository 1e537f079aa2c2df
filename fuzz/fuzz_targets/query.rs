//! Query strings: nothing panics, and an operation reads a query the same after it is encoded again.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use svc_core::input::{Fields, Input};
use svc_core::operation::{AnyOperation, Method, Request};
use svc_core::pages::ListParams;
use svc_core::platform::operations::public;
use svc_core::resources::contacts::ContactFilter;
use svc_core::resources::invoices::InvoiceFilter;
use svc_core::resources::jobs::JobFilter;
use svc_core::resources::quotes::QuoteFilter;
use svc_core::values::EventKinds;
use svc_server::api::run::OperationCall;
use svc_server::kernel::problem::Problem;
use url::form_urlencoded::{Serializer, parse};

const ID: &str = "019a0000-0000-7000-8000-0000000000a1";

static READS: LazyLock<Vec<&'static dyn AnyOperation>> =
    LazyLock::new(|| public().into_iter().filter(|operation| operation.method == Method::Get).collect());

fuzz_target!(|query: &str| {
    let pairs: Vec<(String, String)> = parse(query.as_bytes()).into_owned().collect();
    let again = Serializer::new(String::new()).extend_pairs(&pairs).finish();
    assert_eq!(parse(again.as_bytes()).into_owned().collect::<Vec<_>>(), pairs);

    for operation in READS.iter() {
        let parse_request = |query: &str| {
            let event_kinds = &EventKinds::default();
            OperationCall::parse(*operation, Some(ID), Request { query, body: b"", event_kinds }).map(|_| ())
        };
        assert_eq!(parse_request(query), parse_request(&again), "{}", operation.id);
        if operation.has_id {
            assert_eq!(parse_request(query).is_ok(), pairs.is_empty());
        }
    }

    check_filter::<ContactFilter>(&pairs);
    check_filter::<InvoiceFilter>(&pairs);
    check_filter::<JobFilter>(&pairs);
    check_filter::<QuoteFilter>(&pairs);
});

/// Checks that no repeated, empty or unknown parameter is accepted.
fn check_filter<F: Input>(pairs: &[(String, String)]) {
    let read = || -> Result<(), Problem> {
        let mut fields = Fields::from_query(pairs.to_vec());
        let (params, filter) = (ListParams::take(&mut fields), F::take(&mut fields));
        if let Some(name) = fields.first_unknown() {
            return Err(Problem::UnknownParameter { name: name.to_owned(), meant: None });
        }
        Ok(fields.finish(params.zip(filter)).map(drop)?)
    };
    if read().is_ok() {
        let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), pairs.len(), "a parameter was repeated");
        assert!(pairs.iter().all(|(_, value)| !value.is_empty()), "a parameter was empty");
    }
}
