use std::collections::BTreeSet;

use clap::CommandFactory as _;
use svc_cli::cli::Cli;

use crate::harness::{Session, UNKNOWN_ID};

#[test]
fn a_platform_key_is_made_listed_and_revoked() {
    let mut session = Session::new();
    session.account();
    let all = session.json(&["platform-key", "create"]);
    assert!(all["key"].as_str().unwrap().starts_with("svc_plat_"), "{all}");
    assert_eq!(all["scopes"], serde_json::json!(["*"]));
    let scopes = "records:write,accounts:read,records:write";
    let some = session.json(&["platform-key", "create", "--scopes", scopes, "--name", "Backend", "--expires", "90d"]);
    assert_eq!(some["scopes"], serde_json::json!(["accounts:read", "records:write"]));
    assert!(some["created_by"].as_str().unwrap().starts_with("cli:") && some["expires_at"].is_string(), "{some}");

    let id = some["id"].as_str().unwrap();
    let revoked = session.json(&["platform-key", "revoke", &id[id.len() - 8..]]);
    assert_eq!((&revoked["id"], &revoked["revoked_by"]), (&some["id"], &some["created_by"]));
    let listed = session.json(&["platform-key", "list"]);
    assert!(!listed.to_string().contains(some["key"].as_str().unwrap()), "{listed}");
    session
        .run(&["platform-key", "create"])
        .run(&[
            "platform-key",
            "create",
            "--scopes",
            "records:write",
            "--name",
            "Backend",
            "--expires",
            "90d",
            "--json",
        ])
        .run(&["platform-key", "list"])
        .run(&["platform-key", "list", "--json"])
        .run(&["platform-key", "revoke", id])
        .run(&["platform-key", "revoke", id, "--json"])
        .run(&["platform-key", "create", "--scopes", "audit:write"])
        .run(&["platform-key", "revoke", UNKNOWN_ID])
        .assert("platform_key");
    let dated = session.json(&["platform-key", "create", "--expires", "2099-03-14"]);
    assert!(dated["expires_at"].as_str().unwrap().starts_with("2099-03-14T00:00:0"), "{dated}");
    let past = session.output(&["platform-key", "create", "--expires", "2020-01-01"]);
    let reason = "--expires must be after now; 2020-01-01 00:00:00Z is past.";
    assert!(past.status.code() == Some(2) && String::from_utf8_lossy(&past.stderr).contains(reason), "{past:?}");
    assert_eq!((listed[0]["id"].clone(), listed[1].clone()), (all["id"].clone(), revoked));
}

/// What each command does over the platform API: the ids of its operations, or why it is local. A command without an entry
/// fails the test.
const OPERATIONS: [(&str, &str); 109] = [
    ("init", "local: it makes a database, with an account and a key"),
    ("account create", "createAccount"),
    ("account list", "listAccounts"),
    ("account show", "getAccount"),
    ("account approve", "updateAccount"),
    ("account suspend", "updateAccount"),
    ("account set", "updateAccount"),
    ("account sandbox", "getSandbox createSandbox resetSandbox deleteSandbox"),
    ("account calendar", "shareCalendar unshareCalendar"),
    ("key create", "createKey"),
    ("key list", "listKeys"),
    ("key show", "getKey"),
    ("key revoke", "revokeKey"),
    ("key rotate", "rotateKey"),
    ("app create", "createApp"),
    ("app list", "listApps"),
    ("app show", "getApp"),
    ("app update", "updateApp"),
    ("app rotate-secret", "rotateAppSecret"),
    ("app disable", "updateApp"),
    ("app enable", "updateApp"),
    ("app delete", "deleteApp"),
    ("grant list", "listGrants"),
    ("grant revoke", "listGrants revokeGrant"),
    ("platform-key create", "local: no platform key can make another"),
    ("platform-key list", "local: no platform key can make another"),
    ("platform-key revoke", "local: no platform key can make another"),
    ("dashboard link", "createDashboardLink createOperatorLink"),
    ("member add", "addMember updateMember"),
    ("member invite", "listMembers addMember updateMember createDashboardLink"),
    ("member list", "listMembers"),
    ("member remove", "removeMember"),
    ("contact list", "listContacts"),
    ("contact show", "getContact"),
    ("contact create", "createContact"),
    ("contact update", "updateContact"),
    ("contact delete", "deleteContact"),
    ("contact erase", "eraseContact"),
    ("contact export-all", "getContactData"),
    ("booking list", "listBookings"),
    ("booking show", "getBooking"),
    ("booking create", "createBooking"),
    ("booking update", "updateBooking"),
    ("job list", "listJobs"),
    ("job show", "getJob"),
    ("job create", "createJob"),
    ("job update", "updateJob"),
    ("invoice list", "listInvoices"),
    ("invoice show", "getInvoice"),
    ("invoice create", "createInvoice"),
    ("invoice update", "updateInvoice"),
    ("invoice send", "sendInvoice"),
    ("invoice view", "viewInvoice"),
    ("invoice pay", "payInvoice"),
    ("invoice void", "voidInvoice"),
    ("invoice resend", "resendInvoice"),
    ("invoice refund", "refundInvoice"),
    ("invoice overdue", "markOverdueInvoices"),
    ("quote list", "listQuotes"),
    ("quote show", "getQuote"),
    ("quote create", "createQuote"),
    ("quote update", "updateQuote"),
    ("quote accept", "acceptQuote"),
    ("quote decline", "declineQuote"),
    ("invoice share", "shareInvoice unshareInvoice"),
    ("quote share", "shareQuote unshareQuote"),
    ("quote convert", "convertQuote"),
    ("job invoice", "invoiceJob"),
    ("payment list", "listPayments"),
    ("webhook list", "listWebhooks"),
    ("webhook show", "getWebhook"),
    ("webhook create", "createWebhook createStreamWebhook"),
    ("webhook update", "updateWebhook"),
    ("webhook stats", "getWebhookStatistics listWebhookAttempts"),
    ("webhook enable", "updateWebhook"),
    ("webhook disable", "updateWebhook"),
    ("webhook delete", "deleteWebhook"),
    ("webhook test", "testWebhook"),
    ("webhook rotate-secret", "rotateWebhookSecret finishWebhookSecretRotation"),
    ("delivery list", "listDeliveries"),
    ("delivery show", "getDelivery listDeliveryAttempts"),
    ("delivery replay", "replayDelivery createReplay getReplay"),
    ("delivery replays", "listReplays"),
    ("event list", "listEvents"),
    ("event show", "getEvent listDeliveries"),
    ("event emit", "emitEvent"),
    ("trigger", "emitSampleEvent"),
    ("import", "importRecords"),
    ("export", "exportRecords listContacts listInvoices listQuotes listBookings listJobs"),
    ("find", "findRecords"),
    ("audit list", "listAuditLog"),
    ("request list", "listRequests listKeys"),
    ("api", "listAccounts"),
    ("open", "getContact getInvoice getQuote getBooking getJob getWebhook getEvent getDelivery getKey"),
    ("db migrate", "local: it works on a whole database"),
    ("db copy", "local: it works on a whole database"),
    ("db check", "local: it works on a whole database"),
    ("db backup", "local: it works on a whole database"),
    ("db repair-clock", "local: it works on a whole database"),
    ("db stats", "local: it works on a whole database"),
    ("db prune", "local: it works on a whole database"),
    ("listen", "createTemporaryWebhook keepWebhook deleteWebhook"),
    ("completions", "local: it needs no data"),
    ("webhook filter-test", "local: it needs no data"),
    ("login", "listAccounts"),
    ("mcp", "listAccounts"),
    ("logout", "local: it deletes a file"),
    ("profiles", "local: it lists files"),
    ("man", "local: it needs no data"),
];

/// What programs can do and no command does: the dashboard shows it to people.
const WITHOUT_COMMAND: [&str; 2] = ["getMember", "getStatistics"];

/// How every command finds what was named by an id, a part of one, or a name.
const LOOKUPS: [&str; 3] = ["findAccounts", "findIds", "findRecords"];

#[test]
fn every_command_names_its_operations() {
    let operations = svc_core::platform::operations::platform();
    let mut commands = BTreeSet::new();
    for group in Cli::command().get_subcommands() {
        let name = group.get_name().to_owned();
        match group.get_subcommands().next() {
            None => drop(commands.insert(name)),
            Some(_) => commands.extend(group.get_subcommands().map(|command| format!("{name} {}", command.get_name()))),
        }
    }
    let named: BTreeSet<String> = OPERATIONS.iter().map(|(command, _)| (*command).to_owned()).collect();
    assert_eq!(commands.difference(&named).collect::<Vec<_>>(), [""; 0], "commands without an entry");
    assert_eq!(named.difference(&commands).collect::<Vec<_>>(), [""; 0], "entries without a command");
    let used: BTreeSet<&str> = OPERATIONS
        .iter()
        .filter(|(_, operations)| !operations.starts_with("local: "))
        .flat_map(|(_, operations)| operations.split(' '))
        .chain(WITHOUT_COMMAND)
        .chain(LOOKUPS)
        .collect();
    let all: BTreeSet<&str> = operations.iter().map(|operation| operation.id).collect();
    assert_eq!(used, all, "an operation that no command is for, or one that does not exist");
}
