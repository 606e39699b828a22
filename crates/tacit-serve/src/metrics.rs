//! Figures of a running service for Prometheus, and whether it is well, over HTTP on this machine alone.
//!
//! `GET /metrics` and `GET /healthz`, one answer a connection, nothing else: no figure names a peer, a run or
//! a job.

use crate::log::Event;
use crate::slots::Slots;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tacit::{Error, Result};

/// Time for one question and its answer.
const ASKING: Duration = Duration::from_secs(2);
/// Longest head of a question.
const LONGEST_QUESTION: usize = 8 << 10;
/// Pause between two looks for a question.
const PAUSE: Duration = Duration::from_millis(50);

/// What is counted.
#[derive(Default)]
pub struct Metrics {
    counts: Mutex<Counts>,
    /// Whether the service takes nothing new any more.
    pub draining: AtomicBool,
}

#[derive(Default)]
struct Counts {
    events: BTreeMap<&'static str, u64>,
    refusals: BTreeMap<&'static str, u64>,
}

/// Where questions come in.
pub struct Port(TcpListener);

impl Port {
    /// Listens at `address`.
    ///
    /// Errors: an address beyond this machine, or one that cannot be listened at.
    pub fn bind(address: &str) -> Result<Self> {
        let refuse = |what: String| Error::Parameter { name: "metrics", what };
        let parsed: std::net::SocketAddr = address.parse().map_err(|_| {
            refuse("give an address of this machine and a port, such as 127.0.0.1:9700".into())
        })?;
        if !parsed.ip().to_canonical().is_loopback() {
            return Err(refuse(format!("{parsed} can be reached from elsewhere; give 127.0.0.1 or [::1]")));
        }
        let socket =
            TcpListener::bind(parsed).map_err(|e| refuse(format!("{parsed}: {e}; choose another port")))?;
        socket.set_nonblocking(true).map_err(|e| Error::Other(format!("{parsed}: {e}")))?;
        Ok(Port(socket))
    }
}

impl Metrics {
    /// Counts an event.
    pub fn count(&self, event: &Event) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.events.entry(event.what).or_default() += 1;
        if let Some(rule) = event.rule {
            *counts.refusals.entry(rule).or_default() += 1;
        }
    }

    /// All figures, in the text format of Prometheus.
    fn text(&self, slots: &Slots) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        let head =
            |name: &str, kind: &str, help: &str| format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        out += &head("tacit_events_total", "counter", "Lines of the log, by what they tell.");
        for (what, count) in &counts.events {
            out += &format!("tacit_events_total{{event=\"{what}\"}} {count}\n");
        }
        out += &head("tacit_refusals_total", "counter", "Requests that were refused, by rule.");
        for (rule, count) in &counts.refusals {
            out += &format!("tacit_refusals_total{{rule=\"{rule}\"}} {count}\n");
        }
        out += &head("tacit_requests", "gauge", "Requests that are being served.");
        out += &format!("tacit_requests {}\n", slots.visits());
        out += &head("tacit_draining", "gauge", "1 if nothing new is taken any more.");
        out += &format!("tacit_draining {}\n", u8::from(self.draining.load(Ordering::SeqCst)));
        out
    }

    /// Answers at `port`, on the calling thread, until `over`.
    pub fn answer(&self, port: &Port, slots: &Slots, over: &Arc<AtomicBool>) {
        while !over.load(Ordering::SeqCst) {
            match port.0.accept() {
                // Who asks badly or slowly gets no answer.
                Ok((stream, _)) => _ = self.one(stream, slots),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn one(&self, mut stream: TcpStream, slots: &Slots) -> std::io::Result<()> {
        let deadline = Instant::now() + ASKING;
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(ASKING))?;
        let mut asked = Vec::new();
        while !asked.windows(4).any(|four| four == b"\r\n\r\n") {
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
        }
        let line = asked.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let (code, body) = match line {
            b"GET /metrics HTTP/1.0" | b"GET /metrics HTTP/1.1" => ("200 OK", self.text(slots)),
            b"GET /healthz HTTP/1.0" | b"GET /healthz HTTP/1.1" => match self.draining.load(Ordering::SeqCst)
            {
                false => ("200 OK", "ok\n".to_owned()),
                true => ("503 Service Unavailable", "draining\n".to_owned()),
            },
            _ => ("404 Not Found", "there are /metrics and /healthz\n".to_owned()),
        };
        let head = format!(
            "HTTP/1.0 {code}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_can_ask() {
        for beyond in ["0.0.0.0:0", "[::]:0", "192.0.2.1:1", "localhost:1", "1"] {
            assert!(Port::bind(beyond).is_err(), "{beyond}");
        }
        assert!(Port::bind("127.0.0.1:0").is_ok());
    }

    #[test]
    fn questions_get_their_answers_and_bad_ones_none_for_long() {
        let port = Port::bind("127.0.0.1:0").unwrap();
        let address = port.0.local_addr().unwrap();
        let (metrics, slots, over) = (Metrics::default(), Slots::default(), Arc::new(AtomicBool::new(false)));
        let mut refused = Event::new("refused", "");
        refused.rule = Some("hours");
        metrics.count(&refused);
        metrics.count(&Event::new("done", ""));
        let ask = |question: &[u8]| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(question).unwrap();
            let mut said = String::new();
            let _ = stream.read_to_string(&mut said);
            said
        };
        std::thread::scope(|scope| {
            scope.spawn(|| metrics.answer(&port, &slots, &over));
            let _visit = slots.visit(9);
            // One that says nothing holds the others up for two seconds at most.
            let silent = TcpStream::connect(address).unwrap();
            let start = Instant::now();
            let said = ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
            assert!(start.elapsed() < 3 * ASKING, "{:?}", start.elapsed());
            drop(silent);
            assert!(said.starts_with("HTTP/1.0 200 OK"), "{said}");
            for line in [
                "tacit_events_total{event=\"done\"} 1",
                "tacit_refusals_total{rule=\"hours\"} 1",
                "tacit_requests 1",
                "tacit_draining 0",
            ] {
                assert!(said.lines().any(|found| found == line), "{line}: {said}");
            }
            assert!(ask(b"GET /healthz HTTP/1.0\r\n\r\n").ends_with("ok\n"));
            metrics.draining.store(true, Ordering::SeqCst);
            assert!(ask(b"GET /healthz HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 503"));
            assert!(ask(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.0 404"));
            assert!(ask(&vec![b'a'; LONGEST_QUESTION + 1]).is_empty());
            over.store(true, Ordering::SeqCst);
        });
    }
}
