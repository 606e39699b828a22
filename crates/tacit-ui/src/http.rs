//! HTTP/1.1 for one browser on this machine: one request per connection, whose body is read as a stream.
//!
//! The head of a request has at most [`LONGEST_REQUEST_HEAD`] bytes and [`HEAD_TIME`] to arrive. At most [`MOST_ASKING`]
//! connections may be without a whole head: a further one closes the oldest, so that a page gets its answer
//! however many connections say nothing. A request whose head has arrived is no longer among them; what it may
//! do is up to the caller, who authenticates it before the body is read.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tacit::crypto::fence::fenced;

/// Time for the head of a request to arrive.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(5);
/// The most time between two pieces of a body, and for each write of an answer.
const PIECE_TIME: Duration = Duration::from_secs(30);
/// Bytes of a head after which no more are read.
pub(crate) const LONGEST_REQUEST_HEAD: usize = 16 << 10;
/// Header lines of a request.
const MOST_HEADERS: usize = 64;
/// Connections at the same time without a whole head.
pub(crate) const MOST_ASKING: usize = 16;
/// Threads at the same time.
const MOST_SERVED: usize = 64;
/// Pause between two looks for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);
/// The rest of a refused body that is read, so that the browser reads the answer and not a reset.
const MOST_DRAINED: u64 = 1 << 20;

/// A request, whose body is still to be read.
pub(crate) struct Request<'a> {
    pub head: Head,
    pub body: Body<'a>,
}

/// What the head of a request says.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub method: String,
    /// The path, without what follows a question mark.
    pub path: String,
    /// What follows the question mark, undecoded.
    pub query: String,
    headers: Vec<(String, String)>,
    /// Bytes of the body.
    pub length: u64,
}

impl Head {
    /// The value of the header called `name`, in lower case. `None` if there is none, or several.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(other, _)| other == name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    /// Whether a header of that name is there at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, _)| other == name)
    }

    /// The value of `name` in the query, with percent signs decoded.
    pub(crate) fn asked(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| decoded(value)).next().flatten()
    }
}

/// The text that percent signs encode; `None` if they do not, or it is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(rest.next())? << 4 | digit(rest.next())?).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The body of a request: as many bytes as its head announced.
pub(crate) struct Body<'a> {
    stream: &'a TcpStream,
    early: Vec<u8>,
    at: usize,
    /// Bytes still to come.
    pub left: u64,
    /// Whether the client waits to be told that it may send.
    waits: bool,
}

impl Body<'_> {
    /// All of it, unless that is more than `most` bytes.
    pub(crate) fn whole(&mut self, most: u64) -> io::Result<Option<Vec<u8>>> {
        if self.left > most {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Reads a little of what nobody wants.
    fn drain(&mut self) {
        if !self.waits && self.left <= MOST_DRAINED {
            let _ = io::copy(self, &mut io::sink());
        }
    }
}

impl Read for Body<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        if std::mem::take(&mut self.waits) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let early = &self.early[self.at..];
        let read = match early.is_empty() {
            false => {
                let read = most.min(early.len());
                out[..read].copy_from_slice(&early[..read]);
                self.at += read;
                read
            }
            true => self.stream.read(&mut out[..most])?,
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

/// What is answered.
pub(crate) struct Response {
    pub code: u16,
    pub kind: &'static str,
    /// Further header lines.
    pub more: Vec<(&'static str, Cow<'static, str>)>,
    pub content: Content,
}

/// The body of an answer.
pub(crate) enum Content {
    Bytes(Cow<'static, [u8]>),
    /// So many bytes of a file.
    File(File, u64),
}

impl Response {
    /// A short text.
    pub(crate) fn text(code: u16, text: impl Into<String>) -> Self {
        let bytes = (text.into() + "\n").into_bytes();
        Response {
            code,
            kind: "text/plain; charset=utf-8",
            more: Vec::new(),
            content: Content::Bytes(bytes.into()),
        }
    }

    /// With another header line.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.more.push((name, value.into()));
        self
    }
}

/// The words behind a status code.
fn words(code: u16) -> &'static str {
    match code {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

/// The connections that have not asked yet, by number, the oldest first.
#[derive(Default)]
struct Asking(Mutex<VecDeque<(u64, TcpStream)>>);

impl Asking {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds another one; if there are too many, the oldest is closed.
    fn enter(&self, number: u64, stream: TcpStream) {
        let mut open = self.lock();
        if open.len() >= MOST_ASKING
            && let Some((_, oldest)) = open.pop_front()
        {
            // Its thread sees the end. One that is gone already needs no closing.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        open.push_back((number, stream));
    }

    fn leave(&self, number: u64) {
        self.lock().retain(|(other, _)| *other != number);
    }
}

/// Answers requests at `listener` by `respond` until `over`, each on a thread of its own.
pub(crate) fn serve(
    listener: &TcpListener,
    over: &AtomicBool,
    respond: &(dyn Fn(&mut Request<'_>) -> Response + Sync),
) {
    let (served, asking) = (&AtomicUsize::new(0), &Asking::default());
    let mut number = 0;
    std::thread::scope(|scope| {
        while !over.load(Ordering::SeqCst) {
            let accepted = (served.load(Ordering::SeqCst) < MOST_SERVED).then(|| listener.accept());
            let Some(Ok((stream, _))) = accepted else {
                std::thread::sleep(ACCEPT_PAUSE);
                continue;
            };
            let Ok(copy) = stream.try_clone() else { continue };
            number += 1;
            asking.enter(number, copy);
            served.fetch_add(1, Ordering::SeqCst);
            let work = move || {
                // A client that is too slow, or gone, gets no answer; nor does one whose answer panics.
                let _ = fenced(|| one(&stream, || asking.leave(number), respond));
                asking.leave(number);
                served.fetch_sub(1, Ordering::SeqCst);
            };
            let started = std::thread::Builder::new().name("tacit-ui".to_owned()).spawn_scoped(scope, work);
            if started.is_err() {
                asking.leave(number);
                served.fetch_sub(1, Ordering::SeqCst);
            }
        }
    });
}

/// Reads one request and answers it; `asked` is called when its head has arrived.
fn one(
    stream: &TcpStream,
    asked: impl FnOnce(),
    respond: &(dyn Fn(&mut Request<'_>) -> Response + Sync),
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PIECE_TIME))?;
    let Some((head, early)) = read_head(stream)? else { return Ok(()) };
    asked();
    stream.set_read_timeout(Some(PIECE_TIME))?;
    let Some(head) = parsed(&head) else {
        return answer(stream, Response::text(400, "not a valid request of HTTP/1.1"), true);
    };
    let waits = head.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
    let body = Body { stream, early, at: 0, left: head.length, waits };
    let mut request = Request { head, body };
    let response = respond(&mut request);
    request.body.drain();
    answer(stream, response, request.head.method != "HEAD")
}

/// The head, with its blank line, and what came behind it; `None` if it does not arrive.
fn read_head(mut stream: &TcpStream) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let deadline = Instant::now() + HEAD_TIME;
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let early = bytes.split_off(end + 4);
            return Ok(Some((bytes, early)));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || bytes.len() >= LONGEST_REQUEST_HEAD {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        let mut piece = [0; 4096];
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            read => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

/// What a head says; `None` if it is not a valid one, or its body has no length.
pub(crate) fn parsed(bytes: &[u8]) -> Option<Head> {
    let mut lines = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parser = httparse::Request::new(&mut lines);
    if !parser.parse(bytes).ok()?.is_complete() {
        return None;
    }
    let headers = parser.headers.iter().map(|line| {
        Some((line.name.to_ascii_lowercase(), std::str::from_utf8(line.value).ok()?.trim().to_owned()))
    });
    let headers = headers.collect::<Option<Vec<_>>>()?;
    let target = parser.path.filter(|target| target.starts_with('/'))?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let mut head = Head { method: parser.method?.to_owned(), path, query, headers, length: 0 };
    // What could be read in two ways is refused: several hosts or lengths, and bodies in chunks.
    if head.header("host").is_none() || head.has("transfer-encoding") {
        return None;
    }
    if head.has("content-length") {
        let length = head.header("content-length")?;
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        head.length = length.parse().ok().filter(|_| is_number)?;
    }
    Some(head)
}

fn answer(mut stream: &TcpStream, response: Response, with_body: bool) -> io::Result<()> {
    let length = match &response.content {
        Content::Bytes(bytes) => bytes.len() as u64,
        Content::File(_, length) => *length,
    };
    let Response { code, kind, more, content } = response;
    let mut head = format!(
        "HTTP/1.1 {code} {}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n",
        words(code)
    );
    for (name, value) in more {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes())?;
    match content {
        _ if !with_body => {}
        Content::Bytes(bytes) => stream.write_all(&bytes)?,
        Content::File(file, length) => _ = io::copy(&mut file.take(length), &mut stream)?,
    }
    // The client's end of the connection shows that it has read everything.
    let _ = stream.shutdown(Shutdown::Write);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server answers that echoes methods, paths, queries and bodies.
    fn with_server(test: impl FnOnce(std::net::SocketAddr)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (address, over) = (listener.local_addr().unwrap(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                serve(&listener, &over, &|request| {
                    let body = request.body.whole(100).unwrap();
                    let body = body.map_or("too much".to_owned(), |body| String::from_utf8(body).unwrap());
                    let asked = request.head.asked("q").unwrap_or_default();
                    Response::text(
                        200,
                        format!("{} {} {asked} {body}", request.head.method, request.head.path),
                    )
                });
            });
            test(address);
            over.store(true, Ordering::SeqCst);
        });
    }

    fn ask(address: std::net::SocketAddr, question: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(question).unwrap();
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        said
    }

    #[test]
    fn requests_are_read_with_their_bodies() {
        with_server(|address| {
            let said = ask(address, b"POST /a?q=1%202+3 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyz");
            assert!(said.ends_with("\r\n\r\nPOST /a 1 2 3 xyz\n"), "{said}");
            let said = ask(address, b"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
            assert!(said.contains("Content-Length: 10\r\n") && said.ends_with("\r\n\r\n"), "{said}");
            let long =
                [b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n".as_slice(), &[b'x'; 101]];
            assert!(ask(address, &long.concat()).ends_with("too much\n"));
            let said = ask(
                address,
                b"POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
            );
            assert!(said.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"), "{said}");
        });
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        with_server(|address| {
            for head in [
                "GET / HTTP/1.1\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                "GET http://evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
                "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
                "nonsense\r\n\r\n",
            ] {
                let said = ask(address, head.as_bytes());
                assert!(said.starts_with("HTTP/1.1 400 "), "{head:?}: {said}");
            }
        });
    }

    #[test]
    fn percent_signs_are_decoded_strictly() {
        assert_eq!(decoded("a%20b%C3%A4"), Some("a bä".to_owned()));
        for wrong in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn silent_connections_hold_nobody_up_and_are_closed() {
        with_server(|address| {
            let silent: Vec<TcpStream> =
                (0..3 * MOST_SERVED).map(|_| TcpStream::connect(address).unwrap()).collect();
            let start = Instant::now();
            assert!(ask(address, b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n").contains("GET /a"));
            assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
            assert!(ask(address, &vec![b'a'; LONGEST_REQUEST_HEAD + 1]).is_empty());
            // A body that stops before its end keeps nobody else waiting.
            let mut stopped = TcpStream::connect(address).unwrap();
            stopped.write_all(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx").unwrap();
            assert!(ask(address, b"GET /b HTTP/1.1\r\nHost: h\r\n\r\n").contains("GET /b"));
            drop(stopped);
            for mut stream in silent {
                stream.set_read_timeout(Some(2 * HEAD_TIME)).unwrap();
                assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
            }
        });
    }
}
