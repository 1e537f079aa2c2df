//! Live lists: the newest rows of a list, sent to the browser as they come and as they change (server-sent events).
//!
//! The viewers of a list of an account share a [`Feed`], which reads and renders the newest rows about once a second, in the
//! turn of whichever viewer is first. So the cost hardly depends on the number of viewers, no task has to be looked after,
//! and nothing is read while nobody looks.
//!
//! A viewer is sent the rows that it does not have yet. At first these are all of them, so a browser that lost its
//! connection has missed nothing when it has a new one, and needs no id of its last event. A viewer that reads slowly skips
//! states in between and costs no memory.
//!
//! A stream does not count as a use of its session. It ends with the session, and when the process stops. The session is
//! looked up at once when this process has ended sessions or changed members, and twice a minute, as other processes do so
//! too.
//!
//! Each stream holds a connection, so they are counted: a session, an account and the process have a share each
//! ([`MAX_STREAMS_OF_SESSION`], [`MAX_STREAMS_OF_ACCOUNT`], [`MAX_STREAMS`]).

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http::request::Parts;
use maud::{Markup, html};
use serde_json::json;
use svc_core::Svc;
use svc_core::accounts::sessions::Role;
use svc_core::error::Error;
use svc_core::sync::lock;
use svc_core::values::TenantId;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use uuid::Uuid;

use super::components::View;
use super::identity::People;
use super::page_response::{PageError, PageResponse};

/// How often a viewer looks for news.
const INTERVAL: Duration = Duration::from_secs(1);
/// How old the rows of a feed may be. It is less than [`INTERVAL`], so that the only viewer gets new rows each time.
const MAX_AGE: Duration = Duration::from_millis(900);
/// How often rows that did not change are rendered again, for the times in them.
const RENDER_INTERVAL: Duration = Duration::from_secs(10);
/// How often a stream looks its session up, for what other processes have changed. The documentation names it.
const SESSION_INTERVAL: Duration = Duration::from_secs(30);
/// How long a stream is silent at most, so that nothing on the way takes the connection for a dead one.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// The number of streams of the process. Each holds a connection, and at most one event that is not sent yet.
const MAX_STREAMS: usize = 500;
/// The number of streams of an account, over all lists, so that it takes a tenth of those of the process at most.
const MAX_STREAMS_OF_ACCOUNT: usize = 50;
/// The number of streams of a session, over all lists, so that one person does not take those of the account.
const MAX_STREAMS_OF_SESSION: usize = 10;

/// A list that can be live.
pub(super) trait List: Sized + Send + Sync + 'static {
    /// A row of the list.
    type Item: PartialEq + Send + Sync;
    /// The names that rows show besides the item.
    type Names: Send + Sync;
    /// Selects items.
    type Filter: Send + Sync;
    /// The subject of the list within an account, such as a delivery for a list of its attempts; `()` for the account itself.
    type Scope: Clone + Eq + Hash + Send + Sync;

    /// Returns the newest items of a list, as many as its page has, newest first.
    fn newest(
        svc: &Svc,
        tenant: TenantId,
        scope: &Self::Scope,
    ) -> impl Future<Output = Result<Vec<Self::Item>, Error>> + Send;

    fn names(
        svc: &Svc,
        tenant: TenantId,
        items: &[Self::Item],
    ) -> impl Future<Output = Result<Self::Names, Error>> + Send;

    /// Returns the id of an item. Ids sort like the items.
    fn id(item: &Self::Item) -> Uuid;

    /// Returns the cell that selects an item. Empty if items cannot be selected.
    fn select(item: &Self::Item) -> Markup;

    /// Returns the other cells of a row.
    fn cells(view: &View<'_>, item: &Self::Item, names: &Self::Names) -> Markup;

    fn matches(filter: &Self::Filter, item: &Self::Item) -> bool;

    /// Returns the row of an item, by whose id the script finds it.
    fn row(id: Uuid, cells: &Markup) -> Markup {
        row(id, cells)
    }
}

/// Returns a row of a table, by whose id the script finds it.
pub(super) fn row(id: Uuid, cells: &Markup) -> Markup {
    html! { tr data-row=(id) { (cells) } }
}

/// Returns what shows that a list is live, and pauses it. `url` is that of the stream, and `rows` how many the list has. The
/// list is the element with the id `list`, or else the first table. It is nothing without a script.
pub(super) fn switch(url: &str, rows: usize, list: Option<&str>) -> Markup {
    html! {
        div.live.js data-live=(url) data-rows=(rows) data-list=[list] {
            span role="status" { "Connecting" }
            button type="button" { "Pause" }
        }
    }
}

/// The live lists of all accounts.
pub(super) struct Live {
    svc: Svc,
    people: Arc<People>,
    base: Arc<str>,
    /// Becomes true when the process stops.
    stopping: watch::Sender<bool>,
    /// Changes when sessions may have ended.
    sessions_changed: watch::Sender<()>,
    streams: Arc<Streams>,
    /// The [`Feeds`] of each list, by its type.
    feeds: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Live {
    pub(super) fn new(svc: Svc, people: Arc<People>, base: &str) -> Self {
        Self {
            svc,
            people,
            base: base.into(),
            stopping: watch::Sender::new(false),
            sessions_changed: watch::Sender::new(()),
            streams: Arc::default(),
            feeds: Mutex::default(),
        }
    }

    /// Ends all streams.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Lets all streams look their sessions up, so that those whose session has ended end at once.
    pub(super) fn check_sessions(&self) {
        self.sessions_changed.send_replace(());
    }

    fn feeds<L: List>(&self) -> Arc<Feeds<L>> {
        let mut feeds = lock(&self.feeds);
        let of_list = feeds.entry(TypeId::of::<L>()).or_insert_with(|| Arc::<Feeds<L>>::default());
        Arc::clone(of_list).downcast().unwrap_or_default()
    }

    /// Responds with the stream of a list to the person who asks with `parts`. `session` tells their session from others.
    pub(super) fn respond<L: List>(
        &self,
        tenant: TenantId,
        session: &str,
        may_select: bool,
        parts: &Parts,
        scope: L::Scope,
        filter: L::Filter,
    ) -> Result<PageResponse, PageError> {
        let count = self.streams.count(tenant, session).ok_or(PageError::TooManyViewers)?;
        let feed = self.feeds::<L>().of((tenant, scope), |(tenant, scope)| Feed::new(self, tenant, scope));
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let viewer = Viewer {
            sent: Arc::default(),
            feed,
            filter,
            may_select,
            people: Arc::clone(&self.people),
            parts: parts.clone(),
            session_due: Instant::now() + SESSION_INTERVAL,
            heartbeat_due: Instant::now() + HEARTBEAT_INTERVAL,
            ticks,
            stopping: self.stopping.subscribe(),
            sessions_changed: self.sessions_changed.subscribe(),
            _count: count,
        };
        Ok(PageResponse::events(viewer.stream()))
    }
}

/// The streams that are open.
#[derive(Default)]
struct Streams(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    all: usize,
    of_accounts: HashMap<TenantId, usize>,
    of_sessions: HashMap<String, usize>,
}

impl Streams {
    /// Counts a stream of a session for as long as the returned value lives. `None` if one of the three shares is used up.
    fn count(self: &Arc<Self>, tenant: TenantId, session: &str) -> Option<CountedStream> {
        let mut counts = lock(&self.0);
        let of_account = counts.of_accounts.get(&tenant).copied().unwrap_or_default();
        let of_session = counts.of_sessions.get(session).copied().unwrap_or_default();
        if counts.all >= MAX_STREAMS || of_account >= MAX_STREAMS_OF_ACCOUNT || of_session >= MAX_STREAMS_OF_SESSION {
            return None;
        }
        counts.all += 1;
        counts.of_accounts.insert(tenant, of_account + 1);
        counts.of_sessions.insert(session.to_owned(), of_session + 1);
        Some(CountedStream { streams: Arc::clone(self), tenant, session: session.to_owned() })
    }
}

/// A stream that is counted until it is dropped.
struct CountedStream {
    streams: Arc<Streams>,
    tenant: TenantId,
    session: String,
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        let mut counts = lock(&self.streams.0);
        counts.all -= 1;
        count_down(&mut counts.of_accounts, &self.tenant);
        count_down(&mut counts.of_sessions, &self.session);
    }
}

/// Lowers a count, and removes it at zero.
fn count_down<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The feeds of one list, by their accounts and scopes. A feed is there for as long as somebody looks at it.
struct Feeds<L: List>(Mutex<HashMap<FeedKey<L>, Weak<Feed<L>>>>);

type FeedKey<L> = (TenantId, <L as List>::Scope);

impl<L: List> Default for Feeds<L> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<L: List> Feeds<L> {
    fn of(&self, key: FeedKey<L>, new: impl FnOnce(FeedKey<L>) -> Feed<L>) -> Arc<Feed<L>> {
        let mut feeds = lock(&self.0);
        if let Some(feed) = feeds.get(&key).and_then(Weak::upgrade) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(new(key.clone()));
        feeds.insert(key, Arc::downgrade(&feed));
        feed
    }
}

/// The newest rows of a list of an account, which its viewers share.
struct Feed<L: List> {
    svc: Svc,
    base: Arc<str>,
    tenant: TenantId,
    scope: L::Scope,
    newest: tokio::sync::Mutex<NewestRows<L>>,
}

/// The rows as they were read last.
struct NewestRows<L: List> {
    rows: Rows<L>,
    at: Option<Instant>,
    /// When all rows were rendered last.
    rendered_at: Option<Instant>,
    has_failed: bool,
}

type Rows<L> = Arc<[Arc<Row<L>>]>;

/// A row with its HTML. A row that is shown differently is another one.
struct Row<L: List> {
    item: L::Item,
    select: String,
    cells: String,
}

impl<L: List> Default for NewestRows<L> {
    fn default() -> Self {
        Self { rows: Arc::default(), at: None, rendered_at: None, has_failed: false }
    }
}

impl<L: List> Feed<L> {
    fn new(live: &Live, tenant: TenantId, scope: L::Scope) -> Self {
        Self {
            svc: live.svc.clone(),
            base: Arc::clone(&live.base),
            tenant,
            scope,
            newest: tokio::sync::Mutex::new(NewestRows::default()),
        }
    }

    /// Returns the rows. Of the viewers that ask at a time, one reads them.
    async fn rows(&self) -> Rows<L> {
        let mut newest = self.newest.lock().await;
        let now = Instant::now();
        if newest.at.is_none_or(|at| now.duration_since(at) >= MAX_AGE) {
            newest.at = Some(now);
            let result = self.poll(&mut newest, now).await;
            if let Err(error) = &result
                && !newest.has_failed
            {
                tracing::warn!(tenant = %self.tenant, %error, "cannot read a live list of the dashboard; trying again");
            }
            newest.has_failed = result.is_err();
        }
        Arc::clone(&newest.rows)
    }

    /// Reads the rows, and renders those that changed. All of them are rendered now and then.
    async fn poll(&self, newest: &mut NewestRows<L>, now: Instant) -> Result<(), Error> {
        let items = L::newest(&self.svc, self.tenant, &self.scope).await?;
        let renders_all = newest.rendered_at.is_none_or(|at| now.duration_since(at) >= RENDER_INTERVAL);
        let known: HashMap<Uuid, &Arc<Row<L>>> = newest.rows.iter().map(|row| (L::id(&row.item), row)).collect();
        let known = |item: &L::Item| known.get(&L::id(item)).filter(|row| row.item == *item).copied();
        if !renders_all && items.len() == newest.rows.len() && items.iter().all(|item| known(item).is_some()) {
            return Ok(());
        }
        let tenant = self.svc.account(self.tenant).settings().await?;
        let names = L::names(&self.svc, self.tenant, &items).await?;
        let view = View { base: &self.base, now: self.svc.store().env().now(), zone: &tenant.time_zone };
        let render = |item: L::Item| {
            let known = known(&item);
            if let Some(row) = known.filter(|_| !renders_all) {
                return Arc::clone(row);
            }
            let (select, cells) = (L::select(&item).into_string(), L::cells(&view, &item, &names).into_string());
            match known.filter(|row| row.cells == cells) {
                Some(row) => Arc::clone(row),
                None => Arc::new(Row { item, select, cells }),
            }
        };
        let rows = items.into_iter().map(render).collect();
        newest.rows = rows;
        if renders_all {
            newest.rendered_at = Some(now);
        }
        Ok(())
    }
}

/// A browser that shows a list.
struct Viewer<L: List> {
    feed: Arc<Feed<L>>,
    filter: L::Filter,
    /// Whether the rows have the cell that selects them.
    may_select: bool,
    people: Arc<People>,
    /// The request, which tells who looks.
    parts: Parts,
    /// The rows that the browser has.
    sent: Rows<L>,
    session_due: Instant,
    heartbeat_due: Instant,
    ticks: Interval,
    stopping: watch::Receiver<bool>,
    sessions_changed: watch::Receiver<()>,
    _count: CountedStream,
}

impl<L: List> Viewer<L> {
    fn stream(self) -> BoxStream<'static, Bytes> {
        stream::unfold(self, |mut viewer| async move { Some((viewer.next().await?, viewer)) }).boxed()
    }

    /// Returns what the browser is sent next. `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            biased;
            _ = stopping.wait_for(|is_stopping| *is_stopping) => None,
            part = self.part() => part,
        }
    }

    async fn part(&mut self) -> Option<Bytes> {
        loop {
            let is_changed = tokio::select! {
                biased;
                _ = self.sessions_changed.changed() => true,
                _ = self.ticks.tick() => false,
            };
            let now = Instant::now();
            if is_changed || now >= self.session_due {
                // It stays due until it is known.
                self.session_due = now;
                match self.may_look().await {
                    Ok(true) => self.session_due = now + SESSION_INTERVAL,
                    Ok(false) => return None,
                    // Nothing is sent before it is known.
                    Err(_) => continue,
                }
            }
            let rows = self.feed.rows().await;
            let news = self.news(rows);
            if news.is_some() || now >= self.heartbeat_due {
                self.heartbeat_due = now + HEARTBEAT_INTERVAL;
                return Some(news.unwrap_or(Bytes::from_static(b":\n\n")));
            }
        }
    }

    /// Returns whether the session may still see the account.
    async fn may_look(&self) -> Result<bool, Error> {
        let found = self.people.find(&self.parts, false).await?;
        Ok(found
            .and_then(|(session, _)| session.account())
            .is_some_and(|(tenant, role)| tenant == self.feed.tenant && (role >= Role::Developer || !self.may_select)))
    }

    /// Returns an event with the rows that the browser does not have: of each its HTML, and whether the filter selects it. One
    /// that it does not select only replaces what the browser shows of it.
    fn news(&mut self, rows: Rows<L>) -> Option<Bytes> {
        let is_new = |row: &&Arc<Row<L>>| !self.sent.iter().any(|sent| Arc::ptr_eq(sent, row));
        let news: Vec<_> = rows
            .iter()
            .filter(is_new)
            .map(|row| {
                let cells = html! {
                    @if self.may_select { (maud::PreEscaped(&row.select)) }
                    (maud::PreEscaped(&row.cells))
                };
                let html = L::row(L::id(&row.item), &cells).into_string();
                json!({ "html": html, "selected": L::matches(&self.filter, &row.item) })
            })
            .collect();
        self.sent = rows;
        // As JSON it is one line, whatever the texts in it.
        (!news.is_empty()).then(|| format!("data: {}\n\n", json!(news)).into())
    }
}
