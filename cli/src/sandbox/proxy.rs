//! The only way out of an agent's container: a socket on which codeboost itself answers, and sends
//! on what the vendor's interface is asked, with the sign-in added here.
//!
//! ```text
//! container                          this machine
//!   tool ── loopback ── socat ── socket ── [this] ── TLS ── the vendor
//!            no credential                    adds it
//! ```
//!
//! A request goes on when its method and path are on the list of its vendor; whatever it says of a
//! host, a credential or a cookie is dropped. It is read whole and written anew, so that nothing
//! can hide between two requests. What comes back is passed on as it comes. Where it goes is fixed
//! before the start: no answer and no request can send it elsewhere.

use std::convert::Infallible;
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixListener};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::sandbox::engine::Engine;
use crate::sandbox::error::SandboxError;
use crate::stage::FileError;

/// Largest request.
const MAX_REQUEST_BYTES: usize = 64 << 20;
/// How long the vendor may take to take a connection.
const CONNECT_TIME: Duration = Duration::from_secs(20);
/// Most refused requests that are kept by name.
const MAX_REFUSED: usize = 20;

/// A value that must not be seen.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a value in, without the blanks around it.
    #[must_use]
    pub fn new(value: &str) -> Self {
        Self(value.trim().to_owned())
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Where requests go, which ones, and what is added to them.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The vendor's interface: scheme, host and port, and what stands before each path.
    pub base_url: String,
    /// Method and path of what may be asked.
    pub allowed: &'static [(&'static str, &'static str)],
    /// The name of the header with the credential.
    pub credential_header: &'static str,
    /// Its value.
    pub credential: Secret,
}

/// What came by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many requests were sent on.
    pub n_sent: u64,
    /// Method and path of what was not, at most twenty.
    pub refused: Vec<String>,
    /// How many were not.
    pub n_refused: u64,
    /// The last failure to reach the vendor.
    pub unreachable: Option<String>,
}

/// A proxy that answers until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    traffic: Arc<Mutex<Traffic>>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// Starts to answer on a new socket.
    ///
    /// # Errors
    /// [`SandboxError`] when the socket can't be made or the address is none.
    pub fn start(engine: &Engine, socket: &Path, upstream: Upstream) -> Result<Self, SandboxError> {
        let _entered = engine.runtime.enter();
        let fail = |error| FileError::new("listen on", socket, error);
        let listener = UnixListener::bind(socket).map_err(fail)?;
        let mode = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(socket, mode).map_err(fail)?;
        let traffic = Arc::new(Mutex::new(Traffic::default()));
        let way = Arc::new(Way::new(upstream, Arc::clone(&traffic))?);
        let task = engine.runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let way = Arc::clone(&way);
                tokio::spawn(async move {
                    let service = hyper::service::service_fn(move |request| {
                        let way = Arc::clone(&way);
                        async move { Ok::<_, Infallible>(way.answer(request).await) }
                    });
                    // A connection that breaks is the tool's to open again.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(Self { traffic, task })
    }

    /// What came by so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.traffic.lock().map(|traffic| traffic.clone()).unwrap_or_default()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Answer = Response<BoxBody<Bytes, hyper::Error>>;

struct Way {
    upstream: Upstream,
    credential: HeaderValue,
    host: String,
    port: u16,
    /// What stands before each path, without a slash at the end.
    prefix: String,
    tls: Option<TlsConnector>,
    traffic: Arc<Mutex<Traffic>>,
}

impl Way {
    fn new(upstream: Upstream, traffic: Arc<Mutex<Traffic>>) -> Result<Self, SandboxError> {
        let wrong = || SandboxError::Address(upstream.base_url.clone());
        let url: Uri = upstream.base_url.parse().map_err(|_| wrong())?;
        let host = url.host().ok_or_else(wrong)?.to_owned();
        let is_tls = match url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong()),
        };
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let mut credential =
            HeaderValue::from_str(upstream.credential.value()).map_err(|_| wrong())?;
        credential.set_sensitive(true);
        let prefix = url.path().trim_end_matches('/').to_owned();
        let tls = if is_tls { Some(tls()?) } else { None };
        Ok(Self { credential, host, port, prefix, tls, traffic, upstream })
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let name = format!("{} {}", request.method(), request.uri().path());
        if !self.is_allowed(request.method(), request.uri()) {
            self.note(|traffic| {
                traffic.n_refused += 1;
                if traffic.refused.len() < MAX_REFUSED {
                    traffic.refused.push(crate::output::plain_line(&name));
                }
            });
            return refusal(StatusCode::FORBIDDEN, "codeboost does not send this on");
        }
        match self.send(request).await {
            Ok(answer) => {
                self.note(|traffic| traffic.n_sent += 1);
                answer
            }
            Err(Failure::Request(words)) => refusal(StatusCode::PAYLOAD_TOO_LARGE, words),
            Err(Failure::Vendor(words)) => {
                self.note(|traffic| traffic.unreachable = Some(words));
                refusal(StatusCode::BAD_GATEWAY, "the vendor can't be reached")
            }
        }
    }

    fn note(&self, what: impl FnOnce(&mut Traffic)) {
        if let Ok(mut traffic) = self.traffic.lock() {
            what(&mut traffic);
        }
    }

    /// Only a path of the list, spelled as there.
    fn is_allowed(&self, method: &Method, uri: &Uri) -> bool {
        let is_plain = uri.authority().is_none();
        let query = uri.query().unwrap_or_default();
        let is_query = query.bytes().all(|b| b.is_ascii_alphanumeric() || b"=&-_.,%".contains(&b));
        is_plain
            && is_query
            && self
                .upstream
                .allowed
                .iter()
                .any(|(allowed, path)| method.as_str() == *allowed && uri.path() == *path)
    }

    async fn send(&self, request: Request<Incoming>) -> Result<Answer, Failure> {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, MAX_REQUEST_BYTES)
            .collect()
            .await
            .map_err(|_| Failure::Request("the request is too large or broken"))?
            .to_bytes();
        let query = head.uri.query().map_or(String::new(), |query| format!("?{query}"));
        let target = format!("{}{}{query}", self.prefix, head.uri.path());
        let mut onward = Request::new(Full::new(body));
        *onward.method_mut() = head.method;
        *onward.uri_mut() = target.parse().map_err(|_| Failure::Request("no path"))?;
        *onward.headers_mut() = passed_on(&head.headers, &DROPPED_REQUEST);
        let vendor = |what: &'static str| {
            move |error: &(dyn std::error::Error + 'static)| {
                Failure::Vendor(format!("{what}: {error}"))
            }
        };
        let host = match (self.tls.is_some(), self.port) {
            (true, 443) | (false, 80) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        };
        let host = HeaderValue::from_str(&host).map_err(|error| vendor("host")(&error))?;
        onward.headers_mut().insert(hyper::header::HOST, host);
        let name = HeaderName::from_static(self.upstream.credential_header);
        onward.headers_mut().insert(name, self.credential.clone());

        let connect = TcpStream::connect((self.host.as_str(), self.port));
        let stream = tokio::time::timeout(CONNECT_TIME, connect)
            .await
            .map_err(|error| vendor("connecting")(&error))?
            .map_err(|error| vendor("connecting")(&error))?;
        // Small pieces of an answer are what a person waits for.
        let _ = stream.set_nodelay(true);
        let answer = match &self.tls {
            None => exchange(TokioIo::new(stream), onward).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone())
                    .map_err(|error| vendor("host")(&error))?;
                let shaken = tokio::time::timeout(CONNECT_TIME, tls.connect(name, stream));
                let stream = shaken
                    .await
                    .map_err(|error| vendor("TLS")(&error))?
                    .map_err(|error| vendor("TLS")(&error))?;
                exchange(TokioIo::new(stream), onward).await
            }
        };
        let answer = answer.map_err(|error| vendor("asking")(&error))?;
        let (head, body) = answer.into_parts();
        let mut back = Response::new(body.boxed());
        *back.status_mut() = head.status;
        *back.headers_mut() = passed_on(&head.headers, &DROPPED_ANSWER);
        Ok(back)
    }
}

enum Failure {
    Request(&'static str),
    Vendor(String),
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    // It ends with the answer's body.
    tokio::spawn(connection);
    sender.send_request(request).await
}

/// What concerns one connection, and what this side says of itself.
const DROPPED_REQUEST: [&str; 16] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
    "x-goog-api-key",
];
const DROPPED_ANSWER: [&str; 9] = [
    "alt-svc",
    "connection",
    "keep-alive",
    "location",
    "proxy-authenticate",
    "set-cookie",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn passed_on(headers: &HeaderMap, dropped: &[&str]) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| !dropped.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn refusal(status: StatusCode, words: &str) -> Answer {
    let body = serde_json::json!({"error": {"type": "codeboost", "message": words}}).to_string();
    let body = Full::new(Bytes::from(body)).map_err(|never: Infallible| match never {}).boxed();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
    answer
}

/// What checks the vendor's certificate: by the certificates that this machine trusts.
fn tls() -> Result<TlsConnector, SandboxError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(SandboxError::NotEnforced(
            "this machine trusts no certificate, so that no vendor can be told from another".into(),
        ));
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SandboxError::NotEnforced(format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(base_url: &str) -> Way {
        let upstream = Upstream {
            base_url: base_url.into(),
            allowed: &[("POST", "/v1/messages")],
            credential_header: "x-api-key",
            credential: Secret::new("sentinel"),
        };
        Way::new(upstream, Arc::default()).expect("a way")
    }

    #[test]
    fn only_what_is_on_the_list_goes_on() {
        let way = way("http://127.0.0.1:1/gateway/");
        assert_eq!((way.prefix.as_str(), way.port), ("/gateway", 1));
        let ask = |method: &str, uri: &str| {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            way.is_allowed(&method, &uri.parse().expect("a URI"))
        };
        assert!(ask("POST", "/v1/messages"));
        assert!(ask("POST", "/v1/messages?beta=true"));
        for (method, uri) in [
            ("GET", "/v1/messages"),
            ("POST", "/v1/messages/"),
            ("POST", "/v1//messages"),
            ("POST", "/v1/messages/../files"),
            ("POST", "/v1/files"),
            ("CONNECT", "evil.example:443"),
            ("POST", "http://evil.example/v1/messages"),
            ("POST", "/v1/messages?x=@evil.example/"),
        ] {
            assert!(!ask(method, uri), "{method} {uri}");
        }
    }

    #[test]
    fn what_the_container_says_of_itself_is_dropped() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer mine"),
            ("cookie", "a=b"),
            ("host", "evil.example"),
            ("anthropic-version", "2023-06-01"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let kept = passed_on(&headers, &DROPPED_REQUEST);
        assert_eq!(kept.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["anthropic-version"]);
    }

    #[test]
    fn a_secret_is_never_shown() {
        let shown = format!("{:?}", way("http://127.0.0.1:1").upstream);
        assert!(!shown.contains("sentinel"), "{shown}");
    }
}
