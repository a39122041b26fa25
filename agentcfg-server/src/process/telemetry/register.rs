//! Registering metrics.

use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

/// Registers a metric that begins at zero.
pub(super) fn registered<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Registers a metric of times in seconds.
pub(super) fn seconds<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

/// Registers a metric of bytes that begins at zero.
pub(super) fn bytes<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register_with_unit(name, help, Unit::Bytes, metric.clone());
    metric
}

/// The labels of a metric that is always 1.
pub(super) type Build = [(&'static str, &'static str); 1];

/// Registers a metric that is always 1 and tells something by its labels.
pub(super) fn info(registry: &mut Registry, name: &str, help: &str, labels: Build) -> Build {
    registry.register(name, help, Info::new(labels));
    labels
}
