//! Models of the catalogue, and those of the default one with the prices that their providers published on 2026-11-27.
//!
//! Sources: <https://platform.claude.com/docs/en/about-claude/pricing> and
//! <https://developers.openai.com/api/docs/pricing>. They are the standard prices of prompts of usual length; both
//! providers charge more for very long ones, and for some services.

use crate::model::into_field::settable;
use crate::model::{ModelPrices, ModelStatus, Price, Provider};

settable! {
    /// A model of the catalogue.
    ///
    /// ```
    /// use agentcfg_core::model::{ModelPrices, Provider};
    /// use agentcfg_core::routing::CatalogueModel;
    /// let model = CatalogueModel::new("gpt-5.5", Provider::OPENAI)
    ///     .display_name("GPT-5.5")
    ///     .prices(ModelPrices::of("5".parse()?, "30".parse()?))
    ///     .max_output_tokens(128_000);
    /// assert_eq!(model.display_name, "GPT-5.5");
    /// # Ok::<(), agentcfg_core::model::InvalidAmount>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    CatalogueModel {
        /// The identifier of the model at its provider.
        id: String,
        /// The provider that serves the model.
        provider: Provider,
        /// The display name.
        display_name: String,
        /// Whether the model can be called.
        status: ModelStatus,
        /// What its tokens cost, where that is known.
        prices: Option<ModelPrices>,
        /// The most tokens of an answer, where that is known.
        max_output_tokens: Option<u64>,
    }
}

impl CatalogueModel {
    /// An available model without prices, whose display name is its identifier.
    ///
    /// ```
    /// use agentcfg_core::model::{ModelStatus, Provider};
    /// use agentcfg_core::routing::CatalogueModel;
    /// let model = CatalogueModel::new("gpt-5.5", Provider::OPENAI);
    /// assert_eq!((&*model.display_name, model.status), ("gpt-5.5", ModelStatus::Available));
    /// ```
    pub fn new(id: impl Into<String>, provider: Provider) -> Self {
        let id = id.into();
        Self {
            display_name: id.clone(),
            id,
            provider,
            status: ModelStatus::Available,
            prices: None,
            max_output_tokens: None,
        }
    }
}

settable! {
    /// A model for embeddings: managed credentials pay for it, and the list of models does not show it.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::routing::EmbeddingModel;
    /// let model = EmbeddingModel::new("text-embedding-3-small", Provider::OPENAI).input_price(Some("0.02".parse()?));
    /// assert!(model.input_price.is_some());
    /// # Ok::<(), agentcfg_core::model::InvalidAmount>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    EmbeddingModel {
        /// The identifier of the model at its provider.
        id: String,
        /// The provider that serves the model.
        provider: Provider,
        /// What its tokens cost, where that is known.
        input_price: Option<Price>,
    }
}

impl EmbeddingModel {
    /// A model without a price.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::routing::EmbeddingModel;
    /// assert_eq!(EmbeddingModel::new("mini-embed", Provider::OPENAI).input_price, None);
    /// ```
    pub fn new(id: impl Into<String>, provider: Provider) -> Self {
        Self {
            id: id.into(),
            provider,
            input_price: None,
        }
    }
}

/// A price in thousandths of a USD per million tokens.
const fn price(thousandths: u32) -> Price {
    Price::of_thousandths(thousandths)
}

const fn prices(input: u32, cached_input: u32, cache_write: Option<u32>, output: u32) -> ModelPrices {
    ModelPrices {
        input: price(input),
        cached_input: Some(price(cached_input)),
        cache_write: match cache_write {
            Some(written) => Some(price(written)),
            None => None,
        },
        output: Some(price(output)),
    }
}

/// The most tokens of an answer of each of these models.
const MAX_OUTPUT_TOKENS: u64 = 128_000;

pub(super) fn listed() -> Vec<CatalogueModel> {
    const ANTHROPIC: Provider = Provider::ANTHROPIC;
    const OPENAI: Provider = Provider::OPENAI;
    let model = |provider, id: &str, display_name: &str, prices| CatalogueModel {
        id: id.into(),
        provider,
        display_name: display_name.into(),
        status: ModelStatus::Available,
        prices: Some(prices),
        max_output_tokens: Some(MAX_OUTPUT_TOKENS),
    };
    let opus = prices(4000, 200, Some(5000), 20_000);
    let sonnet = prices(2000, 100, Some(2500), 10_000);
    let haiku = prices(100, 10, Some(125), 500);
    vec![
        model(ANTHROPIC, "claude-opus-5-5", "Claude Opus 5.5", opus),
        model(ANTHROPIC, "claude-sonnet-5-5", "Claude Sonnet 5.5", sonnet),
        model(ANTHROPIC, "claude-haiku-5-5", "Claude Haiku 5.5", haiku),
        model(OPENAI, "gpt-5.5", "GPT-5.5", prices(5000, 500, None, 30_000)),
        model(OPENAI, "gpt-5.4-mini", "GPT-5.4 mini", prices(750, 75, None, 4500)),
        model(OPENAI, "gpt-6-sol", "GPT-6 Sol", prices(2000, 200, Some(2500), 10_000)),
        CatalogueModel {
            id: "gpt-7".into(),
            provider: OPENAI,
            display_name: "GPT-7".into(),
            status: ModelStatus::ComingSoon,
            prices: None,
            max_output_tokens: None,
        },
    ]
}

pub(super) fn embedding() -> Vec<EmbeddingModel> {
    let model = |id: &str, input_price| EmbeddingModel {
        id: id.into(),
        provider: Provider::OPENAI,
        input_price: Some(price(input_price)),
    };
    vec![
        model("text-embedding-3-small", 20),
        model("text-embedding-3-large", 130),
    ]
}
