//! `migrate`: moves a store from a data directory into a database, or back.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use agentcfg_core::AgentCfg;
use agentcfg_core::store::{Digest, Digesting};

use super::error::CommandError;
use super::restore::leave_out_unused_master_keys;
use super::runtime::runtime;
use super::stdout::say;
use crate::process::backend::{
    Database, DatabaseLocation, FileStore, StagedStore, TransferError, Transferred, connect_to_move, open_store,
};
use crate::process::cli::MigrateArgs;
use crate::process::config::{Config, Flags};
use crate::process::datadir::{DataDir, DataDirError, DataLock};

/// The place of a store.
enum Location {
    Directory(PathBuf),
    Database(DatabaseLocation),
}

pub(super) fn run(args: &MigrateArgs) -> Result<ExitCode, CommandError> {
    let config = Config {
        // This process has one connection, so any other one belongs to another process.
        database_pool_size: 1,
        ..Config::load(Flags::from(args), std::env::vars_os())?
    };
    let locations = (location(&args.from, &config)?, location(&args.to, &config)?);
    runtime()?.block_on(async {
        match locations {
            (Location::Directory(from), Location::Database(to)) => into_database(&from, &to, &config).await,
            (Location::Database(from), Location::Directory(to)) => into_directory(&from, &to, &config).await,
            (Location::Directory(_), Location::Directory(_)) => {
                Err("both are directories; use `agentcfg-server backup` and `restore`".into())
            }
            (Location::Database(_), Location::Database(_)) => {
                Err("both are databases; move from one into a data directory, and from there into the other one".into())
            }
        }
    })
}

fn location(text: &str, config: &Config) -> Result<Location, CommandError> {
    let database = DatabaseLocation::named(text, config)?;
    Ok(database.map_or_else(|| Location::Directory(text.into()), Location::Database))
}

async fn into_database(from: &Path, to: &DatabaseLocation, config: &Config) -> Result<ExitCode, CommandError> {
    let (lock, store) = open_source(from, config)?;
    let database = connect_to_move(config, to).await?;
    let filled = fill_database(&database, store, (from, to)).await;
    database.close().await;
    drop(lock);
    filled
}

async fn fill_database(
    database: &Database,
    store: FileStore,
    (from, to): (&Path, &DatabaseLocation),
) -> Result<ExitCode, CommandError> {
    let digest = digest(&store)?;
    database.require_unused().await?;
    if !database.has_unfinished_import().await? {
        let there = database.export(io::sink()).await?;
        if there.digest == digest {
            return done("is already in the database, whole and unchanged", &there);
        }
        if there.records > 0 {
            return Err(format!(
                "the database holds {} records that are not those of {}; nothing was changed. Name an empty database",
                there.records,
                from.display()
            )
            .into());
        }
    }
    let (reader, writer) = io::pipe()?;
    let source = thread::spawn(move || store.backup(writer).map(drop));
    let moved = database.import(reader).await;
    // When the source failed, the database only reports a broken stream.
    source
        .join()
        .map_err(|_| "reading the store failed")?
        .or_else(|error| match moved {
            Err(TransferError::Damaged(_)) | Ok(_) => Err(CommandError::from(error)),
            Err(_) => Ok(()),
        })?;
    let moved = moved?;
    if moved.digest != digest {
        return Err("what is in the database is not what was read before; try again into an empty database".into());
    }
    say!(
        "start servers with {} and AGENTCFG_SESSION_SECRET_FILE; {} is as it was: keep it as a backup, \
         and do not serve from it",
        to.variable(),
        from.display()
    );
    done("moved into the database", &moved)
}

async fn into_directory(from: &DatabaseLocation, to: &Path, config: &Config) -> Result<ExitCode, CommandError> {
    let database = connect_to_move(config, from).await?;
    let filled = fill_directory(&database, to, config).await;
    database.close().await;
    filled
}

async fn fill_directory(database: &Database, to: &Path, config: &Config) -> Result<ExitCode, CommandError> {
    database.require_unused().await?;
    if database.has_unfinished_import().await? {
        return Err("an import into the database has not ended, so that it holds no whole store".into());
    }
    let dir = DataDir::open_or_create(to)?;
    let lock = dir.lock()?;
    if dir.has_store()? {
        let there = database.export(io::sink()).await?;
        if digest(&open_store(&lock, config.cache_mb)?)? == there.digest {
            return done("is already in the directory, whole and unchanged", &there);
        }
        return Err(DataDirError::HasStore { path: to.to_owned() }.into());
    }
    let (reader, writer) = io::pipe()?;
    let staged = Arc::new(StagedStore::begin(&lock)?);
    let target = thread::spawn({
        let staged = Arc::clone(&staged);
        move || staged.fill(reader).map(drop)
    });
    let read = database.export(writer).await;
    let restored = target.join().map_err(|_| "writing the store failed")?;
    let read = match (read, restored) {
        (Ok(read), Ok(())) => read,
        // A reader that failed closes the pipe, and its own error is reported.
        (Err(TransferError::Io(_)) | Ok(_), Err(error)) => return Err(error.into()),
        (Err(error), _) => return Err(error.into()),
    };
    let store = Arc::new(staged.open(config.cache_mb)?);
    if digest(&store)? != read.digest {
        return Err("the new store does not give back what was put into it, and was removed".into());
    }
    let service = AgentCfg::builder(Arc::clone(&store)).build();
    let needed = service.master_keys_needed().await?;
    let left_out = leave_out_unused_master_keys(&service, &needed).await?;
    drop(service);
    store.close();
    staged.publish()?;
    if let Some(line) = left_out {
        say!("{line}");
    }
    if needed.any_sealed {
        say!("before you start: set AGENTCFG_MASTER_KEYS_FILE as the servers of the database have it");
    }
    say!("start with: agentcfg-server serve --data {}", to.display());
    done("moved into the directory", &read)
}

fn open_source(from: &Path, config: &Config) -> Result<(DataLock, FileStore), CommandError> {
    let dir = DataDir::open(from)?;
    dir.require_store()?;
    let lock = dir.lock()?;
    let store = open_store(&lock, config.cache_mb)?;
    Ok((lock, store))
}

fn digest(store: &FileStore) -> Result<Digest, CommandError> {
    let mut sink = Digesting::new(io::sink());
    store.backup(&mut sink)?;
    Ok(sink.digest())
}

fn done(what: &str, moved: &Transferred) -> Result<ExitCode, CommandError> {
    say!(
        "{} records: {what}; verified, SHA-256 {} over all keys, versions and values",
        moved.records,
        moved.digest
    );
    Ok(ExitCode::SUCCESS)
}
