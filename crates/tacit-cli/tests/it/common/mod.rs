//! What the tests of the command share: two real processes, their files, and a proxy that does harm.
#![allow(dead_code)]

pub(crate) mod town;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No run of a test may take longer; the command's own deadlines are far below.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// What a process said.
#[derive(Debug)]
pub(crate) struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The one line of the error; fails the test if there is none or more than one, or a sign of a panic.
    pub(crate) fn error_line(&self) -> &str {
        // In words, or as an object with `--json`.
        let is_error = |line: &&str| line.starts_with("error: ") || line.starts_with("{\"error\":");
        let lines: Vec<&str> = self.err.lines().filter(is_error).collect();
        assert_eq!(lines.len(), 1, "one line of error wanted: {self:?}");
        let after = self.err.lines().skip_while(|line| !is_error(line)).count();
        assert_eq!(after, 1, "nothing may follow the error: {self:?}");
        assert!(!self.err.contains("panicked") && !self.err.contains("internal error"), "a panic: {self:?}");
        lines[0]
    }

    /// Asserts success and returns what it printed for programs.
    pub(crate) fn object(&self) -> serde_json::Value {
        serde_json::from_str(self.success().trim()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts success and returns standard output.
    pub(crate) fn success(&self) -> &str {
        assert_eq!(self.code, 0, "{self:?}");
        &self.out
    }

    /// Asserts the exit code and that the one error line contains each of `words`.
    pub(crate) fn fails_with(&self, code: i32, words: &[&str]) {
        let line = self.error_line();
        assert_eq!(self.code, code, "{self:?}");
        for word in words {
            assert!(line.contains(word), "`{word}` is missing in: {line}");
        }
    }
}

/// Whether TACIT_UNDER_TEST names the command.
pub(crate) fn is_other_build() -> bool {
    std::env::var_os("TACIT_UNDER_TEST").is_some()
}

/// The command that is tested: the one built with the tests, or another build that TACIT_UNDER_TEST names, such as
/// `wine64 tacit.exe`.
pub(crate) fn tacit() -> Command {
    let Ok(other) = std::env::var("TACIT_UNDER_TEST") else {
        return Command::new(env!("CARGO_BIN_EXE_tacit"));
    };
    let mut words = other.split_whitespace();
    let mut command = Command::new(words.next().expect("TACIT_UNDER_TEST names a command"));
    command.args(words);
    command
}

/// A folder with both parties' keys, and the command to run in it.
pub(crate) struct Bench {
    pub dir: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Bench { dir }
    }

    pub(crate) fn with_keys() -> Self {
        let bench = Self::new();
        for name in ["alice.key", "bob.key"] {
            bench.run(&["keygen", "--out", name]).success();
        }
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = tacit();
        command.current_dir(self.dir.path()).args(args).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        wait(self.spawn(args))
    }

    /// Both sides of `tacit psi` for programs, with `a.csv` and `b.csv`; the first listens.
    pub(crate) fn psi(&self, ours: &[&str], theirs: &[&str]) -> (Said, Said) {
        let address = format!("127.0.0.1:{}", free_port());
        let a = ["--json", "psi", "--listen", &address, "--input", "a.csv", "--insecure-plaintext"];
        let b = ["--json", "psi", "--connect", &address, "--input", "b.csv", "--insecure-plaintext"];
        self.run_both(&[&a, ours].concat(), &[&b, theirs].concat())
    }

    /// Runs both parties, the listener first.
    pub(crate) fn run_both(&self, listener: &[&str], connector: &[&str]) -> (Said, Said) {
        let first = self.spawn(listener);
        let second = self.spawn(connector);
        let first = thread::spawn(move || wait(first));
        let second = wait(second);
        (first.join().unwrap(), second)
    }

    /// Names of files that a run left beside its outputs.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.dir.path()).unwrap().map(|e| e.unwrap().file_name());
        names.map(|n| n.to_string_lossy().into_owned()).filter(|n| n.contains(".part")).collect()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }
}

/// Waits for the process, and kills it and fails the test past the limit.
pub(crate) fn wait(mut child: Child) -> Said {
    let (send, receive) = mpsc::channel();
    let mut out = child.stdout.take().unwrap();
    let mut err = child.stderr.take().unwrap();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = err.read_to_end(&mut bytes);
        bytes
    });
    let writer = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = out.read_to_end(&mut bytes);
        let _ = send.send(());
        bytes
    });
    let hung = receive.recv_timeout(LIMIT).is_err();
    if hung {
        let _ = child.kill();
    }
    let status = child.wait().unwrap();
    let output = Output { status, stdout: writer.join().unwrap(), stderr: reader.join().unwrap() };
    let said = Said::from(output);
    assert!(!hung, "hung past {LIMIT:?}: {said:?}");
    said
}

/// A port of the loopback address that was free just now.
pub(crate) fn free_port() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Below the ports that the system gives to others between this and the command's own bind, never one twice,
    // and far from those of test processes that run beside this one.
    loop {
        let start = (std::process::id() as u16).wrapping_mul(613);
        let step = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(start);
        let port = 12_000 + step % 20_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// What a proxy does to the bytes of one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Harm {
    None,
    /// Flips a bit of the byte at this offset.
    Flip(u64),
    /// Leaves out some bytes from this offset on.
    Drop(u64),
    /// Closes after this many bytes.
    Truncate(u64),
    /// Swaps two stretches of bytes at this offset.
    Reorder(u64),
    /// Passes nothing more after this many bytes, but keeps the connection.
    Stall(u64),
}

/// Forwards one connection to `to`, harming the bytes towards the listener if `upstream`, else those to the
/// connector.
///
/// Returns the port to connect to, and the bytes that passed in the harmed direction.
pub(crate) fn proxy(to: u16, harm: Harm, upstream: bool) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let passed = Arc::new(AtomicU64::new(0));
    let counter = passed.clone();
    thread::spawn(move || {
        while let Ok((near, _)) = listener.accept() {
            let Some(far) = connect(to) else { return };
            let (near2, far2) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let (up, down) = if upstream { (harm, Harm::None) } else { (Harm::None, harm) };
            let (up_count, down_count) =
                if upstream { (counter.clone(), Arc::default()) } else { (Arc::default(), counter.clone()) };
            thread::spawn(move || forward(near, far, up, &up_count));
            thread::spawn(move || forward(far2, near2, down, &down_count));
        }
    });
    (port, passed)
}

fn connect(port: u16) -> Option<TcpStream> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            return Some(stream);
        }
        thread::sleep(Duration::from_millis(20));
    }
    None
}

fn forward(mut from: TcpStream, mut to: TcpStream, harm: Harm, passed: &AtomicU64) {
    let mut position = 0u64;
    let mut buffer = [0u8; 4096];
    let close = |from: &TcpStream, to: &TcpStream| {
        let _ = from.shutdown(std::net::Shutdown::Both);
        let _ = to.shutdown(std::net::Shutdown::Both);
    };
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n) => n,
        };
        let mut bytes = buffer[..n].to_vec();
        let end = position + n as u64;
        let inside = |at: u64| (position..end).contains(&at).then(|| (at - position) as usize);
        match harm {
            Harm::Flip(at) => {
                if let Some(i) = inside(at) {
                    bytes[i] ^= 0x10;
                }
            }
            Harm::Drop(at) => {
                if let Some(i) = inside(at) {
                    bytes.drain(i..(i + 7).min(bytes.len()));
                }
            }
            Harm::Reorder(at) => {
                if let Some(i) = inside(at) {
                    let half = (bytes.len() - i) / 2;
                    bytes[i..].rotate_left(half);
                }
            }
            Harm::Truncate(at) => {
                if let Some(i) = inside(at) {
                    let _ = to.write_all(&bytes[..i]);
                    break;
                }
            }
            Harm::Stall(at) => {
                if end > at {
                    thread::sleep(LIMIT);
                    break;
                }
            }
            Harm::None => {}
        }
        position = end;
        passed.store(position, Ordering::Relaxed);
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    close(&from, &to);
}

/// The arrays of a `.npz` file as `name → (element bytes, shape, data)`, read by a reader of its own.
pub(crate) fn read_npz(path: &Path) -> std::collections::BTreeMap<String, (usize, Vec<usize>, Vec<u8>)> {
    let bytes = std::fs::read(path).unwrap();
    let u16_at = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()) as usize;
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let end = bytes.len() - 22;
    assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
    let mut at = u32_at(end + 16);
    let mut arrays = std::collections::BTreeMap::new();
    for _ in 0..u16_at(end + 10) {
        assert_eq!(&bytes[at..at + 4], b"PK\x01\x02");
        let (crc, size, local) = (u32_at(at + 16), u32_at(at + 24), u32_at(at + 42));
        let (name_len, extra_len) = (u16_at(at + 28), u16_at(at + 30));
        let name = String::from_utf8(bytes[at + 46..at + 46 + name_len].to_vec()).unwrap();
        at += 46 + name_len + extra_len;
        assert_eq!(&bytes[local..local + 4], b"PK\x03\x04");
        let start = local + 30 + u16_at(local + 26) + u16_at(local + 28);
        let entry = &bytes[start..start + size];
        assert_eq!(crc32fast::hash(entry) as usize, crc);
        let header = u16::from_le_bytes(entry[8..10].try_into().unwrap()) as usize;
        let dict = std::str::from_utf8(&entry[10..10 + header]).unwrap();
        let descr = dict.split("'descr': '").nth(1).unwrap().split('\'').next().unwrap();
        let width = descr.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        let shape = dict.split("'shape': (").nth(1).unwrap().split(')').next().unwrap();
        let shape = shape.split(',').filter_map(|n| n.trim().parse().ok()).collect();
        arrays
            .insert(name.trim_end_matches(".npy").to_owned(), (width, shape, entry[10 + header..].to_vec()));
    }
    arrays
}

/// What a process ever held, as the system tells until it ends, with a release's code in place of its own: a
/// command that is built for tests maps two to three times as much, and more with every library it gains.
#[cfg(target_os = "linux")]
pub(crate) fn peak_kibibytes(id: u32) -> u64 {
    const RELEASE: u64 = 11 << 10;
    let mut peak = 0;
    while let Ok(status) = std::fs::read_to_string(format!("/proc/{id}/status")) {
        let field = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let (Some(held), Some(code)) = (field("VmHWM:"), field("RssFile:")) else { break };
        peak = held - code.saturating_sub(RELEASE);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    peak
}
