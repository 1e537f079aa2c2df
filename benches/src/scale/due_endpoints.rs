//! A delivery beside thousands of due endpoints of another tenant.

use crate::error::Result;
use crate::options::Subject;
use crate::receiver::Receiver;
use crate::requests::Requests;
use crate::{deliver, pending, seed, table};

/// Endpoints of one tenant that are due at the same time and never respond, and the pending deliveries of each.
const DUE_ENDPOINTS: u32 = 10_000;
const PENDING_EACH: u32 = 2;
/// The contacts of the other tenant.
const CONTACTS: u32 = 100;

/// Measures the time from the response of a POST to the arrival of its delivery, while the endpoints of another tenant have
/// been due for longer.
pub(super) fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("scale.db");
    seed::seed(&file, 1, CONTACTS)?;
    let receiver = Receiver::start()?;
    pending::set_endpoint(&file, receiver.address)?;
    let requests = Requests::new(Subject::Deliver, &seed::tenants(&file)?);
    pending::add_hanging_endpoints(&file, receiver.hanging, DUE_ENDPOINTS, PENDING_EACH)?;
    let (child, address) = deliver::start(&file)?;
    let sample = deliver::idle_wakeups(&child, address, &receiver, &requests)?;
    let [median, longest] = [sample.p50, sample.p99].map(|micros| f64::from(micros) / 1e3);
    table::print_line(&format!(
        "due endpoints: beside {DUE_ENDPOINTS} of another tenant, a delivery arrives {median:.1} ms after its POST \
         (median of {}; the longest {longest:.1} ms)",
        sample.count
    ))
}
