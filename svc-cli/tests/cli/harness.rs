//! A session: a database in a temporary directory, and a transcript of the commands and their output.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use svc_core::env::Env;
use svc_core::input::Input as _;
use svc_core::resources::contacts::Contact;
use svc_core::resources::{Create, crud};
use svc_core::store::{Store, UnitOfWorkFn};
use svc_core::values::{TenantId, parse_uuid};
use svc_store::{Options, SecretKey};
use tempfile::TempDir;
use uuid::Uuid;

/// The prefix of ids in examples, which the transcript shows unchanged.
const EXAMPLE: &str = "0195a3c8-0000-";

/// An id that no record has.
pub(crate) const UNKNOWN_ID: &str = "0195a3c8-0000-7000-8000-ffffffffffff";

/// Replacements for text that differs between runs. Each replacement has the length of the original, so that columns
/// stay aligned. Dates that tests use are in 2099 and remain unchanged.
const FILTERS: [(&str, &str); 28] = [
    (r"\b20[0-8]\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z", "2026-03-14 15:09:26.535Z"),
    (r"\b20[0-8]\d-\d\d-\d\d \d\d:\d\d:\d\dZ", "2026-03-14 15:09:26Z"),
    (r"\b20[0-8]\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", "2026-03-14 02:09:26.535+11:00"),
    (r"\b20[0-8]\d-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d", "2026-03-14 02:09:26+11:00"),
    (r"\(\d+ years ago\)", "(6 years ago)"),
    (r"\(in \d+ years\)", "(in 73 years)"),
    (r"\b20[0-8]\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "2026-03-14T15:09:26.535897Z"),
    (r"\b20[0-8]\d-\d\d-\d\d\b", "2026-03-14"),
    (r"svc_plat_[0-9A-Za-z]{38}\b", "svc_plat_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    (r"svc_plat_[0-9A-Za-z]{6}\b", "svc_plat_xxxxxx"),
    (r"svc_ocs_[0-9A-Za-z]{38}\b", "svc_ocs_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    (r"svcapp_[0-9A-Za-z]{24}\b", "svcapp_xxxxxxxxxxxxxxxxxxxxxxxx"),
    (r"svc_live_[0-9A-Za-z]{38}\b", "svc_live_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    (r"svc_live_[0-9A-Za-z]{6}\b", "svc_live_xxxxxx"),
    (r"svc_test_[0-9A-Za-z]{38}\b", "svc_test_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    (r"svc_test_[0-9A-Za-z]{6}\b", "svc_test_xxxxxx"),
    (r"svcsig_[0-9A-Za-z+/]{43}=", "svcsig_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx="),
    (r"whsec_[0-9A-Za-z+/]{43}=", "whsec_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx="),
    (r"(\btoken=|\bsecret=|/share/)[0-9A-Za-z_-]{43}", "${1}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    (r"\b127\.0\.0\.1:\d+", "127.0.0.1:9000"),
    (r"sqlite:///[^\s']*/\.tmp\w+/", "sqlite:///home/ada/"),
    (r"(?m)^age:( +)\d[0-9a-z ]*", "age:${1}3 ms"),
    (r#""age_ms":\d+"#, r#""age_ms":3"#),
    (r"\b[0-9a-f]{32}\b", "0123456789abcdef0123456789abcdef"),
    (r"(?m)^(client certificate|certificate authority): +[0-9a-f]{64}$", "${1}: (fingerprint)"),
    (r#"\bcli:[^\s",]+"#, "cli:ada"),
    (r#"(\bschema"?: +"?)\d{4}_\w+"#, "${1}0001_schema"),
    (r#"(\bbytes": |size: +)\d+"#, "${1}345678"),
];

/// A session beside the database.
pub(crate) type Session = SessionOn<Database>;

/// Where the commands of a session work.
pub(crate) trait Backend: Default {
    /// Returns the URL of the database.
    fn database_url(&self, folder: &Path) -> String {
        sqlite_url(folder)
    }

    /// Adds what makes the program work there.
    fn prepare(&self, folder: &Path, args: &[&str], command: &mut Command);
}

/// The database in the session's directory, which is the default of the program.
#[derive(Default)]
pub(crate) struct Database;

impl Backend for Database {
    fn prepare(&self, _: &Path, _: &[&str], _: &mut Command) {}
}

pub(crate) struct SessionOn<B> {
    backend: B,
    folder: TempDir,
    transcript: String,
    /// The ids in the order of their appearance. The transcript shows their position instead.
    ids: Vec<Uuid>,
}

impl<B: Backend> SessionOn<B> {
    /// Creates a session with an empty database.
    pub(crate) fn new() -> Self {
        let session = Self::without_database();
        session.json(&["db", "migrate"]);
        session
    }

    pub(crate) fn without_database() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { backend: B::default(), folder, transcript: String::new(), ids: Vec::new() }
    }

    /// Returns the names of the files in the session's directory, in their order.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Returns the program with the session's directory as its working directory, so that it uses the session's
    /// database by default.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_svc"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        for name in [
            "SVC_DATABASE_URL",
            "SVC_RETENTION",
            "SVC_ALLOW_PRIVATE_WEBHOOKS",
            "SVC_SECRET_KEY",
            "SVC_TENANT",
            "SVC_WEBHOOK_SECRET",
            "SVC_SERVER",
            "SVC_PLATFORM_KEY",
            "SVC_URL",
            "SVC_KEY",
            "SVC_PROFILE",
            "SVC_CA_FILE",
            "NO_COLOR",
            "CLICOLOR",
            "CLICOLOR_FORCE",
            "COLUMNS",
        ] {
            command.env_remove(name);
        }
        self.backend.prepare(self.folder.path(), args, &mut command);
        command
    }

    /// Runs a command without recording it.
    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.program(args).output().unwrap()
    }

    /// Runs a command that must succeed, without recording it, and returns its JSON output.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.program(args).arg("--json").output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a command that must succeed, without recording it, and returns the id in its JSON output.
    pub(crate) fn id(&self, args: &[&str]) -> String {
        self.json(args)["id"].as_str().unwrap().to_owned()
    }

    /// Creates an account and returns its id.
    pub(crate) fn account(&self) -> String {
        self.id(&["account", "create", "--name", "Harbour Plumbing"])
    }

    /// Runs a command and records the command line, stdout, stderr prefixed with `!`, and the exit code unless it is 0.
    pub(crate) fn run(&mut self, args: &[&str]) -> &mut Self {
        let output = self.output(args);
        self.record(args, &output)
    }

    /// Runs a command with long output and records the beginning of its first lines.
    pub(crate) fn run_truncated(&mut self, args: &[&str]) -> &mut Self {
        const LINES: usize = 12;
        let mut output = self.output(args);
        let stdout = text(&output.stdout);
        let mut cut: String = stdout.lines().take(LINES).fold(String::new(), |cut, line| {
            let end = if line.chars().count() > 100 { "…" } else { "" };
            cut + &line.chars().take(100).collect::<String>() + end + "\n"
        });
        if stdout.lines().count() > LINES {
            cut.push_str("…\n");
        }
        output.stdout = cut.into_bytes();
        self.record(args, &output)
    }

    /// Records a command that was run.
    pub(crate) fn record(&mut self, args: &[&str], output: &Output) -> &mut Self {
        let typed: Vec<String> =
            args.iter().map(|arg| if arg.contains(' ') { format!("'{arg}'") } else { (*arg).to_owned() }).collect();
        let typed = format!("$ svc {}", typed.join(" "));
        let mut entry = format!("{}\n{}", typed.trim_end(), text(&output.stdout));
        for line in text(&output.stderr).lines() {
            writeln!(entry, "{}", format!("! {line}").trim_end()).unwrap();
        }
        match output.status.code() {
            Some(0) => entry.push('\n'),
            code => writeln!(entry, "[{}]\n", code.unwrap()).unwrap(),
        }
        self.append(&entry)
    }

    /// Appends text to the transcript.
    pub(crate) fn append(&mut self, entry: &str) -> &mut Self {
        let entry = self.number_ids(entry);
        self.transcript.push_str(&entry);
        self
    }

    /// Replaces ids by numbers, and all actors by one name.
    fn number_ids(&mut self, entry: &str) -> String {
        let mut numbered = String::new();
        let mut rest = entry;
        while let Some(next) = rest.chars().next() {
            // On a server a key acts, beside the database the person who runs the program. The transcripts are the same.
            let key = rest.strip_prefix("platform_key:").and_then(|key| key.split_at_checked(36));
            if let Some((_, after)) = key.filter(|(id, _)| parse_uuid(id).is_ok()) {
                numbered.push_str("cli:ada");
                rest = after;
                continue;
            }
            let id = rest.get(..36).filter(|id| !id.starts_with(EXAMPLE)).and_then(|id| parse_uuid(id).ok());
            let Some(id) = id else {
                numbered.push(next);
                rest = &rest[next.len_utf8()..];
                continue;
            };
            let known = self.ids.iter().position(|known| *known == id);
            let number = known.unwrap_or_else(|| {
                self.ids.push(id);
                self.ids.len() - 1
            });
            write!(numbered, "00000000-0000-7000-8000-{:012}", number + 1).unwrap();
            rest = &rest[36..];
        }
        numbered
    }

    /// Compares the transcript with the snapshot of this name.
    #[track_caller]
    pub(crate) fn assert(&self, name: &str) {
        insta::with_settings!({ filters => FILTERS, prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, &self.transcript);
        });
    }

    /// Creates a record of a type that the program cannot create.
    pub(crate) fn create<R: Create>(&self, account: &str, body: &'static str) -> R {
        let account = TenantId(parse_uuid(account).unwrap());
        self.write((account, body), async |tx, &(account, body)| {
            crud::create::<R>(tx, account, R::Input::from_body(body.as_bytes())?).await
        })
    }

    /// Runs a write transaction in the session's database.
    pub(crate) fn write<I, T>(&self, input: I, work: impl UnitOfWorkFn<I, T>) -> T
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.with_store(async |store, _| store.write("test", input, work).await.unwrap())
    }

    /// Works on the store of the session's database, whose URL is given as well.
    pub(crate) fn with_store<T>(&self, work: impl AsyncFnOnce(&dyn Store, &str) -> T) -> T {
        let url = self.backend.database_url(self.folder.path());
        let done = async { work(&*open(&url, Env::system()).await, &url).await };
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(done)
    }

    /// Returns the session's directory.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Fills the session's database with the sample data of the server.
    pub(crate) fn demo(&self) {
        self.with_store(async |store, url| {
            svc_server::program::demo::prepare(store, "http://localhost", url, None).await.unwrap();
        });
    }

    /// Writes a file in the session's directory.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.folder.path().join(name), content).unwrap();
    }

    /// Reads a file in the session's directory.
    pub(crate) fn read_file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// Creates a contact and returns its id.
    pub(crate) fn contact(&self, account: &str) -> String {
        let body = r#"{"email": "ada@example.com", "first_name": "Ada"}"#;
        self.create::<Contact>(account, body).id.to_string()
    }
}

/// The secret key of databases that have no key file.
pub(crate) const SECRET_KEY: [u8; 32] = [0x5e; 32];

/// Opens a session's database.
pub(crate) async fn open(url: &str, env: Env) -> Arc<dyn Store> {
    let secret_key = url.starts_with("postgres://").then(|| SecretKey::new(SECRET_KEY));
    svc_store::open_with(url, env, Options { secret_key, ..Options::default() }).await.unwrap()
}

/// Returns the URL of the database in a session's directory.
pub(crate) fn sqlite_url(folder: &Path) -> String {
    format!("sqlite://{}", folder.join("svc.db").display())
}

/// Waits until `found` returns a value that another process is about to produce.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within a minute");
        std::thread::yield_now();
    }
}

/// Reports that a test is partly skipped because a program is not installed. In CI, that is a failure.
#[expect(clippy::print_stderr, reason = "the output of the tests says which checks were skipped")]
pub(crate) fn report_skipped(program: &str) {
    assert!(std::env::var_os("CI").is_none(), "{program} is not installed; CI runs every test");
    eprintln!("skipped in part: {program} is not installed");
}

/// Converts output to text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
