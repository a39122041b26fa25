//! Budgets of model calls.

use agentcfg_core::model::{Budget, BudgetLimit, BudgetPeriod, BudgetScope, UserId, WorkspaceId};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const BUDGETS: &str = "/api/budgets";

impl Client {
    /// Lists the budgets of a workspace with what is spent of each in its current period.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `analytics:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for budget in client.list_budgets(workspace).await? {
    ///     println!("{} of {} USD", budget.spent_usd, budget.limit_usd);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_budgets(&self, workspace: WorkspaceId) -> Result<Vec<Budget>, Error> {
        let call = Call::get(BUDGETS).query("workspace_id", workspace);
        self.send(call, ApiResponse::json).await
    }

    /// Makes a budget, or changes its limit and action. `scope_id` names the agent, the API key or the user; it is
    /// `None` for the whole workspace.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for a limit or a `scope_id` that breaks a rule,
    /// [`is_forbidden`](Error::is_forbidden) without `budgets:manage`, [`is_plan_limit`](Error::is_plan_limit) where
    /// the workspace has 500 budgets.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::{BudgetLimit, BudgetPeriod, BudgetScope};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let (writer, limit) = ("writer".parse()?, BudgetLimit::new("250".parse()?));
    /// client.set_budget(workspace, BudgetScope::Agent, Some(&writer), BudgetPeriod::Month, &limit).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_budget(
        &self,
        workspace: WorkspaceId,
        scope: BudgetScope,
        scope_id: Option<&UserId>,
        period: BudgetPeriod,
        limit: &BudgetLimit,
    ) -> Result<Budget, Error> {
        let call = budget(Call::put(BUDGETS), workspace, scope, scope_id, period);
        self.send(call.json(limit), ApiResponse::json).await
    }

    /// Removes a budget.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `budgets:manage`, [`is_not_found`](Error::is_not_found) where
    /// there is none.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::{BudgetPeriod, BudgetScope};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// client.remove_budget(workspace, BudgetScope::Workspace, None, BudgetPeriod::Day).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_budget(
        &self,
        workspace: WorkspaceId,
        scope: BudgetScope,
        scope_id: Option<&UserId>,
        period: BudgetPeriod,
    ) -> Result<(), Error> {
        let call = budget(Call::delete(BUDGETS), workspace, scope, scope_id, period);
        self.send(call, ApiResponse::success).await
    }

    /// Replaces what servers had taken of the budgets that ended without giving it back by what the usage says that
    /// they have spent, and returns the budgets.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `budgets:manage`.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// client.settle_budgets(workspace).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn settle_budgets(&self, workspace: WorkspaceId) -> Result<Vec<Budget>, Error> {
        let call = Call::post("/api/budgets/settle").query("workspace_id", workspace);
        self.send(call, ApiResponse::json).await
    }
}

fn budget(
    call: Call,
    workspace: WorkspaceId,
    scope: BudgetScope,
    scope_id: Option<&UserId>,
    period: BudgetPeriod,
) -> Call {
    call.query("workspace_id", workspace)
        .query("scope", scope)
        .query_if("scope_id", scope_id)
        .query("period", period)
}
