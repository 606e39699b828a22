//! Objects in stores that speak S3: read by ranges, written in parts.
//!
//! Where the store is and who asks comes from the environment, as with AWS's own tools: `AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL` and the like, then the profile (`AWS_PROFILE`)
//! of `~/.aws/credentials` and `~/.aws/config`, then the role of the machine. Plain HTTP goes to this machine
//! alone, unless `AWS_ALLOW_HTTP` says otherwise.
//!
//! Every range is asked for under the condition that the object is the one that was opened. What is read from
//! place to place goes through a cache of `PIECES_KEPT` pieces; what is read from start to end is fetched a
//! piece ahead. An object appears whole or not at all: parts that are not completed are no object.

use crate::fault::{Error, Result};
use crate::place::{Place, shown};
use crate::profile::{self, at_home, variable};
use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path as Key;
use object_store::{
    ClientOptions, GetOptions, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    RetryConfig,
};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Bytes of a piece that is kept of an object that is read from place to place.
const BLOCK: u64 = 256 << 10;
/// Pieces that are kept: 64 MiB.
const PIECES_KEPT: usize = 256;
/// Pieces that are fetched together where the one before is there already.
const BLOCKS_AHEAD: u64 = 8;
/// Bytes that are fetched together of an object that is read from start to end, and least of a part.
const PIECE: u64 = 8 << 20;
/// The most parts of an object, with room for some that are larger than expected.
const MOST_PARTS: u64 = 9_000;
/// How long a store may take for one piece.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How long an interrupted run may take to tell the store that its parts are not wanted.
const ABORTING: Duration = Duration::from_secs(5);

pub(crate) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| made))
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A store's bucket, an object's key in it, and the address that named both.
#[derive(Clone)]
struct Address {
    path: PathBuf,
    store: Arc<AmazonS3>,
    key: Key,
}

impl Address {
    fn of(path: &Path) -> Result<Self> {
        let wrong = |what: String| Error::address(path, what);
        let Place::Object { bucket, key } = Place::of(path).map_err(|what| wrong(what.into()))? else {
            return Err(wrong("an object is named s3://BUCKET/KEY".into()));
        };
        let key =
            Key::parse(key).map_err(|_| wrong("its key has an empty part, or a part of only dots".into()))?;
        let store = Arc::new(store(bucket).map_err(wrong)?);
        Ok(Address { path: shown(path), store, key })
    }

    fn remote(&self, what: impl Into<String>) -> Error {
        Error::Remote { path: self.path.clone(), what: what.into() }
    }

    fn runtime(&self) -> Result<&'static Runtime> {
        runtime().map_err(|error| self.remote(error.to_string()))
    }

    /// What the store knows of the object; nothing if there is none.
    fn look(&self) -> Result<Option<ObjectMeta>> {
        match self.runtime()?.block_on(self.store.head(&self.key)) {
            Ok(meta) => Ok(Some(meta)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.remote(explain(&error))),
        }
    }
}

/// The client for this bucket, out of the environment and AWS's files.
fn store(bucket: &str) -> std::result::Result<AmazonS3, String> {
    let mut builder = AmazonS3Builder::from_env();
    let profile = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
    let name = profile.as_deref().unwrap_or("default");
    let read = |variable_name: &str, usual: &str, section: &str| {
        let file = variable(variable_name).map(PathBuf::from).or_else(|| at_home(usual))?;
        profile::section(&std::fs::read_to_string(file).ok()?, section)
    };
    let section = if name == "default" { "default".to_owned() } else { format!("profile {name}") };
    let mut settings = read("AWS_CONFIG_FILE", ".aws/config", &section).unwrap_or_default();
    settings.extend(read("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", name).unwrap_or_default());
    if settings.is_empty() && profile.is_some() {
        return Err("AWS_PROFILE names a profile that AWS's files do not have".into());
    }
    // A key belongs to its secret, so those of a file count only where the environment has none of its own.
    let by_role = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    let has_own = variable("AWS_ACCESS_KEY_ID").is_some()
        || (profile.is_none() && by_role.iter().any(|name| variable(name).is_some()));
    let has_endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    let has_endpoint = has_endpoint.iter().any(|name| variable(name).is_some());
    let has_region = ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().any(|name| variable(name).is_some());
    for (name, value) in settings {
        let key = match name.as_str() {
            "aws_access_key_id" if !has_own => AmazonS3ConfigKey::AccessKeyId,
            "aws_secret_access_key" if !has_own => AmazonS3ConfigKey::SecretAccessKey,
            "aws_session_token" if !has_own => AmazonS3ConfigKey::Token,
            "region" if !has_region => AmazonS3ConfigKey::Region,
            "endpoint_url" if !has_endpoint => AmazonS3ConfigKey::Endpoint,
            _ => continue,
        };
        builder = builder.with_config(key, value);
    }
    let mut client = ClientOptions::new().with_timeout(TIMEOUT).with_connect_timeout(Duration::from_secs(10));
    let allowed = variable("AWS_ALLOW_HTTP").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let endpoints = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    let endpoint = endpoints.iter().find_map(|key| builder.get_config_value(key));
    if let Some(rest) = endpoint.as_deref().and_then(|endpoint| endpoint.strip_prefix("http://")) {
        if !allowed && !is_here(rest) {
            return Err("the store's address is plain HTTP beyond this machine; use https://, or set \
                        AWS_ALLOW_HTTP=true if the network may see everything"
                .into());
        }
        client = client.with_allow_http(true);
    }
    let retry = RetryConfig { max_retries: 3, retry_timeout: TIMEOUT, ..RetryConfig::default() };
    builder
        .with_client_options(client)
        .with_retry(retry)
        .with_bucket_name(bucket)
        .build()
        .map_err(|_| "the settings for AWS, in the environment or its files, are not valid".into())
}

/// Whether the host of what is behind `http://` is this machine.
pub(crate) fn is_here(rest: &str) -> bool {
    let authority = rest.split('/').next().unwrap_or("");
    let host = authority.rsplit('@').next().unwrap_or("");
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or(""),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A store's refusal in plain words. What the store itself says is left out: it may repeat who asked.
fn explain(error: &object_store::Error) -> String {
    use object_store::Error as Store;
    match error {
        Store::NotFound { .. } => "there is no such object, or no such bucket".into(),
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => {
            "access denied; check the credentials in the environment or AWS's files, and what they may do"
                .into()
        }
        Store::AlreadyExists { .. } => "the object exists already".into(),
        Store::Precondition { .. } | Store::NotModified { .. } => {
            "the object changed while it was used".into()
        }
        other => format!("the store cannot be reached or failed: {}", explain_transport(other)),
    }
}

/// What is at the bottom of an error of a connection, in a few words.
pub(crate) fn explain_transport(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(below) = deepest.source() {
        deepest = below;
    }
    let text = deepest.to_string();
    // An answer of the server stands behind the words of its client, as a page of XML.
    let text = text.split(['<', '{']).next().unwrap_or("").trim_end_matches([' ', ':', '\n']);
    text.chars().take(200).collect()
}

/// An object that is read, and is the same from first to last.
pub(crate) struct Object {
    address: Address,
    meta: ObjectMeta,
    cache: Mutex<Cache>,
    fault: Mutex<Option<Fault>>,
}

enum Fault {
    Changed,
    Remote(String),
}

#[derive(Default)]
struct Cache {
    blocks: HashMap<u64, (Bytes, u64)>,
    clock: u64,
}

impl Cache {
    fn get(&mut self, number: u64) -> Option<Bytes> {
        self.clock += 1;
        let (bytes, used) = self.blocks.get_mut(&number)?;
        *used = self.clock;
        Some(bytes.clone())
    }

    fn put(&mut self, number: u64, bytes: Bytes) {
        if self.blocks.len() >= PIECES_KEPT
            && let Some(oldest) =
                self.blocks.iter().min_by_key(|(_, (_, used))| *used).map(|(number, _)| *number)
        {
            self.blocks.remove(&oldest);
        }
        self.clock += 1;
        self.blocks.insert(number, (bytes, self.clock));
    }
}

impl Object {
    /// Finds the object at this address. Errors: none there, and what keeps us from it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let address = Address::of(path)?;
        let meta = address.look()?;
        let meta = meta.ok_or_else(|| address.remote("there is no such object, or no such bucket"))?;
        Ok(Object { address, meta, cache: Mutex::default(), fault: Mutex::default() })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.meta.size
    }

    /// What went wrong when it was last read, if anything did.
    pub(crate) fn fault(&self) -> Option<Error> {
        let path = self.address.path.clone();
        match &*lock(&self.fault) {
            None => None,
            Some(Fault::Changed) => Some(Error::Changed(path)),
            Some(Fault::Remote(what)) => Some(Error::Remote { path, what: what.clone() }),
        }
    }

    async fn fetch(self: Arc<Self>, from: u64, length: u64) -> io::Result<Bytes> {
        let options = GetOptions::new().with_range(Some(from..from + length));
        let options = match &self.meta.e_tag {
            Some(tag) => options.with_if_match(Some(tag.clone())),
            None => options.with_if_unmodified_since(Some(self.meta.last_modified)),
        };
        let read = async {
            let found = self.address.store.get_opts(&self.address.key, options).await?;
            let same = found.meta.e_tag == self.meta.e_tag && found.meta.size == self.meta.size;
            Ok(if same { Some(found.bytes().await?) } else { None })
        };
        let fault = match read.await {
            Ok(Some(bytes)) if bytes.len() as u64 == length => return Ok(bytes),
            Ok(Some(_)) => Fault::Remote("the store sent less than requested".into()),
            Ok(None)
            | Err(object_store::Error::Precondition { .. } | object_store::Error::NotFound { .. }) => {
                Fault::Changed
            }
            Err(error) => Fault::Remote(explain(&error)),
        };
        let error = io::Error::other(match &fault {
            Fault::Changed => "the object changed while it was used",
            Fault::Remote(what) => what,
        });
        *lock(&self.fault) = Some(fault);
        Err(error)
    }

    fn range(self: &Arc<Self>, from: u64, length: u64) -> io::Result<Bytes> {
        runtime()?.block_on(self.clone().fetch(from, length))
    }

    /// All of it, from start to end.
    pub(crate) fn stream(self: &Arc<Self>) -> impl Read + 'static {
        Stream { object: self.clone(), now: Bytes::new(), at: 0, next: None }
    }

    /// Some bytes from `at` on; none at the end.
    pub(crate) fn read_at(self: &Arc<Self>, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if at >= self.bytes() || buffer.is_empty() {
            return Ok(0);
        }
        let number = at / BLOCK;
        let found = lock(&self.cache).get(number);
        let block = match found {
            Some(block) => block,
            None => self.blocks(number)?,
        };
        let from = (at % BLOCK) as usize;
        let read = buffer.len().min(block.len().saturating_sub(from));
        buffer[..read].copy_from_slice(&block[from..from + read]);
        Ok(read)
    }

    /// Fetches the block of this number, and some behind it if the one before it is there.
    fn blocks(self: &Arc<Self>, number: u64) -> io::Result<Bytes> {
        let goes_on = number > 0 && lock(&self.cache).blocks.contains_key(&(number - 1));
        let from = number * BLOCK;
        let most = if goes_on { BLOCK * BLOCKS_AHEAD } else { BLOCK };
        let bytes = self.range(from, most.min(self.bytes() - from))?;
        let mut cache = lock(&self.cache);
        for (place, piece) in bytes.chunks(BLOCK as usize).enumerate() {
            // A slice would keep what is beside it.
            cache.put(number + place as u64, Bytes::copy_from_slice(piece));
        }
        cache.get(number).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// So many bytes from `at` on, fewer where it ends.
    pub(crate) fn bytes_at(self: &Arc<Self>, at: u64, length: usize) -> io::Result<Bytes> {
        let length = (length as u64).min(self.bytes().saturating_sub(at));
        if length >= BLOCK * BLOCKS_AHEAD {
            return self.range(at, length);
        }
        let mut bytes = vec![0; length as usize];
        let mut full = 0;
        while full < bytes.len() {
            full += self.read_at(at + full as u64, &mut bytes[full..])?;
        }
        Ok(bytes.into())
    }
}

/// An object from start to end, a piece ahead.
struct Stream {
    object: Arc<Object>,
    now: Bytes,
    /// Where the next piece starts.
    at: u64,
    next: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Stream {
    fn ask(&mut self) -> io::Result<Option<JoinHandle<io::Result<Bytes>>>> {
        let length = PIECE.min(self.object.bytes().saturating_sub(self.at));
        if length == 0 {
            return Ok(None);
        }
        let piece = self.object.clone().fetch(self.at, length);
        self.at += length;
        Ok(Some(runtime()?.spawn(piece)))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.now.is_empty() && self.at == 0 {
            // The first piece tells what the object is, and often no other is wanted.
            self.now = self.object.bytes_at(0, BLOCK as usize)?;
            self.at = self.now.len() as u64;
            if self.now.is_empty() {
                return Ok(0);
            }
        }
        if self.now.is_empty() {
            let asked = match self.next.take() {
                Some(asked) => asked,
                None => match self.ask()? {
                    Some(asked) => asked,
                    None => return Ok(0),
                },
            };
            self.next = self.ask()?;
            self.now = runtime()?.block_on(asked).map_err(io::Error::other)??;
        }
        let read = buffer.len().min(self.now.len());
        buffer[..read].copy_from_slice(&self.now.split_to(read));
        Ok(read)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(asked) = &self.next {
            asked.abort();
        }
    }
}

type Writing = Mutex<Box<dyn MultipartUpload>>;
type Parts = Arc<Writing>;

/// Uploads that are neither finished nor given up.
static UPLOADS: Mutex<Vec<Weak<Writing>>> = Mutex::new(Vec::new());

/// An object that is being written. Dropped before [`finish`](Self::finish), it leaves nothing.
///
/// The upload is begun at once, so that who may not write there hears of it before a run and not after it.
pub struct Upload {
    address: Address,
    overwrite: bool,
    parts: Option<Parts>,
    waiting: Vec<u8>,
    part: u64,
    sent: u64,
    under_way: Option<JoinHandle<object_store::Result<()>>>,
}

impl Upload {
    /// Whether an object could be written at `path`: not where there is one, unless it may be overwritten.
    pub fn check(path: &Path, overwrite: bool) -> Result<()> {
        Self::admit(&Address::of(path)?, overwrite)
    }

    fn admit(address: &Address, overwrite: bool) -> Result<()> {
        match address.look() {
            Ok(Some(_)) if !overwrite => Err(address
                .remote("exists already and is not overwritten; choose another name, or allow overwriting")),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Begins to write the object at `path`.
    pub fn begin(path: &Path, overwrite: bool) -> Result<Self> {
        let address = Address::of(path)?;
        Self::admit(&address, overwrite)?;
        let begun = address.runtime()?.block_on(address.store.put_multipart(&address.key));
        let begun = begun.map_err(|error| match error {
            object_store::Error::NotFound { .. } => address.remote("there is no such bucket"),
            other => address.remote(format!("cannot be written: {}", explain(&other))),
        })?;
        let parts = Arc::new(Mutex::new(begun));
        lock(&UPLOADS).push(Arc::downgrade(&parts));
        Ok(Upload {
            address,
            overwrite,
            parts: Some(parts),
            waiting: Vec::new(),
            part: PIECE,
            sent: 0,
            under_way: None,
        })
    }

    /// Says that up to so many bytes will come: parts grow with them, of which a store takes 10,000.
    pub fn expect(&mut self, bytes: u64) {
        self.part = PIECE.max(bytes / MOST_PARTS);
    }

    fn fault(&self, error: &object_store::Error) -> Error {
        self.address.remote(format!("cannot be written: {}", explain(error)))
    }

    fn settle(&mut self) -> Result<()> {
        let Some(under_way) = self.under_way.take() else { return Ok(()) };
        let ended = self.address.runtime()?.block_on(under_way);
        let ended = ended.map_err(|error| self.address.remote(error.to_string()))?;
        ended.map_err(|error| self.fault(&error))
    }

    fn send(&mut self) -> Result<()> {
        self.settle()?;
        let Some(parts) = &self.parts else { return Ok(()) };
        let piece = std::mem::take(&mut self.waiting);
        self.sent += 1;
        let sending = lock(parts).put_part(piece.into());
        self.under_way = Some(self.address.runtime()?.spawn(sending));
        Ok(())
    }

    /// Puts the whole object in its place.
    pub fn finish(mut self) -> Result<()> {
        let runtime = self.address.runtime()?;
        if self.sent == 0 {
            // In one piece the store itself sees to it that nothing is replaced.
            let mode = if self.overwrite { PutMode::Overwrite } else { PutMode::Create };
            let piece = std::mem::take(&mut self.waiting);
            let options = PutOptions { mode, ..PutOptions::default() };
            let put = self.address.store.put_opts(&self.address.key, piece.into(), options);
            return match runtime.block_on(put) {
                Ok(_) => Ok(()),
                Err(object_store::Error::AlreadyExists { .. }) => Err(self.taken()),
                Err(error) => Err(self.fault(&error)),
            };
        }
        if !self.waiting.is_empty() {
            self.send()?;
        }
        self.settle()?;
        // Time has passed since the first look.
        if !self.overwrite && self.address.look()?.is_some() {
            return Err(self.taken());
        }
        let Some(parts) = &self.parts else { return Ok(()) };
        let completed = runtime.block_on(lock(parts).complete());
        completed.map_err(|error| self.fault(&error))?;
        self.parts = None;
        Ok(())
    }

    fn taken(&self) -> Error {
        self.address.remote("was created by another process during the run and is not overwritten; run again")
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() as u64 >= self.part {
            self.send().map_err(io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(under_way) = &self.under_way {
            under_way.abort();
        }
        if let (Some(parts), Ok(runtime)) = (self.parts.take(), runtime()) {
            give_up(runtime, &parts);
        }
        lock(&UPLOADS).retain(|upload| upload.strong_count() > 0);
    }
}

/// Tells the store that the parts are not wanted. Where it does not hear, they are no object, and go by its
/// own rules.
fn give_up(runtime: &Runtime, parts: &Parts) {
    if let Ok(mut parts) = parts.try_lock() {
        let _ = runtime.block_on(async { tokio::time::timeout(ABORTING, parts.abort()).await });
    }
}

/// Gives up what is being written: for a process that ends before it is done.
pub fn abort_uploads() {
    let Ok(uploads) = UPLOADS.try_lock() else { return };
    for parts in uploads.iter().filter_map(Weak::upgrade) {
        if let Ok(runtime) = runtime() {
            give_up(runtime, &parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn plain_http_goes_no_further_than_this_machine() {
        for here in ["localhost:9000", "127.0.0.1", "127.1.2.3:1/x", "[::1]:9000", "u:p@localhost"] {
            assert!(is_here(here), "{here}");
        }
        for beyond in ["localhost.example", "10.0.0.1:9000", "[::2]:1", "", "localhost@store.example"] {
            assert!(!is_here(beyond), "{beyond}");
        }
    }
}
