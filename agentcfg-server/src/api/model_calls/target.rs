//! The target of a model call: the provider and the path that the caller chooses, and the format of its body.

use std::borrow::Cow;

use agentcfg_core::model::{Provider, ProviderApi};
use agentcfg_core::routing::Catalogue;
use hyper::Method;
use percent_encoding::percent_decode_str;

/// A provider and a path below its base URL.
///
/// A path that [`Self::parse`] accepts is unambiguous: joined with the base URL, every URL parser keeps it below the
/// base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target<'a> {
    /// The provider whose API is called.
    pub provider: Provider,
    /// The agent, where the path names one.
    pub agent: Option<PathAgent<'a>>,
    /// The path at the provider, without a slash at either end.
    pub path: Cow<'a, str>,
}

/// The agent in the path of a call: `@<agent_id>`, or with a label or a version number `@<agent_id>:<selector>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathAgent<'a> {
    /// The identifier of the agent.
    pub agent_id: Cow<'a, str>,
    /// A label, or the number of a version.
    pub selector: Option<Cow<'a, str>>,
}

impl<'a> PathAgent<'a> {
    /// An agent without a selector.
    pub fn new(agent_id: &'a str) -> Self {
        Self {
            agent_id: agent_id.into(),
            selector: None,
        }
    }
}

/// The formats of bodies into which the agent's model and persona can be inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `chat/completions` of OpenAI: the persona is the first message.
    ChatCompletions,
    /// `responses` of OpenAI: the persona is `instructions`.
    Responses,
    /// `messages` of Anthropic, and the count of their tokens: the persona is `system`.
    Messages,
}

impl Target<'_> {
    /// Whether this is `{provider}/{path}` with a provider that the catalogue has.
    pub fn is_known(text: &str, catalogue: &Catalogue) -> bool {
        Target::parse(text).is_some_and(|target| catalogue.provider(target.provider).is_some())
    }
}

impl<'a> Target<'a> {
    /// The prefix of the paths of model calls. A provider and a path follow.
    pub const PATHS: &'static str = "/api/agents/model-calls/";

    /// The target in the path of a request; `None` if it is not the path of a model call.
    pub fn of_path(path: &'a str) -> Option<Self> {
        path.strip_prefix(Self::PATHS).and_then(Self::parse)
    }

    /// The API of the provider in the path of a model call, whatever follows it; `None` for a provider that is not
    /// known.
    pub fn api_of(path: &str, catalogue: &Catalogue) -> Option<ProviderApi> {
        let provider = path.strip_prefix(Self::PATHS)?.split('/').next()?.parse().ok()?;
        Some(catalogue.provider(provider)?.api())
    }

    /// Why a path below [`Self::PATHS`] is not the path of a model call; `None` for another path. It is told before a
    /// credential is read, so it does not list the providers of this deployment.
    pub fn why_unknown(path: &str, catalogue: &Catalogue) -> Option<&'static str> {
        path.strip_prefix(Self::PATHS)?;
        Some(match Self::api_of(path, catalogue) {
            Some(_) => {
                "the path of a model call is {provider}/{path}, or {provider}/@{agent_id}/{path}, with a path of the \
                 provider's API"
            }
            None => "a model call names its provider: openai, anthropic, or one of the setting providers",
        })
    }

    /// Reads `{provider}/{path}` or `{provider}/@{agent}/{path}`; `None` when that is not a valid target.
    ///
    /// An encoded slash counts as a slash, as some SDKs write it, and so do an encoded `@` and `:`. A segment may have
    /// all the characters that RFC 3986 gives it, encoded ones too, as in the name of a fine-tuned model
    /// `ft:gpt-5.5:acme::a1`. There is no way to write another host, to climb up, or to hide either in an encoding: see
    /// [`is_segment`].
    pub fn parse(text: &'a str) -> Option<Self> {
        let (provider, path) = text.split_once('/')?;
        let provider = provider.parse().ok()?;
        let path = decoded(path);
        let (agent, path) = match path.strip_prefix('@') {
            None => (None, path),
            Some(_) => {
                let (agent, path) = split(path)?;
                (Some(agent), path)
            }
        };
        // At the start of a path `:` and `@` would look like a scheme or a user name.
        let is_plain_start = !path.split('/').next()?.contains([':', '@']);
        (is_plain_start && path.split('/').all(is_segment)).then_some(Self { provider, agent, path })
    }

    /// The format of the body of a request, if something can be inserted there.
    pub fn format(&self, method: &Method, catalogue: &Catalogue) -> Option<Format> {
        let api = catalogue.provider(self.provider)?.api();
        (*method == Method::POST).then(|| self.format_of(api)).flatten()
    }

    /// The format of the body at this path of an API, with or without a version such as `v1` in front.
    fn format_of(&self, api: ProviderApi) -> Option<Format> {
        match (api, &*endpoint(&self.path)) {
            (ProviderApi::OpenAi, "chat/completions") => Some(Format::ChatCompletions),
            (ProviderApi::OpenAi, "responses") => Some(Format::Responses),
            (ProviderApi::Anthropic, "messages" | "messages/count_tokens") => Some(Format::Messages),
            _ => None,
        }
    }
}

/// The path with the characters that clients encode although they need not: those that mean the same as their encoding,
/// a slash, `@` and `:`. What a server would decode is so compared in its decoded form.
fn decoded(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut parts = path.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let encoded = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let needless = encoded.filter(|byte| byte.is_ascii_alphanumeric() || b"-._~/@:".contains(byte));
        match needless {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[2..]);
            }
            None => {
                plain.push('%');
                plain.push_str(part);
            }
        }
    }
    plain.into()
}

/// The path without a version such as `v1` in front, in lower case: some providers take others too, and bill them.
pub(super) fn endpoint(path: &str) -> Cow<'_, str> {
    let path = match path.split_once('/') {
        Some((version, rest)) if is_version(version) => rest,
        _ => path,
    };
    match path.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => path.to_ascii_lowercase().into(),
        false => path.into(),
    }
}

/// The agent at the start of a path, and the rest of the path.
fn split(path: Cow<'_, str>) -> Option<(PathAgent<'_>, Cow<'_, str>)> {
    let end = path.find('/')?;
    let colon = path[..end].find(':');
    let part = |range: std::ops::Range<usize>| match &path {
        Cow::Borrowed(path) => Cow::Borrowed(&path[range]),
        Cow::Owned(path) => Cow::Owned(path[range].to_owned()),
    };
    let agent = PathAgent {
        agent_id: part(1..colon.unwrap_or(end)),
        selector: colon.map(|colon| part(colon + 1..end)),
    };
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_good = !agent.agent_id.is_empty()
        && agent.agent_id.bytes().all(is_id)
        && agent.selector.as_deref().is_none_or(is_selector);
    is_good.then(|| (agent, part(end + 1..path.len())))
}

/// Whether a text may be a label or the number of a version.
fn is_selector(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().any(|byte| byte != b'.') && text.bytes().all(is_allowed)
}

/// Whether a text is a segment of a path that means the same to every URL parser and server.
///
/// Its characters are those of RFC 3986. Decoded it is not made of dots, and has none of the characters that end a
/// segment for some reader: slashes, a question mark, `#`, a semicolon, a percent sign, or a control character.
fn is_segment(segment: &str) -> bool {
    let is_written = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@%".contains(&byte);
    if !segment.bytes().all(is_written) {
        return false;
    }
    if !segment.contains('%') {
        return segment.bytes().any(|byte| byte != b'.');
    }
    let encoded = segment.split('%').skip(1);
    let is_encoded = |part: &str| part.len() >= 2 && part.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    if !encoded.into_iter().all(is_encoded) {
        return false;
    }
    let Ok(decoded) = percent_decode_str(segment).decode_utf8() else {
        return false;
    };
    let is_dots = decoded.chars().all(|char| char == '.');
    !is_dots && !decoded.contains(|char: char| r"/\?#;%".contains(char) || char.is_control())
}

/// Whether a segment of a path is a version such as `v1`.
fn is_version(segment: &str) -> bool {
    segment
        .strip_prefix(['v', 'V'])
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use hyper::Uri;
    use proptest::prelude::*;

    use super::*;

    fn format(text: &str) -> Option<Format> {
        Target::parse(text)
            .unwrap()
            .format(&Method::POST, &Catalogue::default())
    }

    #[test]
    fn paths_of_the_sdks_are_known() {
        assert_eq!(format("openai/v1/chat/completions"), Some(Format::ChatCompletions));
        assert_eq!(format("openai/v1/responses"), Some(Format::Responses));
        assert_eq!(format("anthropic/v1/messages"), Some(Format::Messages));
        assert_eq!(format("anthropic/v1/messages/count_tokens"), Some(Format::Messages));
        // The base URL may have the version.
        assert_eq!(format("openai/chat/completions"), Some(Format::ChatCompletions));
        assert_eq!(format("anthropic/messages"), Some(Format::Messages));
        for other in [
            "openai/v1/embeddings",
            "openai/v1/messages",
            "openai/v1/threads/t1/messages",
            "openai/v1/chat/completions/c1",
            "openai/v1/v1/responses",
            "openai/v/responses",
            "openai/vx/responses",
            "anthropic/v1/messages/batches",
            "anthropic/v1/responses",
            "anthropic/v1/chat/completions",
        ] {
            assert_eq!(format(other), None, "{other}");
        }
    }

    #[test]
    fn an_encoded_slash_is_a_slash() {
        for text in [
            "openai/v1%2Fchat%2fcompletions",
            "openai/v1/chat%2Fcompletions",
            "openai/v%31/ch%61t/c%6Fmpletions",
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(target.path, "v1/chat/completions");
            assert_eq!(format(text), Some(Format::ChatCompletions));
        }
        assert_eq!(format("openai/V1/Chat/completions"), Some(Format::ChatCompletions));
        assert_eq!(Target::parse("openai/v1/%2e%2E/models"), None);
    }

    #[test]
    fn a_path_can_name_the_agent() {
        for (text, agent_id, selector) in [
            ("openai/@writer/v1/responses", "writer", None),
            ("openai/%40writer/v1/responses", "writer", None),
            ("openai/@writer:production/v1/responses", "writer", Some("production")),
            ("openai/@writer%3A7/v1%2Fresponses", "writer", Some("7")),
        ] {
            let target = Target::parse(text).unwrap();
            let agent = target.agent.as_ref().unwrap();
            assert_eq!(
                (&*agent.agent_id, agent.selector.as_deref()),
                (agent_id, selector),
                "{text}"
            );
            assert_eq!(
                (&*target.path, format(text)),
                ("v1/responses", Some(Format::Responses)),
                "{text}"
            );
        }
        for text in [
            "openai/@/v1/responses",
            "openai/@writer",
            "openai/@writer/",
            "openai/@writer:/v1/responses",
            "openai/@:7/v1/responses",
            "openai/@writer:7:8/v1/responses",
            "openai/@a@b/v1/responses",
            "openai/@../v1/responses",
            "openai/@evil.example/v1",
            "openai/@writer/@editor/v1/responses",
        ] {
            assert_eq!(Target::parse(text), None, "{text}");
        }
    }

    /// As RFC 3986 has them: names of fine-tuned models, identifiers of files and batches, methods behind a colon.
    #[test]
    fn a_path_is_passed_on_as_it_is_written() {
        for (path, passed) in [
            ("v1/models/ft:gpt-4o-mini:acme::abc", None),
            (
                "v1/models/ft%3Agpt-4o-mini%3aacme",
                Some("v1/models/ft:gpt-4o-mini:acme"),
            ),
            ("v1/models/a%40b", Some("v1/models/a@b")),
            ("v1/models/a@b", None),
            ("v1beta/models/gemini:generateContent", None),
            ("v1/files/a%20b", None),
            ("v1/files/a+b,c=1", None),
            ("v1/files/(a)'b'!*$&", None),
            ("v1/files/%C3%A9%2B%7B", None),
            ("v1/files/%7E%61%2Db", Some("v1/files/~a-b")),
            ("v1/files/.hidden", None),
        ] {
            let text = format!("openai/@writer/{path}");
            assert_eq!(Target::parse(&text).unwrap().path, passed.unwrap_or(path));
        }
    }

    #[test]
    fn what_could_lead_elsewhere_is_no_target() {
        for text in [
            "",
            "openai",
            "openai/",
            "/openai/v1",
            "Other/v1/responses",
            "0ther/v1/responses",
            "OpenAI/v1/responses",
            "openai/v1/",
            "openai//v1",
            "openai/v1//responses",
            "openai/.",
            "openai/..",
            "openai/v1/../admin",
            "openai/v1/./responses",
            "openai/v1/...",
            "openai/v1/%2e%2e/admin",
            "openai%2fv1/responses",
            "openai/v1%2f",
            "openai/%2fv1",
            "openai/v1%2f%2fresponses",
            "openai/v1%2f..%2fadmin",
            "openai/v1%252fresponses",
            "openai/v1/%5cadmin",
            "openai/v1/\\admin",
            "openai/v1/%00",
            "openai/v1/a\0",
            "openai/v1/a\n",
            "openai/@evil.example",
            "openai/user@evil.example/v1",
            "openai/https://evil.example",
            "openai/http:evil.example",
            "openai/v1;x",
            "openai/v1/..;/admin",
            "openai/v1/a%3bb",
            "openai/v1/a%3fb",
            "openai/v1/a%23b",
            "openai/v1/%",
            "openai/v1/%4",
            "openai/v1/%zz",
            "openai/v1/%ff",
            "openai/v1/%7f",
            "openai/v1/%0a",
            "openai/%40writer%40/v1",
            "openai/v1/ü",
            "openai/v1/a b",
            "openai/v1?x",
            "openai/v1#x",
        ] {
            assert_eq!(Target::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_passes_stays_below_the_base_url(path in r"([a-z0-9._~%@:/\\\-]|\.\.|//|%2e|%2f|%5c){0,30}") {
            let text = format!("openai/{path}");
            if let Some(target) = Target::parse(&text) {
                let uri: Uri = format!("https://api.example.com:8443/base/{}", target.path).parse().unwrap();
                prop_assert_eq!(uri.authority().unwrap().as_str(), "api.example.com:8443");
                let segments: Vec<_> = uri.path().split('/').skip(1).collect();
                prop_assert_eq!(segments[0], "base");
                prop_assert!(segments.iter().all(|segment| !matches!(*segment, "" | "." | "..")));
                let once = percent_decode_str(uri.path()).decode_utf8().unwrap();
                prop_assert!(once.split('/').all(|segment| segment.is_empty() || !segment.trim_matches('.').is_empty()));
                prop_assert!(!once.contains(['%', '\\']) && once.matches('/').count() == segments.len());
            }
        }

        #[test]
        fn any_text_is_read_without_harm(text in any::<String>()) {
            let _ = Target::parse(&text);
        }
    }
}
