//! A server that responds by the script of a case, and spoils responses as it says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Value, json};
use svc_core::accounts::signing::SignedRequest;
use svc_core::values::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, watch};
use url::Url;

use crate::cases::Case;

/// A request that a script expects, and the response to it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exchange {
    request: String,
    query: Option<BTreeMap<String, String>>,
    #[serde(default)]
    headers: BTreeMap<String, Option<String>>,
    json: Option<Value>,
    text: Option<String>,
    form: Option<BTreeMap<String, String>>,
    #[serde(default)]
    signed: bool,
    repeat: Option<usize>,
    #[serde(default)]
    count: usize,
    #[serde(default)]
    barrier: bool,
    respond: Reply,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    json: Option<Value>,
    text: Option<String>,
    problem: Option<String>,
    fault: Option<Fault>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fault {
    Close,
    Truncate,
    Hang,
    Stall,
    Flood,
}

/// A request as it arrived.
pub(crate) struct Received {
    method: String,
    target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// A route, how many requests it has taken, and what holds its responses back.
type Route = (Exchange, Mutex<usize>, Option<Barrier>);

pub(crate) struct HostileServer {
    pub(crate) url: String,
    script: Mutex<Vec<Exchange>>,
    routes: Vec<Route>,
    bodies: BTreeMap<String, Value>,
    secret: Secret,
    /// What the names of headers stand for.
    names: Mutex<BTreeMap<String, String>>,
    problems: Mutex<Vec<String>>,
    requests: watch::Sender<usize>,
}

impl HostileServer {
    pub(crate) async fn start(case: &Case, bodies: &BTreeMap<String, Value>) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let repeated = |exchange: &Exchange| vec![exchange.clone(); exchange.repeat.unwrap_or(1)];
        let mut script: Vec<Exchange> = case.script.iter().flat_map(repeated).collect();
        script.reverse();
        let route = |route: &Exchange| (route.clone(), Mutex::new(0), route.barrier.then(|| Barrier::new(route.count)));
        let server = Arc::new(Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            script: Mutex::new(script),
            routes: case.routes.iter().map(route).collect(),
            bodies: bodies.clone(),
            secret: Secret::new(case.client.signing_secret.clone().unwrap_or_default()),
            names: Mutex::default(),
            problems: Mutex::default(),
            requests: watch::Sender::new(0),
        });
        let serving = Arc::clone(&server);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = Arc::clone(&serving);
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        server
    }

    /// Returns once so many requests have arrived.
    pub(crate) async fn received(&self, count: usize) {
        self.requests.subscribe().wait_for(|arrived| *arrived >= count).await.unwrap();
    }

    /// Fails if requests were wrong or missing.
    pub(crate) fn check(&self, name: &str) {
        let problems = self.problems.lock().unwrap().clone();
        assert!(problems.is_empty(), "{name}: {problems:?}");
        let left: Vec<String> = self.script.lock().unwrap().iter().map(|exchange| exchange.request.clone()).collect();
        assert!(left.is_empty(), "{name}: these requests did not arrive: {left:?}");
        for (route, taken, _) in &self.routes {
            assert_eq!(*taken.lock().unwrap(), route.count, "{name}: {}", route.request);
        }
    }

    async fn serve(&self, mut stream: TcpStream) {
        let Some(request) = read_request(&mut stream).await else { return };
        self.requests.send_modify(|count| *count += 1);
        match self.reply_to(&request).await {
            Ok(reply) => self.send(&mut stream, &reply).await,
            Err(problem) => self.problems.lock().unwrap().push(problem),
        }
    }

    async fn reply_to(&self, request: &Received) -> Result<Reply, String> {
        let url = Url::parse(&format!("http://host{}", request.target)).map_err(|error| error.to_string())?;
        let name = format!("{} {}", request.method, url.path());
        let too_many = || format!("{name} is one request too many");
        if self.routes.is_empty() {
            let exchange = self.script.lock().unwrap().pop().ok_or_else(too_many)?;
            return self.compare(request, &url, &exchange).map(|()| exchange.respond);
        }
        let fits = |route: &&Route| {
            let headers = &route.0.headers;
            route.0.request == name && headers.iter().all(|(name, value)| request.headers.get(name) == value.as_ref())
        };
        let (route, taken, barrier) = self.routes.iter().find(fits).ok_or_else(too_many)?;
        {
            let mut taken = taken.lock().unwrap();
            *taken += 1;
            if *taken > route.count {
                return Err(too_many());
            }
        }
        if let Some(barrier) = barrier {
            barrier.wait().await;
        }
        Ok(route.respond.clone())
    }

    fn compare(&self, request: &Received, url: &Url, expected: &Exchange) -> Result<(), String> {
        let name = format!("{} {}", request.method, url.path());
        let same = |is_same: bool, what: &str| {
            let body = String::from_utf8_lossy(&request.body);
            let problem =
                || format!("{name}, not {}: {what}; {} {:?} {body}", expected.request, request.target, request.headers);
            if is_same { Ok(()) } else { Err(problem()) }
        };
        same(name == expected.request, "another request")?;
        let pairs = |text: &[u8]| url::form_urlencoded::parse(text).into_owned().collect::<BTreeMap<_, _>>();
        let query = pairs(url.query().unwrap_or_default().as_bytes());
        same(expected.query.as_ref().is_none_or(|expected| *expected == query), "the query")?;
        same(expected.form.as_ref().is_none_or(|expected| *expected == pairs(&request.body)), "the form")?;
        same(expected.text.as_ref().is_none_or(|text| text.as_bytes() == request.body), "the body")?;
        let json = expected.json.as_ref();
        same(
            json.is_none_or(|json| serde_json::from_slice(&request.body).is_ok_and(|body: Value| body == *json)),
            "JSON",
        )?;
        for (header, expected) in &expected.headers {
            let value = request.headers.get(header);
            let Some(named) = expected.as_ref().filter(|expected| expected.starts_with('$')) else {
                same(value == expected.as_ref(), header)?;
                continue;
            };
            let mut names = self.names.lock().unwrap();
            let Some(value) = value else { return same(false, header) };
            same(names.iter().all(|(other, taken)| (taken == value) == (other == named)), header)?;
            names.insert(named.clone(), value.clone());
        }
        if expected.signed {
            let timestamp = request.headers.get("x-svc-timestamp").map_or("", String::as_str);
            let signed = SignedRequest {
                timestamp,
                method: &request.method,
                path_and_query: &request.target,
                body: &request.body,
            };
            let signature = signed.sign(&self.secret);
            same(request.headers.get("x-svc-signature") == Some(&signature), "the signature")?;
        }
        Ok(())
    }

    async fn send(&self, stream: &mut TcpStream, reply: &Reply) {
        let status = reply.status.unwrap_or(200);
        let mut headers = BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]);
        let mut json = reply.body.as_ref().map(|name| self.bodies[name].clone()).or_else(|| reply.json.clone());
        if let Some(code) = &reply.problem {
            json = Some(json!({ "error": "It is wrong.", "code": code }));
            headers.insert("x-request-id".into(), "req-7".into());
        }
        let json = json.map(|json| json.to_string());
        let body = reply.text.clone().or(json).unwrap_or_default();
        headers.extend(reply.headers.clone());
        headers.insert("connection".into(), "close".into());
        if !matches!(reply.fault, Some(Fault::Flood)) && status != 204 && status != 304 {
            headers.insert("content-length".into(), body.len().to_string());
        }
        let head: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("HTTP/1.1 {status} Status\r\n{head}\r\n");
        let half = &body.as_bytes()[..body.len() / 2];
        // A client that has gone is what some cases are about.
        let _ = match reply.fault {
            None => stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await,
            Some(Fault::Close) => Ok(()),
            Some(Fault::Truncate) => stream.write_all(&[head.as_bytes(), half].concat()).await,
            Some(Fault::Hang) => until_closed(stream).await,
            Some(Fault::Stall) => {
                let _ = stream.write_all(&[head.as_bytes(), half].concat()).await;
                until_closed(stream).await
            }
            Some(Fault::Flood) => flood(stream, &head).await,
        };
    }
}

async fn until_closed(stream: &mut TcpStream) -> std::io::Result<()> {
    while stream.read(&mut [0; 64]).await? > 0 {}
    Ok(())
}

async fn flood(stream: &mut TcpStream, head: &str) -> std::io::Result<()> {
    stream.write_all(head.as_bytes()).await?;
    let spaces = vec![b' '; 1 << 20];
    for _ in 0..64 {
        stream.write_all(&spaces).await?;
    }
    Ok(())
}

/// Reads a request, unless the connection ends before.
pub(crate) async fn read_request(stream: &mut TcpStream) -> Option<Received> {
    let mut data = Vec::new();
    loop {
        if stream.read_buf(&mut data).await.ok()? == 0 {
            return None;
        }
        let Some(end) = data.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&data[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let mut line = lines.next()?.split(' ').map(str::to_owned);
        let (method, target) = (line.next()?, line.next()?);
        let header =
            |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        let headers: BTreeMap<String, String> = lines.filter_map(header).collect();
        let length = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
        if data.len() >= end + 4 + length {
            return Some(Received { method, target, headers, body: data[end + 4..].to_vec() });
        }
    }
}
