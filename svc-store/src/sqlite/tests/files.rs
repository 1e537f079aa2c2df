//! The files of a database: who may read them, what lies beside them, and what is refused.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use futures_util::FutureExt as _;

use super::*;
use crate::new_file::with_suffix;

/// SQLite would take the pages of the log for those of the backup.
#[test]
fn a_backup_beside_the_log_of_another_database_is_refused() {
    let scratch = Scratch::new();
    let backup = scratch.path.with_file_name("backup.db");
    let connection = scratch.connection();
    SqliteConnection::open_read_only(&scratch.path).unwrap().copy_into(&backup).unwrap();
    let (log, shared) = (with_suffix(&scratch.path, "-wal"), with_suffix(&scratch.path, "-shm"));
    let kept = std::fs::read(&log).unwrap();
    assert!(!kept.is_empty());
    drop(connection);
    // As a restore that left the log of a server that was killed.
    std::fs::rename(&backup, &scratch.path).unwrap();
    std::fs::write(&log, &kept).unwrap();
    for refused in
        [SqliteConnection::open(&scratch.path).map(drop), SqliteConnection::open_read_only(&scratch.path).map(drop)]
    {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("-wal is not of this file, which is a backup"), "{refused}");
    }
    assert_eq!(std::fs::read(&log).unwrap(), kept, "nothing was changed");
    std::fs::remove_file(log).unwrap();
    let _ = std::fs::remove_file(shared);
    let connection = scratch.connection();
    // Its own log is taken, also by a second connection and after a kill.
    assert!(SqliteConnection::open(&scratch.path).is_ok());
    let killed = scratch.path.with_file_name("killed.db");
    std::fs::copy(&scratch.path, &killed).unwrap();
    std::fs::copy(with_suffix(&scratch.path, "-wal"), with_suffix(&killed, "-wal")).unwrap();
    assert!(SqliteConnection::open(&killed).is_ok());
    drop(connection);
}

/// A backup on a medium that cannot be written to.
#[test]
fn a_file_that_nobody_changes_is_read_without_files_beside_it() {
    let scratch = Scratch::new();
    let folder = scratch.path.with_file_name("a folder?#%");
    std::fs::create_dir(&folder).unwrap();
    let backup = folder.join("svc.db");
    drop(scratch.connection());
    std::fs::copy(&scratch.path, &backup).unwrap();
    let mut connection = SqliteConnection::open_immutable(&backup).unwrap();
    connection.check_schema(crate::migrations::ExpectedSchema::Current).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn an_error_of_rights_names_the_folder_and_who_this_process_is() {
    let scratch = Scratch::new();
    // Nothing is refused to the administrator, whom the tests may run as.
    let refused = || StoreError::Unavailable("unable to open database file".to_owned());
    let error = access::explained(&scratch.path, refused()).to_string();
    let folder = format!(". The folder {} belongs to the uid ", scratch.path.parent().unwrap().display());
    assert!(error.contains("unable to open database file") && error.contains(&folder), "{error}");
    assert!(error.contains("; this process has the uid "), "{error}");
    std::fs::create_dir(&scratch.path).unwrap();
    let error = SqliteConnection::open(&scratch.path).map(drop).unwrap_err().to_string();
    assert!(error.ends_with("svc.db is a folder; name a file in it"), "{error}");
}

#[test]
fn a_new_file_and_those_of_its_log_are_private_to_their_owner() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let names = std::fs::read_dir(scratch.path.parent().unwrap()).unwrap();
    let mut modes: Vec<(String, u32)> = names
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().permissions().mode() & 0o777))
        .collect();
    modes.sort();
    let expected = ["svc.db", "svc.db-shm", "svc.db-wal", "svc.db.key"].map(|name| (name.to_owned(), 0o600));
    assert_eq!(modes, expected);
    drop(store);
    // The owner may let others read an existing file.
    std::fs::set_permissions(&scratch.path, std::fs::Permissions::from_mode(0o640)).unwrap();
    drop(scratch.store());
    assert_eq!(std::fs::metadata(&scratch.path).unwrap().permissions().mode() & 0o777, 0o640);
}

/// A connection that finds no lock on the file takes itself for the last one, and deletes the log. A process loses its locks
/// on a file when it closes the file anywhere.
#[cfg(target_os = "linux")]
#[test]
fn a_second_store_of_a_process_leaves_the_locks_of_the_first_alone() {
    use std::os::unix::fs::MetadataExt as _;

    let scratch = Scratch::new();
    let store = scratch.store();
    // It has all connections that a store opens.
    let read = store.read_in_place("test", (), async |tx, ()| Ok(tx.tenants(None, 1, false).await?));
    assert_eq!(read.now_or_never(), Some(Ok(Vec::new())));
    drop(scratch.store());
    let inode = format!(":{} ", std::fs::metadata(&scratch.path).unwrap().ino());
    let is_locked = || std::fs::read_to_string("/proc/locks").unwrap().lines().any(|lock| lock.contains(&inode));
    assert!(is_locked());
    drop(store);
    assert!(!is_locked());
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused() {
    let scratch = Scratch::new();
    std::fs::write(&scratch.path, vec![7; 4096]).unwrap();
    assert!(matches!(SqliteStore::open(&scratch.path, env()), Err(StoreError::Unavailable(_))));
    assert!(matches!(SqliteStore::open(&scratch.path.join("no/such"), env()), Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn a_database_that_was_not_restored_completely_is_not_made_anew() {
    type Make = dyn Fn(&Path);
    let scratch = Scratch::new();
    drop(scratch.store());
    let key = std::fs::read(scratch.path.with_extension("db.key")).unwrap();
    let empty = |path: &Path| {
        // It has a header and no tables.
        drop(SqliteConnection::open(path).unwrap());
        assert!(std::fs::metadata(path).unwrap().len() > 0);
    };
    let states: [(&str, &Make); 3] = [
        ("does not exist", &|_| {}),
        ("is empty", &|path| std::fs::write(path, "").unwrap()),
        ("has no tables", &empty),
    ];
    for (reason, make) in states {
        let restored = Scratch::new();
        make(&restored.path);
        std::fs::write(restored.path.with_extension("db.key"), &key).unwrap();
        let before = std::fs::read(&restored.path).ok();
        for opened in [SqliteStore::open(&restored.path, env()).map(drop), migrate(&restored.path).map(drop)] {
            assert!(matches!(&opened, Err(StoreError::Incomplete(error)) if error.contains(reason)), "{opened:?}");
        }
        assert_eq!(std::fs::read(&restored.path).ok(), before);
        // Without the key file it is the first start.
        std::fs::remove_file(restored.path.with_extension("db.key")).unwrap();
        drop(restored.store());
    }
}

/// A process that is killed during the first start can be started again.
#[tokio::test]
async fn the_first_start_can_be_killed_anywhere() {
    let states: [&dyn Fn(&Scratch); 4] = [
        &|scratch| std::fs::write(&scratch.path, "").unwrap(),
        &|scratch| drop(SqliteConnection::open(&scratch.path).unwrap()),
        &|scratch| drop(scratch.connection()),
        &|scratch| {
            drop(scratch.connection());
            vault::key_for(&scratch.path, &env(), true).unwrap();
        },
    ];
    for state in states {
        let scratch = Scratch::new();
        state(&scratch);
        new_tenant(&*scratch.store()).await;
    }
}
