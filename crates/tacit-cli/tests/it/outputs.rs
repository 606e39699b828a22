//! Every option that names an output against every kind of target: nothing that matters is replaced, and all
//! that can be known is said before the peer is called.
#![cfg(unix)]

use crate::common::{self, Bench, Said, free_port, read_npz, wait};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const TABLE: &str = "email,note\nann@example.com,1\nbob@example.com,2\n";

/// One option that names an output: the command line with OUT in its place, the files that the command reads,
/// and whether what is written may never replace anything.
struct Case {
    option: &'static str,
    words: &'static str,
    inputs: &'static [&'static str],
    secret: bool,
}

const PEER: &str = "--connect PEER --identity alice.key --peer bob.pub --connect-timeout 1";

const CASES: &[Case] = &[
    Case { option: "--out", words: "keygen --out OUT", inputs: &[], secret: true },
    Case {
        option: "--output",
        words: "psi WITH --input in.csv --key email --output OUT",
        inputs: &["in.csv", "alice.key", "bob.pub"],
        secret: false,
    },
    Case {
        option: "--out",
        words: "ot WITH --role sender --count 5 --out OUT",
        inputs: &["alice.key", "bob.pub"],
        secret: false,
    },
    Case {
        option: "--out",
        words: "ot WITH --role sender --count 5 --pool file1 --pool-key file2 --out OUT",
        inputs: &["file1", "file2"],
        secret: false,
    },
    Case {
        option: "--out",
        words: "ot WITH --role sender --count 5 --seed file1 --out OUT",
        inputs: &["file1"],
        secret: false,
    },
    Case {
        option: "--file",
        words: "ot pool make WITH --role sender --count 5 --pool-key file2 --file OUT",
        inputs: &["alice.key", "bob.pub", "file2"],
        secret: true,
    },
    Case {
        option: "--sender",
        words: "ot deal --count 5 --sender OUT --receiver new2",
        inputs: &[],
        secret: true,
    },
    Case {
        option: "--receiver",
        words: "ot deal --count 5 --sender new2 --receiver OUT",
        inputs: &[],
        secret: true,
    },
    Case { option: "--out", words: "ot expand --seed file1 --out OUT", inputs: &["file1"], secret: false },
    Case { option: "--out", words: "nisc keygen --count 5 --out OUT", inputs: &[], secret: true },
    Case {
        option: "--key",
        words: "nisc answer --public file1 --key OUT --out new2",
        inputs: &["file1"],
        secret: true,
    },
    Case {
        option: "--out",
        words: "nisc answer --public file1 --key new2 --out OUT",
        inputs: &["file1"],
        secret: false,
    },
    Case {
        option: "--out",
        words: "nisc expand --key file1 --answer file2 --out OUT",
        inputs: &["file1", "file2"],
        secret: false,
    },
    Case {
        option: "--out",
        words: "nisc ask --key file1 --choices file2 --out OUT",
        inputs: &["file1", "file2"],
        secret: false,
    },
    Case {
        option: "--out",
        words: "nisc reply --key file1 --public file2 --question file3 --messages file4 --out OUT",
        inputs: &["file1", "file2", "file3", "file4"],
        secret: false,
    },
    Case {
        option: "--out",
        words: "nisc open --key file1 --choices file2 --answer file3 --question file4 --reply file5 --out OUT",
        inputs: &["file1", "file2", "file3", "file4", "file5"],
        secret: false,
    },
    Case {
        option: "--output",
        words: "eval file1 WITH --role garbler --batch --input in.csv --output OUT",
        inputs: &["file1", "in.csv", "alice.key", "bob.pub"],
        secret: false,
    },
    Case {
        option: "--offline",
        words: "eval add8 WITH --role garbler --pool-key file2 --offline OUT",
        inputs: &["alice.key", "bob.pub", "file2"],
        secret: true,
    },
    Case {
        option: "--file",
        words: "eval pool make WITH --role garbler --gates 5 --pool-key file2 --file OUT",
        inputs: &["alice.key", "bob.pub", "file2"],
        secret: true,
    },
    Case {
        option: "--output",
        words: "eval add8 WITH --role garbler --batch --input in.csv --columns note --pool file1 --pool-key file2 \
                --output OUT",
        inputs: &["file1", "file2", "in.csv", "alice.key", "bob.pub"],
        secret: false,
    },
    Case {
        option: "--output",
        words: "bench report file1 file2 --output OUT",
        inputs: &["file1", "file2"],
        secret: false,
    },
    Case {
        option: "--output",
        words: "audit export file1 --peer bob.pub --output OUT",
        inputs: &["file1", "bob.pub"],
        secret: false,
    },
];

/// A folder with every file that the cases name, and with targets of every kind.
fn stage() -> Bench {
    let bench = Bench::with_keys();
    bench.run(&["keygen", "--out", "other.key"]).success();
    bench.write("in.csv", TABLE);
    bench.write("conf.toml", "quiet = false\n");
    for i in 1..=5 {
        bench.write(&format!("file{i}"), format!("file {i}, which nothing may touch\n"));
    }
    bench.write("old", "what stood here before\n");
    bench.write("pool", b"TACITPOL and more");
    bench.write("state", b"TACITST1 and more");
    bench.write("gates", b"TACITAP1 and more");
    bench.write("seed", b"tacitdeal and more");
    bench.write("nisc", b"tacitnisc\x01\x04 and more");
    bench.write("marked", "\u{feff}tacit-pair-salt 1\n");
    bench.write("key.pem", "some text\n-----BEGIN PRIVATE KEY-----\nAAAA\n");
    symlink("old", bench.path("link")).unwrap();
    symlink("nowhere", bench.path("dangling")).unwrap();
    symlink("circle", bench.path("circle")).unwrap();
    fs::create_dir(bench.path("folder")).unwrap();
    symlink("folder", bench.path("folder link")).unwrap();
    let fifo = Command::new("mkfifo").arg(bench.path("fifo")).status().unwrap();
    assert!(fifo.success());
    bench
}

/// Everything in the folder: of files the content, of links where they lead, of all the inode.
fn snapshot(folder: &Path) -> BTreeMap<String, (u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let metadata = entry.path().symlink_metadata().unwrap();
        let content = if metadata.is_file() {
            fs::read(entry.path()).unwrap()
        } else if metadata.is_symlink() {
            fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes()
        } else {
            Vec::new()
        };
        found.insert(entry.file_name().to_string_lossy().into_owned(), (metadata.ino(), content));
    }
    found
}

fn words(case: &Case, peer: &str, out: &str, more: &[&str]) -> Vec<String> {
    let words = case.words.replace("WITH", PEER);
    let words = words.split_whitespace().map(|word| match word {
        "OUT" => out.to_owned(),
        "PEER" => peer.to_owned(),
        _ => word.to_owned(),
    });
    words.chain(more.iter().map(|word| word.to_string())).collect()
}

fn run(bench: &Bench, words: &[String]) -> Said {
    bench.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs `each` for every case, several at a time, in a folder of its own.
fn for_each_case(each: impl Fn(&Bench, &Case, &str) + Sync) {
    // A peer that would notice a call.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let peer = listener.local_addr().unwrap().to_string();
    let next = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let bench = stage();
                while let Some(case) = CASES.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    each(&bench, case, &peer);
                }
            });
        }
    });
    assert!(listener.accept().is_err(), "the peer was called");
}

/// Asserts that the command line is refused in one line with all of `said`, and that nothing changed.
fn refused(bench: &Bench, words: &[String], said: &[&str]) {
    let before = snapshot(bench.dir.path());
    let what = run(bench, words);
    assert_eq!(what.code, 3, "{words:?}: {what:?}");
    what.fails_with(3, said);
    assert!(what.out.is_empty(), "{words:?}: {what:?}");
    assert_eq!(snapshot(bench.dir.path()), before, "{words:?}: {what:?}");
}

#[test]
fn an_output_is_never_a_file_that_the_call_needs() {
    for_each_case(|bench, case, peer| {
        for input in case.inputs.iter().chain(&["conf.toml"]) {
            let hard = format!("hard {input}");
            let soft = format!("soft {input}");
            let _ = fs::hard_link(bench.path(input), bench.path(&hard));
            let _ = symlink(input, bench.path(&soft));
            for out in [*input, &hard, &soft, &format!("./folder/../{input}")] {
                let words = words(case, peer, out, &["--config", "conf.toml", "--overwrite"]);
                refused(bench, &words, &[out, case.option, "name the same file"]);
            }
        }
    });
}

#[test]
fn an_output_never_replaces_what_stands_there_unasked_nor_a_secret_at_all() {
    for_each_case(|bench, case, peer| {
        for out in ["old", "link", "other.key", "other.pub"] {
            refused(bench, &words(case, peer, out, &[]), &[out, "exists already and is not overwritten"]);
        }
        for out in ["other.key", "pool", "state", "gates", "seed", "nisc", "marked", "key.pem"] {
            refused(bench, &words(case, peer, out, &["--overwrite"]), &[out, "overwritten"]);
        }
        if case.secret {
            for out in ["old", "link"] {
                let said = [out, "exists already and is not overwritten"];
                refused(bench, &words(case, peer, out, &["--overwrite"]), &said);
            }
        }
    });
}

#[test]
fn an_output_that_has_no_place_is_found_before_the_run() {
    for_each_case(|bench, case, peer| {
        for overwrite in [&[][..], &["--overwrite"]] {
            let not = |out: &str, why: &str| {
                refused(bench, &words(case, peer, out, overwrite), &[out, "cannot be written", why]);
            };
            not("folder", "is a directory");
            not("folder link", "is a directory");
            not(".", "is a directory");
            not("no-such-folder/out", "does not exist");
            not("old/out", "directory");
            not("dangling", "broken symbolic link");
            not("circle", "links");
            // Where even the superuser makes no file.
            not("/proc/out.file", "");
        }
        if case.secret {
            for out in ["/dev/stdout", "/dev/full", "-", "fifo", "/dev/null", "/dev/stderr"] {
                refused(bench, &words(case, peer, out, &["--overwrite"]), &[out, "must be a regular file"]);
            }
        }
    });
    assert!(
        fs::symlink_metadata("/dev/stdout")
            .is_ok_and(|found| found.is_symlink() || found.file_type().is_char_device())
    );
    assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
}

/// A folder without write permission, for those whom permissions bind.
#[test]
fn a_folder_that_takes_no_file_is_found_before_the_run() {
    let bench = stage();
    fs::set_permissions(bench.path("folder"), fs::Permissions::from_mode(0o555)).unwrap();
    if File::create(bench.path("folder/probe")).is_ok() {
        // The superuser: the same shows where no file can be made at all.
        let words = words(&CASES[1], "127.0.0.1:1", "/sys/out.csv", &[]);
        refused(&bench, &words, &["/sys/out.csv", "cannot be written"]);
    } else {
        refused(&bench, &words(&CASES[1], "127.0.0.1:1", "folder/out", &[]), &["folder/out", "ermission"]);
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_found_before_the_run() {
    let bench = stage();
    for case in CASES.iter().filter(|case| case.option == "--output" && case.words.contains("psi")) {
        refused(&bench, &words(case, "127.0.0.1:1", "fifo", &[]), &["fifo", "no reader"]);
    }
}

#[test]
fn two_outputs_of_one_call_are_two_files() {
    let bench = stage();
    for words in [
        "ot deal --count 5 --sender new --receiver new",
        "ot deal --count 5 --sender new --receiver ./folder/../new",
        "nisc answer --public file1 --key new --out new",
    ] {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        run(&bench, &words).fails_with(2, &["new", "name the same file", "different"]);
        assert!(!bench.exists("new"));
    }
    bench.write("new.pub", "the public half's name is taken");
    for words in ["keygen --out new.key", "nisc keygen --count 5 --out new.key"] {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        refused(&bench, &words, &["new.pub", "exists already"]);
    }
}

#[test]
fn plots_and_demos_destroy_nothing_either() {
    let bench = stage();
    let record = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/record")).unwrap();
    let record =
        record.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|e| e == "jsonl"));
    fs::copy(record.unwrap(), bench.path("r.jsonl")).unwrap();
    let report = |more: &[&str]| {
        bench.run(&[&["bench", "report", "r.jsonl", "--output", "r.html", "--svg", "folder"], more].concat())
    };
    report(&[]).success();
    let plots = snapshot(&bench.path("folder"));
    assert!(!plots.is_empty());
    report(&[]).fails_with(3, &["exists already"]);
    fs::remove_file(bench.path("r.html")).unwrap();
    report(&[]).fails_with(3, &["folder/", "exists already"]);
    assert_eq!(snapshot(&bench.path("folder")), plots);
    assert!(!bench.exists("r.html"), "nothing is written before all has a place");
    report(&["--overwrite"]).success();
    let plot = plots.keys().next().unwrap();
    fs::remove_file(bench.path("folder").join(plot)).unwrap();
    fs::hard_link(bench.path("r.jsonl"), bench.path("folder").join(plot)).unwrap();
    report(&["--overwrite"]).fails_with(3, &["--svg", "FILES", "name the same file"]);

    let demo = || bench.run(&["demo", "--rows", "20", "--dir", "folder"]);
    bench.write("folder/shop.key", "not a demo's");
    demo().fails_with(3, &["shop.key", "not replaced"]);
    assert_eq!(bench.read("folder/shop.key"), "not a demo's");
    fs::remove_file(bench.path("folder/shop.key")).unwrap();
    demo().success();
    demo().success();
}

/// Both sides of an intersection of `in.csv` with itself; `extra` of either side names the output.
fn psi(bench: &Bench, alice: &[&str], bob: &[&str]) -> [Command; 2] {
    let address = format!("127.0.0.1:{}", free_port());
    let side = |way: &str, key: &str, peer: &str, extra: &[&str]| {
        let common = ["psi", way, &address, "--identity", key, "--peer", peer, "--input", "in.csv"];
        bench.command(&[&common[..], &["--key", "email", "--result", "both"], extra].concat())
    };
    [side("--listen", "alice.key", "bob.pub", alice), side("--connect", "bob.key", "alice.pub", bob)]
}

fn both(sides: [Command; 2]) -> [Said; 2] {
    let running = sides.map(|mut side| side.spawn().unwrap()).map(|child| thread::spawn(move || wait(child)));
    running.map(|said| said.join().unwrap())
}

#[test]
fn what_may_be_replaced_is_and_links_stay() {
    let bench = stage();
    fs::hard_link(bench.path("old"), bench.path("old too")).unwrap();
    let said = both(psi(&bench, &["--output", "link", "--overwrite"], &["--output", "new"]));
    said.iter().for_each(|said| assert!(said.success().starts_with("2 matches"), "{said:?}"));
    assert_eq!(fs::read_link(bench.path("link")).unwrap(), Path::new("old"));
    for name in ["old", "new"] {
        assert_eq!(bench.read(name), TABLE);
        assert_eq!(fs::metadata(bench.path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(bench.read("old too"), "what stood here before\n", "another name of the old file keeps it");
    assert!(bench.leftovers().is_empty());
}

#[test]
fn streams_are_written_to_where_they_are() {
    let bench = stage();
    // Standard output, by two of its names: the summary goes to standard error.
    let [alice, bob] = both(psi(&bench, &["--output", "-"], &["--json", "--output", "/dev/stdout"]));
    assert_eq!(alice.success(), TABLE);
    assert!(alice.err.contains("2 matches"), "{alice:?}");
    assert_eq!(bob.success(), TABLE);
    assert!(bob.err.contains("\"matches\":2"), "{bob:?}");

    // A pipe with a reader, and standard output that is a file with something in it.
    let fifo = bench.path("fifo");
    let reader = thread::spawn(move || fs::read_to_string(fifo).unwrap());
    let [mut alice, mut bob] = psi(&bench, &["--output", "fifo"], &["--output", "/dev/fd/1"]);
    bob.stdout(OpenOptions::new().append(true).open(bench.path("old")).unwrap());
    let bob = thread::spawn(move || code(bob));
    thread::sleep(Duration::from_millis(200));
    let alice = wait(alice.spawn().unwrap());
    assert!(alice.success().starts_with("2 matches"), "{alice:?}");
    assert_eq!(bob.join().unwrap(), Some(0));
    assert_eq!(reader.join().unwrap(), TABLE);
    assert_eq!(bench.read("old"), format!("what stood here before\n{TABLE}"));
    assert!(fs::metadata(bench.path("fifo")).unwrap().file_type().is_fifo());

    // A device that is always full, and one that takes all.
    let [alice, bob] = both(psi(&bench, &["--output", "/dev/full"], &["--output", "/dev/null"]));
    alice.fails_with(3, &["/dev/full", "cannot be written"]);
    assert!(bob.success().starts_with("2 matches"));
    for device in ["/dev/full", "/dev/null"] {
        assert!(fs::metadata(device).unwrap().file_type().is_char_device(), "{device}");
    }
    assert!(bench.leftovers().is_empty());
}

/// The exit code of a command whose standard output goes elsewhere.
fn code(mut command: Command) -> Option<i32> {
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() && start.elapsed() < common::LIMIT {
        thread::sleep(Duration::from_millis(20));
    }
    // Nothing to kill after a regular end.
    let _ = child.kill();
    child.wait().unwrap().code()
}

/// An archive is written in no order, so a stream gets it at the end.
#[test]
fn an_archive_goes_through_a_pipe_whole() {
    let bench = stage();
    let address = format!("127.0.0.1:{}", free_port());
    let side = |way: &str, role: &str, more: &[&str]| {
        let mut words =
            vec!["ot", way, &address, "--insecure-plaintext", "--protocol", "kos", "--count", "777"];
        words.extend(["--role", role, "--out"]);
        bench.command(&[&words[..], more].concat())
    };
    let mut sender = side("--listen", "sender", &["-"]);
    sender.stdout(File::create(bench.path("s.npz")).unwrap());
    let receiver = side("--connect", "receiver", &["old", "--overwrite"]);
    let sender = thread::spawn(move || code(sender));
    let mut receiver = receiver;
    wait(receiver.spawn().unwrap()).success();
    assert_eq!(sender.join().unwrap(), Some(0));
    let (s, r) = (read_npz(&bench.path("s.npz")), read_npz(&bench.path("old")));
    assert_eq!((s["v"].1.as_slice(), r["w"].1.as_slice()), (&[777, 2][..], &[777, 2][..]));
    let delta = &s["delta"].2;
    for i in 0..777 {
        let at = 16 * i..16 * i + 16;
        let (v, w) = (&s["v"].2[at.clone()], &r["w"].2[at]);
        let chosen = r["u"].2[i] == 1;
        assert!((0..16).all(|b| w[b] == v[b] ^ if chosen { delta[b] } else { 0 }), "{i}");
    }
}

/// What a budget, a run, a succession or a peer's key is remembered in stays, whatever it is called.
#[test]
fn what_security_rests_on_is_not_replaced() {
    let bench = Bench::with_keys();
    for more in [&[][..], &["--identity", "alice.key"]] {
        let name = format!("n{}.key", more.len());
        bench.run(&[&["nisc", "keygen", "--count", "4", "--out", &name], more].concat()).success();
    }
    let hex = "0123456789abcdef".repeat(4);
    bench.write("ledger", format!("{hex} {{\"entry\":1}}\n"));
    bench.write("x.successions", format!("{hex} {hex} 2027-01-01\n"));
    fs::create_dir(bench.path("records")).unwrap();
    let record = "{\"begun\":{},\"common\":{}}\n";
    bench.write("records/private.jsonl", "{\"input_salt\":\"00\"}\n");
    bench.write("records/records.jsonl", record);
    bench.write("exported.jsonl", record);
    let export = |to: &str| bench.run(&["circuit", "export", "add8", "--overwrite", "--output", to]);
    for (file, what) in [
        ("alice.pub", "a public key"),
        ("n0.pub", "a key of tacit nisc"),
        ("n2.pub", "a key of tacit nisc"),
        ("ledger", "a service's ledger"),
        ("x.successions", "a memory of which key follows which"),
        ("records/private.jsonl", "the private part of records"),
        ("records/records.jsonl", "a chain of records"),
    ] {
        let before = fs::read(bench.path(file)).unwrap();
        export(file).fails_with(3, &[file, what, "never overwritten"]);
        assert_eq!(fs::read(bench.path(file)).unwrap(), before);
    }
    export("exported.jsonl").success();
    export("exported.jsonl").success();
}

/// A reader that has gone costs no more than what it would have read: the error goes nowhere, and the exit code
/// is the run's own.
#[test]
fn a_standard_error_that_nobody_reads_ends_nothing() {
    let bench = stage();
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let code = |words: &[&str], out: Stdio, err: Stdio| {
        bench.command(words).stdout(out).stderr(err).status().unwrap().code()
    };
    for list in [&["eval", "--list"][..], &["--json", "eval", "--list"]] {
        assert_eq!(code(list, closed(), closed()), Some(1), "{list:?}");
        assert_eq!(code(list, Stdio::null(), closed()), Some(0), "{list:?}");
    }
    for wrong in [&["fingerprint", "none.key"][..], &["--json", "fingerprint", "none.key"]] {
        assert_eq!(code(wrong, Stdio::null(), closed()), Some(3), "{wrong:?}");
    }
    assert_eq!(code(&["nonsense"], Stdio::null(), closed()), Some(2));
    let said = |out: Stdio| {
        let output = bench.command(&["eval", "--list"]).stdout(out).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, words) = said(closed());
    assert_eq!(code, Some(1));
    assert!(
        words.contains("standard output: cannot be written") && words.contains("of the pipe gone?"),
        "{words}"
    );
    let (code, words) = said(Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap()));
    assert_eq!(code, Some(1));
    assert!(words.contains("free space") && !words.contains("pipe"), "{words}");
    // Both sides of a run with notes, whose results are there.
    let address = format!("127.0.0.1:{}", free_port());
    let side = |way: &str, own: &str, peer: &str, more: &[&str]| {
        let words =
            ["psi", way, &address, "--identity", own, "--peer", peer, "--input", "in.csv", "--key", "email"];
        bench.command(&[&words[..], more].concat()).stdout(Stdio::null()).stderr(closed()).spawn().unwrap()
    };
    let mut listener = side("--listen", "alice.key", "bob.pub", &["--result", "peer"]);
    let mut connector =
        side("--connect", "bob.key", "alice.pub", &["--result", "me", "--output", "both.csv"]);
    assert_eq!(connector.wait().unwrap().code(), Some(0));
    assert_eq!(listener.wait().unwrap().code(), Some(0));
    assert!(bench.exists("both.csv"));
}

#[test]
fn results_made_without_a_peer_follow_the_same_rules() {
    let bench = stage();
    bench.write("choices", "0101");
    bench.run(&["nisc", "keygen", "--count", "4", "--out", "n.key"]).success();
    bench.run(&["nisc", "answer", "--public", "n.pub", "--key", "a.key", "--out", "answer"]).success();
    bench
        .run(&["nisc", "answer", "--public", "n.pub", "--key", "b.key", "--out", "answer"])
        .fails_with(3, &["answer", "--overwrite"]);
    assert!(!bench.exists("b.key"), "no key without its answer");
    let expand = |more: &[&str]| {
        bench.run(&[&["nisc", "expand", "--key", "n.key", "--answer", "answer", "--out"], more].concat())
    };
    expand(&["old"]).fails_with(3, &["old", "--overwrite"]);
    expand(&["old", "--overwrite"]).success();
    assert_eq!(read_npz(&bench.path("old"))["u"].1, [4]);
    expand(&["a.key", "--overwrite"]).fails_with(3, &["a.key", "a key of tacit nisc", "never overwritten"]);
    bench.run(&["ot", "deal", "--count", "9", "--sender", "s.seed", "--receiver", "r.seed"]).success();
    for seed in ["s.seed", "r.seed", "n.key"] {
        let said = bench.run(&["ot", "expand", "--seed", "s.seed", "--out", seed, "--overwrite"]);
        said.fails_with(3, &[seed]);
    }
    // The seed has not served.
    bench.run(&["ot", "expand", "--seed", "s.seed", "--out", "s.npz"]).success();
}

#[test]
fn a_disk_without_room_is_found_before_the_run() {
    let bench = stage();
    let count = (1u64 << 40).to_string();
    let case = |words: &str| words.replace("COUNT", &count).split(' ').map(str::to_owned).collect::<Vec<_>>();
    let peer = "--connect 127.0.0.1:1 --connect-timeout 1 --identity alice.key --peer bob.pub";
    for words in [
        format!("ot {peer} --role sender --protocol iknp --security semi-honest --count COUNT --out share"),
        format!("ot {peer} --role receiver --count COUNT --kind rot --out share"),
        format!("ot pool make {peer} --role sender --count COUNT --file share"),
    ] {
        refused(&bench, &case(&words), &["share", "MiB", "free some space"]);
    }
    // A limit on files is a disk without room: of two files neither is there, and no part of one.
    let before = snapshot(bench.dir.path());
    for (blocks, words, why) in [
        (8, "ot deal --count 5 --sender s --receiver r", "cannot be written"),
        (0, "keygen --out new.key", "new.key"),
    ] {
        let tacit = env!("CARGO_BIN_EXE_tacit");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {tacit} {words}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(bench.dir.path()).stdin(Stdio::null());
        let said = wait(shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        said.fails_with(3, &[why]);
        assert_eq!(snapshot(bench.dir.path()), before, "{said:?}");
    }
}

/// Waits until `count` unfinished files stand in the folder; their names.
fn parts(bench: &Bench, count: usize) -> Vec<String> {
    let start = Instant::now();
    loop {
        let found = bench.leftovers();
        if found.len() == count {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{count} unfinished files wanted: {found:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_a_killed_run_left_goes_and_what_a_live_one_writes_stays() {
    let bench = stage();
    let start = |out: &str| {
        let [mut listener, _] = psi(&bench, &["--output", out], &[]);
        listener.spawn().unwrap()
    };
    let mut killed = start("one");
    let dead = parts(&bench, 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(bench.leftovers(), dead, "SIGKILL leaves time for nothing");
    let live = start("two");
    let begun = Instant::now();
    while bench.leftovers() == dead || bench.leftovers().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(10));
    }
    // Whether an output can be written is tried first, with a file that does not stay.
    let mut kept = parts(&bench, 1);
    loop {
        thread::sleep(Duration::from_secs(1));
        let later = parts(&bench, 1);
        if std::mem::replace(&mut kept, later.clone()) == later {
            break;
        }
    }
    assert_ne!(kept, dead);
    // Another run in the folder leaves the living one's file alone.
    bench.run(&["ot", "deal", "--count", "5", "--sender", "s", "--receiver", "r"]).success();
    assert_eq!(bench.leftovers(), kept);
    let interrupt = Command::new("kill").args(["-INT", &live.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    wait(live).fails_with(130, &["interrupted"]);
    assert!(bench.leftovers().is_empty());
}

#[test]
fn a_file_made_during_the_run_is_not_replaced() {
    let bench = stage();
    let [mut listener, mut connector] = psi(&bench, &["--output", "late"], &[]);
    let address = listener.get_args().nth(2).unwrap().to_str().unwrap().to_owned();
    let alice = listener.spawn().unwrap();
    // Once she listens, the file is begun, and not only tried.
    let start = Instant::now();
    while std::net::TcpStream::connect(&address).is_err() {
        assert!(start.elapsed() < Duration::from_secs(20), "nobody listens at {address}");
        thread::sleep(Duration::from_millis(10));
    }
    parts(&bench, 1);
    bench.write("late", "somebody else's");
    let bob = connector.spawn().unwrap();
    let alice = thread::spawn(move || wait(alice));
    wait(bob).success();
    alice.join().unwrap().fails_with(3, &["late", "not overwritten"]);
    assert_eq!(bench.read("late"), "somebody else's");
    assert!(bench.leftovers().is_empty());
}

/// The whole of standard output and error, for what must stand in neither.
fn all(said: &Said) -> String {
    format!("{}{}", said.out, said.err)
}

#[test]
fn no_cell_and_no_hostile_name_shows() {
    let bench = stage();
    bench.write("headerless.csv", "SECRET-ann,SECRET-1\nSECRET-bob,SECRET-2\n");
    let peer = ["--listen", "127.0.0.1:0", "--identity", "alice.key", "--peer", "bob.pub"];
    let psi = |more: &[&str]| bench.run(&[&["psi"], &peer[..], more].concat());
    for key in ["email", "secret-ANN", "\u{1b}[2J\u{202e}x", &"k".repeat(50_000)] {
        let said = psi(&["--input", "headerless.csv", "--key", key, "--output", "x"]);
        said.fails_with(3, &["headerless.csv", "2 columns"]);
        assert!(!all(&said).contains("SECRET"), "{said:?}");
        assert!(said.err.len() < 1000 && !said.err.contains(['\u{1b}', '\u{202e}']), "{said:?}");
    }
    let eval = |more: &[&str]| {
        bench.run(&[&["eval", "add8", "--role", "garbler", "--batch"], &peer[..], more].concat())
    };
    let said = eval(&["--input", "headerless.csv"]);
    said.fails_with(2, &["2 columns", "--columns"]);
    assert!(!all(&said).contains("SECRET"), "{said:?}");
    bench.write("one.csv", "SECRET-0\nSECRET-1\n");
    let said = eval(&["--input", "one.csv"]);
    said.fails_with(3, &["line 2", "column 1"]);
    assert!(!all(&said).contains("SECRET"), "{said:?}");
    // Names of files: neither a line of their own nor a colour.
    let hostile = "a\u{1b}[31m\nerror: b\u{202e}.csv";
    for words in [
        &["--input", hostile, "--key", "email"][..],
        &["--input", "in.csv", "--key", "email", "--output", &format!("no/{hostile}")],
    ] {
        let said = psi(words);
        assert_eq!(said.code, 3, "{said:?}");
        said.error_line();
        assert!(!said.err.contains(['\u{1b}', '\u{202e}']), "{said:?}");
    }
    bench.write(hostile, TABLE);
    let said = psi(&["--input", hostile, "--key", "nothing"]);
    assert!(said.error_line().contains("\\u{1b}"), "{said:?}");
}

#[test]
fn every_option_of_the_table_is_tried() {
    // The table here and the help must name the same options: a new output has to be tried as well.
    let bench = Bench::new();
    let mut commands: Vec<String> = CASES.iter().map(|case| command_of(case.words)).collect();
    commands.sort();
    commands.dedup();
    for command in commands {
        let help = bench.run(&[&command.split(' ').collect::<Vec<_>>()[..], &["--help"]].concat());
        for case in CASES.iter().filter(|case| command_of(case.words) == command) {
            assert!(help.success().contains(case.option), "{command}: {}", case.option);
        }
        assert!(help.out.contains("--overwrite"), "{command}");
    }
}

fn command_of(words: &str) -> String {
    let names = words
        .split(' ')
        .take_while(|word| !word.starts_with('-') && !["WITH", "file1", "add8"].contains(word));
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_reader_that_leaves_early_is_an_error() {
    let bench = stage();
    let [mut listener, mut connector] = psi(&bench, &["--output", "fifo"], &[]);
    // Opens the pipe, waits for the first byte, and goes.
    let fifo = bench.path("fifo");
    let reader = thread::spawn(move || File::open(fifo).unwrap().read(&mut [0; 1]).unwrap());
    bench.write("in.csv", format!("email,note\n{}", "ann@example.com,x\n".repeat(30_000)));
    thread::sleep(Duration::from_millis(100));
    let alice = listener.spawn().unwrap();
    let bob = connector.spawn().unwrap();
    let alice = thread::spawn(move || wait(alice));
    wait(bob).success();
    alice.join().unwrap().fails_with(3, &["fifo", "cannot be written"]);
    assert_eq!(reader.join().unwrap(), 1);
}
