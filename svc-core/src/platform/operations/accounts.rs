//! Accounts, with their API keys, members, dashboard links and audit log.

use super::logs::{self, LogQuery};
use super::memory::{EVENTS, WHOLE_LIST};
use crate::accounts::dashboard_links::{self, INVITATION_LIFETIME};
use crate::accounts::keys::{self, KeyCreate, KeyId};
use crate::accounts::members::{self, Member, MemberId};
use crate::accounts::platform_keys::Area;
use crate::accounts::{audit, tenants};
use crate::error::{Error, FieldCode, Issue};
use crate::lookup::{self, RecordId};
use crate::operation::{Method, Operation};
use crate::pages::Page;
use crate::platform::{
    Account, AccountCreate, AccountListParams, AccountUpdate, ApiKey, ApiKeyCreate, ApiKeyRotation, ApiKeyWithSecret,
    AuditEntry, DashboardLink, DashboardLinkCreate, MemberCreate, MemberUpdate, NewSandbox, OperatorLink,
    OperatorLinkCreate, SandboxStep, Seconds,
};
use crate::sandboxes;
use crate::values::TenantId;

/// Creates an account.
pub const CREATE_ACCOUNT: Operation<(), AccountCreate, Account> =
    Operation::new("createAccount", Method::Post, "accounts", "", &async |tx, (), input: &AccountCreate| {
        Ok(tenants::create(tx, input.clone().into()).await?.into())
    })
    .in_area(Area::Accounts)
    .creates_record(|account: &Account| account.id.0, &GET_ACCOUNT)
    .described(
        "Create an account",
        "Creates an account. It is approved, unless you send another `developer_access`; the keys of an account that \
         is not approved are refused with 403.",
        "The created account.",
    );

/// Lists the accounts, without sandboxes unless they are asked for. The cursor is the id of the last account, by which they are sorted.
pub const LIST_ACCOUNTS: Operation<(), AccountListParams, Page<Account>> =
    Operation::new("listAccounts", Method::Get, "accounts", "", &async |tx, (), input: &AccountListParams| {
        let limit = input.limit.unwrap_or_default().get();
        let mut tenants =
            tx.tenants(input.cursor.map(TenantId), limit + 1, input.sandboxes.unwrap_or_default()).await?;
        let has_more = tenants.len() > limit as usize;
        tenants.truncate(limit as usize);
        let next_cursor = tenants.last().filter(|_| has_more).map(|last| last.id.0);
        Ok(Page::new(tenants.into_iter().map(Account::from).collect(), next_cursor))
    })
    .unwrapped()
    .in_area(Area::Accounts)
    .reading(|input| input.limit.unwrap_or_default().get())
    .described(
        "List accounts",
        "Returns a page of all accounts, the oldest first. Sandboxes are among them with `sandboxes` only.",
        "A page of accounts.",
    );

/// Finds the accounts that have a record with an id.
pub const FIND_ACCOUNTS: Operation<(), RecordId, Page<Account>> =
    Operation::new("findAccounts", Method::Get, "find-accounts", "", &async |tx, (), input: &RecordId| {
        let tenants = lookup::accounts_of(tx, input.kind, input.id).await?;
        Ok(Page::whole(tenants.into_iter().map(Account::from).collect()))
    })
    .unwrapped()
    .in_area(Area::Accounts)
    .tagged("accounts")
    .described(
        "Find the account of a record",
        "Returns the accounts that have a record with this id. There is one, or none, unless an import gave records of \
         several accounts the same id. The ids of contacts, bookings and jobs are known within their account only.",
        "The accounts that have the record.",
    );

/// Retrieves an account.
pub const GET_ACCOUNT: Operation<TenantId, (), Account> =
    Operation::new("getAccount", Method::Get, "", "", &async |tx, account, _| {
        Ok(tenants::get(tx, account).await?.into())
    })
    .in_area(Area::Accounts)
    .with_etag()
    .described(
        "Retrieve an account",
        "Returns the account with its settings, its approval and its limits.",
        "The account with this id.",
    );

/// Changes an account.
pub const UPDATE_ACCOUNT: Operation<TenantId, AccountUpdate, Account> =
    Operation::new("updateAccount", Method::Patch, "", "", &async |tx, account: TenantId, input: &AccountUpdate| {
        Ok(tenants::update(tx, account.0, |tenant| input.clone().apply(tenant)).await?.into())
    })
    .in_area(Area::Accounts)
    .retrieved_by(&GET_ACCOUNT)
    .described(
        "Update an account",
        "Changes the fields that you send and leaves the others as they are (JSON Merge Patch, RFC 7396). Set \
         `developer_access` to approve or to suspend the account.",
        "The account after the change.",
    );

/// Retrieves the sandbox of an account.
pub const GET_SANDBOX: Operation<TenantId, (), Account> =
    Operation::new("getSandbox", Method::Get, "sandbox", "", &async |tx, account, _| {
        Ok(sandboxes::find(tx, account).await?.ok_or(Error::NotFound)?.into())
    })
    .in_area(Area::Accounts)
    .tagged("accounts")
    .with_etag()
    .described(
        "Retrieve the sandbox of an account",
        "Returns the sandbox of the account: an account of its own in which programs are tried. An account without one \
         gets 404. Everything else is done with the `id` of the sandbox, as with any account.",
        "The sandbox of the account.",
    );

/// Creates the sandbox of an account, with a key.
pub const CREATE_SANDBOX: Operation<TenantId, (), NewSandbox> =
    Operation::new("createSandbox", Method::Post, "sandbox", "", &async |tx, account, _| {
        Ok(sandboxes::create(tx, account).await?.into())
    })
    .in_area(Area::Accounts)
    .tagged("accounts")
    .creates()
    .described(
        "Create the sandbox of an account",
        "Creates the sandbox of the account, with sample records and an API key that begins with `svc_test_`. Store \
         the key, as no other request returns it. An account has one sandbox: a second one is refused with 409 \
         `not_allowed`, and so is the sandbox of a sandbox.",
        "The created sandbox, with its key.",
    );

/// Takes one step of resetting the sandbox of an account.
pub const RESET_SANDBOX: Operation<TenantId, (), SandboxStep> =
    Operation::new("resetSandbox", Method::Post, "sandbox", "reset", &async |tx, account, _| {
        sandboxes::reset_step(tx, account).await
    })
    .in_area(Area::Accounts)
    .tagged("accounts")
    .described(
        "Reset the sandbox of an account",
        "Deletes the next of the sandbox's records, events, deliveries, logged requests and stored responses, at most \
         500 of them, and creates the sample records when none is left. Repeat the request, each time with another \
         `Idempotency-Key` or none, until `is_done` is true. API keys, webhook subscriptions, sessions and the audit \
         log stay.",
        "What was deleted.",
    );

/// Takes one step of deleting the sandbox of an account.
pub const DELETE_SANDBOX: Operation<TenantId, (), SandboxStep> =
    Operation::new("deleteSandbox", Method::Post, "sandbox", "delete", &async |tx, account, _| {
        sandboxes::delete_step(tx, account).await
    })
    .in_area(Area::Accounts)
    .tagged("accounts")
    .described(
        "Delete the sandbox of an account",
        "Deletes the next of all that the sandbox has, at most 500 rows, and at last the sandbox itself. Its API keys \
         are refused from the first request on. Repeat the request, each time with another `Idempotency-Key` or none, \
         until `is_done` is true.",
        "What was deleted.",
    );

/// Lists the API keys of an account.
pub const LIST_KEYS: Operation<TenantId, (), Page<ApiKey>> =
    Operation::new("listKeys", Method::Get, "keys", "", &async |tx, account, _| {
        Ok(Page::whole(tx.api_keys(account).await?.into_iter().map(ApiKey::from).collect()))
    })
    .unwrapped()
    .in_area(Area::Keys)
    .reading(|_| WHOLE_LIST)
    .described(
        "List API keys",
        "Returns all API keys of the account, the oldest first, also those that are revoked or expired. Their texts \
         are not included.",
        "All API keys of the account.",
    );

/// Creates an API key.
pub const CREATE_KEY: Operation<TenantId, ApiKeyCreate, ApiKeyWithSecret> =
    Operation::new("createKey", Method::Post, "keys", "", &async |tx, account, input: &ApiKeyCreate| {
        let key = KeyCreate {
            name: input.name.as_ref().map(|name| name.as_str().to_owned()),
            write: input.scopes.write,
            expires_in: input.expires_in.map(Seconds::duration),
            signed: input.signed.unwrap_or_default(),
        };
        Ok(keys::create(tx, account, key).await?.into())
    })
    .in_area(Area::Keys)
    .creates_record(|key: &ApiKeyWithSecret| key.id.uuid(), &GET_KEY)
    .described(
        "Create an API key",
        "Creates an API key. The response contains its text, and its signing secret if it signs its writes. Store \
         them, as no other request returns them.",
        "The created API key, with its text.",
    );

/// Retrieves an API key.
pub const GET_KEY: Operation<(TenantId, KeyId), (), ApiKey> =
    Operation::new("getKey", Method::Get, "keys", "", &async |tx, (account, id), _| {
        Ok(keys::get_of(tx, account, id).await?.into())
    })
    .in_area(Area::Keys)
    .with_etag()
    .described(
        "Retrieve an API key",
        "Returns the API key with this id, without its text.",
        "The API key with this id.",
    );

/// Revokes an API key.
pub const REVOKE_KEY: Operation<(TenantId, KeyId), (), ApiKey> =
    Operation::new("revokeKey", Method::Post, "keys", "revoke", &async |tx, (account, id), _| {
        keys::get_of(tx, account, id).await?;
        Ok(keys::revoke(tx, id).await?.into())
    })
    .in_area(Area::Keys)
    .described(
        "Revoke an API key",
        "Revokes the API key, which is refused from the next request on. A revocation cannot be undone. Revoking a \
         revoked key changes nothing.",
        "The revoked API key.",
    );

/// Replaces an API key, which stays valid for an overlap.
pub const ROTATE_KEY: Operation<(TenantId, KeyId), ApiKeyRotation, ApiKeyWithSecret> =
    Operation::new("rotateKey", Method::Post, "keys", "rotate", &async |tx, (account, id), input: &ApiKeyRotation| {
        keys::get_of(tx, account, id).await?;
        Ok(keys::rotate(tx, id, Seconds::overlap(input.overlap)).await?.into())
    })
    .in_area(Area::Keys)
    .creates()
    .described(
        "Rotate an API key",
        "Creates an API key with the name, scopes, lifetime and signing choice of this one, which expires after the \
         overlap. A key that is revoked or expired is refused with 409 `not_allowed`.",
        "The new API key, with its text.",
    );

/// Lists the members of an account.
pub const LIST_MEMBERS: Operation<TenantId, (), Page<Member>> =
    Operation::new("listMembers", Method::Get, "members", "", &async |tx, account, _| {
        members::list(tx, account).await.map(Page::whole)
    })
    .unwrapped()
    .in_area(Area::Members)
    .reading(|_| WHOLE_LIST)
    .described(
        "List members",
        "Returns all members of the account: the people who sign in to its dashboard with their email address.",
        "All members of the account.",
    );

/// Adds a member.
pub const ADD_MEMBER: Operation<TenantId, MemberCreate, Member> =
    Operation::new("addMember", Method::Post, "members", "", &async |tx, account, input: &MemberCreate| {
        members::add(tx, account, &input.email, input.role).await
    })
    .in_area(Area::Members)
    .creates_record(|member| member.id.uuid(), &GET_MEMBER)
    .described(
        "Add a member",
        "Lets a person sign in to the dashboard of the account with this email address. An address that is a member \
         already is refused with 409 `not_allowed`.",
        "The added member.",
    );

/// Retrieves a member.
pub const GET_MEMBER: Operation<(TenantId, MemberId), (), Member> =
    Operation::new("getMember", Method::Get, "members", "", &async |tx, (account, id), _| {
        members::get(tx, account, id).await
    })
    .in_area(Area::Members)
    .with_etag()
    .described("Retrieve a member", "Returns the member with this id.", "The member with this id.");

/// Changes the role of a member.
pub const UPDATE_MEMBER: Operation<(TenantId, MemberId), MemberUpdate, Member> =
    Operation::new("updateMember", Method::Patch, "members", "", &async |tx, (account, id), input: &MemberUpdate| {
        members::set_role(tx, account, id, input.role).await
    })
    .in_area(Area::Members)
    .retrieved_by(&GET_MEMBER)
    .described(
        "Change the role of a member",
        "Changes what the member may do from the next request on.",
        "The member after the change.",
    );

/// Removes a member.
pub const REMOVE_MEMBER: Operation<(TenantId, MemberId), (), ()> =
    Operation::new("removeMember", Method::Delete, "members", "", &async |tx, (account, id), _| {
        members::remove(tx, account, id).await.map(drop)
    })
    .in_area(Area::Members)
    .retrieved_by(&GET_MEMBER)
    .described(
        "Remove a member",
        "Removes the member, who can no longer see the account from the next request on.",
        "The member was removed. The response has no body.",
    );

/// Creates a link that signs a person in to the dashboard of an account.
pub const CREATE_DASHBOARD_LINK: Operation<TenantId, DashboardLinkCreate, DashboardLink> = Operation::new(
    "createDashboardLink",
    Method::Post,
    "dashboard-links",
    "",
    &async |tx, account, input: &DashboardLinkCreate| {
        let link = match (input.role, &input.identity, &input.email) {
            (None, None, Some(email)) => dashboard_links::DashboardLinkCreate::to_member(account, email.clone()),
            (_, _, Some(_)) => {
                let reason = "takes the role and the name of the member; leave `role` and `identity` out";
                return Err(Issue::new(FieldCode::InvalidFormat, reason).on("email"));
            }
            (None, _, None) => {
                let reason = "is required, unless `email` names a member";
                return Err(Issue::new(FieldCode::Required, reason).on("role"));
            }
            (Some(role), None, None) => dashboard_links::DashboardLinkCreate::to(account, role),
            (Some(role), Some(identity), None) => {
                dashboard_links::DashboardLinkCreate::to(account, role).identity(identity.as_str())
            }
        };
        let link = match input.lifetime.map(Seconds::duration) {
            None => link,
            Some(lifetime) if !lifetime.is_zero() && lifetime <= INVITATION_LIFETIME => link.valid_for(lifetime),
            Some(_) => {
                let reason = format!("must be from 1 to {}", INVITATION_LIFETIME.as_secs());
                return Err(Issue::new(FieldCode::OutOfRange, reason).on("lifetime"));
            }
        };
        Ok(DashboardLink::new(account, dashboard_links::create(tx, link).await?))
    },
)
.in_area(Area::Members)
.creates()
.described(
    "Create a dashboard link",
    "Creates a link that signs a person in to the dashboard of the account, with any role, or as the member with \
     `email`. It works once, within `lifetime`. An address that is not a member's is refused with 409 `not_allowed`; \
     add the member first. A key with the scope `members:write` can make a link for an owner, who manages API keys, \
     settings and members there: the session that the link begins goes on when the key is revoked.",
    "The created link.",
);

/// Creates a link that signs an operator in to the dashboard.
pub const CREATE_OPERATOR_LINK: Operation<(), OperatorLinkCreate, OperatorLink> = Operation::new(
    "createOperatorLink",
    Method::Post,
    "operator-links",
    "",
    &async |tx, (), input: &OperatorLinkCreate| {
        let link = dashboard_links::DashboardLinkCreate::for_operator();
        let link = match &input.identity {
            Some(identity) => link.identity(identity.as_str()),
            None => link,
        };
        Ok(dashboard_links::create(tx, link).await?.into())
    },
)
.in_area(Area::Operators)
.creates()
.described(
    "Create a link for an operator",
    "Creates a link that signs an operator in to the dashboard, who sees all accounts, approves them and sets their \
     limits. It works once, for ten minutes. The key needs the scope `operators:write`, which `*` does not include: \
     the session that the link begins goes on when the key is revoked.",
    "The created link.",
);

/// Lists the changes in an account, the newest first. Changes of the same time are never on two pages.
pub const LIST_AUDIT_LOG: Operation<TenantId, LogQuery, Page<AuditEntry>> =
    Operation::new("listAuditLog", Method::Get, "audit-log", "", &async |tx, account, input: &LogQuery| {
        let (position, times) = logs::times(tx, account, "audit-log", input)?;
        let (mut entries, has_more) = audit::list_range(tx, account, times, position.limit).await?;
        let last = entries.last().filter(|_| has_more).map(|last| last.at);
        if let Some(at) = last {
            entries.retain(|entry| entry.at != at);
            entries.extend(audit::list_range(tx, account, at..at.next(), logs::MAX_OF_ONE_TIME).await?.0);
        }
        Ok(position.page(tx, entries, last))
    })
    .unwrapped()
    .in_area(Area::Audit)
    .reading(|input| EVENTS.max(input.page.limit.unwrap_or_default().get()))
    .described(
        "List the audit log",
        "Returns a page of the changes in the account, the newest first, with who made them. Changes made at the same \
         time stay on one page, which may have more of them than `limit`. A page may have fewer although there are \
         more, when the changed records are large: read on while `next_cursor` is not null.",
        "A page of changes.",
    );
