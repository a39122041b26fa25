//! Webhooks: where the server sends the events of a workspace.

use agentcfg_core::model::{
    NewWebhook, Webhook, WebhookDelivery, WebhookId, WebhookPatch, WebhookReplay, WebhookWithSecret, WorkspaceId,
};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const WEBHOOKS: &str = "/api/webhooks";

impl Client {
    /// Lists the webhooks of a workspace without their secrets, in the order of creation.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `webhooks:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for webhook in client.list_webhooks(workspace).await? {
    ///     println!("{}: {}", webhook.url, if webhook.enabled { "enabled" } else { "disabled" });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_webhooks(&self, workspace: WorkspaceId) -> Result<Vec<Webhook>, Error> {
        let call = Call::get(WEBHOOKS).query("workspace_id", workspace);
        self.send(call, ApiResponse::json).await
    }

    /// Creates a webhook. Only this response and that of a rotation contain a secret.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for a URL that the server sends nothing to,
    /// [`is_forbidden`](Error::is_forbidden) without `webhooks:manage`, [`is_plan_limit`](Error::is_plan_limit) when
    /// the workspace has 20 webhooks.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::NewWebhook;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let created = client.create_webhook(&NewWebhook::new(workspace, "https://hooks.example.com/agentcfg")).await?;
    /// std::fs::write("/run/secrets/agentcfg-webhook", &created.secret)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_webhook(&self, new: &NewWebhook) -> Result<WebhookWithSecret, Error> {
        self.send(Call::post(WEBHOOKS).json(new), ApiResponse::json).await
    }

    /// Changes a webhook; absent fields stay.
    ///
    /// # Errors
    ///
    /// As [`create_webhook`](Self::create_webhook), and [`is_not_found`](Error::is_not_found) for a webhook that does
    /// not exist or belongs to a workspace that the caller has no part in.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::WebhookPatch;
    /// let webhook = "0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4".parse()?;
    /// // Goes on from its cursor.
    /// client.update_webhook(webhook, &WebhookPatch::default().enabled(true)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_webhook(&self, webhook: WebhookId, patch: &WebhookPatch) -> Result<Webhook, Error> {
        self.send(on(Call::patch(WEBHOOKS), webhook).json(patch), ApiResponse::json)
            .await
    }

    /// Deletes a webhook with the record of its deliveries.
    ///
    /// # Errors
    ///
    /// As [`update_webhook`](Self::update_webhook).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.delete_webhook("0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4".parse()?).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_webhook(&self, webhook: WebhookId) -> Result<(), Error> {
        self.send(on(Call::delete(WEBHOOKS), webhook), ApiResponse::success)
            .await
    }

    /// Lets the server send a test to a webhook at once, and returns how it went. The receiver has 15 seconds, so
    /// [`Timeouts::attempt`](crate::Timeouts::attempt) should be longer than that.
    ///
    /// # Errors
    ///
    /// As [`update_webhook`](Self::update_webhook). A receiver that fails is no error.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let attempt = client.test_webhook("0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4".parse()?).await?;
    /// println!("{:?} {:?}", attempt.status, attempt.error);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn test_webhook(&self, webhook: WebhookId) -> Result<WebhookDelivery, Error> {
        let call = on(Call::post("/api/webhooks/test"), webhook);
        self.send(call, ApiResponse::json).await
    }

    /// Moves the cursor of a webhook back: the events after it are sent again, with the `webhook-id`s that they had.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for a cursor that is later than the webhook's, or of another workspace or
    /// epoch; else as [`update_webhook`](Self::update_webhook).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::{ReplayFrom, WebhookReplay};
    /// let webhook = "0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4".parse()?;
    /// client.replay_webhook(webhook, &WebhookReplay::new(ReplayFrom::Start)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replay_webhook(&self, webhook: WebhookId, replay: &WebhookReplay) -> Result<Webhook, Error> {
        let call = on(Call::post("/api/webhooks/replay"), webhook).json(replay);
        self.send(call, ApiResponse::json).await
    }

    /// Gives a webhook a new secret. For 24 hours the one before signs too.
    ///
    /// # Errors
    ///
    /// As [`update_webhook`](Self::update_webhook).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let rotated = client.rotate_webhook_secret("0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4".parse()?).await?;
    /// std::fs::write("/run/secrets/agentcfg-webhook", &rotated.secret)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rotate_webhook_secret(&self, webhook: WebhookId) -> Result<WebhookWithSecret, Error> {
        let call = on(Call::post("/api/webhooks/rotate-secret"), webhook);
        self.send(call, ApiResponse::json).await
    }

    /// Lists the last 100 attempts to deliver to a webhook, the newest first.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `webhooks:read`, [`is_not_found`](Error::is_not_found) as
    /// [`update_webhook`](Self::update_webhook).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// for attempt in client.webhook_deliveries("0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4".parse()?).await? {
    ///     println!("{} {:?} {:?}", attempt.id, attempt.status, attempt.next_attempt_at);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn webhook_deliveries(&self, webhook: WebhookId) -> Result<Vec<WebhookDelivery>, Error> {
        let call = on(Call::get("/api/webhooks/deliveries"), webhook);
        self.send(call, ApiResponse::json).await
    }
}

fn on(call: Call, webhook: WebhookId) -> Call {
    call.query("webhook_id", webhook)
}
