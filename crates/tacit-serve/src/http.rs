//! Answers HTTP requests from this machine alone: one to a connection, and none changes anything.
//!
//! They are called questions here, because a request is one for a run. The head of a question has about 8 KiB
//! at most and two seconds to come. At most 16 connections are open at the same time: a further one closes the
//! oldest, so that however many say nothing, one that asks is answered at once.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tacit::crypto::fence::fenced;
use tacit::{Error, Result};

/// Time for a question to come, and for each write of its answer.
pub(crate) const ASKING: Duration = Duration::from_secs(2);
/// Bytes of a question after which no more are read.
pub(crate) const LONGEST_QUESTION: usize = 8 << 10;
/// Connections at the same time.
pub(crate) const MOST_AT_ONCE: usize = 16;
/// Threads at the same time: those of connections that were closed end within moments.
const MOST_THREADS: usize = 4 * MOST_AT_ONCE;
/// Pause between two looks for a question.
const PAUSE: Duration = Duration::from_millis(20);

/// Where questions come in.
pub struct Port(TcpListener);

impl Port {
    /// Listens at `address` for the option `name`.
    ///
    /// Errors: an address beyond this machine, or one that cannot be listened at.
    pub fn bind(name: &'static str, address: &str) -> Result<Self> {
        let refuse = |what: String| Error::Parameter { name, what };
        let parsed: SocketAddr = address.parse().map_err(|_| {
            refuse("give an address of this machine and a port, such as 127.0.0.1:9700".into())
        })?;
        if !parsed.ip().to_canonical().is_loopback() {
            return Err(refuse(format!(
                "{parsed} is reachable from other machines; give 127.0.0.1 or [::1]"
            )));
        }
        let socket =
            TcpListener::bind(parsed).map_err(|e| refuse(format!("{parsed}: {e}; choose another port")))?;
        socket.set_nonblocking(true).map_err(|e| Error::Other(format!("{parsed}: {e}")))?;
        Ok(Port(socket))
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr> {
        self.0.local_addr().map_err(|e| Error::Other(format!("an address of this machine: {e}")))
    }
}

/// An HTTP request: its target, and the host that it names, if any.
pub(crate) struct Question {
    pub target: String,
    pub host: Option<String>,
}

impl Question {
    /// Whether it names this machine, as localhost or a loopback address. A page from elsewhere whose host
    /// name leads here (DNS rebinding) names that host.
    pub(crate) fn is_for_this_machine(&self) -> bool {
        let Some(host) = &self.host else { return false };
        let name = match host.strip_prefix('[') {
            Some(rest) => {
                rest.split_once(']').map(|(name, port)| (name, port.strip_prefix(':').unwrap_or(port)))
            }
            None => Some(host.split_once(':').unwrap_or((host, ""))),
        };
        name.is_some_and(|(name, port)| {
            let is_here = name.eq_ignore_ascii_case("localhost")
                || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
            is_here && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit())
        })
    }
}

/// What is answered.
pub(crate) struct Answer {
    /// The status code with its words.
    pub code: &'static str,
    /// The type of the body.
    pub kind: &'static str,
    /// Further lines of the head, each with its end.
    pub more: &'static str,
    pub body: Cow<'static, str>,
}

impl Answer {
    pub(crate) fn text(code: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Answer { code, kind: "text/plain; charset=utf-8", more: "", body: body.into() }
    }
}

/// What a question's head says.
pub(crate) enum Head {
    /// `GET`, or `HEAD` where `body` is false.
    Ask { question: Question, body: bool },
    /// Another method.
    Other,
    /// Not HTTP/1.0 or 1.1, or with several hosts.
    None,
}

pub(crate) fn read_head(head: &[u8]) -> Head {
    let Ok(text) = std::str::from_utf8(head) else { return Head::None };
    let mut lines = text.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, "HTTP/1.0" | "HTTP/1.1"] = words[..] else { return Head::None };
    let body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return Head::Other,
    };
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
    });
    let host = hosts.next();
    if hosts.next().is_some() {
        return Head::None;
    }
    Head::Ask { question: Question { target: target.to_owned(), host }, body }
}

/// The connections that are open, by number, the oldest first.
#[derive(Default)]
struct Open(Mutex<VecDeque<(u64, TcpStream)>>);

impl Open {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes another one in; the oldest goes where there are too many.
    fn enter(&self, number: u64, stream: TcpStream) {
        let mut open = self.lock();
        if open.len() >= MOST_AT_ONCE
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

/// Answers at `port` by `respond`, on the calling thread and some of its own, until `over`.
pub(crate) fn answer(port: &Port, over: &AtomicBool, respond: &(dyn Fn(&Question) -> Answer + Sync)) {
    let (threads, open) = (&AtomicUsize::new(0), &Open::default());
    let mut number = 0;
    std::thread::scope(|scope| {
        while !over.load(Ordering::SeqCst) {
            if threads.load(Ordering::SeqCst) >= MOST_THREADS {
                std::thread::sleep(PAUSE / 20);
                continue;
            }
            let Ok((stream, _)) = port.0.accept() else {
                std::thread::sleep(PAUSE);
                continue;
            };
            let Ok(copy) = stream.try_clone() else { continue };
            number += 1;
            open.enter(number, copy);
            threads.fetch_add(1, Ordering::SeqCst);
            let started =
                std::thread::Builder::new().name("tacit-http".to_owned()).spawn_scoped(scope, move || {
                    // Whoever is too slow, or gone, gets no answer; nor does one whose answer panics.
                    let _ = fenced(|| one(stream, respond));
                    open.leave(number);
                    threads.fetch_sub(1, Ordering::SeqCst);
                });
            if started.is_err() {
                open.leave(number);
                threads.fetch_sub(1, Ordering::SeqCst);
            }
        }
    });
}

fn one(mut stream: TcpStream, respond: &(dyn Fn(&Question) -> Answer + Sync)) -> std::io::Result<()> {
    let deadline = Instant::now() + ASKING;
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(ASKING))?;
    let mut asked = Vec::new();
    let end = loop {
        if let Some(end) = asked.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || asked.len() >= LONGEST_QUESTION {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        let mut piece = [0; 1024];
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            n => asked.extend_from_slice(&piece[..n]),
        }
    };
    let (answer, body) = match read_head(&asked[..end]) {
        Head::Ask { question, body } => (respond(&question), body),
        Head::Other => {
            let no = Answer::text("405 Method Not Allowed", "nothing can be changed here\n");
            (Answer { more: "Allow: GET, HEAD\r\n", ..no }, true)
        }
        Head::None => (Answer::text("400 Bad Request", "this is no question of HTTP/1.1\n"), true),
    };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n{}\r\n",
        answer.code,
        answer.kind,
        answer.body.len(),
        answer.more,
    );
    stream.write_all(head.as_bytes())?;
    match body {
        true => stream.write_all(answer.body.as_bytes()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_can_ask() {
        for beyond in ["0.0.0.0:0", "[::]:0", "192.0.2.1:1", "localhost:1", "1"] {
            assert!(Port::bind("metrics", beyond).is_err(), "{beyond}");
        }
        assert!(Port::bind("metrics", "127.0.0.1:0").is_ok());
    }

    #[test]
    fn a_question_is_for_this_machine_by_its_own_names_alone() {
        let is_here =
            |host: &str| Question { target: "/".into(), host: Some(host.into()) }.is_for_this_machine();
        for here in
            ["localhost", "LOCALHOST:9701", "127.0.0.1", "127.0.0.1:80", "127.8.0.1:1", "[::1]", "[::1]:9701"]
        {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in [
            "",
            "evil.example",
            "evil.example:9701",
            "127.0.0.1.evil.example",
            "localhost.evil.example:9701",
            "192.0.2.1:9701",
            "0.0.0.0:9701",
            "[::]",
            "[::1",
            "[::1]x",
            "::1",
            "localhost:9701:1",
            "localhost:x",
            "evil.example@localhost",
            "2130706433",
        ] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
        assert!(!Question { target: "/".into(), host: None }.is_for_this_machine());
    }

    #[test]
    fn heads_are_read_strictly() {
        let asked = |head: &str| match read_head(head.as_bytes()) {
            Head::Ask { question, body } => format!("{} {:?} {body}", question.target, question.host),
            Head::Other => "other".into(),
            Head::None => "none".into(),
        };
        assert_eq!(asked("GET / HTTP/1.1\r\nHOST:  localhost "), "/ Some(\"localhost\") true");
        assert_eq!(asked("HEAD /x HTTP/1.0"), "/x None false");
        for (head, what) in [
            ("POST / HTTP/1.1\r\nHost: localhost", "other"),
            ("DELETE / HTTP/1.1", "other"),
            ("GET / HTTP/2", "none"),
            ("GET  / HTTP/1.1", "none"),
            ("GET /", "none"),
            ("", "none"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\nhost: evil.example", "none"),
        ] {
            assert_eq!(asked(head), what, "{head}");
        }
        assert!(matches!(read_head(b"GET /\xff HTTP/1.1"), Head::None));
    }

    #[test]
    fn the_silent_hold_nobody_up_and_are_let_go() {
        let port = Port::bind("metrics", "127.0.0.1:0").unwrap();
        let address = port.address().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| answer(&port, &over, &|asked| Answer::text("200 OK", asked.target.clone())));
            let connect = || TcpStream::connect(address).unwrap();
            let silent: Vec<TcpStream> = (0..400).map(|_| connect()).collect();
            let ask = |question: &[u8]| {
                let mut stream = connect();
                stream.write_all(question).unwrap();
                let mut said = String::new();
                let _ = stream.read_to_string(&mut said);
                said
            };
            let start = Instant::now();
            assert!(ask(b"GET /a HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n/a"));
            assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
            assert!(ask(b"HEAD /a HTTP/1.1\r\n\r\n").ends_with(
                "Content-Length: 2\r\nCache-Control: no-store\r\n\
                X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
            ));
            let refused = ask(b"PUT /a HTTP/1.1\r\n\r\n");
            assert!(
                refused.starts_with("HTTP/1.1 405 ") && refused.contains("Allow: GET, HEAD\r\n"),
                "{refused}"
            );
            assert!(ask(&vec![b'a'; LONGEST_QUESTION + 1]).is_empty());
            // One that drips has the same time as one that says nothing.
            let (mut dripping, start) = (connect(), Instant::now());
            while dripping.write_all(b"G").is_ok() && start.elapsed() < 3 * ASKING {
                std::thread::sleep(ASKING / 20);
            }
            assert!(start.elapsed() < 2 * ASKING, "{:?}", start.elapsed());
            for mut stream in silent {
                stream.set_read_timeout(Some(2 * ASKING)).unwrap();
                assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            }
            over.store(true, Ordering::SeqCst);
        });
    }
}
