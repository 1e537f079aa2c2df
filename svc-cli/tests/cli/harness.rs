//! A session: a database in a folder that vanishes, and a transcript of what was typed and answered.

use std::fmt::Write as _;
use std::path::Path;
use std::pin::Pin;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud::{self, Create};
use svc_core::store::Tx;
use svc_core::values::{TenantId, parse_uuid};
use tempfile::TempDir;
use uuid::Uuid;

/// How the ids of examples begin, which the transcript shows as they are.
const EXAMPLE: &str = "0195a3c8-0000-";

/// An id that no row has.
pub(crate) const NOBODY: &str = "0195a3c8-0000-7000-8000-ffffffffffff";

/// What differs from run to run. Each stands for itself with a text of the same length, so columns stay
/// aligned. Dates that a test names lie in 2099 and are left as they are.
const FILTERS: [(&str, &str); 15] = [
    (r"\b20[0-8]\d-\d\d-\d\d \d\d:\d\d:\d\dZ", "2026-03-14 15:09:26Z"),
    (r"\(\d+ years ago\)", "(6 years ago)"),
    (r"\b20[0-8]\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "2026-03-14T15:09:26.535897Z"),
    (r"\b20[0-8]\d-\d\d-\d\d\b", "2026-03-14"),
    (r"svc_live_[0-9A-Za-z]{38}\b", "svc_live_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    (r"svc_live_[0-9A-Za-z]{6}\b", "svc_live_xxxxxx"),
    (r"svcsig_[0-9A-Za-z+/]{43}=", "svcsig_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx="),
    (r"whsec_[0-9A-Za-z+/]{43}=", "whsec_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx="),
    (r"\b127\.0\.0\.1:\d+", "127.0.0.1:9000"),
    (r"(?m)^age:( +)\d[0-9a-z ]*", "age:${1}3 ms"),
    (r#""age_ms":\d+"#, r#""age_ms":3"#),
    (r"\b[0-9a-f]{32}\b", "0123456789abcdef0123456789abcdef"),
    (r#"\bcli:[^\s",]+"#, "cli:ada"),
    (r#"(\bschema"?: +"?)\d{4}_\w+"#, "${1}0001_init"),
    (r#"(\bbytes": |size: +)\d+"#, "${1}345678"),
];

/// A job in the session's database.
pub(crate) type Job<'t, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 't>>;

pub(crate) struct Session {
    folder: TempDir,
    transcript: String,
    /// In the order of their appearance, which is what the transcript shows instead.
    ids: Vec<Uuid>,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), transcript: String::new(), ids: Vec::new() }
    }

    /// The program in the session's folder, so that the default database is the session's.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_svc"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        for name in [
            "SVC_DATABASE_URL",
            "SVC_RETENTION",
            "SVC_SECRET_KEY",
            "SVC_WEBHOOK_SECRET",
            "NO_COLOR",
            "CLICOLOR",
            "CLICOLOR_FORCE",
            "COLUMNS",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// Runs a command, off the record.
    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.program(args).output().unwrap()
    }

    /// The result of a command that succeeds, off the record.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.program(args).arg("--json").output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The id in the result of a command that succeeds, off the record.
    pub(crate) fn id(&self, args: &[&str]) -> String {
        self.json(args)["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn tenant(&self) -> String {
        self.id(&["tenant", "create", "--name", "Harbour Plumbing"])
    }

    /// Runs a command and notes it: what was typed, stdout, stderr behind `!`, and the exit code unless it is 0.
    pub(crate) fn run(&mut self, args: &[&str]) -> &mut Self {
        let output = self.output(args);
        self.transcribe(args, &output)
    }

    /// The same for a command that says much: the first lines of it, and the beginning of each.
    pub(crate) fn run_cut(&mut self, args: &[&str]) -> &mut Self {
        const LINES: usize = 12;
        let mut output = self.output(args);
        let said = text(&output.stdout);
        let mut cut: String = said.lines().take(LINES).fold(String::new(), |cut, line| {
            let end = if line.chars().count() > 100 { "…" } else { "" };
            cut + &line.chars().take(100).collect::<String>() + end + "\n"
        });
        if said.lines().count() > LINES {
            cut.push_str("…\n");
        }
        output.stdout = cut.into_bytes();
        self.transcribe(args, &output)
    }

    /// Notes a command that was run.
    pub(crate) fn transcribe(&mut self, args: &[&str], output: &Output) -> &mut Self {
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
        self.note(&entry)
    }

    /// Adds to the transcript.
    pub(crate) fn note(&mut self, entry: &str) -> &mut Self {
        let entry = self.number_ids(entry);
        self.transcript.push_str(&entry);
        self
    }

    /// Puts numbers in place of ids.
    fn number_ids(&mut self, entry: &str) -> String {
        let mut numbered = String::new();
        let mut rest = entry;
        while let Some(next) = rest.chars().next() {
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

    /// Compares the transcript with the one that is kept.
    #[track_caller]
    pub(crate) fn assert(&self, name: &str) {
        insta::with_settings!({ filters => FILTERS, prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, &self.transcript);
        });
    }

    /// Creates what the program cannot create itself.
    pub(crate) fn create<R: Create>(&self, tenant: &str, body: &'static str) -> R {
        let tenant = TenantId(parse_uuid(tenant).unwrap());
        self.write(move |tx| {
            Box::pin(async move { crud::create::<R>(tx, tenant, R::Input::from_body(body.as_bytes())?).await })
        })
    }

    /// Does what the program does not do itself.
    pub(crate) fn write<T, F>(&self, job: F) -> T
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> Job<'t, T> + Send + Sync + 'static,
    {
        let url = format!("sqlite://{}", self.folder.path().join("svc.db").display());
        let done = async { svc_store::open(&url, Env::system()).await.unwrap().write("test", job).await };
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(done).unwrap()
    }

    /// The session's folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Fills the session's database with the sample data of the server.
    pub(crate) fn demo(&self) {
        let url = format!("sqlite://{}", self.folder.path().join("svc.db").display());
        let filled = async {
            let store = svc_store::open(&url, Env::system()).await.unwrap();
            svc_server::program::demo::prepare(&*store, "http://localhost").await.unwrap()
        };
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(filled);
    }

    /// A file in the session's folder.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.folder.path().join(name), content).unwrap();
    }

    /// What is in a file of the session's folder.
    pub(crate) fn read_file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    pub(crate) fn contact(&self, tenant: &str) -> String {
        let body = r#"{"email": "ada@example.com", "first_name": "Ada"}"#;
        self.create::<Contact>(tenant, body).id.to_string()
    }
}

/// Waits for what another program is about to bring, without a word of it.
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

/// Says that a test does less here, as a program is missing; where everything is installed that is a failure.
#[expect(clippy::print_stderr, reason = "whoever runs the tests is told what they leave out")]
pub(crate) fn skipped(program: &str) {
    assert!(std::env::var_os("CI").is_none(), "{program} is not installed; CI runs every test");
    eprintln!("skipped in part: {program} is not installed");
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
