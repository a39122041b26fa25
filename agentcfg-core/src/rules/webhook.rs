//! Rules for the fields of a webhook.

use crate::body::Rule;
use crate::model::{self, Action, MAX_URL, WebhookUrl};
use crate::validate::text::from_one;
use crate::validate::{Faults, MAX_ENTRIES, MAX_ENTRY_NAME};

/// A URL in a form that webhooks may have. Where it may lead is a matter of the deployment and checked by the service.
pub(crate) struct HookUrl;

/// Types of events, each one that exists or all of a family.
pub(crate) struct EventTypes;

impl Rule for HookUrl {
    type Value = String;

    fn check(text: &String, field: &str, faults: &mut Faults) {
        from_one(text, MAX_URL, field, faults);
        if let Err(rule) = text.parse::<WebhookUrl>() {
            faults.push(field, rule);
        }
    }
}

impl Rule for EventTypes {
    type Value = model::EventTypes;

    fn check(types: &model::EventTypes, field: &str, faults: &mut Faults) {
        let types = types.as_slice();
        if !(1..=MAX_ENTRIES).contains(&types.len()) {
            let rule = format_args!("must have 1 to {MAX_ENTRIES} types, got {}", types.len());
            faults.push(field, rule);
        }
        for (i, name) in types.iter().enumerate() {
            if !is_type(name) {
                let rule = "must be an action of the audit log, such as agent.updated, or a family, such as agent.*";
                faults.push(format_args!("{field}[{i}]"), rule);
            }
        }
    }
}

fn is_type(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match name.split_once('.') {
        Some((family, "*")) => name.len() <= MAX_ENTRY_NAME && is_word(family),
        _ => name.parse::<Action>().is_ok(),
    }
}
