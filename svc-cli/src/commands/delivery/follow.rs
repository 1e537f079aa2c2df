//! `svc delivery list --follow`: a line whenever a delivery comes or gets on, until Ctrl-C.

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::time::Duration;

use svc_core::accounts::tenants;
use svc_core::store::{DeliveryFilter, Store};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus};
use uuid::Uuid;

use super::super::tenant;
use super::view;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::{self, Outcome, or_dash};
use crate::times::moment_seen;

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(500);
/// Deliveries that are watched: the newest that were asked for.
const WATCHED: u32 = 1_000;

pub(super) async fn run(
    store: &dyn Store,
    tenant: TenantId,
    filter: DeliveryFilter,
    json: bool,
) -> Result<Outcome, Failure> {
    let mut seen = HashMap::new();
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    loop {
        let filter = DeliveryFilter { limit: WATCHED, ..filter.clone() };
        let listed = store
            .read("delivery.follow", move |tx| {
                let filter = filter.clone();
                Box::pin(async move {
                    tenants::get(tx, tenant).await?;
                    Ok(tx.list_deliveries(tenant, &filter).await?)
                })
            })
            .await;
        let listed = listed.or_not_found("tenant", tenant, tenant::HINT)?;
        let now = store.env().now();
        for delivery in news(&mut seen, &listed) {
            let text =
                if json { serde_json::to_string(&view(delivery)).unwrap_or_default() } else { line(delivery, now) };
            match output::write_now(&text) {
                // Who read this has seen enough.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Outcome::nothing()),
                written => written?,
            }
        }
        tokio::select! {
            biased;
            _ = &mut interrupted => return Ok(Outcome::nothing()),
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// What is new since the last look, oldest first; forgets what is not listed any more.
fn news<'d>(seen: &mut HashMap<Uuid, (DeliveryStatus, u32)>, listed: &'d [Delivery]) -> Vec<&'d Delivery> {
    let now = |delivery: &Delivery| (delivery.status, delivery.attempts);
    let mut news: Vec<&Delivery> =
        listed.iter().filter(|delivery| seen.get(&delivery.id) != Some(&now(delivery))).collect();
    news.sort_by_key(|delivery| delivery.id);
    *seen = listed.iter().map(|delivery| (delivery.id, now(delivery))).collect();
    news
}

fn line(delivery: &Delivery, now: Timestamp) -> String {
    format!(
        "{}  {:<9}  {:<26}  attempt {:<2}  {:<4}  {}",
        delivery.id,
        delivery.status.as_str(),
        delivery.kind.as_str(),
        delivery.attempts,
        or_dash(delivery.last_status),
        moment_seen(delivery.created_at, now),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_core::values::EventKind;
    use svc_core::webhooks::events::Event;

    fn delivery(id: u128) -> Delivery {
        let event = Event {
            id: Uuid::nil(),
            tenant_id: TenantId(Uuid::nil()),
            kind: EventKind::JobCreated,
            data: serde_json::value::RawValue::from_string("{}".to_owned()).unwrap(),
            created_at: Timestamp::from_micros(0),
            only_for: None,
        };
        event.delivery_to(Uuid::from_u128(id), Uuid::nil(), false)
    }

    #[test]
    fn each_step_of_a_delivery_is_told_once() {
        let mut seen = HashMap::new();
        let mut told = |listed: &[Delivery]| -> Vec<u128> {
            news(&mut seen, listed).into_iter().map(|delivery| delivery.id.as_u128()).collect()
        };
        let (one, mut two) = (delivery(1), delivery(2));
        assert_eq!(told(&[two.clone(), one.clone()]), [1, 2]);
        assert_eq!(told(&[two.clone(), one.clone()]), []);
        two.attempts = 1;
        assert_eq!(told(&[two.clone(), one.clone()]), [2]);
        two.status = DeliveryStatus::Succeeded;
        assert_eq!(told(&[delivery(3), two, one]), [2, 3]);
    }

    #[test]
    fn a_line_has_what_matters() {
        let line = line(&delivery(1), Timestamp::from_micros(180_000_000));
        assert_eq!(
            line,
            "00000000-0000-0000-0000-000000000001  pending    job.created                 attempt 0   -     \
             1970-01-01 00:00:00Z (3 minutes ago)"
        );
    }
}
