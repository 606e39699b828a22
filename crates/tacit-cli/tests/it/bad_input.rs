//! Every kind of bad input gets one line that names cause and remedy, the right exit code, and leaves no
//! file.

use crate::common::{self, Bench, Said, free_port, wait};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const GOOD: &str = "email,name\nann@example.com,Ann\nbob@example.com,Bob\n";

/// A bench with keys and a good file.
fn bench() -> Bench {
    let bench = Bench::with_keys();
    bench.write("good.csv", GOOD);
    bench
}

/// `tacit psi` as Alice at an address where nobody is, with this input and key: it must fail before it needs
/// the peer.
fn psi(bench: &Bench, input: &str, key: &str) -> Said {
    let address = format!("127.0.0.1:{}", free_port());
    let said = bench.run(&[
        "psi",
        "--listen",
        &address,
        "--identity",
        "alice.key",
        "--peer",
        "bob.pub",
        "--input",
        input,
        "--key",
        key,
        "--output",
        "out.csv",
        "--connect-timeout",
        "2",
    ]);
    assert!(!bench.exists("out.csv"), "an output was written");
    assert!(bench.leftovers().is_empty(), "{:?}", bench.leftovers());
    said
}

#[test]
fn local_files() {
    let bench = bench();
    psi(&bench, "missing.csv", "email").fails_with(3, &["missing.csv", "no such file"]);
    bench.write("empty.csv", "");
    psi(&bench, "empty.csv", "email").fails_with(3, &["empty.csv", "empty"]);
    psi(&bench, "good.csv", "mail").fails_with(3, &["good.csv", "`mail`", "did you mean `email`?"]);
    psi(&bench, "good.csv", "id").fails_with(3, &["good.csv", "`id`", "2 columns", "--key"]);
    bench.write("unequal.csv", "email,name\nann@example.com,Ann\nbob@example.com\n");
    psi(&bench, "unequal.csv", "email").fails_with(3, &["unequal.csv", "line 3"]);
    bench.write("latin1.csv", b"email,name\nann@example.com,Ann\nren\xe9@example.com,Ren\xe9\n");
    psi(&bench, "latin1.csv", "email").fails_with(3, &["latin1.csv", "line 3", "UTF-8"]);
    std::fs::create_dir(bench.path("folder")).unwrap();
    psi(&bench, "folder", "email").fails_with(3, &["folder"]);
}

/// What panics inside the libraries that read a format is an error of the input, with the file's name.
#[test]
fn damaged_files_of_other_peoples_formats() {
    let bench = bench();
    let damaged = |name: &str, changes: &[(usize, u8)]| {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tacit-data/tests/it/files");
        let mut bytes = std::fs::read(folder.join(name)).unwrap();
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        bench.write(name, bytes);
        name.to_owned()
    };
    for changes in [&[(11944, 0), (11949, 1), (11950, 0)][..], &[(502, 32), (11128, 54)]] {
        psi(&bench, &damaged("t.arrow", changes), "email").fails_with(3, &["t.arrow", "make the file again"]);
    }
    psi(&bench, &damaged("t.parquet", &[(2798, 127)]), "email").fails_with(3, &["t.parquet", "Parquet"]);
    bench.write("p.garble.rs", "pub fn main(x: u8) -> u8 { if true {");
    bench.run(&["circuit", "stats", "p.garble.rs"]).fails_with(3, &["p.garble.rs", "line 1"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let bench = bench();
    let address = format!("127.0.0.1:{}", free_port());
    let args = |out: &'static str| {
        [
            "psi",
            "--listen",
            "",
            "--identity",
            "alice.key",
            "--peer",
            "bob.pub",
            "--input",
            "good.csv",
            "--key",
            "email",
            "--output",
            out,
        ]
    };
    for out in ["no-such-folder/out.csv", "."] {
        let mut args = args(out);
        args[2] = &address;
        bench.run(&args).fails_with(3, &["cannot be written"]);
    }
}

#[test]
fn keys() {
    let bench = bench();
    let address = format!("127.0.0.1:{}", free_port());
    let run = |identity: &str, peer: &str| {
        bench.run(&[
            "psi",
            "--listen",
            &address,
            "--identity",
            identity,
            "--peer",
            peer,
            "--input",
            "good.csv",
            "--key",
            "email",
        ])
    };
    run("nobody.key", "bob.pub").fails_with(3, &["nobody.key", "tacit keygen"]);
    run("alice.key", "bob.key").fails_with(3, &["bob.key", ".pub"]);
    run("alice.pub", "bob.pub").fails_with(3, &["alice.pub", "private"]);
    bench.write("junk.pub", "ssh-ed25519 AAAA");
    run("alice.key", "junk.pub").fails_with(3, &["junk.pub"]);
    bench.run(&["keygen", "--out", "alice.key"]).fails_with(3, &["alice", "exists"]);
}

#[test]
fn usage() {
    let bench = bench();
    let at = "127.0.0.1:7";
    let cases: &[(&[&str], &str)] = &[
        (&["--quiet"], "subcommand"),
        (&["psy"], "psi"),
        (&["psi", "--input", "good.csv"], "--key"),
        (&["psi", "--input", "good.csv", "--key", "email"], "--listen"),
        (&["psi", "--input", "good.csv", "--key", "email", "--listen", at, "--connect", at], "--connect"),
        (&["psi", "--input", "good.csv", "--key", "email", "--listen", at], "--identity"),
        (&["psi", "--input", "good.csv", "--key", "email", "--protocol", "vol", "--listen", at], "vole"),
        (
            &[
                "psi",
                "--input",
                "good.csv",
                "--key",
                "email",
                "--insecure-plaintext",
                "--listen",
                "0.0.0.0:0",
            ],
            "--i-understand",
        ),
        (
            &["psi", "--input", "good.csv", "--key", "email", "--insecure-plaintext", "--listen", "nonsense"],
            "HOST:PORT",
        ),
        (&["ot", "--role", "sender", "--count", "many", "--listen", at], "--count"),
        (
            &[
                "ot",
                "--role",
                "sender",
                "--count",
                "5",
                "--insecure-plaintext",
                "--listen",
                at,
                "--protocol",
                "rsa",
            ],
            "rsa",
        ),
        (
            &[
                "ot",
                "--role",
                "sender",
                "--count",
                "5",
                "--insecure-plaintext",
                "--listen",
                at,
                "--protocol",
                "iknp",
            ],
            "semi-honest",
        ),
        (
            &[
                "ot",
                "--role",
                "sender",
                "--count",
                "5",
                "--insecure-plaintext",
                "--listen",
                at,
                "--base-ot",
                "co15",
            ],
            "co15",
        ),
        (&["bench", "ot", "--protocol", "ferret", "--set", "z"], "LPN set"),
        (&["bench", "ot", "--protocol", "ferret-uni", "--set", "e"], "ferret-uni has main"),
        (&["bench", "ot", "--link", "fast"], "fast"),
    ];
    for (args, word) in cases {
        bench.run(args).fails_with(2, &[word]);
    }
}

#[test]
fn simd_levels_that_are_not_there() {
    let bench = Bench::new();
    let mut command = bench.command(&["doctor"]);
    command.env("TACIT_SIMD", "mmx");
    wait(command.spawn().unwrap()).fails_with(2, &["TACIT_SIMD", "portable"]);
}

#[test]
fn port_in_use() {
    let bench = bench();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = bench.run(&[
        "psi",
        "--listen",
        &address,
        "--identity",
        "alice.key",
        "--peer",
        "bob.pub",
        "--input",
        "good.csv",
        "--key",
        "email",
    ]);
    let line = said.error_line();
    assert_ne!(said.code, 0);
    assert!(line.contains(&address) && line.contains("in use"), "{line}");
}

#[test]
fn nobody_there() {
    let bench = bench();
    let address = format!("127.0.0.1:{}", free_port());
    let psi = |way: &str| {
        bench.run(&[
            "psi",
            way,
            &address,
            "--identity",
            "alice.key",
            "--peer",
            "bob.pub",
            "--input",
            "good.csv",
            "--key",
            "email",
            "--output",
            "out.csv",
            "--connect-timeout",
            "1",
        ])
    };
    psi("--connect").fails_with(4, &[&address, "--listen"]);
    psi("--listen").fails_with(4, &[&address]);
    assert!(!bench.exists("out.csv") && bench.leftovers().is_empty());
}

#[test]
fn wrong_peer_key() {
    let bench = bench();
    bench.run(&["keygen", "--out", "mallory.key"]).success();
    let address = format!("127.0.0.1:{}", free_port());
    let common =
        ["--input", "good.csv", "--key", "email", "--result", "both", "--connect-timeout", "3", "--output"];
    let listener = [
        &["psi", "--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"],
        &common[..],
        &["a.csv"],
    ]
    .concat();
    let connector = [
        &["psi", "--connect", &address, "--identity", "mallory.key", "--peer", "alice.pub"],
        &common[..],
        &["b.csv"],
    ]
    .concat();
    let (alice, mallory) = bench.run_both(&listener, &connector);
    alice.fails_with(4, &["key", "--peer"]);
    mallory.fails_with(4, &["the peer rejected your key"]);
    assert!(!bench.exists("a.csv") && !bench.exists("b.csv") && bench.leftovers().is_empty());
}

#[test]
fn different_parameters() {
    let bench = bench();
    let base = ["--input", "good.csv", "--result", "both"];
    let cases: &[(&[&str], &[&str], &str)] = &[
        (&["--key", "email"], &["--key", "email,name"], "--key columns (yours 1, peer's 2)"),
        (&["--key", "email"], &["--key", "email", "--no-trim"], "--no-trim (yours not given, peer's given)"),
        (
            &["--key", "email"],
            &["--key", "email", "--no-case-fold"],
            "--no-case-fold (yours not given, peer's given)",
        ),
        (
            &["--key", "email"],
            &["--key", "email", "--security", "semi-honest", "--protocol", "vole"],
            "--protocol (yours auto, peer's vole), --security (yours malicious, peer's semi-honest);",
        ),
        (
            &["--key", "email"],
            &["--key", "email", "--base-ot", "mr19"],
            "--base-ot (yours mrr21, peer's mr19)",
        ),
        (
            &["--key", "email"],
            &["--key", "email", "--result", "me"],
            "(yours --result both, peer's --result me)",
        ),
        (
            &["--key", "email", "--memory", "64MiB"],
            &["--key", "email", "--memory", "64MiB", "--threads", "2"],
            "--threads (yours 1, peer's 2)",
        ),
    ];
    for (first, second, word) in cases {
        let address = format!("127.0.0.1:{}", free_port());
        let with = |way, own, peer, extra: &[&str]| {
            let mut args: Vec<String> =
                ["psi", way, &address, "--identity", own, "--peer", peer].map(str::to_owned).to_vec();
            let rest: Vec<&str> =
                if extra.contains(&"--result") { base[..2].to_vec() } else { base.to_vec() };
            args.extend(rest.iter().chain(extra).map(|s| s.to_string()));
            args
        };
        let (alice, bob) = (
            with("--listen", "alice.key", "bob.pub", first),
            with("--connect", "bob.key", "alice.pub", second),
        );
        let refs = |args: &[String]| args.iter().map(String::as_str).map(str::to_owned).collect::<Vec<_>>();
        let (alice, bob) = (refs(&alice), refs(&bob));
        let (a, b) = bench.run_both(
            &alice.iter().map(String::as_str).collect::<Vec<_>>(),
            &bob.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        a.fails_with(4, &[word]);
        // The other side says the same from its end.
        b.fails_with(4, &["(yours ", "peer's "]);
    }
}

#[test]
fn a_peer_that_is_no_peer() {
    let bench = bench();
    // Each speaks to a listening `tacit psi`: garbage, a truncated greeting, a frame of the largest length,
    // another version.
    let greetings: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"",
        b"\xa7\x05",
        b"\xa7\xff\xff\xff",
        b"\xa7\x2b\x00\x00TACIT\x00\x63\x00\x00\x00\x00aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    // Each listener waits for its peer until the timeout: all at the same time.
    thread::scope(|scope| {
        for greeting in greetings {
            for protection in
                [&["--insecure-plaintext"][..], &["--identity", "alice.key", "--peer", "bob.pub"]]
            {
                let bench = &bench;
                scope.spawn(move || greets(bench, greeting, protection));
            }
        }
    });
    assert!(!bench.exists("out.csv") && bench.leftovers().is_empty());
}

/// A listening `tacit psi` that hears `greeting` and nothing more ends in one line.
fn greets(bench: &Bench, greeting: &[u8], protection: &[&str]) {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let args = [
        "psi",
        "--listen",
        &address,
        "--input",
        "good.csv",
        "--key",
        "email",
        "--output",
        "out.csv",
        "--connect-timeout",
        "3",
    ];
    let child = bench.spawn(&[&args[..], protection].concat());
    let mut socket = dial(port);
    let _ = socket.write_all(greeting);
    let _ = socket.shutdown(std::net::Shutdown::Write);
    let said = wait(child);
    assert_eq!(said.code, 4, "{greeting:?}: {said:?}");
    said.error_line();
    if greeting.starts_with(b"\xa7\x2b") && protection.len() == 1 {
        said.fails_with(4, &["wire format 99", "install the same on both sides"]);
    }
}

#[test]
fn a_peer_that_stalls() {
    let bench = bench();
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let start = Instant::now();
    let child = bench.spawn(&[
        "psi",
        "--listen",
        &address,
        "--insecure-plaintext",
        "--input",
        "good.csv",
        "--key",
        "email",
        "--output",
        "out.csv",
        "--connect-timeout",
        "2",
        "--timeout",
        "2",
    ]);
    // Holds the connection and says nothing.
    let socket = dial(port);
    wait(child).fails_with(4, &["gave up", "waiting"]);
    assert!(start.elapsed() < Duration::from_secs(20));
    drop(socket);
    assert!(!bench.exists("out.csv") && bench.leftovers().is_empty());
}

#[test]
fn a_peer_that_goes_in_the_middle() {
    let bench = bench();
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let common = ["--insecure-plaintext", "--count", "50000000", "--kind", "cot"];
    let first = bench
        .spawn(&[&["ot", "--listen", &address, "--role", "sender", "--out", "s.npz"], &common[..]].concat());
    let mut second = bench.spawn(
        &[&["ot", "--connect", &address, "--role", "receiver", "--out", "r.npz"], &common[..]].concat(),
    );
    thread::sleep(Duration::from_millis(900));
    second.kill().unwrap();
    second.wait().unwrap();
    wait(first).fails_with(4, &["peer"]);
    assert!(!bench.exists("s.npz"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_nothing() {
    let bench = bench();
    let address = format!("127.0.0.1:{}", free_port());
    for args in [
        &[
            "ot",
            "--listen",
            &address,
            "--insecure-plaintext",
            "--role",
            "sender",
            "--count",
            "9",
            "--out",
            "s.npz",
        ][..],
        &[
            "psi",
            "--listen",
            &address,
            "--insecure-plaintext",
            "--input",
            "good.csv",
            "--key",
            "email",
            "--output",
            "o.csv",
        ],
    ] {
        let mut child = bench.spawn(args);
        let start = Instant::now();
        // The one that stays: at first the command only tries whether it could write there.
        let mut seen = Vec::new();
        while seen.is_empty() || seen != bench.leftovers() {
            let ended = child.try_wait().unwrap().is_some();
            assert!(!ended, "nothing to interrupt: {:?}", wait(child));
            assert!(start.elapsed() < Duration::from_secs(20), "no unfinished file beside its place");
            seen = bench.leftovers();
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(seen.len(), 1, "the unfinished file stands beside its place");
        let kill =
            std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        wait(child).fails_with(130, &["interrupted"]);
        assert!(bench.leftovers().is_empty() && !bench.exists("s.npz") && !bench.exists("o.csv"));
    }
}

#[test]
fn config_files() {
    let bench = bench();
    let run = |content: &str| {
        bench.write("job.toml", content);
        bench.run(&["psi", "--config", "job.toml", "--input", "good.csv", "--key", "email"])
    };
    // A wrong key or value is a usage error that names file and line.
    for (content, words) in [
        ("[psi]\nlisten = \"127.0.0.1:1\"\nthread = 2\n", &["line 3", "`thread`"][..]),
        ("[psy]\n", &["line 1", "[psy]"]),
        ("[bench.psy]\n", &["line 1", "[psy]"]),
        ("quiet = 1\n", &["line 1", "`quiet`", "true or false"]),
        ("[psi]\nno-trim = \"yes\"\n", &["line 2", "`no-trim`", "true or false"]),
        ("[psi]\nprotocol = \"vol\"\n", &["line 2", "`protocol`", "vole"]),
        ("\n\n[psi]\nthreads = 65\n", &["line 4", "`threads`", "64"]),
        ("threads = \"two\"\n", &["line 1", "`threads`", "two"]),
        ("[psi]\nthreads = true\n", &["line 2", "`threads`", "a string, a number or a list"]),
        ("[psi]\ntimeout = 1979-05-27\n", &["line 2", "`timeout`"]),
        ("[psi]\nkey = [\"a\",\n  7.5,\n  {}]\n", &["line 4", "`key`"]),
        ("[psi]\nlink = \"quick\"\n", &["line 2", "`link`", "quick"]),
        // Of another subcommand, which does not run.
        ("[ot]\ncount = \"many\"\n", &["line 2", "`count`", "many"]),
        ("[eval]\nformat = \"octal\"\n", &["line 2", "`format`", "hex, decimal, signed"]),
        // For this subcommand, from the top, where another takes it.
        ("protocol = \"kos\"\n", &["line 1", "`protocol`", "kos"]),
    ] {
        run(content).fails_with(2, &[&["job.toml"][..], words].concat());
    }
    // What only the whole command line shows to be wrong.
    let run = |content: &str, more: &[&str]| {
        bench.write("job.toml", content);
        bench.run(&[&["psi", "--config", "job.toml", "--key", "email"], more].concat())
    };
    let twice = run("[psi]\n\noutput = [\"a.csv\", \"b.csv\"]\n", &["--input", "good.csv"]);
    twice.fails_with(2, &["--output", "`output` is set in job.toml, line 3"]);
    let alone = run("[psi]\nauthority = \"ca.pem\"\n", &["--input", "good.csv"]);
    alone.fails_with(2, &["--certificate"]);
    let base = "[psi]\nlisten = \"127.0.0.1:1\"\nidentity = \"alice.key\"\npeer = \"bob.pub\"\n";
    let said = run(&format!("{base}base-ot = \"quick\"\n"), &["--input", "good.csv"]);
    said.fails_with(2, &["quick", "`base-ot` is set in job.toml, line 5"]);
    // What is no TOML at all is bad input, with its line.
    let run = |content: &str| run(content, &["--input", "good.csv"]);
    run("a = \n").fails_with(3, &["job.toml", "line 1", "fix the TOML"]);
    run("quiet = true\nquiet = true\n").fails_with(3, &["job.toml", "line 2"]);
    bench.write("job.toml", b"quiet = \"\xff\"\n");
    bench.run(&["psi", "--config", "job.toml"]).fails_with(3, &["job.toml", "UTF-8"]);
    bench.run(&["psi", "--config", "no.toml"]).fails_with(3, &["no.toml"]);
    bench.run(&["psi", "--config"]).fails_with(2, &["--config"]);
}

/// The command line wins over the file, a table over the top; lists repeat an option, switches are true or
/// false.
#[test]
fn what_a_config_file_says_counts_where_nothing_else_is_said() {
    let bench = bench();
    let run = |content: &str, more: &[&str]| {
        bench.write("job.toml", content);
        let said =
            bench.run(&[&["--config", "job.toml", "--json", "eval", "add8", "--dry-run"], more].concat());
        serde_json::from_str::<serde_json::Value>(said.success()).unwrap()
    };
    let rows = |value: &serde_json::Value| value["rows"].as_u64().unwrap();
    assert_eq!(rows(&run("rows = 5\n", &[])), 5);
    assert_eq!(rows(&run("rows = 5\n[eval]\nrows = 7\n", &[])), 7);
    assert_eq!(rows(&run("rows = 5\n[eval]\nrows = 7\n", &["--rows", "9"])), 9);
    assert_eq!(rows(&run("[bench.eval]\nrows = 7\n", &["--rows=9"])), 9);
    // A table is its subcommand's alone.
    assert_eq!(rows(&run("[bench.eval]\nrows = 7\n", &[])), 1);
    assert_eq!(run("[eval]\nlink = \"100/5\"\nthreads = 2\nrows = 4\n", &[])["threads"], 2);
    // A switch that is false is as if it were not there; --list needs nothing else.
    bench.write("job.toml", "[eval]\nlist = true\n");
    assert!(bench.run(&["eval", "--config=job.toml"]).success().contains("millionaires"));
    bench.write("job.toml", "[eval]\nlist = false\n");
    bench.run(&["eval", "--config=job.toml"]).fails_with(2, &["CIRCUIT|NAME"]);
    // Without `json` in the file the result is in words, with it an object; and quiet notes nothing.
    bench.write("job.toml", "json = true\n");
    assert!(bench.run(&["eval", "--list", "--config", "job.toml"]).success().starts_with('{'));
    // An address on the command line pushes the other end's in the file aside, both ways, and keys make way
    // for none.
    let plain = ["--insecure-plaintext", "--input", "good.csv", "--key", "email", "--connect-timeout", "1"];
    for (content, option) in [("listen", "--connect"), ("connect", "--listen")] {
        let keys = "identity = \"no.key\"\npeer = \"no.pub\"\n";
        bench.write("job.toml", format!("[psi]\n{content} = \"198.51.100.1:1\"\n{keys}"));
        let at = format!("127.0.0.1:{}", free_port());
        let said = bench.run(&[&["psi", "--config", "job.toml", option, &at], &plain[..]].concat());
        said.fails_with(4, &[&at]);
    }
    // Nothing comes from the environment.
    let mut command = bench.command(&["eval", "add8", "--dry-run", "--json"]);
    for name in ["ROWS", "TACIT_ROWS", "TACIT_EVAL_ROWS", "TACIT_CONFIG", "TACIT_THREADS"] {
        command.env(name, "3");
    }
    let said: serde_json::Value =
        serde_json::from_str(common::wait(command.spawn().unwrap()).success()).unwrap();
    assert_eq!(rows(&said), 1);
}

/// `overwrite = true` stands for the option, and the file itself is no output of a run that reads it.
#[test]
fn outputs_of_a_run_with_a_config_file() {
    let bench = bench();
    let report = |config: &str, out: &str| {
        bench.write("job.toml", config);
        bench.run(&["nisc", "keygen", "--count", "5", "--config", "job.toml", "--out", out])
    };
    report("", "job.toml").fails_with(3, &["job.toml", "--config", "--out"]);
    assert_eq!(bench.read("job.toml"), "");
    // A page of the manual stands there already.
    std::fs::create_dir(bench.path("pages")).unwrap();
    bench.write("pages/tacit.1", "old");
    let man = |config: &str| {
        bench.write("job.toml", config);
        bench.run(&["man", "pages", "--config", "job.toml"])
    };
    man("overwrite = false\n").fails_with(3, &["pages/tacit.1", "exists already"]);
    assert_eq!(bench.read("pages/tacit.1"), "old");
    man("overwrite = true\n").success();
    assert!(bench.read("pages/tacit.1").contains(".TH"));
}

fn dial(port: u16) -> TcpStream {
    let start = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => {
                stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
                // Let the greeting of the other side come in, as a real peer would.
                let _ = (&stream).read(&mut [0; 16]);
                return stream;
            }
            Err(_) if start.elapsed() < Duration::from_secs(20) => thread::sleep(Duration::from_millis(10)),
            Err(error) => panic!("nobody listens: {error}"),
        }
    }
}

#[test]
fn quotes_that_are_never_closed_or_have_text_behind_them() {
    let bench = bench();
    bench.write("open.csv", "mail,n,note\na@x.org,1,fine\nb@x.org,2,\"open\nc@x.org,3,ok\nd@x.org,4,ok\n");
    bench.write("behind.csv", "mail,n\n\"a@x.org\"x,1\n\"b@x.org\",2\n");
    for (file, line, what) in
        [("open.csv", "line 3", "never closed"), ("behind.csv", "line 2", "text follows")]
    {
        psi(&bench, file, "mail").fails_with(3, &[file, line, what, "--quote", "--escape"]);
        let said = bench.run(&["check", "--input", file, "--key", "mail"]);
        said.fails_with(3, &[file, line, what, "--quote", "--escape"]);
        let own = ["--input", file, "--identity", "alice.key"];
        let publish = ["tags", "publish", "--key", "mail", "--out", "t", "--private", "p"];
        bench.run(&[&publish[..], &own].concat()).fails_with(3, &[file, line, what]);
        let address = format!("127.0.0.1:{}", free_port());
        let eval = ["eval", "add8", "--batch", "--columns", "n", "--role", "garbler"];
        let peer = ["--listen", &address, "--peer", "bob.pub", "--connect-timeout", "2"];
        bench.run(&[&eval[..], &own, &peer].concat()).fails_with(3, &[file, line, what]);
    }
    bench.write("long.csv", format!("mail,n\na,1\n{},2\n", "x".repeat(2_000_000)));
    let said = bench.run(&["check", "--input", "long.csv", "--key", "mail", "--max-row", "1"]);
    said.fails_with(3, &["long.csv", "line 3", "more than 1 MiB", "--max-row"]);
    bench.write("lines.csv", "mail,n\na,\"x\ny\"\nb,\"12345\"\n");
    let said = bench.run(&["check", "--input", "lines.csv", "--key", "mail"]);
    let told = "longest quoted cell: 5 bytes, in the row at line 4; most lines in one: 2, at line 2";
    assert!(said.success().contains(told), "{said:?}");
}
