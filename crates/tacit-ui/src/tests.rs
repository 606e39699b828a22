//! A whole server, asked over a socket, whose commands are a script.

use crate::Ui;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Prints its arguments as a result, its progress and an error, as the command does; waits if it is told to.
const SCRIPT: &str = r#"#!/bin/sh
case "$*" in *stubborn*) trap '' TERM ;; *) trap 'exit 130' TERM ;; esac
echo '{"progress":{"share":0.5}}' >&2
echo "waiting for nobody" >&2
printf '{"words":"%s"}\n' "$(echo "$*" | tr '"' "'")"
case "$*" in
*slow*) sleep 60 >/dev/null 2>&1 & wait $! ;;
*stubborn*) sleep 60 >/dev/null 2>&1 & wait $! ;;
*wrong*) echo '{"error":{"code":3,"message":"no such file"}}' >&2; exit 3 ;;
esac
for word; do case "$word" in --output=*) printf 'a,b\n1,2\n' > "${word#--output=}" ;; esac; done
"#;

/// A page that is served while this lives.
struct Served {
    home: tempfile::TempDir,
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    address: String,
    token: String,
}

impl Served {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let command = home.path().join("tacit");
        std::fs::write(&command, SCRIPT).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&command, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Served::at(home)
    }

    fn at(home: tempfile::TempDir) -> Self {
        // Another test's command, between its fork and its start, holds the folder's lock for a moment.
        let end = Instant::now() + Duration::from_secs(20);
        let page = loop {
            match Ui::open("127.0.0.1:0", &home.path().join("ui"), home.path().join("tacit")) {
                Ok(page) => break page,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let link = page.link();
        let (address, token) = link.strip_prefix("http://").unwrap().split_once("/#").unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let thread = std::thread::spawn(move || page.serve(&until).unwrap());
        Served { home, over, thread: Some(thread), address: address.to_owned(), token: token.to_owned() }
    }

    /// Ends the page, and hands its folder over.
    fn end(mut self) -> tempfile::TempDir {
        self.over.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
        std::mem::replace(&mut self.home, tempfile::tempdir().unwrap())
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    /// The code and the body of a request with these header lines.
    fn with(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length =
            if method == "POST" { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
        let said = self.ask(&format!("{method} {target} HTTP/1.1\r\n{lines}{length}\r\n{body}"));
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    fn get(&self, target: &str) -> (u16, Value) {
        let headers = [("Host", &*self.address), ("X-Tacit-Token", &*self.token)];
        let (code, body) = self.with("GET", target, &headers, "");
        (code, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    fn post(&self, target: &str, value: &Value) -> (u16, Value) {
        let origin = format!("http://{}", self.address);
        let headers = [
            ("Host", &*self.address),
            ("X-Tacit-Token", &*self.token),
            ("Origin", &*origin),
            ("Content-Type", "application/json"),
        ];
        let (code, body) = self.with("POST", target, &headers, &value.to_string());
        (code, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    /// Starts a command, and waits until its state is as `wanted`.
    fn start(&self, form: &Value, wanted: &str) -> Value {
        let (code, said) = self.post("/api/start", form);
        assert_eq!(code, 200, "{said}");
        self.wait(said["id"].as_u64().unwrap(), |task| task["status"] == wanted)
    }

    fn wait(&self, id: u64, is_so: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let task = self.get(&format!("/api/task?id={id}")).1;
            if is_so(&task) {
                return task;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{task}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn run(file: &str) -> Value {
    json!({
        "kind": "run", "way": "connect", "address": "h:1", "partner": "shop", "file": file, "ask": "rows",
        "key": [{ "column": "a", "type": "email" }], "result": "me",
    })
}

#[test]
fn only_a_loopback_address_is_listened_at() {
    let home = tempfile::tempdir().unwrap();
    let open = |address: &str| Ui::open(address, &home.path().join("ui"), "tacit".into());
    for beyond in ["0.0.0.0:0", "[::]:0", "192.0.2.1:1", "localhost:1", "1", ""] {
        let Err(refused) = open(beyond) else { panic!("{beyond}") };
        assert!(refused.to_string().starts_with("listen: "), "{refused}");
    }
    assert!(!home.path().join("ui").exists(), "what is refused leaves nothing behind");
    let page = open("127.0.0.1:0").unwrap();
    let token = page.link().split_once('#').unwrap().1.to_owned();
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
}

#[test]
fn each_check_refuses_by_itself() {
    let page = Served::new();
    let (host, token, origin) = (&*page.address, &*page.token, &*format!("http://{}", page.address));
    let form = json!({ "kind": "check", "file": "/a" }).to_string();
    let right =
        [("Host", host), ("X-Tacit-Token", token), ("Origin", origin), ("Content-Type", "application/json")];
    assert_eq!(page.with("POST", "/api/start", &right, &form).0, 200);
    let changed = |name: &str, value: Option<&'static str>| {
        let lines = right.iter().filter(|(other, _)| *other != name).copied();
        lines
            .chain(value.map(|value| ("X", value)).map(|(_, value)| (leaked(name), value)))
            .collect::<Vec<_>>()
    };
    for (name, value, code) in [
        ("Host", Some("evil.example"), 421),
        ("Host", Some("127.0.0.1"), 421),
        ("Host", Some("localhost:1"), 421),
        ("X-Tacit-Token", None, 403),
        ("X-Tacit-Token", Some("0"), 403),
        ("X-Tacit-Token", Some("00000000000000000000000000000000"), 403),
        ("Origin", None, 403),
        ("Origin", Some("null"), 403),
        ("Origin", Some("http://evil.example"), 403),
        ("Sec-Fetch-Site", Some("same-site"), 403),
        ("Sec-Fetch-Site", Some("cross-site"), 403),
        ("Content-Type", Some("text/plain"), 415),
        ("Content-Type", None, 415),
    ] {
        let headers = changed(name, value);
        assert_eq!(page.with("POST", "/api/start", &headers, &form).0, code, "{name}: {value:?}");
    }
    // A second line of the same name counts for nothing.
    let twice = [&right[..], &[("X-Tacit-Token", token)]].concat();
    assert_eq!(page.with("POST", "/api/start", &twice, &form).0, 403);
    let twice = [&right[..], &[("Origin", "http://evil.example")]].concat();
    assert_eq!(page.with("POST", "/api/start", &twice, &form).0, 403);
    assert_eq!(page.get("/api/state").1["tasks"].as_array().unwrap().len(), 1);
}

/// The few names that the test above changes.
fn leaked(name: &str) -> &'static str {
    let names = ["Host", "X-Tacit-Token", "Origin", "Sec-Fetch-Site", "Content-Type"];
    names.into_iter().find(|other| *other == name).unwrap()
}

#[test]
fn every_route_that_is_not_an_asset_wants_the_token() {
    let page = Served::new();
    let headers = [("Host", &*page.address)];
    for target in ["/api/state", "/api/task?id=1", "/api/preview?id=1&name=result.csv", "/api/none", "/x"] {
        assert_eq!(page.with("GET", target, &headers, "").0, 403, "{target}");
    }
    for target in ["/", "/main.js", "/words/en.json", "/page.css"] {
        assert_eq!(page.with("GET", target, &headers, "").0, 200, "{target}");
    }
    assert_eq!(page.with("DELETE", "/", &headers, "").0, 405);
    assert_eq!(page.with("POST", "/", &headers, "").0, 403);
}

#[test]
#[cfg(unix)]
fn a_command_is_followed_to_its_end() {
    let page = Served::new();
    let done = page.start(&run("/t/a.csv"), "done");
    let words = done["results"][0]["words"].as_str().unwrap();
    assert!(words.starts_with("--json --progress-objects psi --connect=h:1 "), "{words}");
    assert_eq!(done["command"].as_str().unwrap().split(' ').nth(2), Some("--connect=h:1"));
    assert_eq!((&done["progress"]["share"], &done["notes"]), (&json!(0.5), &json!(["waiting for nobody"])));
    assert_eq!(done["outputs"], json!([{ "name": "result.csv", "bytes": 8 }]));
    let id = done["id"].as_u64().unwrap();
    let shown = page.get(&format!("/api/preview?id={id}&name=result.csv")).1;
    assert_eq!(shown["rows"], json!([["1", "2"]]));
    let failed = page.start(&run("/t/wrong"), "failed");
    assert_eq!((&failed["code"], &failed["error"]["message"]), (&json!(3), &json!("no such file")));
    // The page of a later start knows them still.
    let home = page.end();
    let page = Served::at(home);
    let again = page.get(&format!("/api/task?id={id}")).1;
    for name in ["command", "status", "results", "outputs", "started", "ended", "about"] {
        assert_eq!(again[name], done[name], "{name}");
    }
    assert!(page.start(&run("/t/a.csv"), "done")["id"].as_u64().unwrap() > id + 1);
}

#[test]
#[cfg(unix)]
fn a_command_is_ended_as_by_ctrl_c_or_killed() {
    let page = Served::new();
    for (file, code) in [("/t/slow", json!(130)), ("/t/stubborn", Value::Null)] {
        let (_, said) = page.post("/api/start", &run(file));
        let id = said["id"].as_u64().unwrap();
        page.wait(id, |task| task["results"].as_array().is_some_and(|results| !results.is_empty()));
        assert_eq!(page.post("/api/cancel", &json!({ "id": id })).1, json!({ "cancelled": true }));
        let ended = page.wait(id, |task| task["status"] != "running");
        assert_eq!((&ended["status"], &ended["code"]), (&json!("cancelled"), &code), "{ended}");
        assert_eq!(page.post("/api/cancel", &json!({ "id": id })).1, json!({ "cancelled": false }));
    }
    // The end of the page ends what it started.
    let (_, said) = page.post("/api/start", &run("/t/slow"));
    page.wait(said["id"].as_u64().unwrap(), |task| task["notes"] != json!([]));
    let home = page.end();
    let page = Served::at(home);
    let last = page.get(&format!("/api/task?id={}", said["id"])).1;
    assert_eq!(last["status"], "cancelled", "{last}");
}

#[test]
#[cfg(unix)]
fn only_so_many_commands_run_at_the_same_time() {
    let page = Served::new();
    let form = json!({ "kind": "check", "file": "/t/slow" });
    let codes: Vec<u16> = (0..17).map(|_| page.post("/api/start", &form).0).collect();
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), 16);
    assert_eq!(codes.last(), Some(&400));
}

#[test]
#[cfg(unix)]
fn a_ticket_is_for_one_file_once() {
    let page = Served::new();
    let id = page.start(&run("/t/a.csv"), "done")["id"].clone();
    for name in ["run.json", "../../keys/tacit.key", "report.html", ""] {
        assert_eq!(page.post("/api/ticket", &json!({ "id": id, "name": name })).0, 404, "{name}");
    }
    let link = page.post("/api/ticket", &json!({ "id": id, "name": "result.csv" })).1["link"].clone();
    let link = link.as_str().unwrap();
    let host = [("Host", &*page.address)];
    let other = [("Host", &*page.address), ("Sec-Fetch-Site", "same-site")];
    assert_eq!(page.with("GET", link, &other, "").0, 403, "a link from another page");
    assert_eq!(page.with("GET", link, &host, ""), (200, "a,b\n1,2\n".to_owned()));
    assert_eq!(page.with("GET", link, &host, "").0, 404);
}

#[test]
fn a_dropped_file_goes_into_the_folder_and_nowhere_else() {
    let page = Served::new();
    let origin = format!("http://{}", page.address);
    let headers = |kind| {
        [
            ("Host", &*page.address),
            ("X-Tacit-Token", &*page.token),
            ("Origin", &*origin),
            ("Content-Type", kind),
        ]
    };
    let target = "/api/upload?name=..%2F..%2Fevil.csv";
    assert_eq!(page.with("POST", target, &headers("text/csv"), "a\n").0, 415);
    let (code, said) = page.with("POST", target, &headers("application/octet-stream"), "mail\na@b.c\n");
    let said: Value = serde_json::from_str(&said).unwrap();
    let file = Path::new(said["file"].as_str().unwrap());
    assert_eq!((code, &said["bytes"]), (200, &json!(11)));
    assert!(file.ends_with("ui/files/evil.csv") && std::fs::read(file).unwrap() == b"mail\na@b.c\n");
    assert!(!page.home.path().join("evil.csv").exists());
    // One that breaks off leaves nothing.
    let mut stream = TcpStream::connect(&page.address).unwrap();
    let head: String =
        headers("application/octet-stream").map(|(name, value)| format!("{name}: {value}\r\n")).concat();
    let head = format!("POST /api/upload?name=b.csv HTTP/1.1\r\n{head}Content-Length: 1000\r\n\r\nhalf");
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 409 "), "{said}");
    assert!(!page.home.path().join("ui/files/b.csv").exists());
}
