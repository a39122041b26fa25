//! Model providers: whose models agents call, and with whose credential.

use std::fmt;
use std::str::FromStr;

use super::Timestamp;
use super::price::Price;
use super::word_enum::word_enum;
use crate::body::{record, serde_as_text};
use crate::validate::Invalid;

/// The identifier of a model provider: 1–32 of `a-z`, `0-9` and `-`, the first a letter.
///
/// Each deployment has [`Provider::OPENAI`] and [`Provider::ANTHROPIC`], and can have others that speak the API of one of them.
/// A value is a copy of the text, without an allocation.
///
/// ```
/// use agentcfg_core::model::Provider;
/// assert_eq!("openai".parse(), Ok(Provider::OPENAI));
/// let own: Provider = "azure-eu".parse()?;
/// assert_eq!(own.as_str(), "azure-eu");
/// assert!("Azure".parse::<Provider>().is_err());
/// # Ok::<(), agentcfg_core::validate::Invalid>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Provider {
    /// The text, followed by zeros.
    text: [u8; Provider::MAX],
}

impl Provider {
    /// Anthropic.
    pub const ANTHROPIC: Self = Self::fixed("anthropic");
    /// OpenAI.
    pub const OPENAI: Self = Self::fixed("openai");
    /// The length of the longest identifier.
    const MAX: usize = 32;

    const fn fixed(name: &str) -> Self {
        let mut text = [0; Self::MAX];
        let mut i = 0;
        while i < name.len() {
            text[i] = name.as_bytes()[i];
            i += 1;
        }
        Self { text }
    }

    /// The identifier as text.
    ///
    /// ```
    /// assert_eq!(agentcfg_core::model::Provider::OPENAI.as_str(), "openai");
    /// ```
    pub fn as_str(&self) -> &str {
        let length = self.text.iter().position(|byte| *byte == 0).unwrap_or(Self::MAX);
        // It is ASCII.
        std::str::from_utf8(&self.text[..length]).unwrap_or_default()
    }
}

impl FromStr for Provider {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_id = (1..=Self::MAX).contains(&name.len())
            && name.as_bytes()[0].is_ascii_lowercase()
            && name.bytes().all(is_allowed);
        match is_id {
            true => Ok(Self::fixed(name)),
            false => Err(Invalid::new(
                "provider",
                "must be 1 to 32 of a-z, 0-9 and -, the first a letter",
            )),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

serde_as_text!(as_str Provider);

word_enum! {
    /// The API that a provider speaks.
    ProviderApi {
        /// The API of Anthropic: `messages`.
        Anthropic = "anthropic",
        /// The API of OpenAI: `chat/completions`, `responses`, `embeddings`.
        OpenAi = "openai",
    }
}

word_enum! {
    /// The header field in which a provider takes its credential.
    CredentialHeader {
        /// `Authorization: Bearer <credential>`.
        Authorization = "authorization",
        /// `x-api-key: <credential>`.
        XApiKey = "x-api-key",
        /// `api-key: <credential>`.
        ApiKey = "api-key",
    }
}

impl ProviderApi {
    /// The header field of the credential where none is configured.
    ///
    /// ```
    /// use agentcfg_core::model::{CredentialHeader, ProviderApi};
    /// assert_eq!(ProviderApi::Anthropic.credential_header(), CredentialHeader::XApiKey);
    /// ```
    pub const fn credential_header(self) -> CredentialHeader {
        match self {
            Self::Anthropic => CredentialHeader::XApiKey,
            Self::OpenAi => CredentialHeader::Authorization,
        }
    }
}

word_enum! {
    /// Whether a model can be called.
    ModelStatus {
        /// Calls are accepted.
        Available = "available",
        /// The model is announced; calls are refused.
        ComingSoon = "coming_soon",
    } or Unknown
}

word_enum! {
    /// Whose credential a model call uses.
    CredentialSource {
        /// The workspace's own provider key.
        Workspace = "workspace",
        /// The credential that the deployment provides for all workspaces.
        Managed = "managed",
        /// There is none, so calls are refused.
        None = "none",
    } or Unknown
}

record! {
    /// A model on offer.
    ///
    /// ```
    /// use agentcfg_core::model::{CredentialSource, ModelInfo, ModelStatus};
    /// fn can_be_called(model: &ModelInfo) -> bool {
    ///     model.status == ModelStatus::Available && model.credential != CredentialSource::None
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    ModelInfo {
        /// What requests name.
        id: required String,
        /// The provider that runs the model.
        provider: required Provider,
        /// The provider's name for people.
        provider_name: required String,
        /// The API that the provider speaks.
        provider_api: required ProviderApi,
        /// The name for people.
        display_name: required String,
        /// Whether the model can be called.
        status: required ModelStatus,
        /// Whose credential the workspace's next call to this provider uses.
        credential: required CredentialSource,
        /// USD per million input tokens; null where the price is not known.
        input_price: nullable Price,
        /// USD per million input tokens that are read from a cache; null where they cost what input does.
        cached_input_price: nullable Price,
        /// USD per million input tokens that are written to a cache; null where they cost what input does.
        cache_write_price: nullable Price,
        /// USD per million output tokens.
        output_price: nullable Price,
        /// The most tokens of an answer, where that is known.
        max_output_tokens: nullable u64,
    }
    examples: [],
}

record! {
    /// A saved provider key, without the key.
    ///
    /// The plaintext of a saved key is never shown again.
    ///
    /// ```
    /// use agentcfg_core::model::ProviderKeyInfo;
    /// fn line(key: &ProviderKeyInfo) -> String {
    ///     format!("{}, replaced at {}", key.provider, key.updated_at)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    ProviderKeyInfo {
        /// The provider that the key is for.
        provider: required Provider,
        /// When a key for this provider was first saved.
        created_at: required Timestamp,
        /// When the key was last replaced.
        updated_at: required Timestamp,
        /// The beginning of a keyed hash of the key, 8 hexadecimal digits: the same key has the same in this workspace until the master
        /// key is another.
        fingerprint: required String,
    }
    examples: [],
}

record! {
    /// What a provider says of a saved key.
    ///
    /// ```
    /// use agentcfg_core::model::ProviderKeyTest;
    /// fn line(test: &ProviderKeyTest) -> &str {
    ///     if test.ok { "valid" } else { &test.message }
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    ProviderKeyTest {
        /// Whether the provider takes it.
        ok: required bool,
        /// The status that the provider answered; null when it did not answer.
        status: nullable u16,
        /// What the provider said, or why it could not be asked.
        message: required String,
    }
    examples: [
        { "ok": true, "status": 200, "message": "the provider takes the key" },
        { "ok": false, "status": 401, "message": "Incorrect API key provided" },
    ],
}

impl ProviderKeyTest {
    /// What an answer with this status says, or that there was none. A status of success means that the provider takes the key.
    ///
    /// ```
    /// use agentcfg_core::model::ProviderKeyTest;
    /// assert!(ProviderKeyTest::new(Some(200), "the provider takes the key").ok);
    /// assert!(!ProviderKeyTest::new(None, "there is no answer").ok);
    /// ```
    pub fn new(status: Option<u16>, message: impl Into<String>) -> Self {
        Self {
            ok: status.is_some_and(|status| (200..300).contains(&status)),
            status,
            message: message.into(),
        }
    }
}
