//! Requests to other servers, as far as the operator lets the tool, with the types of the crate `http`. The tool declares the
//! addresses that it needs (`needs(http = ["https://api.example.com"])`), the operator grants them, and the host does the rest:
//! names, connections, TLS, and the headers with secrets that the operator has it add.
//!
//! ```
//! use toolsrv::http::{self, ResponseExt};
//! use toolsrv::{Call, Error};
//!
//! fn rate(call: &Call, base: &str) -> Result<f64, Error> {
//!     let rates: serde_json::Value = http::get(call, format!("https://api.example.com/v1/{base}"))?.json()?;
//!     Ok(rates["EUR"].as_f64().ok_or("there is no rate for the euro")?)
//! }
//! ```
//!
//! An answer is whole when the function returns; the host bounds its size. A server's error is an answer like any other:
//! [`ResponseExt::error_for_status`] makes an error of it, and so does [`ResponseExt::json`]. A [`Failure`] has one of the common
//! codes, or `tls`, `dns`, `connect` or `redirect`.

use std::time::Duration;

pub use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Call, Error, Failure, granted};

/// How long a request may take, as one of its extensions. It never extends the call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timeout(pub Duration);

/// An extension that has an answer with a redirect returned as it is. Otherwise the host follows as many as the operator allows,
/// each only to where the tool could have asked itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoRedirects;

/// Where an answer came from, after redirects: one of its extensions.
#[derive(Debug, Clone, PartialEq)]
struct Url(String);

/// Sends a GET request to a URL.
pub fn get(call: &Call, url: impl AsRef<str>) -> Result<Response<Vec<u8>>, Failure> {
    exchange(call, json!({"method": "GET", "url": url.as_ref(), "headers": []}), &[])
}

/// Posts a body of a media type to a URL.
pub fn post(
    call: &Call,
    url: impl AsRef<str>,
    content_type: &str,
    body: impl AsRef<[u8]>,
) -> Result<Response<Vec<u8>>, Failure> {
    let head = json!({"method": "POST", "url": url.as_ref(), "headers": [["content-type", content_type]]});
    exchange(call, head, body.as_ref())
}

/// Posts a value as JSON to a URL.
pub fn post_json(call: &Call, url: impl AsRef<str>, value: &impl Serialize) -> Result<Response<Vec<u8>>, Failure> {
    let body = serde_json::to_vec(value)
        .map_err(|error| Failure::new("invalid", format_args!("the body can't be written as JSON: {error}")))?;
    post(call, url, "application/json", body)
}

/// Sends a request and returns the answer to it. [`Timeout`] and [`NoRedirects`] are extensions of the request. Of the headers
/// the host refuses `Host`, `Connection` and what else is about the connection.
pub fn send<B: AsRef<[u8]>>(call: &Call, request: Request<B>) -> Result<Response<Vec<u8>>, Failure> {
    let mut headers = Vec::with_capacity(request.headers().len());
    for (name, value) in request.headers() {
        let value = std::str::from_utf8(value.as_bytes())
            .map_err(|_| Failure::new("invalid", format_args!("the header {name} is not UTF-8")))?;
        headers.push([name.as_str(), value]);
    }
    let mut head = json!({"method": request.method().as_str(), "url": request.uri().to_string(), "headers": headers});
    if let Some(Timeout(timeout)) = request.extensions().get() {
        let milliseconds = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX); // the call ends sooner
        set(&mut head, "timeout", milliseconds.max(1).into());
    }
    if request.extensions().get::<NoRedirects>().is_some() {
        set(&mut head, "redirect", "manual".into());
    }
    exchange(call, head, request.body().as_ref())
}

fn set(head: &mut Value, name: &str, value: Value) {
    if let Some(members) = head.as_object_mut() {
        members.insert(name.into(), value);
    }
}

fn exchange(call: &Call, head: Value, body: &[u8]) -> Result<Response<Vec<u8>>, Failure> {
    let mut answer = granted::send(call, head.to_string().as_bytes(), body)?;
    let (head, size) = read_head(&answer).ok_or_else(|| Failure::broken("the head of an answer"))?;
    answer.drain(..size);
    respond(&head, answer).ok_or_else(|| Failure::broken("the head of an answer has a member that is not valid"))
}

/// Reads the head of an answer as the host writes it: its size, and JSON. Returns also where the body begins.
fn read_head(answer: &[u8]) -> Option<(Value, usize)> {
    let (size, rest) = answer.split_first_chunk::<4>()?;
    let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
    Some((serde_json::from_slice(rest.get(..size)?).ok()?, size.checked_add(4)?))
}

/// Makes a response of its head and its body, or nothing where the head is not valid.
fn respond(head: &Value, body: Vec<u8>) -> Option<Response<Vec<u8>>> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(head.get("status")?.as_u64()?.try_into().ok()?).ok()?;
    response.extensions_mut().insert(Url(head.get("url")?.as_str()?.into()));
    for field in head.get("headers")?.as_array()? {
        let [Value::String(name), Value::String(value)] = field.as_array()?.as_slice() else { return None };
        // A field that no type can hold is left out: a server must not take its answer from the tool by one.
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
            response.headers_mut().try_append(name, value).ok()?;
        }
    }
    Some(response)
}

/// What a tool does with an answer.
pub trait ResponseExt: Sized {
    /// Returns where the answer came from, after redirects.
    fn url(&self) -> &str;

    /// Returns the answer, or an error where its status is not one of success, 200 to 299. The error names the server and the
    /// status, and has neither the rest of the URL nor the body, which may hold what clients should not see. If the tool
    /// returns it, clients get the code `bad_status` and the status 502.
    fn error_for_status(self) -> Result<Self, Error>;

    /// Decodes the body. It fails as [`error_for_status`](Self::error_for_status) does; for a body that does not fit, clients get
    /// the code `bad_answer` and the status 502.
    fn json<T: DeserializeOwned>(self) -> Result<T, Error>;

    /// Returns the body as text, with U+FFFD in place of what is not UTF-8.
    fn text(self) -> String;
}

impl ResponseExt for Response<Vec<u8>> {
    fn url(&self) -> &str {
        self.extensions().get().map_or("", |Url(url)| url.as_str())
    }

    fn error_for_status(self) -> Result<Self, Error> {
        if self.status().is_success() {
            return Ok(self);
        }
        let message = format!("{} has answered with status {}", origin(self.url()), self.status().as_u16());
        Err(Error::new(message).code("bad_status").status(502))
    }

    fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let response = self.error_for_status()?;
        serde_json::from_slice(response.body()).map_err(|error| {
            // The error's own text may repeat what was answered.
            let message = format!(
                "{} has answered with something else than expected at line {}, column {}",
                origin(response.url()),
                error.line(),
                error.column()
            );
            Error::new(message).code("bad_answer").status(502)
        })
    }

    fn text(self) -> String {
        String::from_utf8(self.into_body())
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

/// Returns the beginning of a URL, up to its path.
fn origin(url: &str) -> &str {
    let Some((scheme, rest)) = url.split_once("://") else { return "the server" };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    url.get(..scheme.len() + 3 + host.len()).unwrap_or(url)
}
