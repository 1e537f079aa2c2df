//! A shop that embeds svc: it keeps orders in a table of its own, and bills each of them in the same transaction.
//!
//! It is what docs/embedding.md describes, as a program: routes of its own beside the mounted API, `sqlx` for its tables,
//! and `chrono` for its dates.

use std::sync::Arc;

use axum::extract::{Json, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Router, middleware};
use chrono::NaiveDate;
use serde::Deserialize;
use sqlx::{PgPool, SqlitePool};
use svc_core::prelude::*;
use svc_core::store::Store;
use svc_server::{Background, Builder, Peer};
use svc_store::sqlx::{Joined, join};
use svc_store::{PostgresStore, SqliteStore};

/// The database of the shop: its pool, and svc's store on the same database.
#[derive(Clone)]
pub enum Database {
    /// A SQLite file.
    Sqlite(SqlitePool, Arc<SqliteStore>),
    /// A PostgreSQL database.
    Postgres(PgPool, Arc<PostgresStore>),
}

/// The shop.
#[derive(Clone)]
pub struct Shop {
    svc: Svc,
    database: Database,
    tenant: TenantId,
}

/// What a customer orders.
#[derive(Clone, Debug, Deserialize)]
pub struct Order {
    /// The number of the order, of which there is one.
    pub number: i64,
    /// The price, in the currency of the account.
    pub price: String,
    /// When the invoice is to be paid.
    pub due: NaiveDate,
}

/// Why an order was not taken.
#[derive(Debug)]
pub enum OrderError {
    /// svc refused the invoice.
    Svc(Error),
    /// The database refused the order.
    Database(sqlx::Error),
}

impl From<Error> for OrderError {
    fn from(error: Error) -> Self {
        Self::Svc(error)
    }
}

impl From<sqlx::Error> for OrderError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl IntoResponse for OrderError {
    fn into_response(self) -> Response {
        match self {
            Self::Svc(error) => (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
            Self::Database(error) => (StatusCode::CONFLICT, error.to_string()),
        }
        .into_response()
    }
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS orders (number bigint PRIMARY KEY, invoice text NOT NULL)";
const INSERT: &str = "INSERT INTO orders (number, invoice) VALUES ($1, $2)";
const COUNT: &str = "SELECT count(*) FROM orders";

impl Shop {
    /// Opens the shop of an account. `svc` is over the store of `database`.
    ///
    /// # Errors
    /// [`OrderError::Database`] when the table of orders cannot be created.
    pub async fn open(svc: Svc, database: Database, tenant: TenantId) -> Result<Self, OrderError> {
        match &database {
            Database::Sqlite(pool, _) => sqlx::query(TABLE).execute(pool).await.map(|_| ())?,
            Database::Postgres(pool, _) => sqlx::query(TABLE).execute(pool).await.map(|_| ())?,
        }
        Ok(Self { svc, database, tenant })
    }

    /// Returns the routes of the shop with the API below `/business`, and the work in the background.
    pub fn router(&self) -> (Router, Background) {
        let (api, background) = Builder::new(&self.svc).mount("/business").build();
        let app = Router::new()
            .route("/orders", post(take_order))
            .with_state(self.clone())
            .nest_service("/business", api)
            .layer(middleware::map_request(add_peer));
        (app, background)
    }

    /// Takes an order: its row, the invoice, the event of the invoice and its deliveries are one transaction.
    ///
    /// # Errors
    /// That of svc or of the database. Nothing was stored then.
    pub async fn take(&self, order: &Order) -> Result<Invoice, OrderError> {
        let invoice = match &self.database {
            Database::Sqlite(pool, store) => {
                let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
                let invoice = self.bill(&join(&mut tx, &**store), order).await?;
                let insert = sqlx::query(INSERT).bind(order.number).bind(invoice.id.to_string());
                insert.execute(&mut *tx).await?;
                tx.commit().await?;
                // PostgreSQL notifies the sender by itself.
                store.delivery_wakeup().notify();
                invoice
            }
            Database::Postgres(pool, store) => {
                let mut tx = pool.begin().await?;
                let invoice = self.bill(&join(&mut tx, &**store), order).await?;
                let insert = sqlx::query(INSERT).bind(order.number).bind(invoice.id.to_string());
                insert.execute(&mut *tx).await?;
                tx.commit().await?;
                invoice
            }
        };
        Ok(invoice)
    }

    async fn bill(&self, svc: &Joined<'_>, order: &Order) -> Result<Invoice, Error> {
        let price = order.price.parse().map_err(|error: svc_core::error::Issue| error.on("price"))?;
        let due_date = Date::try_from(order.due).map_err(|error| error.on("due"))?;
        let invoices = svc.account(self.tenant).invoices();
        let draft = invoices.create(InvoiceCreate { due_date: Some(due_date), ..InvoiceCreate::new(price) }).await?;
        invoices.send(draft.id).await
    }

    /// Returns how many orders there are.
    ///
    /// # Errors
    /// That of the database.
    pub async fn orders(&self) -> Result<i64, OrderError> {
        Ok(match &self.database {
            Database::Sqlite(pool, _) => sqlx::query_scalar(COUNT).fetch_one(pool).await?,
            Database::Postgres(pool, _) => sqlx::query_scalar(COUNT).fetch_one(pool).await?,
        })
    }
}

/// Tells the API the address of the client. The tests have no listener that knows it.
async fn add_peer(mut request: Request) -> Request {
    request.extensions_mut().insert(Peer([127, 0, 0, 1].into()));
    request
}

async fn take_order(State(shop): State<Shop>, Json(order): Json<Order>) -> Result<Response, OrderError> {
    let invoice = shop.take(&order).await?;
    Ok((StatusCode::CREATED, Json(invoice)).into_response())
}
