//! Two people who have nothing but a relay: they exchange keys by a code, and run a job.

use crate::common::{Bench, free_port, wait};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};

/// A process that is killed with this, and the first line that it said.
struct Running(Child, String);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn relay(bench: &Bench, more: &[&str]) -> (Running, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let mut child = bench.spawn(&[&["relay", "--listen", &address], more].concat());
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (Running(child, line), address)
}

/// The code that a waiting invitation shows on its first line.
fn code_of(child: &mut Child) -> (String, BufReader<ChildStdout>) {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    (line.trim().strip_prefix("code ").unwrap_or_else(|| panic!("{line}")).to_owned(), lines)
}

fn with_tables() -> Bench {
    let bench = Bench::new();
    for (name, from) in [("alice.csv", 0), ("bob.csv", 10)] {
        let rows = (from..from + 20).map(|i| format!("user{i}@example.com\n")).collect::<String>();
        bench.write(name, "email\n".to_owned() + &rows);
    }
    bench
}

/// Invites and joins; returns what both said when they had each other's key.
fn introduce(bench: &Bench, inviting: &[&str], joining: &[&str]) -> [String; 2] {
    let mut invited = bench.spawn(&[&["invite"], inviting].concat());
    let (code, mut lines) = code_of(&mut invited);
    let joined = bench.run(&[&["join", &code], joining].concat());
    let mut rest = String::new();
    while lines.read_line(&mut rest).unwrap() > 0 {}
    assert!(invited.wait().unwrap().success());
    [rest, joined.success().to_owned()]
}

#[test]
fn a_code_and_a_relay_are_all_that_two_people_need() {
    let bench = with_tables();
    let (running, address) = relay(&bench, &[]);
    assert!(running.1.contains(&address), "{}", running.1);
    let [alice, bob] = introduce(
        &bench,
        &["--via", &address, "--identity", "alice.key", "--out", "their-bob.pub", "--comment", "Alice"],
        &["--via", &address, "--identity", "bob.key", "--out", "their-alice.pub"],
    );
    assert!(bob.contains("it calls itself \"Alice\"") && !alice.contains("calls itself"), "{alice}{bob}");
    let line = |file: &str| bench.read(file).split_whitespace().nth(1).unwrap().to_owned();
    assert_eq!(line("their-bob.pub"), line("bob.pub"));
    assert_eq!(line("their-alice.pub"), line("alice.pub"));
    for threads in ["1", "2"] {
        let side = |own: &'static str, peer: &'static str, input: &'static str| {
            [
                "psi",
                "--via",
                &address,
                "--identity",
                own,
                "--peer",
                peer,
                "--input",
                input,
                "--key",
                "email",
                "--result",
                "both",
                "--threads",
                threads,
                "--connect-timeout",
                "40",
            ]
            .map(str::to_owned)
        };
        let a = side("alice.key", "their-bob.pub", "alice.csv");
        let b = side("bob.key", "their-alice.pub", "bob.csv");
        let [a, b] = [&a, &b].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
        let (one, two) = bench.run_both(&a, &b);
        assert!(one.success().contains("10 matches") && two.success().contains("10 matches"));
    }
}

#[test]
fn a_wrong_code_spends_the_invitation_and_writes_nothing() {
    let bench = Bench::new();
    let (_running, address) = relay(&bench, &[]);
    let mut invited =
        bench.spawn(&["invite", "--via", &address, "--identity", "alice.key", "--out", "their-bob.pub"]);
    let (code, _lines) = code_of(&mut invited);
    let other = if code.contains("walnut") { "tiger" } else { "walnut" };
    let wrong: Vec<&str> = code.split('-').collect();
    let wrong = format!("{}-{other}-{}", wrong[0], wrong[2]);
    let guessed =
        bench.run(&["join", &wrong, "--via", &address, "--identity", "eve.key", "--out", "alice-of-eve.pub"]);
    guessed.fails_with(4, &["the code does not match"]);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut invited.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(invited.wait().unwrap().code(), Some(4));
    assert!(!bench.exists("their-bob.pub"));
    assert!(said.contains("the code does not match") && said.contains("for a new one"), "{said}");
    // The right one comes too late: nobody waits at its place any more.
    let late = bench.spawn(&[
        "join",
        &code,
        "--via",
        &address,
        "--identity",
        "bob.key",
        "--out",
        "their-alice.pub",
        "--minutes",
        "1",
    ]);
    // It says what may be, and waits on: who invites could be busy with another caller.
    let mut late = Running(late, String::new());
    let (mut lines, mut said) = (BufReader::new(late.0.stderr.take().unwrap()), String::new());
    while !said.contains("has expired") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
    }
    for words in
        ["nobody has answered with the number", "busy with another caller", "still waiting", "up to 60 s"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    // A key that no exchange used is not left behind.
    assert!(!bench.exists("bob.key") && !bench.exists("eve.key") && !bench.exists("eve.pub"));
    assert!(!bench.exists("their-alice.pub") && !bench.exists("alice-of-eve.pub"));
}

#[test]
fn without_a_relay_the_code_goes_over_a_port_beside_strangers() {
    let bench = Bench::new();
    let address = format!("127.0.0.1:{}", free_port());
    let mut invited =
        bench.spawn(&["invite", "--listen", &address, "--identity", "alice.key", "--out", "their-bob.pub"]);
    let (code, _lines) = code_of(&mut invited);
    // Somebody who knocks and says nothing of this has guessed nothing.
    let mut stranger = std::net::TcpStream::connect(&address).unwrap();
    std::io::Write::write_all(&mut stranger, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let typed = code.to_uppercase().replace('-', " ");
    let joined = bench.run(&[
        "join",
        &typed,
        "--connect",
        &address,
        "--identity",
        "bob.key",
        "--out",
        "their-alice.pub",
    ]);
    joined.success();
    assert!(invited.wait().unwrap().success());
    assert!(bench.exists("their-bob.pub"));
}

/// Nobody there, somebody else there, and somebody who says nothing: each is told apart, and soon.
#[test]
fn who_joins_at_a_port_where_nobody_invites_hears_what_to_check() {
    let bench = Bench::new();
    let join = |port: u16| ["join".to_owned(), format!("{port}-walnut-harbour"), "--connect".to_owned()];
    let run = |code: u16, port: u16| {
        let address = format!("127.0.0.1:{port}");
        let words = join(code);
        let words: Vec<&str> = words.iter().map(String::as_str).chain([address.as_str()]).collect();
        bench.run(&words)
    };
    let nobody = free_port();
    let refused =
        ["cannot connect to 127.0.0.1:", "check the host, the port", "`tacit invite --listen` still waits"];
    let said = run(nobody, nobody);
    said.fails_with(4, &refused);
    assert!(!said.err.contains("the code was made at port"), "{said:?}");
    let said = run(nobody.wrapping_add(1), nobody);
    said.fails_with(4, &refused);
    let note = format!("made at port {}, and --connect has port {nobody}", nobody.wrapping_add(1));
    assert!(said.err.contains(&note), "{said:?}");

    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let answers = std::thread::spawn(move || {
        let (mut web, _) = other.accept().unwrap();
        std::io::Write::write_all(&mut web, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        // The next one hears nothing, and has been told of the waiting long before it gives up.
        other.accept().unwrap()
    });
    run(port, port)
        .fails_with(4, &["no `tacit invite` answers there: it sent", "check the host and the port"]);
    let said = run(port, port);
    said.fails_with(4, &["the peer's part of the key exchange", "may not be `tacit invite`"]);
    for words in ["waiting for your peer", &format!("to listen at 127.0.0.1:{port}"), "up to 20 s"] {
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    drop(answers.join().unwrap());
    assert!(!bench.exists("tacit.key"));
}

#[test]
fn faults_of_codes_and_relays_are_one_line() {
    let bench = Bench::with_keys();
    bench.run(&["join", "walnut", "--via", "127.0.0.1:1"]).fails_with(2, &["7-walnut-harbour"]);
    bench
        .run(&["join", "7-walnut-harbor", "--via", "127.0.0.1:1"])
        .fails_with(2, &["`harbor`", "did you mean `harbour`?"]);
    bench.run(&["invite"]).fails_with(2, &["--via RELAY", "--listen ADDR"]);
    bench.write("peer.pub", "here already");
    bench.run(&["invite", "--via", "127.0.0.1:1"]).fails_with(3, &["peer.pub", "exists already"]);
    assert!(!bench.exists("tacit.key"), "nothing was made");
    let psi = ["psi", "--via", "127.0.0.1:1", "--key", "email", "--input", "alice.csv"];
    bench.write("alice.csv", "email\na@x.org\n");
    bench.run(&[&psi[..], &["--insecure-plaintext"]].concat()).fails_with(2, &["--via"]);
    let keys = ["--identity", "alice.key", "--peer", "bob.pub", "--connect-timeout", "1"];
    bench
        .run(&[&psi[..], &keys].concat())
        .fails_with(4, &["no relay answers at 127.0.0.1:1 (", "tried for 1 s)"]);
    // Something is there that waits for us to speak, as a side does that listens.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let psi = ["psi", "--via", &address, "--key", "email", "--input", "alice.csv"];
    let keys = ["--identity", "alice.key", "--peer", "bob.pub", "--connect-timeout", "300"];
    let words = format!(
        "something answers at {address} but is not a relay; if the peer listens there, use --connect"
    );
    bench.run(&[&psi[..], &keys].concat()).fails_with(4, &[&words]);
    let own = ["--identity", "alice.key", "--peer", "alice.pub"];
    bench.run(&[&psi[..], &own].concat()).fails_with(3, &["your own public key"]);
    // Their own public key, by whatever name: it would be found to be there when the code is used up.
    std::os::unix::fs::symlink(".", bench.path("here")).unwrap();
    for out in ["carol.pub", "./carol.pub", "here/carol.pub", "here/here/carol.pub"] {
        let same = ["--identity", "carol.key", "--out", out];
        bench
            .run(&[&["invite", "--via", "127.0.0.1:1"][..], &same].concat())
            .fails_with(2, &["your own key"]);
        assert!(!bench.exists("carol.key"), "{out}");
    }
}

/// Stopping a relay by a signal is not an error.
#[test]
fn a_relay_says_that_it_has_stopped() {
    let bench = Bench::new();
    let (mut running, _) = relay(&bench, &["--json"]);
    let id = running.0.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let mut said = String::new();
    std::io::Read::read_to_string(running.0.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert_eq!((said.as_str(), running.0.wait().unwrap().code()), ("relay: stopped\n", Some(130)));
}

#[test]
fn a_relay_for_some_keys_serves_them_alone() {
    let bench = with_tables();
    for name in ["alice.key", "bob.key", "eve.key"] {
        bench.run(&["keygen", "--out", name]).success();
    }
    let (running, address) = relay(&bench, &["--allow", "alice.pub", "--allow", "bob.pub"]);
    assert!(running.1.contains("2 keys"), "{}", running.1);
    let eve = bench.spawn(&[
        "psi",
        "--via",
        &address,
        "--identity",
        "eve.key",
        "--peer",
        "alice.pub",
        "--input",
        "bob.csv",
        "--key",
        "email",
    ]);
    wait(eve).fails_with(4, &["does not serve your key"]);
    let alice = ["psi", "--via", &address, "--identity", "alice.key", "--peer", "eve.pub"];
    let alice = bench.spawn(&[&alice[..], &["--input", "bob.csv", "--key", "email"]].concat());
    wait(alice).fails_with(4, &["does not serve your peer's key"]);
}
