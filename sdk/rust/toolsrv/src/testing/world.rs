use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{Report, examples_of, run};
use crate::http::{Request, Response, Uri};
use crate::{Call, Error, Failure, Module};

/// What tools reach in a test, in place of what an operator grants. A tool reaches only what it declares that it needs, as on a
/// server: so a test finds a declaration that was forgotten. A new world has nothing.
///
/// ```
/// # use toolsrv::{Call, Error, tool, http};
/// # /// Return the time of the server.
/// # #[tool(needs(http = ["https://time.example.com"]))]
/// # fn clock(call: &Call) -> Result<String, Error> {
/// #     use http::ResponseExt;
/// #     Ok(http::get(call, "https://time.example.com/now")?.error_for_status()?.text())
/// # }
/// # toolsrv::export! { tools: [clock] }
/// # fn main() {
/// use toolsrv::http::Response;
/// use toolsrv::testing::World;
///
/// let world = World::new().http(|request| {
///     assert_eq!(request.uri().path(), "/now");
///     Ok(Response::new("12:00".into()))
/// });
/// assert_eq!(world.call(&MODULE, "clock", "{}"), Ok("12:00".into()));
/// # }
/// ```
#[derive(Clone, Default)]
pub struct World {
    http: Option<Arc<Handler>>,
    secrets: HashMap<String, String>,
    settings: Option<Value>,
    tools: HashMap<String, Arc<Tool>>,
    clock: Option<Arc<Clock>>,
    keys: Arc<Mutex<Keys>>,
}

type Handler = dyn Fn(Request<Vec<u8>>) -> Result<Response<Vec<u8>>, Failure> + Send + Sync;
type Tool = dyn Fn(Value) -> Result<Value, Answered> + Send + Sync;
type Clock = dyn Fn() -> SystemTime + Send + Sync;

/// Why another tool did not answer.
pub enum Answered {
    /// It failed.
    Error(Error),
    /// The host did not call it.
    Failure(Failure),
}

impl From<Failure> for Answered {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Error> for Answered {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// What is kept.
#[derive(Default)]
struct Keys {
    entries: BTreeMap<String, Entry>,
    version: u64, // the last that was given
}

struct Entry {
    value: Vec<u8>,
    version: u64,
    expires: u64, // in milliseconds since 1970; 0: never
}

/// How many keys a list has where the tool leaves that to the host.
const LIST: usize = 1000;

impl World {
    /// Returns a world that has nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has a function answer all requests. Redirects are answers like any other, as an operator has it by default.
    #[must_use]
    pub fn http(
        mut self,
        handler: impl Fn(Request<Vec<u8>>) -> Result<Response<Vec<u8>>, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.http = Some(Arc::new(handler));
        self
    }

    /// Puts a value under a key.
    #[must_use]
    pub fn key(self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        let mut keys = self.keys();
        let version = keys.next();
        keys.entries.insert(key.into(), Entry { value: value.into(), version, expires: 0 });
        drop(keys);
        self
    }

    /// Returns what is under a key.
    pub fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.living().entries.get(key).map(|entry| entry.value.clone())
    }

    /// Sets a secret.
    #[must_use]
    pub fn secret(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.secrets.insert(name.into(), value.into());
        self
    }

    /// Sets the settings, an object.
    #[must_use]
    pub fn settings(mut self, settings: Value) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Has a function answer for another tool. An `Err` with an [`Error`] is the tool's own, one with a [`Failure`] the host's refusal.
    #[must_use]
    pub fn tool<E: Into<Answered>>(
        mut self,
        path: impl Into<String>,
        tool: impl Fn(Value) -> Result<Value, E> + Send + Sync + 'static,
    ) -> Self {
        self.tools.insert(path.into(), Arc::new(move |arguments| tool(arguments).map_err(Into::into)));
        self
    }

    /// Sets the clock by which values expire.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Is the function [`call`](super::call), in this world.
    pub fn call(&self, module: &Module, tool: &str, arguments: &str) -> Result<Value, Error> {
        run(&self.begin(module, tool)?, module, tool, arguments)
    }

    /// Is the function [`progress`](super::progress), in this world.
    pub fn progress(&self, module: &Module, tool: &str, arguments: &str) -> (Vec<Report>, Result<Value, Error>) {
        match self.begin(module, tool) {
            Ok(call) => {
                let result = run(&call, module, tool, arguments);
                (crate::host::reports(call), result)
            }
            Err(error) => (Vec::new(), Err(error)),
        }
    }

    /// Is the function [`examples`](super::examples), in this world.
    ///
    /// # Panics
    ///
    /// That is how a test fails.
    #[track_caller]
    pub fn examples(&self, module: &Module) {
        examples_of(module, |tool, arguments| self.call(module, tool, arguments));
    }

    /// Returns a call of a tool, with what the tool declares.
    fn begin(&self, module: &Module, tool: &str) -> Result<Call, Error> {
        let manifest: Value = serde_json::from_str(&module.manifest()?)?;
        let tools = manifest.get("tools").and_then(Value::as_array).into_iter().flatten();
        let own = tools.filter(|part| part.get("name").and_then(Value::as_str) == Some(tool));
        let needs = own.chain([&manifest]).filter_map(|part| part.get("needs").cloned()).collect();
        Ok(Call { host: Some(Host { world: self.clone(), needs }), ..Call::default() })
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the keys without those that have expired.
    fn living(&self) -> MutexGuard<'_, Keys> {
        let now = self.now();
        let mut keys = self.keys();
        keys.entries.retain(|_, entry| entry.expires == 0 || entry.expires > now);
        keys
    }

    /// Returns the time in milliseconds since 1970.
    fn now(&self) -> u64 {
        let now = self.clock.as_ref().map_or_else(SystemTime::now, |clock| clock());
        now.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

impl Keys {
    /// Returns a version that no value has had before.
    fn next(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Fails where what is under a key is not as a write expects it.
    fn check(&self, key: &str, expect: i64) -> Result<(), Failure> {
        let version = self.entries.get(key).map_or(0, |entry| entry.version);
        if expect == -1 || u64::try_from(expect) == Ok(version) {
            return Ok(());
        }
        Err(Failure::new("conflict", format_args!("the key {key:?} has another version")))
    }
}

/// A world as one tool sees it.
#[derive(Debug)]
pub(crate) struct Host {
    world: World,
    needs: Vec<Value>, // of the tool and of its module
}

type Answer = Result<Vec<u8>, Failure>;

impl Host {
    /// Fails where the tool does not declare a need: that a list of the manifest has an entry, or for an empty one that the
    /// member is there.
    fn declared(&self, member: &str, entry: &str) -> Result<(), Failure> {
        let found = self.needs.iter().filter_map(|needs| needs.get(member)).any(|need| match need {
            Value::Array(list) if member == "http" => {
                list.iter().filter_map(Value::as_str).any(|url| covers(url, entry))
            }
            Value::Array(list) => list.iter().any(|name| name == entry),
            _ => true,
        });
        if found {
            return Ok(());
        }
        let what = format!("{member} {entry}");
        let what = what.trim_end();
        Err(Failure::new(
            "not_granted",
            format_args!("the tool uses {what}, which it does not declare: add it to its `needs`"),
        ))
    }

    pub(crate) fn send(&self, head: &[u8], body: &[u8]) -> Answer {
        let invalid = |why: &dyn Display| Failure::new("invalid", why);
        let head: Value = serde_json::from_slice(head).map_err(|error| invalid(&error))?;
        let url = head.get("url").and_then(Value::as_str).unwrap_or_default();
        let uri: Uri = url.parse().map_err(|error| invalid(&error))?;
        if uri.scheme().is_none() || uri.host().is_none() || uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return Err(invalid(&format_args!("{url:?} is not an absolute URL without a user")));
        }
        self.declared("http", url)?;
        let handler = self.world.http.as_ref().ok_or_else(|| missing("http", url))?;
        let mut request =
            Request::builder().method(head.get("method").and_then(Value::as_str).unwrap_or_default()).uri(uri);
        for field in head.get("headers").and_then(Value::as_array).into_iter().flatten() {
            let part = |i| field.get(i).and_then(Value::as_str).unwrap_or_default();
            if is_refused(part(0)) {
                return Err(invalid(&format_args!("the header {} is the host's: leave it out", part(0))));
            }
            request = request.header(part(0), part(1));
        }
        let answer = handler(request.body(body.to_vec()).map_err(|error| invalid(&error))?)?;
        let headers: Vec<_> = answer
            .headers()
            .iter()
            .map(|(name, value)| json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())]))
            .collect();
        let head = json!({"status": answer.status().as_u16(), "url": url, "headers": headers}).to_string();
        let size = u32::try_from(head.len()).map_err(|error| invalid(&error))?;
        Ok([&size.to_le_bytes(), head.as_bytes(), answer.body()].concat())
    }

    pub(crate) fn get(&self, key: &str) -> Answer {
        self.declared("kv", "")?;
        Ok(self.world.living().entries.get(key).map_or_else(Vec::new, |entry| {
            [&entry.version.to_le_bytes(), &entry.expires.to_le_bytes(), entry.value.as_slice()].concat()
        }))
    }

    pub(crate) fn set(&self, key: &str, value: &[u8], ttl: i64, expect: i64) -> Answer {
        self.declared("kv", "")?;
        let now = self.world.now();
        let mut keys = self.world.living();
        keys.check(key, expect)?;
        let version = keys.next();
        let expires = if ttl == 0 { 0 } else { now.saturating_add_signed(ttl) };
        keys.entries.insert(key.to_owned(), Entry { value: value.to_vec(), version, expires });
        Ok(version.to_le_bytes().to_vec())
    }

    pub(crate) fn delete(&self, key: &str, expect: i64) -> Answer {
        self.declared("kv", "")?;
        let mut keys = self.world.living();
        keys.check(key, expect)?;
        Ok(vec![u8::from(keys.entries.remove(key).is_some())])
    }

    pub(crate) fn list(&self, prefix: &str, after: &str, limit: i32) -> Answer {
        self.declared("kv", "")?;
        let keys = self.world.living();
        let limit = usize::try_from(limit).ok().filter(|limit| (1..=LIST).contains(limit)).unwrap_or(LIST);
        let begin = if after.is_empty() { Bound::Unbounded } else { Bound::Excluded(after) };
        let mut found = keys
            .entries
            .range::<str, _>((begin, Bound::Unbounded))
            .map(|(key, _)| key)
            .filter(|key| key.starts_with(prefix));
        let mut out = vec![0];
        for key in found.by_ref().take(limit) {
            out.extend(u32::try_from(key.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend(key.as_bytes());
        }
        if let (Some(more), Some(_)) = (out.first_mut(), found.next()) {
            *more = 1;
        }
        Ok(out)
    }

    pub(crate) fn secret(&self, name: &str) -> Answer {
        self.declared("secrets", name)?;
        self.world.secrets.get(name).map(|value| value.clone().into_bytes()).ok_or_else(|| missing("secret", name))
    }

    pub(crate) fn settings(&self) -> Answer {
        self.declared("settings", "")?;
        Ok(self.world.settings.as_ref().map_or_else(|| "{}".into(), Value::to_string).into_bytes())
    }

    pub(crate) fn call(&self, path: &str, arguments: &[u8]) -> Answer {
        self.declared("tools", path)?;
        let tool = self.world.tools.get(path).ok_or_else(|| missing("tool", path))?;
        let arguments = serde_json::from_slice(arguments).map_err(|error| Failure::new("invalid", error))?;
        match tool(arguments) {
            Ok(result) => Ok(result.to_string().into_bytes()),
            Err(Answered::Failure(failure)) => Err(failure),
            Err(Answered::Error(error)) => {
                let told: Value = serde_json::from_str(&error.to_json()).unwrap_or_default();
                let code = told.get("code").and_then(Value::as_str).map(str::to_owned);
                Err(Failure::new("tool_error", error.message()).of_tool(code, told.get("data").cloned()))
            }
        }
    }
}

/// Returns the failure of a use that the test has not provided for.
fn missing(kind: &str, name: &str) -> Failure {
    Failure::new("not_granted", format_args!("{kind} {name}: the test's world does not have it"))
}

/// Reports whether a URL is one of those that begin with a declared one.
fn covers(declared: &str, url: &str) -> bool {
    let (Some(declared), Some(url)) = (Address::of(declared), Address::of(url)) else { return false };
    let host = match declared.host.strip_prefix('*') {
        Some(domain) => url.host.ends_with(domain),
        None => url.host == declared.host,
    };
    let rest = url.path.strip_prefix(declared.path.trim_end_matches('/'));
    host && declared.scheme == url.scheme
        && declared.port == url.port
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A URL in parts.
struct Address<'a> {
    scheme: &'a str,
    host: String,
    port: &'a str,
    path: &'a str,
}

impl<'a> Address<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let rest = rest.split(['?', '#']).next()?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (authority, if scheme == "https" { "443" } else { "80" }),
        };
        Some(Self { scheme, host: host.to_ascii_lowercase(), port, path })
    }
}

/// Reports whether a host does not let tools set a header.
fn is_refused(name: &str) -> bool {
    #[rustfmt::skip]
    const REFUSED: &[&str] = &[
        "accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
    ];
    let name = name.to_ascii_lowercase();
    REFUSED.contains(&name.as_str()) || name.starts_with("proxy-") || name.starts_with("sec-")
}
