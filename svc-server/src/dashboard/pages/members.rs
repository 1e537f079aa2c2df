//! The members of an account: a part of its settings, which owners see. And the page on which a person who is a member of
//! several accounts chooses one.

use svc_core::accounts::dashboard_links::{self, DashboardLinkCreate, INVITATION_LIFETIME};
use svc_core::accounts::members::{Member, MemberId};
use svc_core::error::Error;
use svc_core::platform::operations::{REMOVE_MEMBER, UPDATE_MEMBER};
use svc_core::store::Tx;
use svc_core::values::{Email, TenantId};

use super::new_secrets::{NewSecrets, SecretsPage};
use crate::dashboard::prelude::*;

const ROLES: [(&str, &str); 3] = [
    ("viewer", "Viewer: sees everything except secrets"),
    ("developer", "Developer: changes records, takes payments, voids invoices, and manages webhooks as well"),
    ("owner", "Owner: manages API keys, settings and members as well"),
];

/// Returns the members with their forms. `state` is that of the form of a new one.
pub(super) fn card(cx: &Context<'_>, tenant: &Tenant, members: &[Member], state: &FormState<'_>) -> Markup {
    html! {
        section.card {
            div {
                h2 { "Members" }
                p.soft {
                    "The people who can sign in to this account. A change holds from the person's next request on."
                    @match cx.site.provider_host() {
                        Some(host) => { " People sign in with their email address at " (host) ", or with a link that you give them." }
                        None => { " People sign in with a link that you give them." }
                    }
                    " A link is for seven days and signs in once, as that member."
                }
            }
            @if !members.is_empty() {
                (table("Members", &["Email address", "Role", "Added", ""], html! {
                    @for member in members {
                        (row(cx, tenant, member))
                    }
                }))
            }
            form.fields method="post" action=(cx.url("/settings/members")) {
                (hidden(cx, state.values, ""))
                (state.text("email", "Email address", "The audit log names the person by it."))
                (state.choice("role", "Role", "", &ROLES))
                div.actions { button type="submit" { "Add member" } }
            }
        }
    }
}

fn row(cx: &Context<'_>, tenant: &Tenant, member: &Member) -> Markup {
    let path = |action| format!("/settings/members/{}/{action}", member.id);
    html! {
        tr {
            th scope="row" {
                (member.email)
                @if cx.session.email.as_ref() == Some(&member.email) || cx.session.member_id == Some(member.id) { " " (badge(Tone::Good, "you")) }
            }
            td { (member.role) }
            td { (time(cx.now, &tenant.time_zone, member.created_at)) }
            td.end {
                div.actions {
                    (post_button(cx, &path("link"), "", html! {}, "Sign-in link"))
                    (confirmed(cx, "Change role", &format!("The new role of {}:", member.email), &path("role"), html! {
                        select name="role" aria-label="Role" {
                            @for (role, text) in ROLES {
                                option value=(role) selected[role == member.role.as_str()] { (text) }
                            }
                        }
                    }, "Change role"))
                    (confirmed(cx, "Remove", &format!("{} sees nothing of this account any more, and their sessions in it end.", member.email),
                        &path("remove"), html! {}, "Remove member"))
                }
            }
        }
    }
}

/// Returns the fields of the form of a new member, before it is filled in.
pub(super) fn new() -> Form {
    Form::from_fields(vec![("role", Role::Viewer.as_str().to_owned())])
}

/// Makes the link with which a member signs in, and returns its path.
pub(super) async fn invite(tx: &mut dyn Tx, tenant: TenantId, email: &Email) -> Result<NewSecrets, Error> {
    let input = DashboardLinkCreate::to_member(tenant, email.clone()).valid_for(INVITATION_LIFETIME);
    let new = dashboard_links::create(tx, input).await?;
    Ok(NewSecrets { id: new.link.id.uuid(), secret: Some(new.url("")), ..NewSecrets::default() })
}

/// Shows the link of the member with an address.
pub(super) fn invited(
    cx: &Context<'_>,
    tenant: &Tenant,
    title: &str,
    email: &Email,
    invitation: &NewSecrets,
) -> PageResponse {
    let link = invitation.secret.as_ref().map(|path| format!("{}{path}", cx.public_address()));
    let email = email.key();
    let provider = cx.site.provider_host().map(|host| format!(" They can also sign in at {host} with this address."));
    let about = format!(
        "Copy the link now and give it to {email} alone. It signs in once, within seven days, and will not be shown again.{}",
        provider.unwrap_or_default()
    );
    let page = SecretsPage {
        title,
        about: &about,
        texts: &[("link", "Sign-in link", link.as_deref())],
        example: None,
        next: "/settings",
    };
    page.respond(cx, tenant, "I have copied it")
}

/// Makes another link for a member.
pub(crate) async fn link(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let id: MemberId = cx.id()?;
    let email = cx.svc.account(tenant.id).members().get(id).await?.email;
    let invitation = submit(cx, tenant.id, "svc.members.link", email.clone(), async |tx, form| {
        invite(tx, form.tenant, &form.input).await
    });
    Ok(invited(cx, tenant, "Sign-in link", &email, &invitation.await.map_err(refusal)?))
}

/// Changes the role of a member.
pub(crate) async fn set_role(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let role = Role::from_text(cx.form.text("role"));
    let role = role.ok_or_else(|| PageError::Invalid("Choose one of the roles.".to_owned()))?;
    let body = format!("{{\"role\":\"{role}\"}}");
    let response = change(cx, tenant.id, &UPDATE_MEMBER, &body, "/settings?notice=member-changed").await?;
    cx.site.check_sessions();
    Ok(response)
}

/// Removes a member.
pub(crate) async fn remove(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let response = change(cx, tenant.id, &REMOVE_MEMBER, "", "/settings?notice=member-removed").await?;
    cx.site.check_sessions();
    Ok(response)
}

/// Shows the accounts that the person is a member of.
pub(crate) async fn accounts(cx: &Context<'_>, email: &Email) -> Result<PageResponse, PageError> {
    let accounts = cx.svc.dashboard().accounts_of(email.clone()).await?;
    let content = html! {
        (heading("Your accounts", "", html! {}))
        @if accounts.is_empty() {
            (empty("account", "You are no longer a member of any account",
                "Ask an owner of the account to add your email address again. You are signed out by the button at your name.",
                html! {}))
        } @else {
            (section("Choose the account to look at", table("Accounts", &["Account", "Your role", ""], html! {
                @for (tenant, role) in &accounts {
                    tr {
                        th scope="row" { (tenant.name) }
                        td { (role) }
                        td.end {
                            @if cx.session.tenant_id == Some(tenant.id) {
                                (badge(Tone::Good, "shown now"))
                            } @else {
                                form method="post" action=(cx.url(&format!("/switch/{}", tenant.id))) {
                                    (csrf(cx))
                                    button type="submit" aria-label={ "Open " (tenant.name) } { "Open" }
                                }
                            }
                        }
                    }
                }
            })))
        }
    };
    Ok(layout::page(cx, None, "Your accounts", &content))
}

/// Shows another account that the person is a member of.
pub(crate) async fn choose(cx: &Context<'_>, _: &Email) -> Result<PageResponse, PageError> {
    cx.svc.dashboard().choose_account(cx.session.id, cx.id::<TenantId>()?).await?;
    cx.site.check_sessions();
    Ok(cx.see_other("/"))
}
