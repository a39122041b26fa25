//! The metrics of model calls: by provider and model, never by agent or key.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use agentcfg_core::model::Provider;
use agentcfg_core::service::EndedCall;
use agentcfg_core::sync::lock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::register::{registered, seconds};

/// The most models outside the catalogue that have a label of their own. Callers choose their names.
const UNLISTED: usize = 100;
/// The label of all others.
const OTHER: &str = "other";
/// The label of calls that name no model.
const NO_MODEL: &str = "none";

/// Bounds in seconds: of a cached token, of a short answer, of a long one with reasoning.
const BOUNDS: [f64; 14] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0,
];

/// The metrics of model calls.
#[derive(Debug)]
pub(super) struct ModelCallMetrics {
    calls: Family<CallLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    cost: Family<ModelLabels, Counter<f64, AtomicU64>>,
    durations: Family<ModelLabels, Histogram>,
    first_bytes: Family<ModelLabels, Histogram>,
    unlisted: Mutex<BTreeSet<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    provider: String,
    model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    provider: String,
    model: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    provider: String,
    model: String,
    r#type: &'static str,
}

impl ModelCallMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let histograms = || Family::new_with_constructor((|| Histogram::new(BOUNDS)) as fn() -> Histogram);
        Self {
            calls: registered(
                registry,
                "model_calls",
                "Model calls that have ended, each attempt as a call of its own",
            ),
            tokens: registered(registry, "model_tokens", "Tokens of model calls"),
            cost: registered(
                registry,
                "model_cost_usd",
                "Cost of model calls in USD, of models with a price",
            ),
            durations: seconds(
                registry,
                "model_call_duration",
                "Time from the sending of a model call to its end",
                histograms(),
            ),
            first_bytes: seconds(
                registry,
                "model_call_first_byte",
                "Time from the sending of a model call to the beginning of its answer",
                histograms(),
            ),
            unlisted: Mutex::default(),
        }
    }

    pub(super) fn ended(&self, call: &EndedCall) {
        let (provider, model) = (label_of(call.provider), self.model(call));
        let labels = ModelLabels {
            provider: provider.clone(),
            model: model.clone(),
        };
        self.durations
            .get_or_create(&labels)
            .observe(call.duration.as_secs_f64());
        if let Some(first_byte) = call.first_byte {
            self.first_bytes
                .get_or_create(&labels)
                .observe(first_byte.as_secs_f64());
        }
        let usage = call.usage;
        for (r#type, count) in [
            ("input", usage.input),
            ("cached_input", usage.cached_input),
            ("cache_write", usage.cache_write),
            ("output", usage.output),
            ("reasoning", usage.reasoning),
        ] {
            if count > 0 {
                let labels = TokenLabels {
                    provider: provider.clone(),
                    model: model.clone(),
                    r#type,
                };
                self.tokens.get_or_create(&labels).inc_by(count);
            }
        }
        if let Some(cost) = call.cost.filter(|cost| cost.nanos() > 0) {
            // A counter of Prometheus is a double; the ledger is exact.
            self.cost.get_or_create(&labels).inc_by(cost.nanos() as f64 / 1e9);
        }
        let labels = CallLabels {
            provider,
            model,
            status: call.status,
        };
        self.calls.get_or_create(&labels).inc();
    }

    /// The label of a model: its name, as long as callers have not named too many that the catalogue does not have.
    fn model(&self, call: &EndedCall) -> String {
        let Some(model) = &call.model else {
            return NO_MODEL.to_owned();
        };
        if call.is_listed {
            return model.clone();
        }
        let mut unlisted = lock(&self.unlisted);
        if unlisted.len() < UNLISTED && !unlisted.contains(model) {
            unlisted.insert(model.clone());
        }
        match unlisted.contains(model) {
            true => model.clone(),
            false => OTHER.to_owned(),
        }
    }
}

fn label_of(provider: Provider) -> String {
    provider.to_string()
}
