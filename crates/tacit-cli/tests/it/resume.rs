//! `tacit psi --resume` between real processes whose connection is cut and that are killed at random moments.
#![cfg(unix)]

use crate::common::{self, Bench, Said, free_port, wait};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

const BUCKETS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);

/// Numbers that are another sequence each time.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn seed() -> u64 {
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    eprintln!("seed {seed}");
    seed
}

/// A way between the two that can be cut, and is there again for the next connection.
struct Way {
    port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    passed: Arc<AtomicU64>,
}

impl Way {
    fn to(far: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let passed: Arc<AtomicU64> = Arc::default();
        let (held, counter) = (streams.clone(), passed.clone());
        thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                // Nobody there: the caller's attempt ends, as it would without the way between.
                let Ok(far) = TcpStream::connect(("127.0.0.1", far)) else { continue };
                for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)]
                {
                    to.set_nodelay(true).unwrap();
                    held.lock().unwrap().push(from.try_clone().unwrap());
                    let counter = counter.clone();
                    thread::spawn(move || {
                        let mut buffer = [0; 1 << 14];
                        while let Ok(read @ 1..) = from.read(&mut buffer) {
                            if to.write_all(&buffer[..read]).is_err() {
                                break;
                            }
                            counter.fetch_add(read as u64, Ordering::Relaxed);
                        }
                        let _ = from.shutdown(Shutdown::Both);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Way { port, streams, passed }
    }

    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Alice listens and Bob calls, through the way between.
struct Pair {
    bench: Bench,
    way: Way,
    port: u16,
    more: Vec<&'static str>,
}

impl Pair {
    fn new(rows: u32, more: &[&'static str]) -> Self {
        let bench = Bench::with_keys();
        let table = |from: u32, to: u32| {
            // Every fifth key has a second row.
            let rows = (from..to).map(|i| format!("user{i},{i}\n").repeat(1 + usize::from(i % 5 == 0)));
            "id,x\n".to_owned() + &rows.collect::<String>()
        };
        bench.write("alice.csv", table(0, rows));
        bench.write("bob.csv", table(rows / 2, rows + rows / 2));
        let port = free_port();
        Pair { bench, way: Way::to(port), port, more: more.to_vec() }
    }

    fn words(&self, who: &str) -> Vec<String> {
        let (way, port, peer) = match who {
            "alice" => ("--listen", self.port, "bob"),
            _ => ("--connect", self.way.port, "alice"),
        };
        let words = format!(
            "--json psi {way} 127.0.0.1:{port} --identity {who}.key --peer {peer}.pub --input {who}.csv --key id \
             --result both --output {who}.out.csv --memory 256MiB --buckets {BUCKETS} --timeout 10 --connect-timeout 20"
        );
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn start(&self, who: &str) -> Child {
        let kept = format!("{who}.kept");
        let words = self.words(who);
        let words = words.iter().map(String::as_str).chain(["--resume", &kept]);
        self.bench.spawn(&words.chain(self.more.iter().copied()).collect::<Vec<_>>())
    }

    /// Buckets that are done on Alice's side; nothing if nothing is kept there.
    fn done(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.bench.path("alice.kept")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("bucket-") && !name.ends_with(".part")).collect()
    }

    /// Begins the run and kills both sides after some buckets.
    fn kill_both_within(&self) {
        let children = ["alice", "bob"].map(|who| self.start(who));
        let start = Instant::now();
        while self.done().len() < 5 {
            assert!(start.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(2));
        }
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Both results are the plain join, and nothing else is left.
    fn assert_joined(&self) {
        let keys = |name: &str| -> BTreeSet<String> {
            self.bench
                .read(name)
                .lines()
                .skip(1)
                .map(|line| line.split(',').next().unwrap().to_owned())
                .collect()
        };
        let (alice, bob) = (keys("alice.csv"), keys("bob.csv"));
        for who in ["alice", "bob"] {
            let all = self.bench.read(&format!("{who}.csv"));
            let (head, rows) = all.split_once('\n').unwrap();
            let common = rows.lines().filter(|line| {
                let key = line.split(',').next().unwrap();
                alice.contains(key) && bob.contains(key)
            });
            let plain: String = std::iter::once(head).chain(common).map(|line| format!("{line}\n")).collect();
            assert_eq!(self.bench.read(&format!("{who}.out.csv")), plain, "{who}");
        }
        let left: BTreeSet<String> = std::fs::read_dir(self.bench.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        let known =
            ["alice", "bob"].map(|who| ["csv", "key", "pub", "out.csv"].map(|end| format!("{who}.{end}")));
        assert_eq!(left, known.into_iter().flatten().collect());
    }
}

fn result(said: &Said) -> Value {
    serde_json::from_str(said.success()).unwrap()
}

/// One run with so many moments at which either process is killed or the connection cut. How many there were.
fn harmed(seed: u64, moments: u64, more: &[&'static str]) -> u64 {
    let pair = Pair::new(2000, more);
    let mut random = Random(seed);
    let mut children = ["alice", "bob"].map(|who| Some(pair.start(who)));
    let (mut seen, mut struck, mut was_early) = (BTreeSet::new(), 0, false);
    let running = |child: &mut Option<Child>| child.as_mut().unwrap().try_wait().unwrap().is_none();
    while struck < moments {
        // A bucket may be begun three times: now and then soon after the last time, else some buckets later.
        let early = !was_early && random.below(4) == 0;
        let start = Instant::now();
        while !early && children.iter_mut().all(running) && pair.done().difference(&seen).count() < 3 {
            assert!(start.elapsed() < PATIENCE, "no progress; seed {seed}");
            thread::sleep(Duration::from_millis(2));
        }
        thread::sleep(Duration::from_millis(random.below(if early { 150 } else { 40 })));
        // Whoever is at its end takes away what was kept, and is not begun again.
        let at_end = ["alice", "bob"].iter().any(|who| pair.bench.exists(&format!("{who}.out.csv")));
        if at_end || !children.iter_mut().all(running) {
            break;
        }
        seen = pair.done();
        let victim = random.below(3) as usize;
        match children.get_mut(victim) {
            Some(child) => {
                let mut child = child.take().unwrap();
                child.kill().unwrap();
                child.wait().unwrap();
                children[victim] = Some(pair.start(["alice", "bob"][victim]));
            }
            None => pair.way.cut(),
        }
        (struck, was_early) = (struck + 1, early);
    }
    let mut said = children.map(|child| wait(child.unwrap()));
    // Both may have been alone, each at another time.
    if said.iter().any(|said| said.code == 4) {
        let again = ["alice", "bob"].map(|who| pair.start(who));
        let again = again.map(|child| thread::spawn(move || wait(child)));
        for ((first, again), who) in said.iter_mut().zip(again).zip(["alice", "bob"]) {
            eprintln!("{who}: {first:?}");
            let again = again.join().unwrap();
            if first.code == 4 {
                *first = again;
            }
        }
    }
    for said in &said {
        assert_eq!(result(said)["own_keys"], 2000, "seed {seed}");
    }
    pair.assert_joined();
    struck
}

#[test]
fn killed_and_cut_at_random_moments_the_result_is_the_plain_join() {
    let moments = if cfg!(feature = "long-tests") { 200 } else { 20 };
    let (seed, mut struck, mut run) = (seed(), 0, 0);
    while struck < moments {
        let more: &[&str] = if run % 3 == 2 { &["--threads", "2"] } else { &[] };
        struck += harmed(seed.wrapping_add(run), 5, more);
        run += 1;
        assert!(run < moments, "too few moments were met: {struck} in {run} runs");
    }
}

/// What was changed, is missing or of something else is told in a line, and nothing is lost.
#[test]
fn a_run_that_cannot_go_on_says_why_and_keeps_what_there_is() {
    let pair = Pair::new(2000, &[]);
    pair.kill_both_within();
    let refuses = |words: &[&str]| wait(pair.start("alice")).fails_with(3, words);
    // Another input, another job, another release of the folder's files.
    let input = pair.bench.read("alice.csv");
    pair.bench.write("alice.csv", input.replace("user7,", "other7,"));
    refuses(&["alice.kept", "other keys"]);
    pair.bench.write("alice.csv", &input);
    let plan = std::fs::read(pair.bench.path("alice.kept/plan")).unwrap();
    pair.bench.write("alice.kept/plan", &plan[..plan.len() - 3]);
    refuses(&["alice.kept", "changed after they were written"]);
    pair.bench.write("alice.kept/plan", &plan);
    let words = pair.words("alice");
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--resume", "alice.kept"]).collect();
    let other: Vec<&str> = words.iter().map(|word| if *word == "both" { "me" } else { word }).collect();
    pair.bench.run(&other).fails_with(3, &["is another job"]);
    pair.bench.run(&["keygen", "--out", "carol.key"]).success();
    let other: Vec<&str> =
        words.iter().map(|word| if *word == "bob.pub" { "carol.pub" } else { word }).collect();
    pair.bench.run(&other).fails_with(3, &["with another peer"]);
    // One side with a folder, one without.
    let bob = pair.words("bob");
    let bob: Vec<&str> = bob.iter().map(String::as_str).collect();
    let (one, two) = pair.bench.run_both(&words, &bob);
    assert_eq!((one.code, two.code), (4, 4));
    assert!(one.err.contains("resume (yours given, peer's not given)"), "{one:?}");
    // The other side has lost what it kept.
    std::fs::rename(pair.bench.path("bob.kept"), pair.bench.path("elsewhere")).unwrap();
    let (one, two) = (pair.start("alice"), pair.start("bob"));
    wait(one).fails_with(4, &["the other side has no stored state of this run"]);
    assert_eq!(wait(two).code, 4);
    let _ = std::fs::remove_dir_all(pair.bench.path("bob.kept"));
    std::fs::rename(pair.bench.path("elsewhere"), pair.bench.path("bob.kept")).unwrap();
    // And with all as it was, it goes on.
    let (one, two) = (pair.start("alice"), pair.start("bob"));
    for said in [wait(one), wait(two)] {
        let done = result(&said);
        assert!(done["own_keys"] == 2000 && done["confirmed"] == true, "{done}");
    }
    for name in ["carol.key", "carol.pub"] {
        std::fs::remove_file(pair.bench.path(name)).unwrap();
    }
    pair.assert_joined();

    // What --resume cannot go with.
    let plain =
        ["psi", "--connect", "127.0.0.1:1", "--insecure-plaintext", "--key", "id", "--memory", "64MiB"];
    let with = |more: &[&str]| pair.bench.run(&[&plain[..], more].concat());
    with(&["--input", "alice.csv", "--resume", "k"]).fails_with(2, &["--resume", "--seal-key"]);
    let key = ["--input", "alice.csv", "--resume", "k", "--seal-key", "alice.key"];
    with(&key).fails_with(2, &["--resume", "without TLS"]);
    with(&["--input", "-", "--resume", "k"]).fails_with(2, &["--input", "read again"]);
}

/// By the operating system's figure; the same sets in memory take far more.
#[test]
#[cfg(target_os = "linux")]
fn what_memory_says_is_kept_to() {
    let bench = Bench::new();
    let table = |from: u32| {
        let rows = (from..from + 1_000_000).map(|i| format!("user{i}@example.com\n"));
        "mail\n".to_owned() + &rows.collect::<String>()
    };
    bench.write("alice.csv", table(0));
    bench.write("bob.csv", table(500_000));
    let peaks = |more: &str| {
        let port = free_port();
        let side = |who: &str, way: &str, result: &str| {
            let words = format!(
                "--json psi {way} 127.0.0.1:{port} --insecure-plaintext --input {who}.csv --key mail \
                 --result {result} {more}"
            );
            bench.spawn(&words.split_whitespace().collect::<Vec<_>>())
        };
        let sides = [side("alice", "--listen", "me"), side("bob", "--connect", "peer")];
        let watched = sides.map(|child| {
            let id = child.id();
            (thread::spawn(move || wait(child)), thread::spawn(move || common::peak_kibibytes(id)))
        });
        watched.map(|(said, peak)| {
            let said = result(&said.join().unwrap());
            assert!(said["matches"].is_null() || said["matches"] == 500_000, "{said}");
            peak.join().unwrap() >> 10
        })
    };
    // Of eight buckets. A command that is built for tests holds up to 5 MiB more than a release, beside its code.
    let (kept, plain) = (peaks("--memory 90MiB"), peaks(""));
    println!("{kept:?} MiB in 90, {plain:?} in memory");
    assert!(kept.iter().all(|mebibytes| (20..=90 + 5).contains(mebibytes)), "{kept:?}");
    assert!(plain.iter().all(|mebibytes| *mebibytes > 110), "{plain:?}");
}

/// A command for which modes of files hold: of the superuser, one without the right to pass over them.
fn bound(pair: &Pair, words: &[String]) -> Command {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let command = pair.bench.command(&words);
    if File::create(pair.bench.path("closed/probe")).is_err() {
        return command;
    }
    std::fs::remove_file(pair.bench.path("closed/probe")).unwrap();
    let mut lowered = Command::new("setpriv");
    lowered.args(["--bounding-set=-dac_override,-dac_read_search", "--"]).arg(command.get_program());
    lowered.args(command.get_args()).current_dir(pair.bench.dir.path()).stdin(Stdio::null());
    lowered.stdout(Stdio::piped()).stderr(Stdio::piped());
    lowered
}

/// Where nothing can be written, that is said in a line: before anybody is called where it can be known by
/// then, and what was kept stays.
#[test]
fn a_folder_that_takes_nothing_is_told_in_a_line_and_nothing_is_lost() {
    let pair = Pair::new(2000, &[]);
    let mode = |name: &str, mode: u32| {
        std::fs::set_permissions(pair.bench.path(name), Permissions::from_mode(mode)).unwrap();
    };
    std::fs::create_dir(pair.bench.path("closed")).unwrap();
    mode("closed", 0o500);
    pair.bench.write("file", "");
    // Nobody listens: what is told first is not the peer's absence.
    let with = |more: &str| {
        let more = more.split(' ').map(str::to_owned);
        wait(bound(&pair, &pair.words("bob").into_iter().chain(more).collect::<Vec<_>>()).spawn().unwrap())
    };
    for (more, folder, why) in [
        ("--spill closed", "closed", "ermission"),
        ("--spill file", "file", "Not a directory"),
        ("--spill /sys", "/sys", "no directory can be created in it"),
        ("--spill nowhere", "nowhere", "No such file"),
        ("--resume closed", "closed", "ermission"),
        ("--resume closed/kept", "closed/kept", "ermission"),
        ("--resume file", "file", "exists"),
        ("--resume /sys/kept", "/sys/kept", "cannot be made"),
    ] {
        with(more).fails_with(3, &[folder, why]);
    }
    let names = || {
        let entries = std::fs::read_dir(pair.bench.dir.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with('.') || name.contains("kept")).collect::<Vec<_>>()
    };
    assert_eq!(names(), [""; 0]);

    // A limit on files is a disk without room: one where the result fits, of 30 kB, and the keys do not, of
    // 96.
    let limited = |who: &str, blocks: u32| {
        let words = pair.words(who);
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_tacit")]).args(words).arg("--resume");
        shell.arg(format!("{who}.kept")).current_dir(pair.bench.dir.path()).stdin(Stdio::null());
        shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (full, other) = (limited("alice", 100), pair.start("bob"));
    wait(full).fails_with(3, &["cannot be written; free some space there or name another directory"]);
    assert_eq!(wait(other).code, 4);
    assert!(names().iter().all(|name| !name.starts_with('.')), "{:?}", names());

    // One that is kept is told too, if nothing can be made in it any more.
    mode("bob.kept", 0o500);
    with("--resume bob.kept").fails_with(3, &["bob.kept", "ermission"]);
    mode("bob.kept", 0o700);

    // With room it goes on.
    for said in ["alice", "bob"].map(|who| pair.start(who)).map(wait) {
        assert_eq!(result(&said)["own_keys"], 2000);
    }
    mode("closed", 0o700);
    std::fs::remove_dir(pair.bench.path("closed")).unwrap();
    std::fs::remove_file(pair.bench.path("file")).unwrap();
    pair.assert_joined();
}

/// Without a folder a connection that is lost is made again.
#[test]
fn a_connection_that_is_cut_is_made_again_without_a_folder() {
    let pair = Pair::new(2000, &[]);
    let children = ["alice", "bob"].map(|who| {
        let words = pair.words(who);
        pair.bench.spawn(&words.iter().skip(1).map(String::as_str).collect::<Vec<_>>())
    });
    let start = Instant::now();
    // Past the reading of both tables: 64 buckets take some twenty megabytes.
    while pair.way.passed.load(Ordering::Relaxed) < 5 << 20 {
        assert!(start.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(1));
    }
    pair.way.cut();
    for child in children {
        let said = wait(child);
        said.success();
        assert!(said.err.contains("waiting for the peer to reconnect"), "{said:?}");
        assert!(said.out.contains("the connection was lost; started over: "), "{said:?}");
    }
    pair.assert_joined();
}
