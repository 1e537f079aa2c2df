//! Accounts, with their API keys, members, dashboard links and audit log.

use super::logs::{self, LogQuery};
use crate::accounts::dashboard_links;
use crate::accounts::keys::{self, KeyCreate, KeyId};
use crate::accounts::members::{self, Member, MemberId};
use crate::accounts::{audit, tenants};
use crate::error::Error;
use crate::lookup::{self, RecordId};
use crate::pages::Page;
use crate::platform::{
    Account, AccountCreate, AccountListParams, AccountUpdate, ApiKey, ApiKeyCreate, ApiKeyRotation, ApiKeyWithSecret,
    AuditEntry, DashboardLink, DashboardLinkCreate, MemberCreate, MemberUpdate, Method, NewSandbox, Operation,
    OperatorLink, OperatorLinkCreate, SandboxStep, Seconds,
};
use crate::sandboxes;
use crate::values::TenantId;

/// Creates an account.
pub const CREATE_ACCOUNT: Operation<(), AccountCreate, Account> =
    Operation::new("createAccount", Method::Post, "accounts", "", &async |tx, (), input: &AccountCreate| {
        Ok(tenants::create(tx, input.clone().into()).await?.into())
    });

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
    .unwrapped();

/// Finds the accounts that have a record with an id.
pub const FIND_ACCOUNTS: Operation<(), RecordId, Page<Account>> =
    Operation::new("findAccounts", Method::Get, "find-accounts", "", &async |tx, (), input: &RecordId| {
        let tenants = lookup::accounts_of(tx, input.kind, input.id).await?;
        Ok(Page::whole(tenants.into_iter().map(Account::from).collect()))
    })
    .unwrapped();

/// Retrieves an account.
pub const GET_ACCOUNT: Operation<TenantId, (), Account> =
    Operation::new("getAccount", Method::Get, "", "", &async |tx, account, _| {
        Ok(tenants::get(tx, account).await?.into())
    });

/// Changes an account.
pub const UPDATE_ACCOUNT: Operation<TenantId, AccountUpdate, Account> =
    Operation::new("updateAccount", Method::Patch, "", "", &async |tx, account: TenantId, input: &AccountUpdate| {
        Ok(tenants::update(tx, account.0, |tenant| input.clone().apply(tenant)).await?.into())
    });

/// Retrieves the sandbox of an account.
pub const GET_SANDBOX: Operation<TenantId, (), Account> =
    Operation::new("getSandbox", Method::Get, "sandbox", "", &async |tx, account, _| {
        Ok(sandboxes::find(tx, account).await?.ok_or(Error::NotFound)?.into())
    });

/// Creates the sandbox of an account, with a key.
pub const CREATE_SANDBOX: Operation<TenantId, (), NewSandbox> =
    Operation::new("createSandbox", Method::Post, "sandbox", "", &async |tx, account, _| {
        Ok(sandboxes::create(tx, account).await?.into())
    });

/// Takes one step of resetting the sandbox of an account.
pub const RESET_SANDBOX: Operation<TenantId, (), SandboxStep> =
    Operation::new("resetSandbox", Method::Post, "sandbox", "reset", &async |tx, account, _| {
        Ok(sandboxes::reset_step(tx, account).await?.into())
    });

/// Takes one step of deleting the sandbox of an account.
pub const DELETE_SANDBOX: Operation<TenantId, (), SandboxStep> =
    Operation::new("deleteSandbox", Method::Post, "sandbox", "delete", &async |tx, account, _| {
        Ok(sandboxes::delete_step(tx, account).await?.into())
    });

/// Lists the API keys of an account.
pub const LIST_KEYS: Operation<TenantId, (), Page<ApiKey>> =
    Operation::new("listKeys", Method::Get, "keys", "", &async |tx, account, _| {
        Ok(Page::whole(tx.api_keys(account).await?.into_iter().map(ApiKey::from).collect()))
    })
    .unwrapped();

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
    });

/// Retrieves an API key.
pub const GET_KEY: Operation<(TenantId, KeyId), (), ApiKey> =
    Operation::new("getKey", Method::Get, "keys", "", &async |tx, (account, id), _| {
        Ok(keys::get_of(tx, account, id).await?.into())
    });

/// Revokes an API key.
pub const REVOKE_KEY: Operation<(TenantId, KeyId), (), ApiKey> =
    Operation::new("revokeKey", Method::Post, "keys", "revoke", &async |tx, (account, id), _| {
        keys::get_of(tx, account, id).await?;
        Ok(keys::revoke(tx, id).await?.into())
    });

/// Replaces an API key, which stays valid for an overlap.
pub const ROTATE_KEY: Operation<(TenantId, KeyId), ApiKeyRotation, ApiKeyWithSecret> =
    Operation::new("rotateKey", Method::Post, "keys", "rotate", &async |tx, (account, id), input: &ApiKeyRotation| {
        keys::get_of(tx, account, id).await?;
        Ok(keys::rotate(tx, id, Seconds::overlap(input.overlap)).await?.into())
    });

/// Lists the members of an account.
pub const LIST_MEMBERS: Operation<TenantId, (), Page<Member>> =
    Operation::new("listMembers", Method::Get, "members", "", &async |tx, account, _| {
        members::list(tx, account).await.map(Page::whole)
    })
    .unwrapped();

/// Adds a member.
pub const ADD_MEMBER: Operation<TenantId, MemberCreate, Member> =
    Operation::new("addMember", Method::Post, "members", "", &async |tx, account, input: &MemberCreate| {
        members::add(tx, account, &input.email, input.role).await
    });

/// Retrieves a member.
pub const GET_MEMBER: Operation<(TenantId, MemberId), (), Member> =
    Operation::new("getMember", Method::Get, "members", "", &async |tx, (account, id), _| {
        members::get(tx, account, id).await
    });

/// Changes the role of a member.
pub const UPDATE_MEMBER: Operation<(TenantId, MemberId), MemberUpdate, Member> =
    Operation::new("updateMember", Method::Patch, "members", "", &async |tx, (account, id), input: &MemberUpdate| {
        members::set_role(tx, account, id, input.role).await
    });

/// Removes a member.
pub const REMOVE_MEMBER: Operation<(TenantId, MemberId), (), ()> =
    Operation::new("removeMember", Method::Delete, "members", "", &async |tx, (account, id), _| {
        members::remove(tx, account, id).await.map(drop)
    });

/// Creates a link that signs a person in to the dashboard of an account.
pub const CREATE_DASHBOARD_LINK: Operation<TenantId, DashboardLinkCreate, DashboardLink> = Operation::new(
    "createDashboardLink",
    Method::Post,
    "dashboard-links",
    "",
    &async |tx, account, input: &DashboardLinkCreate| {
        let link = dashboard_links::DashboardLinkCreate::to(account, input.role);
        let link = match &input.identity {
            Some(identity) => link.identity(identity.as_str()),
            None => link,
        };
        Ok(DashboardLink::new(account, dashboard_links::create(tx, link).await?))
    },
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
        Ok(position.page(tx, entries.into_iter().map(AuditEntry::from).collect(), last))
    })
    .unwrapped();
