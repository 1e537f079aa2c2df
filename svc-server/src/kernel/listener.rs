//! A listener: the way of each request through the surfaces that it has.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use svc_core::error::Error;
use tracing::{Instrument as _, Span};

use super::Kernel;
use super::access::{self, Access, AccessRecord};
use super::auth::Principal;
use super::body::{self, ArrivingBody, Incoming};
use super::head;
use super::problem::Problem;
use super::response::{self, Outcome, ResponseBody};

/// A part of the server that answers the requests that are its own: an API, the pages, the tools of assistants.
pub(crate) trait Surface: Send + Sync {
    /// Returns how the request with this head is answered; `None` if it is not for this surface.
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>>;

    /// Ends the responses that would not end by themselves, as their connections are to be closed.
    fn stop(&self) {}
}

/// The resource that a request asks for.
pub(crate) struct Route<'a> {
    pub(crate) kind: Kind,
    /// Answers it, or says why it is refused by its head.
    pub(crate) respond: Result<Respond<'a>, Problem>,
}

/// The kinds of requests, by what applies to them besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An operation, by its id for logs and metrics.
    Operation(&'static str),
    /// A page for a browser, or an endpoint of OAuth. It has limits of its own, and neither the CORS nor the metrics of the API.
    Page,
    /// The question how the process is. It is answered whatever memory is left, and not counted.
    Probe,
    /// Anything else, such as a document.
    Other,
}

/// Answers a request.
pub(crate) type Respond<'a> = Box<dyn FnOnce(Arrived<'a>) -> BoxFuture<'a, Result<Outcome, Problem>> + Send + 'a>;

/// A request that has its memory, and whose body arrives.
pub(crate) struct Arrived<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) body: ArrivingBody<'a>,
    /// The address of the client.
    pub(crate) peer: IpAddr,
    pub(crate) access: &'a mut AccessRecord,
}

impl<'a> Route<'a> {
    /// Answers a request by this function.
    pub(crate) fn new<F>(kind: Kind, respond: impl FnOnce(Arrived<'a>) -> F + Send + 'a) -> Self
    where
        F: Future<Output = Result<Outcome, Problem>> + Send + 'a,
    {
        Self { kind, respond: Ok(Box::new(|request| Box::pin(respond(request)))) }
    }

    /// Answers a request that may only read by this function, and refuses it otherwise.
    pub(crate) fn read<F>(kind: Kind, parts: &Parts, respond: impl FnOnce(Arrived<'a>) -> F + Send + 'a) -> Self
    where
        F: Future<Output = Result<Outcome, Problem>> + Send + 'a,
    {
        match head::only_get(parts) {
            Ok(()) => Self::new(kind, respond),
            Err(problem) => Self::refused(kind, problem),
        }
    }

    /// Refuses a request.
    pub(crate) fn refused(kind: Kind, problem: Problem) -> Self {
        Self { kind, respond: Err(problem) }
    }

    /// Returns the id of the operation, for logs and metrics.
    fn operation(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Operation(id) if self.respond.is_ok() => Some(id),
            _ => None,
        }
    }
}

/// A step after a request, with the headers of its response.
pub(crate) type After = Arc<dyn Fn(&Exchange<'_>, &mut HeaderMap) + Send + Sync>;

/// A request and its response.
pub(crate) struct Exchange<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) kind: Kind,
    pub(crate) client: Option<&'a Principal>,
    pub(crate) status: StatusCode,
    /// The fault of the token, in the words of RFC 6750.
    pub(crate) bearer_error: Option<&'static str>,
}

/// The outcome of a request.
struct Answered {
    kind: Kind,
    operation: Option<&'static str>,
    span: Span,
    result: Result<Outcome, Problem>,
}

/// The surfaces that one listener serves.
pub(crate) struct Listener {
    pub(crate) kernel: Arc<Kernel>,
    /// The first that has a request answers it.
    pub(crate) surfaces: Vec<Arc<dyn Surface>>,
    pub(crate) after: Vec<After>,
    /// Where a client finds out what there is, for requests that no surface has.
    pub(crate) index: String,
    /// The methods of the server as a whole, as a value of `Allow`.
    pub(crate) methods: String,
    /// Whether its requests are those of clients, which are counted.
    pub(crate) is_for_clients: bool,
    /// Whether pages of other origins may be among its clients.
    pub(crate) has_cors: bool,
}

impl Listener {
    /// Returns a listener for clients, without any surface. `index` is where they find out what there is.
    pub(crate) fn new(kernel: Arc<Kernel>, index: &str) -> Self {
        let (surfaces, after, methods) = (Vec::new(), Vec::new(), String::new());
        Self { kernel, surfaces, after, index: index.to_owned(), methods, is_for_clients: true, has_cors: true }
    }

    pub(crate) fn add(&mut self, surface: impl Surface + 'static) {
        self.surfaces.push(Arc::new(surface));
    }

    /// Responds to a request from the address `peer`. A failure is a response, too.
    pub(crate) async fn call<B: Incoming>(&self, request: Request<B>, peer: IpAddr) -> Response<ResponseBody> {
        let started = Instant::now();
        let kernel = &*self.kernel;
        let settings = &kernel.settings;
        let (mut parts, body) = request.into_parts();
        head::decode_unreserved(&mut parts);
        let now = kernel.now();
        let request_id = access::request_id(&parts.headers, kernel.env(), now);
        let mut record = AccessRecord::default();
        let Answered { kind, operation, span, result } =
            self.answer(&parts, body, peer, &request_id, &mut record).await;
        if let Err(Problem::Core(Error::Store(error))) = &result {
            let request_id = request_id.to_str().unwrap_or_default();
            span.in_scope(|| tracing::error!(request_id, operation, %error, "the store failed a request"));
        }
        let problem = result.as_ref().err();
        let failing_fields = problem.map(Problem::failing_fields).unwrap_or_default();
        let (code, bearer_error) = (problem.map(Problem::code), problem.and_then(Problem::bearer_error));
        let mut response = response::render(&parts.method, result);
        let status = response.status();
        let headers = response.headers_mut();
        response::add_security_headers(&parts.method, headers);
        let is_counted = self.is_for_clients && !matches!(kind, Kind::Page | Kind::Probe);
        if is_counted {
            kernel.background_reminder.check(now);
            let limits = &kernel.limits;
            record.status.unwrap_or_else(|| limits.status(limits.key_of_peer(peer), now)).write(headers);
        }
        let exchange = Exchange { parts: &parts, kind, client: record.client.as_ref(), status, bearer_error };
        for after in &self.after {
            after(&exchange, headers);
        }
        if self.has_cors && kind != Kind::Page {
            settings.cors.write(&parts.headers, headers);
        }
        let elapsed = started.elapsed();
        if is_counted {
            settings.metrics.request(operation, status, elapsed);
        }
        let logged = Access {
            request_id: &request_id,
            parts: &parts,
            peer,
            operation,
            client: record.client.as_ref(),
            status,
            code,
            failing_fields,
            started_at: now,
            elapsed,
            written: record.written,
        };
        if let Some(Principal::Key(caller)) = logged.client
            && settings.request_log
            && !record.is_message
            && !kernel.request_log.add(kernel.env(), (caller.tenant_id, caller.id.key_id()), &logged)
        {
            settings.metrics.requests_not_logged(1);
        }
        logged.record(&span);
        span.in_scope(|| access::write(&logged));
        response.headers_mut().insert(access::REQUEST_ID, request_id);
        response
    }

    /// Lets the surface answer that has the request.
    async fn answer<B: Incoming>(
        &self,
        parts: &Parts,
        body: B,
        peer: IpAddr,
        request_id: &HeaderValue,
        access: &mut AccessRecord,
    ) -> Answered {
        // It outlives the route, which borrows it.
        let mut share;
        let route = self.route(parts);
        let (kind, operation) = (route.kind, route.operation());
        let span = access::request_span(request_id, parts, operation);
        let result = match route.respond {
            Ok(respond) => {
                let memory = if kind == Kind::Probe { 0 } else { body::memory_of(parts) };
                share = self.kernel.requests.take_within(body::MEMORY_TIMEOUT, peer, memory).await;
                match &mut share {
                    Some(share) => {
                        let body = ArrivingBody::new(body, share, memory, self.kernel.settings.body_timeout);
                        respond(Arrived { parts, body, peer, access }).instrument(span.clone()).await
                    }
                    None => Err(Problem::Overloaded),
                }
            }
            Err(problem) => Err(problem),
        };
        Answered { kind, operation, span, result }
    }

    fn route<'a>(&'a self, parts: &'a Parts) -> Route<'a> {
        if let Err(problem) = head::check(parts) {
            return Route::refused(Kind::Other, problem);
        }
        self.find(parts).unwrap_or_else(|| Route::refused(Kind::Other, self.nowhere(parts)))
    }

    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        let found = self.surfaces.iter().find_map(|surface| surface.find(parts));
        found.or_else(|| {
            head::is_about_server(parts)
                .then(|| Route::new(Kind::Other, |_| async { Ok(Outcome::options(&self.methods)) }))
        })
    }

    /// Returns the problem of a request that no surface has. Says so where its path is right but for the slash at its end.
    fn nowhere(&self, parts: &Parts) -> Problem {
        let not_found = || Problem::RouteNotFound(self.index.clone());
        let Some(Ok(uri)) = parts.uri.path().strip_suffix('/').map(str::parse) else { return not_found() };
        let mut without = parts.clone();
        without.uri = uri;
        if self.find(&without).is_some() { Problem::SlashAtEnd } else { not_found() }
    }
}
