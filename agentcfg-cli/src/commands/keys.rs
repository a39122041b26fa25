//! API keys.

use std::fmt::Display;
use std::str::FromStr;

use agentcfg_client::model::{ApiKey, CreatedApiKey, NewApiKey, RotateApiKey};

use super::context::Context;
use crate::args::Keys;
use crate::failure::{Code, CommandFailure, Result};
use crate::output::{Output, minute, or_dash};
use crate::session::{Session, parse};
use crate::terminal;
use crate::usage::key_prefixes;

pub async fn run(context: &mut Context, command: Keys) -> Result<Code> {
    let session = context.session()?;
    let output = &mut context.output;
    match command {
        Keys::List => list(&session, output).await?,
        Keys::Create {
            name,
            scope,
            environment,
            expires_at,
            rate_limit,
            agents,
            permissions,
            label,
        } => {
            let new = NewApiKey::new(
                session.workspace().await?,
                name,
                parse("environment", &environment)?,
                parse("scope", &scope)?,
            )
            .expires_at(expires_at.map(|at| parse("expires_at", &at)).transpose()?)
            .rate_limit(rate_limit)
            .agents(parse_some("--agent", &agents)?)
            .permissions(parse_some("--permission", &permissions)?)
            .label(label.map(|label| parse("label", &label)).transpose()?);
            let key = session.client.create_api_key(&new).await?;
            let what = format!("Created the key {} ({}).", key.record.id, key.record.scope);
            show_once(output, &key, &what)?;
        }
        Keys::Rotate { key, overlap } => {
            not_the_key_itself(&key)?;
            let rotate = RotateApiKey::default().overlap_seconds(overlap);
            let new = session.client.rotate_api_key(&key, &rotate).await?;
            let end = match overlap {
                0 => "no longer works".to_owned(),
                seconds => format!("works for another {seconds} s"),
            };
            let what = format!("Created the key {}; the key {key} {end}.", new.record.id);
            show_once(output, &new, &what)?;
        }
        Keys::Revoke { key, yes } => {
            not_the_key_itself(&key)?;
            if !yes && terminal::is_attended() {
                terminal::confirm(&format!("Revoke the key {key}? This cannot be undone."))?;
            }
            session.client.revoke_api_key(&key).await?;
            let done = serde_json::json!({"success": true});
            output.show(&done, |output| output.line(format_args!("revoked {key}")))?;
        }
    }
    Ok(Code::Done)
}

/// Reads the values of an option that may be given more than once; `None` where it is not given.
fn parse_some<T: FromStr<Err: Display>>(option: &str, values: &[String]) -> Result<Option<Vec<T>>> {
    if values.is_empty() {
        return Ok(None);
    }
    let read = values.iter().map(|value| {
        let read = value.parse();
        read.map_err(|rule: T::Err| CommandFailure::error(format_args!("{option} {value:?}: {rule}")))
    });
    read.collect::<Result<_>>().map(Some)
}

/// Refuses a key where its identifier is meant: a secret does not belong into a URL.
pub(super) fn not_the_key_itself(key: &str) -> Result<()> {
    let Some(rest) = key_prefixes().find_map(|prefix| key.strip_prefix(prefix)) else {
        return Ok(());
    };
    let id: String = rest.chars().take(20).collect();
    let message = "this is an API key itself, and its identifier is needed; nothing was sent";
    Err(CommandFailure::with_code(Code::Usage, message).hint(format_args!(
        "Its identifier is {id}. Other users of this machine can see a command line: replace the key if it is in use."
    )))
}

async fn list(session: &Session, output: &mut Output) -> Result<()> {
    let keys = session.client.list_api_keys(session.workspace().await?).await?;
    output.show(&keys, |output| {
        let row = |key: &ApiKey| {
            vec![
                key.id.to_string(),
                key.name.clone(),
                key.scope.to_string(),
                key.environment.to_string(),
                key.rate_limit.to_string(),
                or_dash(key.last_used_at.map(minute)),
                or_dash(end(key)),
                or_dash(limits(key)),
            ]
        };
        let header = [
            "KEY_ID",
            "NAME",
            "SCOPE",
            "ENVIRONMENT",
            "RATE",
            "LAST USED",
            "END",
            "LIMITED TO",
        ];
        output.table(&header, keys.iter().map(row).collect())
    })
}

/// What a key is limited to beyond its scope.
fn limits(key: &ApiKey) -> Option<String> {
    fn listed<T: ToString>(what: &str, values: Option<&Vec<T>>) -> Option<String> {
        let values: Vec<_> = values?.iter().map(ToString::to_string).collect();
        Some(format!("{what} {}", values.join(", ")))
    }
    let limits = [
        listed("agents", key.agents.as_ref()),
        listed("permissions", key.permissions.as_ref()),
        key.label.as_ref().map(|label| format!("label {label}")),
    ];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    (!limits.is_empty()).then(|| limits.join("; "))
}

/// How a key has ended, or when it will.
pub(super) fn end(key: &ApiKey) -> Option<String> {
    let revoked = key.revoked_at.map(|at| format!("revoked {}", minute(at)));
    revoked.or_else(|| key.expires_at.map(|at| format!("expires {}", minute(at))))
}

/// Prints the plaintext of a key to standard output, and everything else of it to standard error.
fn show_once(output: &mut Output, key: &CreatedApiKey, what: &str) -> Result<()> {
    let shown = if output.is_json() {
        output.json(key)
    } else {
        output.note(what);
        output.note("The key is shown this once:");
        output.line(&key.key)
    };
    // A reader that has gone did not get the key either.
    shown.map_err(|failure| {
        let id = &key.record.id;
        let message = format!("the key {id} exists, and could not be printed: {failure}");
        CommandFailure::error(message).hint(format_args!(
            "The key was not shown: revoke it with `agentcfg keys revoke {id}`, and create another."
        ))
    })
}
