//! The example programs by every protocol, against their values worked out by hand or in plain Rust.

use std::path::{Path, PathBuf};
use std::process::Command;
use tacit::catalogue::{Entry, computations};
use tacit::crypto::BitVec;
use tacit::job::eval::{Job, Options, load, load_program};
use tacit::lang::Program;
use tacit::net::memory;
use tacit::ot;
use tacit::two_pc::circuit::named::Function;
use tacit::two_pc::{OutputTo, Owner, Prepared};

/// What both parties get, by every protocol there is.
fn by_all(name: &str, ours: &str, theirs: &str) -> Vec<String> {
    let path = format!("{}/../../examples/functions/{name}.garble.rs", env!("CARGO_MANIFEST_DIR"));
    let program = load_program(Path::new(&path), &tacit::lang::Options::default()).unwrap();
    computations().map(|protocol| by(&program, protocol, ours, theirs)).collect()
}

fn by(program: &Program, protocol: &'static Entry, ours: &str, theirs: &str) -> String {
    let security = protocol.security;
    let prepared = Prepared::from_function(program.function()).unwrap().from_source(program.digest());
    let side = |role, text: &str, channel: &mut tacit::net::Channel| {
        let job = Job {
            function: &prepared,
            role,
            output_to: OutputTo::Both,
            security,
            options: Options { protocol: Some(protocol), ..Options::default() },
        };
        let base = ot::base_ot(None, security).unwrap();
        let row = program.parse(role, text).unwrap();
        let rows = job.run_marked(channel, 1, &*base, &[row], &mut |_| {}).unwrap().unwrap();
        match &program.faults(&rows[0])[..] {
            [] => program.format(&rows[0]),
            faults => faults.join(", "),
        }
    };
    let (garbler, evaluator) = memory::run(
        |channel| side(Owner::Garbler, ours, channel),
        |channel| side(Owner::Evaluator, theirs, channel),
    );
    assert_eq!(garbler, evaluator);
    garbler
}

fn all_give(name: &str, ours: &str, theirs: &str, expected: &str) {
    for found in by_all(name, ours, theirs) {
        assert_eq!(found, expected, "{name}: {ours} | {theirs}");
    }
}

#[test]
fn the_winner_of_the_auction_pays_the_second_price() {
    let seller = |reserve, offers| format!("Seller {{ reserve: {reserve}, offers: {offers} }}");
    let house = |offers| format!("House {{ offers: {offers} }}");
    all_give(
        "auction",
        &seller(100, "[120, 90, 0, 0]"),
        &house("[110, 150, 30, 0]"),
        "Outcome::Sold(5, 120)",
    );
    all_give(
        "auction",
        &seller(130, "[120, 90, 0, 0]"),
        &house("[110, 150, 30, 0]"),
        "Outcome::Sold(5, 130)",
    );
    all_give("auction", &seller(151, "[120, 90, 0, 0]"), &house("[110, 150, 30, 0]"), "Outcome::Unsold");
    // Of equal offers the earlier wins, and pays what the other offered.
    all_give("auction", &seller(0, "[7, 0, 0, 0]"), &house("[7, 0, 0, 0]"), "Outcome::Sold(0, 7)");
}

#[test]
fn the_salary_gap_is_of_the_means_and_nobody_has_none() {
    let ours = "[3000, 4000, 5001, 0, 0, 0, 0, 0], 3";
    all_give("salary_gap", ours, "[3500, 3501, 0, 0, 0, 0, 0, 99], 2", "500");
    all_give("salary_gap", ours, "[9000, 0, 0, 0, 0, 0, 0, 0], 1", "-5000");
    all_give("salary_gap", ours, "[9000, 0, 0, 0, 0, 0, 0, 0], 0", "division by zero");
    let large = "[4294967295, 4294967295, 0, 0, 0, 0, 0, 0], 2";
    all_give("salary_gap", large, ours, "overflow");
}

#[test]
fn the_credit_rule_asks_for_everything_at_once() {
    let rule = "Rule { least_income: 2000, most_debts: 150, years: (1, 3) }";
    let applicant = |income, debts, work, defaulted| {
        format!(
            "Applicant {{ income: {income}, debts: {debts}, work: Work::{work}, defaulted: {defaulted} }}"
        )
    };
    for (applicant, granted) in [
        (applicant(2000, 3000, "Employed(1)", false), Some(1000)),
        (applicant(2001, 3001, "SelfEmployed(3)", false), Some(1000)),
        (applicant(2000, 3001, "Employed(1)", false), None),
        (applicant(1999, 0, "Employed(9)", false), None),
        (applicant(9000, 0, "Employed(0)", false), None),
        (applicant(9000, 0, "SelfEmployed(2)", false), None),
        (applicant(9000, 0, "None", false), None),
        (applicant(9000, 0, "Employed(9)", true), None),
    ] {
        let expected =
            granted.map_or("Decision::Refused".to_owned(), |limit| format!("Decision::Granted({limit})"));
        all_give("credit_rule", rule, &applicant, &expected);
    }
}

#[test]
fn the_calendars_meet_at_the_first_stretch_that_suits_both() {
    let calendar = |free: &[usize]| {
        let slots: Vec<String> = (0..24).map(|slot| free.contains(&slot).to_string()).collect();
        format!("[{}]", slots.join(", "))
    };
    for (ours, theirs, expected) in [
        (&[3, 4, 9, 10, 11][..], &[4, 5, 10, 11, 12][..], "Meeting::At(10)"),
        (&[22, 23], &[22, 23], "Meeting::At(22)"),
        (&[0, 1, 5, 6], &[0, 1, 5, 6], "Meeting::At(0)"),
        (&[3, 4], &[4, 5], "Meeting::Never"),
        (&[], &[0, 1], "Meeting::Never"),
    ] {
        all_give("calendars", &calendar(ours), &calendar(theirs), expected);
    }
}

#[test]
fn the_nearest_place_is_the_first_of_equals() {
    let point = |(x, y): (i16, i16)| format!("Point {{ x: {x}, y: {y} }}");
    let places = [(0, 0), (-100, 50), (30000, -30000), (7, 7), (-32768, 32767), (14, 14)];
    let list = format!("[{}]", places.map(point).join(", "));
    for customer in [(1, 1), (10, 11), (-32768, -32768), (32767, -32768), (-99, 51)] {
        let squared = |(x, y): (i16, i16)| {
            let (dx, dy) = (i64::from(x) - i64::from(customer.0), i64::from(y) - i64::from(customer.1));
            dx * dx + dy * dy
        };
        let best = places.iter().map(|&place| squared(place)).min().unwrap();
        let nearest = places.iter().position(|&place| squared(place) == best).unwrap();
        all_give("nearest", &list, &point(customer), &format!("({nearest}, {best})"));
    }
}

#[test]
fn the_votes_of_both_stations_are_counted_and_others_are_not() {
    let ballots = |votes: [i32; 10]| {
        let ballot =
            |vote| if vote < 0 { "Ballot::Blank".to_owned() } else { format!("Ballot::For({vote})") };
        format!("[{}]", votes.map(ballot).join(", "))
    };
    let (first, second) = ([0, 1, 2, 2, 2, -1, 9, 255, 1, 0], [2, 2, -1, -1, 3, 1, 1, 1, 0, 2]);
    let count = |candidate| first.iter().chain(&second).filter(|&&vote| vote == candidate).count();
    let expected = format!("[{}, {}, {}]", count(0), count(1), count(2));
    all_give("votes", &ballots(first), &ballots(second), &expected);
}

#[test]
fn a_circuit_that_another_writer_wrote_gives_what_plain_evaluation_gives_by_every_protocol() {
    // The language's own compiler writes Bristol Fashion: highest bits first, and its notes of faults before
    // the result. The same gates under the old format's header are read as well.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("theirs.txt");
    let source = "pub fn main(x: u16, y: u16) -> u16 { if x > y { x / y + 3u16 } else { x ^ (y << 3u8) } }";
    garble_lang::compile_to_bristol(source, &file).unwrap();
    let fashion = std::fs::read_to_string(&file).unwrap();
    let (header, gates) = fashion.split_once("\n\n").unwrap();
    let lines: Vec<&str> = header.lines().collect();
    let outputs: u32 = lines[2].split_whitespace().skip(1).map(|width| width.parse::<u32>().unwrap()).sum();
    assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["2", "16", "16"]);
    let old = folder.path().join("old.txt");
    std::fs::write(&old, format!("{}\n16 16 {outputs}\n\n{gates}", lines[0])).unwrap();
    for file in [&file, &old] {
        third_party(file);
    }
}

/// The circuit in `file`, by every protocol: x / y + 3 or x ^ y << 3, of 16 bits.
fn third_party(file: &Path) {
    let function = load(file.to_str().unwrap()).unwrap();
    let bits = |n: u16| BitVec::from_bools(&(0..16).rev().map(|i| n >> i & 1 == 1).collect::<Vec<_>>());
    for (x, y) in [(1000, 7), (7, 1000), (65000, 1), (5, 5)] {
        let expected = if x > y { x / y + 3 } else { x ^ y << 3 };
        let all = as_in_the_clear(&function, [bits(x), bits(y)]);
        assert_eq!(all[all.len() - 16..], bits(expected).iter().collect::<Vec<_>>(), "{x} {y}");
    }
}

/// The bits of all outputs, which every protocol gives to both parties as plain evaluation does.
fn as_in_the_clear(function: &Function, inputs: [BitVec; 2]) -> Vec<bool> {
    let prepared = Prepared::from_function(function).unwrap();
    let plain = tacit::two_pc::circuit::evaluate(&function.circuit, &inputs);
    for protocol in computations() {
        let security = protocol.security;
        let side = |role, input: &BitVec, channel: &mut tacit::net::Channel| {
            let options = Options { protocol: Some(protocol), ..Options::default() };
            let job = Job { function: &prepared, role, output_to: OutputTo::Both, security, options };
            let base = ot::base_ot(None, security).unwrap();
            job.run_marked(channel, 1, &*base, &[vec![input.clone()]], &mut |_| {})
                .unwrap()
                .unwrap()
                .remove(0)
        };
        let (garbler, evaluator) = memory::run(
            |channel| side(Owner::Garbler, &inputs[0], channel),
            |channel| side(Owner::Evaluator, &inputs[1], channel),
        );
        assert!(garbler == plain && evaluator == plain, "{} {inputs:?}", protocol.name);
    }
    plain.iter().flat_map(BitVec::iter).collect()
}

/// A file of the published crate `name`, which this workspace depends on: cargo says where its sources lie.
///
/// It is asked by a manifest that depends on nothing else: of the workspace's it would want other platforms'
/// crates as well, and those that no feature brought, which are not there after a build.
fn published(name: &str, path: &str) -> PathBuf {
    let workspace =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml")).unwrap();
    let dependency = workspace.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let manifest = format!(
        "[package]\nname = \"asks\"\n[lib]\npath = \"none.rs\"\n[workspace]\n[dependencies]\n{dependency}\n"
    );
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--offline", "--format-version", "1"]).current_dir(folder.path());
    let said = command.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let package = said["packages"].as_array().unwrap().iter().find(|package| package["name"] == name);
    Path::new(package.unwrap()["manifest_path"].as_str().unwrap()).with_file_name(path)
}

#[test]
fn a_published_circuit_multiplies_64_bits_by_every_protocol() {
    let file = published("garble_lang", "bristol_examples/mult64.txt");
    let function = load(file.to_str().unwrap()).unwrap();
    assert_eq!(function.circuit.stats().and, 4033);
    let bits = |n: u64| BitVec::from_bytes(&n.to_le_bytes(), 64);
    for (x, y) in [
        (0, u64::MAX),
        (u64::MAX, u64::MAX),
        (1 << 63, 3),
        (0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210),
        (6_364_136_223_846_793_005, 1_442_695_040_888_963_407),
    ] {
        let product = as_in_the_clear(&function, [bits(x), bits(y)]);
        assert_eq!(BitVec::from_bools(&product), bits(x.wrapping_mul(y)), "{x} {y}");
    }
}
