//! Apps, the grants of tenants to them, and their codes and tokens.

use std::time::Duration;

use futures_util::future::join_all;
use svc_core::accounts::apps::{self, App, AppCreate, AppUpdate};
use svc_core::accounts::grants::{AuthorizationCode, Grant, GrantUse, Token};
use svc_core::accounts::keys::Scope;
use svc_core::accounts::operational::PLATFORM_ACCOUNT;
use svc_core::error::{Error, StoreError};
use svc_core::oauth;
use svc_core::resources::crud;
use svc_core::values::{Id, RedirectUri, TenantId, Text, Timestamp, WebhookUrl};
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::Harness;

const HOUR: Duration = Duration::from_secs(60 * 60);

impl Harness {
    pub(super) async fn new_app(&self, owner: Option<TenantId>) -> App {
        let uris = ["https://example.com/cb?a=1", "com.example.app:/cb", "http://127.0.0.1/"];
        let uris = uris.map(|uri| RedirectUri::parse(uri).unwrap()).to_vec();
        let mut input = AppCreate::new("Zoë's 🗺".parse().unwrap(), uris);
        (input.owner, input.write) = (owner, true);
        input.website = Some("https://example.com/ü".parse().unwrap());
        self.write(input, async |tx, input| Ok(apps::create(tx, input.clone()).await?.app)).await.unwrap()
    }

    pub(super) async fn new_grant(&self, tenant: TenantId, app: &App) -> Grant {
        let now = self.store.env().now();
        let grant = Grant {
            id: self.store.env().id(now),
            tenant_id: tenant,
            app_id: app.id,
            scopes: vec![Scope::Read],
            member: "ada@example.com".to_owned(),
            created_at: now,
            last_used_at: None,
            requests: 0,
        };
        self.write(grant.clone(), async |tx, grant| Ok(tx.insert_grant(grant).await?)).await.unwrap();
        grant
    }

    pub(super) async fn grant(&self, grant: &Grant) -> Option<Grant> {
        self.read((grant.tenant_id, grant.id), async |tx, &(tenant, id)| Ok(tx.grant(tenant, id).await?)).await.unwrap()
    }

    async fn stored_token(&self, hash: [u8; 32]) -> Option<Token> {
        self.read(hash, async |tx, hash| Ok(tx.token(hash).await?)).await.unwrap()
    }

    async fn add_token(&self, token: &Token, hash: [u8; 32]) {
        let input = (token.clone(), hash);
        self.write(input, async |tx, (token, hash)| Ok(tx.insert_token(token, hash).await?)).await.unwrap();
    }
}

fn code(grant: &Grant, expires_at: Timestamp) -> AuthorizationCode {
    AuthorizationCode {
        id: Id::max(),
        tenant_id: grant.tenant_id,
        grant_id: grant.id,
        app_id: grant.app_id,
        writes: true,
        redirect_uri: Some("https://example.com/cb?a=1".to_owned()),
        challenge: [255; 32],
        resource: Some("/api/v1".to_owned()),
        expires_at,
        is_used: false,
    }
}

fn token(grant: &Grant, is_refresh: bool, expires_at: Timestamp) -> Token {
    Token {
        authorization: Id::max(),
        tenant_id: grant.tenant_id,
        grant_id: grant.id,
        app_id: grant.app_id,
        is_refresh,
        writes: false,
        resource: None,
        expires_at,
        nonce: [7; 32],
        successor: None,
        replaced_at: None,
    }
}

pub(super) async fn an_app_is_stored(h: Harness) {
    let tenant = h.tenant().await;
    let (own, other) = (h.new_app(Some(tenant)).await, h.new_app(None).await);
    let found = |id| h.read(id, async |tx, &id| Ok(tx.app(id).await?));
    assert_eq!(found(own.id).await.unwrap(), Some(own.clone()));
    assert_eq!(found(Id::nil()).await.unwrap(), None);
    let by_client_id =
        h.read(other.client_id.clone(), async |tx, client_id| Ok(tx.app_by_client_id(client_id).await?));
    assert_eq!(by_client_id.await.unwrap(), Some(other.clone()));
    let of = |owner| h.read(owner, async |tx, &owner| Ok(tx.apps(owner).await?));
    assert_eq!(of(Some(tenant)).await.unwrap(), std::slice::from_ref(&own));
    assert!(of(None).await.unwrap().contains(&other));
    let copy = App { id: Id::max(), ..own.clone() };
    let copied = h.write(copy, async |tx, app| Ok(tx.insert_app(app).await?)).await;
    assert!(matches!(copied, Err(Error::Store(StoreError::Conflict { .. }))), "a client id is unique");

    let change = AppUpdate {
        name: Some("Ada".parse().unwrap()),
        website: Some(None),
        write: Some(false),
        disconnect_url: Some(Some("https://example.com/bye".parse().unwrap())),
        disabled: Some(true),
        redirect_uris: Some(vec![RedirectUri::parse("https://example.com").unwrap()]),
    };
    let changed = h.write((own.id, change), async |tx, (id, change)| {
        apps::update(tx, *id, change.clone()).await?;
        Ok(apps::rotate_secret(tx, *id, HOUR).await?.app)
    });
    let changed = changed.await.unwrap();
    assert!(changed.previous_hash == own.secret_hash && changed.disabled_at.is_some());
    assert_eq!(found(own.id).await.unwrap(), Some(changed));
    h.write(own.id, async |tx, &id| Ok(tx.delete_app(id).await?)).await.unwrap();
    assert_eq!(found(own.id).await.unwrap(), None);
}

pub(super) async fn a_tenant_has_one_grant_for_an_app(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let app = h.new_app(None).await;
    let (grant, foreign) = (h.new_grant(tenant, &app).await, h.new_grant(other, &app).await);
    assert_eq!(h.grant(&grant).await.as_ref(), Some(&grant));
    assert_eq!(h.grant(&Grant { tenant_id: other, ..grant.clone() }).await, None, "it is that of another tenant");
    let second = Grant { id: Id::max(), ..grant.clone() };
    let second = h.write(second, async |tx, grant| Ok(tx.insert_grant(grant).await?)).await;
    assert!(matches!(second, Err(Error::Store(StoreError::Conflict { .. }))));
    let to = h.read((tenant, app.id), async |tx, &(tenant, app)| Ok(tx.grant_to(tenant, app).await?));
    assert_eq!(to.await.unwrap().as_ref(), Some(&grant));
    let grants = h.read(tenant, async |tx, &tenant| Ok(tx.grants(tenant, 9).await?)).await.unwrap();
    assert_eq!(grants, std::slice::from_ref(&grant));
    let all = h.read(app.id, async |tx, &app| Ok(tx.grants_to(app, 9).await?)).await.unwrap();
    assert!(all.len() == 2 && all.contains(&grant) && all.contains(&foreign));

    let more = Grant { scopes: vec![Scope::Read, Scope::Write], member: "bob".to_owned(), ..grant.clone() };
    h.write(more.clone(), async |tx, grant| Ok(tx.update_grant(grant).await?)).await.unwrap();
    let now = h.store.env().now();
    for (used_at, requests) in [(now, 2), (now.next(), 1 << 40), (now, 3)] {
        let uses = [GrantUse { tenant_id: tenant, grant_id: grant.id, used_at, requests }];
        h.write(uses, async |tx, uses| Ok(tx.record_grant_uses(uses).await?)).await.unwrap();
    }
    let used = Grant { last_used_at: Some(now.next()), requests: (1 << 40) + 5, ..more };
    assert_eq!(h.grant(&grant).await, Some(used));
    assert_eq!(h.grant(&foreign).await.as_ref(), Some(&foreign));
}

pub(super) async fn a_code_and_a_token_are_stored(h: Harness) {
    let tenant = h.tenant().await;
    let app = h.new_app(None).await;
    let grant = h.new_grant(tenant, &app).await;
    let later = h.store.env().now().checked_add(HOUR).unwrap();
    let code = code(&grant, later);
    h.write(code.clone(), async |tx, code| Ok(tx.insert_code(code, &[1; 32]).await?)).await.unwrap();
    let found = || h.read((), async |tx, ()| Ok(tx.code(&[1; 32]).await?));
    assert_eq!(found().await.unwrap(), Some(code.clone()));
    h.write((), async |tx, ()| Ok(tx.use_code(&[1; 32]).await?)).await.unwrap();
    assert_eq!(found().await.unwrap(), Some(AuthorizationCode { is_used: true, ..code }));

    let (refresh, access) = (token(&grant, true, later), token(&grant, false, later));
    h.add_token(&refresh, [2; 32]).await;
    h.add_token(&access, [3; 32]).await;
    let replaced =
        Token { successor: Some([9; 32]), replaced_at: Some(later), expires_at: later.next(), ..refresh.clone() };
    h.write(replaced.clone(), async |tx, token| Ok(tx.update_token(token, &[2; 32]).await?)).await.unwrap();
    assert_eq!(h.stored_token([2; 32]).await, Some(replaced));
    assert_eq!(h.stored_token([3; 32]).await, Some(access));

    let credential = |hash: [u8; 32]| h.read(hash, async |tx, hash| Ok(tx.token_credential(hash).await?));
    let found = credential([3; 32]).await.unwrap().unwrap();
    assert_eq!((found.grant_id, found.app_id, found.tenant_id), (grant.id, app.id, tenant));
    assert!(!found.writes && !found.is_disabled && found.resource.is_none() && found.expires_at == later);
    assert!(credential([2; 32]).await.unwrap().is_none(), "a refresh token authenticates nobody");
    assert!(credential([4; 32]).await.unwrap().is_none());
    let disable = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
    let disable = h.write((app.id, disable), async |tx, (id, change)| apps::update(tx, *id, change.clone()).await);
    disable.await.unwrap();
    assert!(credential([3; 32]).await.unwrap().unwrap().is_disabled);
}

pub(super) async fn the_end_of_a_grant_ends_its_tokens(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let app = h.new_app(None).await;
    let (grant, foreign) = (h.new_grant(tenant, &app).await, h.new_grant(other, &app).await);
    let later = h.store.env().now().checked_add(HOUR).unwrap();
    h.write(code(&grant, later), async |tx, code| Ok(tx.insert_code(code, &[1; 32]).await?)).await.unwrap();
    for (hash, token) in [
        ([2; 32], token(&grant, true, later)),
        ([3; 32], token(&grant, false, later)),
        ([4; 32], Token { authorization: Id::nil(), ..token(&grant, false, later) }),
        ([5; 32], token(&foreign, true, later)),
    ] {
        h.add_token(&token, hash).await;
    }
    let has_refresh = |at| {
        let input = (tenant, grant.id, at);
        h.read(input, async |tx, &(tenant, grant, at)| Ok(tx.has_refresh_token(tenant, grant, at).await?))
    };
    assert!(has_refresh(h.store.env().now()).await.unwrap() && !has_refresh(later).await.unwrap());
    h.write(tenant, async |tx, &tenant| Ok(tx.delete_tokens_of(tenant, Id::max()).await?)).await.unwrap();
    assert!(!has_refresh(h.store.env().now()).await.unwrap());
    let left = async |hash| h.stored_token(hash).await.is_some();
    assert_eq!([left([2; 32]).await, left([3; 32]).await, left([4; 32]).await], [false, false, true]);
    let end = (tenant, grant.id);
    h.write(end, async |tx, &(tenant, id)| Ok(tx.delete_grant(tenant, id).await?)).await.unwrap();
    assert_eq!(h.grant(&grant).await, None);
    assert!(!left([4; 32]).await);
    assert_eq!(h.read((), async |tx, ()| Ok(tx.code(&[1; 32]).await?)).await.unwrap(), None);
    assert!(left([5; 32]).await && h.grant(&foreign).await.is_some(), "another tenant keeps its own");
}

pub(super) async fn a_locked_app_is_changed_by_nobody_else(h: Harness) {
    let owner = h.tenant().await;
    for app in [h.new_app(None).await, h.new_app(Some(owner)).await] {
        let changes = (0..16).map(|at| {
            h.write((app.id, at), async |tx, &(id, at)| {
                if at % 2 == 0 {
                    let change = AppUpdate { write: Some(at % 4 == 0), ..AppUpdate::default() };
                    return apps::update(tx, id, change).await.map(drop);
                }
                let app = tx.lock_app(id).await?.ok_or(Error::NotFound)?;
                let count = app.name.as_str().parse::<usize>().unwrap_or_default() + 1;
                Ok(tx.update_app(&App { name: Text::from_stored(&count.to_string()), ..app }).await?)
            })
        });
        assert!(join_all(changes).await.into_iter().all(|changed| changed.is_ok()));
        let changed = h.read(app.id, async |tx, &id| Ok(tx.app(id).await?)).await.unwrap().unwrap();
        assert_eq!(changed.name.as_str(), "8");
    }
    assert_eq!(h.write(Id::nil(), async |tx, &id| Ok(tx.lock_app(id).await?)).await, Ok(None));
}

/// The webhook at which an app learns of its disconnection is an ordinary one of the platform account.
pub(super) async fn an_app_whose_webhook_was_deleted_can_be_changed_and_deleted(h: Harness) {
    let url: WebhookUrl = "https://example.com/bye".parse().unwrap();
    let mut input = AppCreate::new("Planner".parse().unwrap(), vec!["https://example.com/cb".parse().unwrap()]);
    input.disconnect_url = Some(url.clone());
    let app = h.write(input, async |tx, input| Ok(oauth::create_app(tx, input.clone()).await?.app)).await.unwrap();
    let delete_webhook = async |app: &App| {
        let id = Id::new(app.webhook_id.unwrap());
        let delete = h.write(id, async |tx, &id| crud::delete::<WebhookSubscription>(tx, PLATFORM_ACCOUNT, id).await);
        delete.await.unwrap();
    };
    let update = async |change| {
        let update = h.write((app.id, change), async |tx, (id, change): &(_, AppUpdate)| {
            oauth::update_app(tx, *id, change.clone()).await
        });
        update.await.unwrap()
    };
    delete_webhook(&app).await;
    let disabled = update(AppUpdate { disabled: Some(true), ..AppUpdate::default() }).await.app;
    assert!(disabled.disabled_at.is_some());
    assert_eq!((disabled.webhook_id, disabled.disconnect_url), (None, None), "nothing is sent there any more");
    let set = AppUpdate { disconnect_url: Some(Some(url)), ..AppUpdate::default() };
    let again = update(set.clone()).await;
    assert!(again.webhook_secret.is_some() && again.app.webhook_id.is_some());
    delete_webhook(&again.app).await;
    let again = update(set).await;
    assert!(again.webhook_secret.is_some(), "the URL is set, so it gets another webhook");
    delete_webhook(&again.app).await;
    let none = update(AppUpdate { disconnect_url: Some(None), ..AppUpdate::default() }).await.app;
    assert_eq!((none.webhook_id, none.disconnect_url), (None, None));
    let again = update(AppUpdate {
        disconnect_url: Some(Some("https://example.com/bye".parse().unwrap())),
        ..AppUpdate::default()
    });
    delete_webhook(&again.await.app).await;
    h.write(app.id, async |tx, &id| oauth::delete_app_at_once(tx, id).await).await.unwrap();
    assert_eq!(h.read(app.id, async |tx, &id| Ok(tx.app(id).await?)).await, Ok(None));
}

pub(super) async fn expired_codes_and_tokens_are_deleted(h: Harness) {
    let tenant = h.tenant().await;
    let app = h.new_app(None).await;
    let grant = h.new_grant(tenant, &app).await;
    let now = h.store.env().now();
    h.write(code(&grant, now), async |tx, code| Ok(tx.insert_code(code, &[1; 32]).await?)).await.unwrap();
    for n in 2..6 {
        h.add_token(&token(&grant, true, now), [n; 32]).await;
    }
    h.add_token(&token(&grant, true, now.next()), [6; 32]).await;
    let delete = |before| h.write(before, async |tx, &before| Ok(tx.delete_expired_tokens(before, 3).await?));
    assert_eq!(delete(now).await, Ok(0));
    assert_eq!(delete(now.next()).await, Ok(4));
    assert_eq!(delete(now.next()).await, Ok(1));
    assert_eq!(delete(now.next()).await, Ok(0));
    assert!(h.stored_token([6; 32]).await.is_some());
}
