//! Disks that fail: a library that intercepts the server's writes, and a small file system that can be filled.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// The source of the intercepting library; a comment in it describes how it works.
const SOURCE: &str = include_str!("disk.c");
/// The size of the small file system while it is not full.
const SIZE: &str = "size=2g";
/// How often filling it is tried.
const FILL_TRIES: u32 = 100;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Every fsync.
    Fsync,
    /// The fsync of the main file, which only checkpoints perform.
    Checkpoint,
    /// Every write, after half of its bytes.
    Full,
}

/// A disk that fails on demand, for SQLite on Linux. It is a library that is loaded into the server with
/// `LD_PRELOAD`, so the server and its SQLite are unmodified, and no `unsafe` code is needed here. Building it
/// requires a C compiler, as does SQLite.
#[derive(Debug)]
pub struct FailingDisk {
    folder: PathBuf,
}

impl FailingDisk {
    /// Builds the library in a folder.
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

    /// Returns the environment variables of a process on this disk.
    pub fn variables(&self) -> [(&'static str, OsString); 2] {
        [("LD_PRELOAD", self.library().into()), ("DISK_FOLDER", self.folder.clone().into())]
    }

    /// Makes the disk fail from now on.
    pub fn fail(&self, failure: Failure) -> Result<()> {
        let word = match failure {
            Failure::Fsync => "fsync",
            Failure::Checkpoint => "checkpoint",
            Failure::Full => "full",
        };
        // Renamed, so that the file is never seen half-written.
        fs::write(self.folder.join("next"), word)?;
        Ok(fs::rename(self.folder.join("next"), self.folder.join("fault"))?)
    }

    /// Makes the disk work from now on.
    pub fn heal(&self) {
        // The file is missing if the disk works already.
        let _ = fs::remove_file(self.folder.join("fault"));
    }

    /// Leaves in a database's folder what a power cut would leave. No process may have the database open.
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

/// A small file system in memory that can be filled. It is unmounted when it is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts the file system, which requires root, or `sudo` without a password.
    ///
    /// Returns `None` and prints a notice if mounting is not allowed.
    pub fn mount() -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let mounted = as_root(&["mount", "-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(folder.path()).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Ok(Some(Self { folder }));
        }
        if std::env::var_os("CI").is_some() {
            return Err("no file system can be mounted, so a full disk cannot be tested".into());
        }
        eprintln!("\n*** SKIPPED: no file system can be mounted (not root), so a full disk was not tested ***\n");
        Ok(None)
    }

    /// Returns the mount point.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves no free space from now on.
    pub fn fill(&self) -> Result<()> {
        // Other processes may write in between.
        (0..FILL_TRIES)
            .find_map(|_| self.limit(&self.used().ok()?).ok())
            .ok_or("the small disk cannot be filled".into())
    }

    /// Returns the used space as an option of `mount`.
    fn used(&self) -> Result<String> {
        let asked = Command::new("stat").args(["-f", "-c", "%b %f %S"]).arg(self.folder()).output()?;
        let text = String::from_utf8(asked.stdout)?;
        let figures: Vec<u64> = text.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
        let [blocks, free, size] = figures[..] else {
            return Err(format!("unexpected output of stat: {text:?}").into());
        };
        Ok(format!("size={}", blocks.saturating_sub(free).max(1) * size))
    }

    /// Makes space free again.
    pub fn free(&self) -> Result<()> {
        self.limit(SIZE)
    }

    fn limit(&self, size: &str) -> Result<()> {
        let done = as_root(&["mount", "-o"]).arg(format!("remount,{size}")).arg(self.folder()).status()?;
        if done.success() { Ok(()) } else { Err("the small disk cannot be remounted".into()) }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazy, because a process may still have a file open.
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
