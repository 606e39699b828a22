//! Completions, the manual's pages, and what `--verbose` tells.

use crate::common::{Bench, free_port};
use std::process::{Command, Stdio};

/// The subcommands that `tacit help` lists.
fn subcommands(bench: &Bench) -> Vec<String> {
    let help = bench.run(&["help"]);
    let listed = help.success().split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

/// Whether there is such a program to try a script with.
fn there_is(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

#[test]
fn every_shell_gets_a_script_that_knows_every_subcommand() {
    let bench = Bench::new();
    let names = subcommands(&bench);
    assert!(["psi", "eval", "man", "completions"].iter().all(|name| names.iter().any(|n| n == name)));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = bench.run(&["completions", shell]);
        for word in names.iter().map(String::as_str).chain(["base-ot", "output-to", "overwrite", "verbose"]) {
            assert!(said.success().contains(word), "{shell}: {word}");
        }
        assert!(said.err.is_empty(), "{said:?}");
    }
    bench.run(&["completions", "tcsh"]).fails_with(2, &["tcsh", "fish"]);
    if !there_is("bash") {
        return;
    }
    // Bash takes the script, and it completes a subcommand, an option and an option's values.
    bench.write("tacit.bash", bench.run(&["completions", "bash"]).success());
    let complete = |words: &[&str]| {
        let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let [.., before, current] = words else { panic!("two words at least") };
        let script = format!(
            "source ./tacit.bash; COMP_WORDS=({list}); COMP_CWORD={}; _tacit tacit '{current}' '{before}'; \
             echo \"${{COMPREPLY[@]}}\"",
            words.len() - 1
        );
        let mut bash = Command::new("bash");
        let out = bash.current_dir(bench.dir.path()).args(["--norc", "-c", &script]).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete(&["tacit", "ps"]), "psi");
    assert_eq!(complete(&["tacit", "eval", "--form"]), "--format");
    assert_eq!(complete(&["tacit", "eval", "--format", ""]), "hex decimal signed");
}

#[test]
fn the_manual_has_a_page_for_every_subcommand_and_names_every_option() {
    let bench = Bench::new();
    let first = bench.run(&["man"]);
    assert!(first.success().contains(".TH tacit 1") && first.out.contains("Two parties"), "{first:?}");
    bench.run(&["man", "pages"]).fails_with(3, &["pages", "no such directory"]);
    std::fs::create_dir(bench.path("pages")).unwrap();
    let said = bench.run(&["--json", "man", "pages"]);
    let said: serde_json::Value = serde_json::from_str(said.success()).unwrap();
    let written = std::fs::read_dir(bench.path("pages")).unwrap().count();
    assert_eq!((&said["folder"], &said["pages"]), (&"pages".into(), &written.into()));
    assert_eq!(bench.read("pages/tacit.1"), first.out);
    for name in subcommands(&bench) {
        let page = bench.read(&format!("pages/tacit-{name}.1"));
        assert!(page.contains(&format!(".TH tacit-{name} 1")), "{name}: {page}");
        // Every option that the help shows.
        let help = bench.run(&[&name, "--help"]);
        for option in help.success().split_whitespace().filter(|word| word.starts_with("--")) {
            let option = option.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let escaped = option.replace('-', "\\-");
            let listed = help.out.lines().any(|line| line.trim_start().starts_with(option));
            assert!(!listed || page.contains(&escaped), "tacit-{name}.1: {option}");
        }
    }
    let nested = ["tacit-ot-pool-make.1", "tacit-nisc-keygen.1", "tacit-bench-ot.1", "tacit-tags-publish.1"];
    assert!(nested.iter().all(|page| bench.exists(&format!("pages/{page}"))));
    // Again in the same place only if that is said.
    bench.run(&["man", "pages"]).fails_with(3, &["exists already", "--overwrite"]);
    bench.run(&["man", "pages", "--overwrite"]).success();
}

#[test]
fn verbose_tells_how_a_run_goes_and_nothing_secret() {
    let bench = Bench::with_keys();
    let run = |extra: &[&str]| {
        let address = format!("127.0.0.1:{}", free_port());
        let side = |mode, key, peer, role, input| {
            let peer = ["eval", "add32", mode, &address, "--identity", key, "--peer", peer];
            [&peer[..], &["--role", role, "--input", input, "--security", "semi-honest"], extra].concat()
        };
        bench.run_both(
            &side("--listen", "alice.key", "bob.pub", "garbler", "271828182"),
            &side("--connect", "bob.key", "alice.pub", "evaluator", "314159265"),
        )
    };
    let quiet = run(&[]);
    for verbose in [&["-v"][..], &["--verbose", "--json"], &["-v", "--quiet"]] {
        let (a, b) = run(verbose);
        for (said, plain) in [(&a, &quiet.0), (&b, &quiet.1)] {
            let lines =
                |start: &str| said.err.lines().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
            assert!(lines("tacit ")[0].contains("; kernels of "), "{said:?}");
            assert!(
                lines("tacit ")[0].contains("aes ") && lines("tacit ")[0].contains("transpose "),
                "{said:?}"
            );
            let handshake = lines("handshake: ");
            assert!(handshake[0].contains("TLS 1.3 with X25519MLKEM768 and TLS13_"), "{said:?}");
            assert!(handshake[0].contains("peer known by fingerprint "), "{said:?}");
            let agreed = lines("agreed: ")[0];
            for words in ["protocol yao", "function add32", "rows 1", "base-ot ", "security semi-honest"] {
                assert!(agreed.contains(words), "{words}: {agreed}");
            }
            // Each phase once, with its time and bytes; nothing of them without the option.
            for phase in ["setting up", "evaluating"] {
                let told = lines(&format!("phase {phase}: "));
                assert!(
                    told.len() == 1 && told[0].contains(" s, ") && told[0].contains(" bytes passed"),
                    "{said:?}"
                );
            }
            for secret in ["271828182", "314159265", "585987447", "22ed80d7", "1033c6d6", "12b9b0a1"] {
                assert!(!said.err.contains(secret), "{secret}: {said:?}");
            }
            assert!(!["handshake: ", "agreed: ", "phase "].iter().any(|word| plain.err.contains(word)));
            if !verbose.contains(&"--json") {
                assert_eq!(said.success(), plain.success());
            }
        }
    }
}
