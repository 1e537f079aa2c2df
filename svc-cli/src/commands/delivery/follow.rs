//! `svc delivery list --follow`: prints a line whenever a delivery is created or makes progress, until Ctrl-C.

use std::collections::HashMap;

use svc_core::platform::operations::LIST_DELIVERIES;
use svc_core::platform::{Delivery, DeliveryListFilter};
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::{DeliveryId, DeliveryStatus};

use super::view;
use crate::commands::follow::follow;
use crate::exit::Failure;
use crate::output::{Outcome, or_dash};
use crate::service::Service;
use crate::times::full;

/// The number of deliveries that are followed: the newest that match the filter.
const MAX_FOLLOWED: u32 = 1_000;

/// The progress of a delivery, a change of which is printed: its status and the number of attempts.
type Progress = (DeliveryStatus, u32);

pub(super) async fn run(
    service: &Service,
    account: TenantId,
    filter: DeliveryListFilter,
    json: bool,
) -> Result<Outcome, Failure> {
    let mut seen = HashMap::new();
    let poll = async || {
        let (listed, _) = service.newest(&LIST_DELIVERIES, account, &filter, MAX_FOLLOWED).await?;
        let text = |delivery: &Delivery| if json { view(delivery).to_string() } else { line(delivery) };
        Ok(changed(&mut seen, &listed).into_iter().map(text).collect())
    };
    follow(service, poll).await
}

/// Returns the deliveries that changed since the last poll, oldest first. Forgets deliveries that are no longer listed.
fn changed<'d>(seen: &mut HashMap<DeliveryId, Progress>, listed: &'d [Delivery]) -> Vec<&'d Delivery> {
    let progress = |delivery: &Delivery| (delivery.status, delivery.attempts);
    let mut changed: Vec<&Delivery> =
        listed.iter().filter(|delivery| seen.get(&delivery.id) != Some(&progress(delivery))).collect();
    changed.sort_by_key(|delivery| delivery.id);
    *seen = listed.iter().map(|delivery| (delivery.id, progress(delivery))).collect();
    changed
}

/// Formats a delivery as one line for people.
fn line(delivery: &Delivery) -> String {
    format!(
        "{}  {:<9}  {:<26}  attempt {:<2}  {:<4}  {}",
        delivery.id,
        delivery.status.as_str(),
        delivery.event.as_str(),
        delivery.attempts,
        or_dash(delivery.last_status),
        full(delivery.created_at),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_core::values::{EventKind, Timestamp};
    use svc_core::webhooks::events::Event;
    use uuid::Uuid;

    fn delivery(id: u128) -> Delivery {
        let event = Event {
            id: Uuid::nil().into(),
            tenant_id: TenantId(Uuid::nil()),
            kind: EventKind::JobCreated,
            data: serde_json::value::RawValue::from_string("{}".to_owned()).unwrap(),
            created_at: Timestamp::from_micros(0),
            only_for: None,
        };
        event.delivery_to(Uuid::from_u128(id).into(), Uuid::nil().into(), false).into()
    }

    #[test]
    fn each_change_of_a_delivery_is_reported_once() {
        let mut seen = HashMap::new();
        let mut poll = |listed: &[Delivery]| -> Vec<u128> {
            changed(&mut seen, listed).into_iter().map(|delivery| delivery.id.uuid().as_u128()).collect()
        };
        let (one, mut two) = (delivery(1), delivery(2));
        assert_eq!(poll(&[two.clone(), one.clone()]), [1, 2]);
        assert_eq!(poll(&[two.clone(), one.clone()]), []);
        two.attempts = 1;
        assert_eq!(poll(&[two.clone(), one.clone()]), [2]);
        two.status = DeliveryStatus::Succeeded;
        assert_eq!(poll(&[delivery(3), two, one]), [2, 3]);
    }

    #[test]
    fn a_line_shows_the_progress_of_a_delivery() {
        let line = line(&delivery(1));
        assert_eq!(
            line,
            "00000000-0000-0000-0000-000000000001  pending    job.created                 attempt 0   -     \
             1970-01-01 00:00:00Z"
        );
    }
}
