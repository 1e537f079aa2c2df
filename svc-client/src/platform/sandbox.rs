//! The sandbox of an account.

use svc_core::platform::{Account, NewSandbox, SandboxStep, operations};

use crate::{AccountClient, Result};

/// The sandbox of the account: an account of its own, for testing programs.
impl AccountClient {
    /// Returns the sandbox of the account.
    ///
    /// # Errors
    /// `not_found` if the account has none, and any other [`Error`](crate::Error).
    pub async fn sandbox(&self) -> Result<Account> {
        self.call(&operations::GET_SANDBOX, &()).await
    }

    /// Creates the sandbox of the account, with sample records and a key.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(account: svc_client::AccountClient) -> Result<(), svc_client::Error> {
    /// let new = account.create_sandbox().await?;
    /// println!("{} {}", new.account.id, new.key.key);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `not_allowed` if the account has a sandbox already or is one, and any other [`Error`](crate::Error).
    pub async fn create_sandbox(&self) -> Result<NewSandbox> {
        self.call(&operations::CREATE_SANDBOX, &()).await
    }

    /// Deletes the data of the sandbox and creates the sample records again, by as many requests as it takes. Keys and webhook
    /// subscriptions stay.
    ///
    /// # Errors
    /// `not_found` if the account has no sandbox, and any other [`Error`](crate::Error). Call it again then.
    pub async fn reset_sandbox(&self) -> Result<()> {
        loop {
            let SandboxStep { is_done, .. } = self.call(&operations::RESET_SANDBOX, &()).await?;
            if is_done {
                return Ok(());
            }
        }
    }

    /// Deletes the sandbox with all that it has, by as many requests as it takes.
    ///
    /// # Errors
    /// As [`reset_sandbox`](Self::reset_sandbox).
    pub async fn delete_sandbox(&self) -> Result<()> {
        loop {
            let SandboxStep { is_done, .. } = self.call(&operations::DELETE_SANDBOX, &()).await?;
            if is_done {
                return Ok(());
            }
        }
    }
}
