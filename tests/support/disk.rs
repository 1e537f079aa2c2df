//! Disks that fail: one that stands between the server and its files, and one that is small.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// Stands between a process and its database; says what it does.
const SOURCE: &str = include_str!("disk.c");
/// What a small disk holds while it is not full.
const SIZE: &str = "size=2g";
/// How often it is tried to fill it.
const FILL_TRIES: u32 = 100;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Every fsync.
    Fsync,
    /// The fsync of the main file, which only checkpoints write.
    Checkpoint,
    /// Every write, after the first half of it.
    Full,
}

/// A disk that fails when told to, for SQLite and on Linux alone. It is loaded into the process (`LD_PRELOAD`), so the
/// program and its SQLite are those that users run, and no code of ours needs `unsafe`. It takes a C compiler, which
/// SQLite takes as well.
#[derive(Debug)]
pub struct FailingDisk {
    folder: PathBuf,
}

impl FailingDisk {
    /// Builds it in a folder of its own.
    ///
    /// # Errors
    /// There is no C compiler, or the folder cannot be written to.
    pub fn build(folder: &Path) -> Result<Self> {
        let disk = Self { folder: folder.to_owned() };
        fs::create_dir(disk.durable())?;
        fs::write(folder.join("disk.c"), SOURCE)?;
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut compile = Command::new(compiler);
        compile.args(["-shared", "-fPIC", "-O1", "-o"]).args([disk.library(), folder.join("disk.c")]);
        if compile.status()?.success() { Ok(disk) } else { Err("disk.c does not compile".into()) }
    }

    fn library(&self) -> PathBuf {
        self.folder.join("disk.so")
    }

    fn durable(&self) -> PathBuf {
        self.folder.join("durable")
    }

    /// What a process that works on it has in its environment.
    pub fn variables(&self) -> [(&'static str, OsString); 2] {
        [("LD_PRELOAD", self.library().into()), ("DISK_FOLDER", self.folder.clone().into())]
    }

    /// Fails from now on.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn fail(&self, failure: Failure) -> Result<()> {
        let word = match failure {
            Failure::Fsync => "fsync",
            Failure::Checkpoint => "checkpoint",
            Failure::Full => "full",
        };
        // Whole at once.
        fs::write(self.folder.join("next"), word)?;
        Ok(fs::rename(self.folder.join("next"), self.folder.join("fault"))?)
    }

    /// Works from now on.
    pub fn heal(&self) {
        // Unless it does already.
        let _ = fs::remove_file(self.folder.join("fault"));
    }

    /// Leaves in the folder of a database what a power cut would leave. No process may have it open.
    ///
    /// # Errors
    /// The files cannot be written to.
    pub fn cut_power(&self, database: &Path) -> Result<()> {
        for file in fs::read_dir(self.durable())? {
            let file = file?;
            if file.path().extension().is_some_and(|ending| ending != "dirty") {
                fs::copy(file.path(), database.join(file.file_name()))?;
            } else {
                fs::remove_file(file.path())?;
            }
        }
        for file in fs::read_dir(database)? {
            let file = file?.path();
            if file.extension().is_some_and(|ending| ending == "db-shm") {
                fs::remove_file(file)?;
            }
        }
        Ok(())
    }
}

/// A disk in memory that is really full when told to. It is gone when it is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts it, which takes root, or `sudo` that does not ask.
    ///
    /// `None`, with a loud word, where mounting is not allowed; but where the environment variable `CI` is set, that is
    /// an error, so that nobody believes in tests that never ran.
    ///
    /// # Errors
    /// As said.
    #[expect(clippy::print_stderr, reason = "for tests only")]
    pub fn mount() -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let mounted = as_root(&["mount", "-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(folder.path()).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Ok(Some(Self { folder }));
        }
        if std::env::var_os("CI").is_some() {
            return Err("no file system can be mounted, so a full disk cannot be tried".into());
        }
        eprintln!("\n*** SKIPPED: no file system can be mounted (not root), so a full disk was not tried ***\n");
        Ok(None)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves no room from now on.
    ///
    /// # Errors
    /// It cannot be mounted anew.
    pub fn fill(&self) -> Result<()> {
        // Until nobody writes in between.
        (0..FILL_TRIES)
            .find_map(|_| self.limit(&self.used().ok()?).ok())
            .ok_or("the small disk cannot be filled".into())
    }

    /// As an option of `mount`.
    fn used(&self) -> Result<String> {
        let asked = Command::new("stat").args(["-f", "-c", "%b %f %S"]).arg(self.folder()).output()?;
        let text = String::from_utf8(asked.stdout)?;
        let figures: Vec<u64> = text.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
        let [blocks, free, size] = figures[..] else { return Err(format!("stat said {text:?}").into()) };
        Ok(format!("size={}", blocks.saturating_sub(free).max(1) * size))
    }

    /// Has room from now on.
    ///
    /// # Errors
    /// It cannot be mounted anew.
    pub fn free(&self) -> Result<()> {
        self.limit(SIZE)
    }

    fn limit(&self, size: &str) -> Result<()> {
        let done = as_root(&["mount", "-o"]).arg(format!("remount,{size}")).arg(self.folder()).status()?;
        if done.success() { Ok(()) } else { Err("the small disk cannot be mounted anew".into()) }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whoever still has a file open keeps it until then.
        let _ = as_root(&["umount", "--lazy"]).arg(self.folder.path()).status();
    }
}

fn as_root(words: &[&str]) -> Command {
    let is_root = fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    let words = if is_root { words.to_vec() } else { [&["sudo", "-n"], words].concat() };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stderr(Stdio::null());
    command
}
