//! A test of a webhook while storage fails.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::{Failing, ada, memory, service, workspace};
use crate::model::NewWebhook;
use crate::webhook::{DeliveryAnswer, Outgoing, Transport};

/// A receiver that counts what it takes.
#[derive(Default)]
struct Receiver(AtomicUsize);

#[async_trait]
impl Transport for Receiver {
    async fn post(&self, _: Outgoing) -> DeliveryAnswer {
        self.0.fetch_add(1, Ordering::SeqCst);
        DeliveryAnswer {
            status: Some(204),
            ..DeliveryAnswer::default()
        }
    }
}

#[tokio::test]
async fn a_test_that_was_sent_and_cannot_be_recorded_is_no_error() {
    let store = memory();
    let good = service(&store, &[1]);
    let studio = workspace(&good).await.id;
    let new = NewWebhook::new(studio, "https://example.com/");
    let webhook = good.create_webhook(&ada(&good), new).await.unwrap().webhook.id;
    for applies in [false, true] {
        let failing = service(&Failing::after(&store, 0, applies), &[1]);
        let receiver = Receiver::default();
        let attempt = failing.test_webhook(&ada(&failing), webhook, &receiver).await;
        assert_eq!(attempt.unwrap().status, Some(204), "{applies}");
        assert_eq!(receiver.0.load(Ordering::SeqCst), 1, "{applies}");
    }
}
