//! Questions to a service that runs here: answers against the same computed in the clear, texts that a template does not
//! have, clients that cheat, and questions that differ by a few rows.

use crate::audit;
use crate::json::hex;
use crate::ledger::Ledger;
use crate::policy::{Policy, explain};
use crate::records::Records;
use crate::request::{self, AnswerFloor, Ask, Done, Offered};
use crate::server::Signal;
use crate::terms::{Accept, Said, Side};
use crate::tests::{Here, listed};
use crate::wire::{self, Message};
use tacit::Security;
use tacit::data::csv::Options as Dialect;
use tacit::data::table::Source;
use tacit::job::query::{Answer, Cell, Job};
use tacit::net::Identity;

/// A job with a template, and one that answers any question.
const JOBS: &str = "[jobs.spent]\nkind = \"question\"\nsource = \"table\"\nallow = [\"bob\"]\n\
    columns = [\"id:join\", \"cents:filter\", \"cents:aggregate\", \"kind:filter\"]\nresult = [\"peer\"]\n\
    security = \"semi-honest\"\nmin_group = 2\nmax_groups = 3\nmax_peer_keys = 1000\nruns_a_day = 9\n\
    [jobs.spent.questions.over]\nsql = \"\"\"SELECT COUNT(*) AS n, SUM(CLIP(a.cents, 0, 5000)) AS s FROM ours a JOIN theirs b\n\
    ON a.id = b.id WHERE a.cents >= :least AND a.kind = :kind HAVING COUNT(*) >= 2\"\"\"\n\
    parameters.least = { type = \"integer\", least = 0, most = 3000 }\n\
    parameters.kind = { type = \"text\", values = [\"x\", \"it's\"] }\n";

const ANY: &str = "[jobs.any]\nkind = \"question\"\nsource = \"table\"\nallow = [\"bob\"]\n\
    columns = [\"id:join\", \"cents:filter\", \"cents:aggregate\"]\nresult = [\"peer\", \"me\"]\noutput = \"results\"\n\
    security = \"semi-honest\"\nmin_group = 2\nmax_groups = 3\nmax_peer_keys = 1000\nruns_a_day = 9\nquestions = \"any\"\n";

fn over(least: u32, kind: &str) -> String {
    format!(
        "SELECT COUNT(*) AS n, SUM(CLIP(a.cents, 0, 5000)) AS s FROM ours a JOIN theirs b ON a.id = b.id \
         WHERE a.cents >= {least} AND a.kind = {kind} HAVING COUNT(*) >= 2"
    )
}

const fn cents(id: u32) -> u32 {
    (id * 379) % 3001
}

/// A service with these jobs, whose table has numbers, and that compares questions if `min_difference` is not 0.
fn start(jobs: &str, min_difference: u64) -> Here {
    let here = Here::start_changed(jobs, |text| {
        let source = format!("aggregate_runs = 30\nmin_difference = {min_difference}");
        // The next request need not wait for the end of the one before.
        let text = text.replace("concurrency_per_peer = 1", "concurrency_per_peer = 4");
        text.replace("aggregate_runs = 3", &source)
    });
    let row = |id: u32| format!("{id},{},{}\n", cents(id), if id % 10 == 3 { "it's" } else { "x" });
    let table = (0..40).map(row).collect::<String>();
    std::fs::write(here.folder.path().join("table.csv"), format!("id,cents,kind\n{table}")).unwrap();
    here
}

fn asking(job: &str, sql: &str) -> Ask {
    Ask { job: job.into(), question: Some(tacit::query::parse(sql).unwrap().text), ..Here::ask() }
}

const FLOOR: AnswerFloor<'static> = AnswerFloor {
    security: Security::SemiHonest,
    min_group: 2,
    allowed: None,
    result_to_owner: false,
    post_quantum: false,
    most_service_keys: None,
    terms: None,
    unattended: true,
};

fn offered(here: &Here, ask: &Ask) -> tacit::Result<Offered> {
    request::ask(here.connect(), ask, &here.bob)
}

/// Takes an offer, with the rows of `ours.csv`.
fn run(here: &Here, offered: Offered, job: &Job) -> tacit::Result<Done<Answer>> {
    let path = here.folder.path().join("ours.csv");
    let source = Source::open_pinned(&path, job.key.clone(), Dialect::default()).unwrap();
    let own = job.read_keys(source, &path, |_| ()).unwrap();
    let rows = job.read_rows(&own, false).unwrap();
    let (records, _) = Records::open(&here.folder.path().join("bob"), &here.bob, Side::Client).unwrap();
    let digest = own.digest().unwrap();
    offered.ask(job, &digest, (own.keys(), &rows), (&here.bob, &records), &())
}

/// The cells of an answer, row by row.
fn answered(here: &Here, ask: &Ask) -> tacit::Result<Vec<Vec<Cell>>> {
    let offered = offered(here, ask)?;
    let job = offered.admit_answer(&FLOOR)?;
    let mut done = run(here, offered, &job)?;
    assert!(done.record().unwrap(), "signed by both");
    let shown = done.ran.result.shown.unwrap_or_default();
    Ok(shown.iter().map(|one| job.question.render(one.group, &one.values)).collect())
}

/// The rule by which a question is refused.
fn refused(here: &Here, ask: &Ask) -> String {
    let error = answered(here, ask).err().unwrap_or_else(|| panic!("{ask:?} is answered")).to_string();
    let rule = error.split('`').nth(1).unwrap_or_else(|| panic!("{error}"));
    assert!(error.contains("by its rule"), "{error}");
    rule.to_owned()
}

/// What the tables say: the client has ids from 20 to 49, the service those to 39.
fn in_the_clear(least: u32, kind: &str) -> Vec<Vec<Cell>> {
    let is_of = |id: &u32| cents(*id) >= least && (if id % 10 == 3 { "it's" } else { "x" }) == kind;
    let found: Vec<i128> = (20..40).filter(is_of).map(|id| i128::from(cents(id))).collect();
    match found.len() {
        0 | 1 => Vec::new(),
        n => vec![vec![Cell::Integer(n as i128), Cell::Integer(found.iter().sum())]],
    }
}

#[test]
fn answers_are_what_the_tables_say_and_are_recorded_by_their_text() {
    let here = start(JOBS, 0);
    for (least, kind) in [(0, "x"), (900, "x"), (2999, "x"), (0, "it's")] {
        let kind_sql = format!("'{}'", kind.replace('\'', "''"));
        let found = answered(&here, &asking("spent", &over(least, &kind_sql))).unwrap();
        assert_eq!(found, in_the_clear(least, kind), "{least} {kind}");
    }
    here.wait_for("done", 4);
    let found = listed(audit::load(&here.folder.path().join("state/records")).unwrap());
    assert!(found.iter().all(|record| record.outcome() == "complete" && record.both_signed));
    let common = &found[0].value["common"];
    assert_eq!(common["terms"]["question"]["text"], tacit::query::parse(&over(0, "'x'")).unwrap().text);
    assert_eq!(common["terms"]["question"]["template"], "over");
    let (to_client, to_service) =
        (common["revealed"]["to_client"].to_string(), common["revealed"]["to_service"].to_string());
    assert!(
        to_client.contains("bob (client) learns that alice (service) has 40 distinct keys, and `n` and `s`")
    );
    assert!(to_service.contains("bob (client) has 30 distinct keys; nothing else"), "{to_service}");
    // How many groups were shown is in the private part of the side that saw them, and of no other.
    let private = |whose: &str| {
        let text = std::fs::read_to_string(here.folder.path().join(whose).join("private.jsonl")).unwrap();
        let line = text.lines().next().unwrap().to_owned();
        serde_json::from_str::<serde_json::Value>(&line).unwrap()
    };
    let result = &private("bob")["result"];
    assert_eq!((&result["groups_shown"], &result["groups"]), (&1.into(), &1.into()));
    assert!(result["table"].is_string() && private("state/records")["result"].is_null());
    // Each is charged as one number, and as all keys: nothing more holds against a client that cheats.
    let left = offered(&here, &asking("spent", &over(0, "'x'"))).unwrap().offer.left.clone();
    assert_eq!((left.runs_today, left.rows, left.aggregates), (5, 1000 - 4 * 40, 26));
    here.end();
}

/// Everything about a text that the rules do not allow is refused before a table is read, and nothing is charged.
#[test]
fn other_texts_columns_and_groups_are_refused_by_their_rule() {
    let here = start(&format!("{JOBS}{ANY}"), 0);
    let join = "FROM ours a JOIN theirs b ON a.id = b.id";
    let template = [
        (over(3001, "'x'"), "questions"),
        (over(0, "'y'"), "questions"),
        // Structure in the place of a value, and beside it.
        (
            over(0, "'x' OR a.kind <> 'x'")
                .replace("a.kind = 'x' OR", "(a.kind = 'x' OR")
                .replace("'x' HAVING", "'x') HAVING"),
            "questions",
        ),
        (over(0, "'x'''"), "questions"),
        (over(0, "'x'' OR TRUE --'"), "questions"),
        (over(0, "'x' AND a.id <> '27'"), "questions"),
        (over(0, "'x'").replace("a.kind = 'x'", "b.kind = 'x'"), "questions"),
        (over(0, "'x'").replace(">= 2", ">= 1"), "questions"),
        (over(0, "'x'").replace("5000", "9000"), "questions"),
    ];
    for (sql, rule) in template {
        assert_eq!(refused(&here, &asking("spent", &sql)), rule, "{sql}");
    }
    let any = [
        (format!("SELECT COUNT(*) AS n {join} WHERE a.kind = 'x' HAVING COUNT(*) >= 2"), "columns"),
        (format!("SELECT COUNT(*) AS n {join} WHERE a.id <> '27' HAVING COUNT(*) >= 2"), "columns"),
        (format!("SELECT a.cents, COUNT(*) AS n {join} WHERE a.cents IN (1, 2) GROUP BY a.cents HAVING COUNT(*) >= 2"), "columns"),
        (format!("SELECT COUNT(*) AS n {join} HAVING COUNT(*) >= 1"), "min_group"),
        (format!("SELECT COUNT(*) AS n {join}"), "min_group"),
        (
            format!("SELECT b.g, COUNT(*) AS n {join} WHERE b.g IN (1, 2, 3, 4) GROUP BY b.g HAVING COUNT(*) >= 2"),
            "max_groups",
        ),
        ("SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.cents = b.id HAVING COUNT(*) >= 2".into(), "key"),
        ("SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.\"id:email\" = b.\"id:email\" HAVING COUNT(*) >= 2".into(), "key"),
        (format!("SELECT SUM(CLIP(b.x, 0, 9)) AS n {join} HAVING COUNT(*) >= 2"), "result_to_owner"),
    ];
    for (sql, rule) in any {
        let ask = Ask { result: Some("client".into()), ..asking("any", &sql) };
        assert_eq!(refused(&here, &ask), rule, "{sql}");
    }
    let fine = format!("SELECT COUNT(*) AS n {join} HAVING COUNT(*) >= 2");
    assert_eq!(refused(&here, &Ask { result: Some("both".into()), ..asking("any", &fine) }), "result");
    assert_eq!(refused(&here, &Ask { reveal: Some("rows".into()), ..asking("any", &fine) }), "reveal");
    assert_eq!(refused(&here, &Ask { job: "none".into(), ..asking("any", &fine) }), "allow");
    // What is no question, or is longer than any, from a client that does not look first.
    for text in [String::new(), "DROP TABLE ours".into(), format!("{fine} -- {}", "x".repeat(9000))] {
        let ask = Ask { question: Some(text), ..asking("any", &fine) };
        let mut session = here.connect();
        wire::send(session.channel(), &Message::Ask(ask)).unwrap();
        let (message, _) = wire::receive(session.channel(), wire::PROMPT).unwrap();
        let Message::Refusal(refusal) = message else { panic!("{message:?}") };
        assert_eq!(refusal.rule, "questions");
    }
    // A question to a job that answers none, and none to a job that answers them.
    let error = offered(&here, &asking("match", &fine)).err().unwrap().to_string();
    assert!(error.contains("answers no questions in SQL"), "{error}");
    let error = offered(&here, &Ask { job: "spent".into(), ..Here::ask() }).err().unwrap().to_string();
    assert!(error.contains("`questions`"), "{error}");
    let left = offered(&here, &asking("any", &fine)).unwrap().offer.left.clone();
    assert_eq!((left.runs_today, left.rows, left.aggregates), (9, 1000, 30));
    // The service's own answer is a file of its own.
    let ask = Ask {
        result: Some("service".into()),
        ..asking("any", &format!("SELECT SUM(CLIP(b.x, 0, 9)) AS n {join} HAVING COUNT(*) >= 2"))
    };
    std::fs::write(here.folder.path().join("ours.csv"), "id,x\n21,4\n22,5\n99,6\n").unwrap();
    let taken = offered(&here, &ask).unwrap();
    let job = taken.admit_answer(&AnswerFloor { unattended: false, ..FLOOR }).unwrap();
    let done = run(&here, taken, &job).unwrap();
    assert!(done.ran.result.shown.is_none());
    here.wait_for("done", 1);
    let file = std::fs::read_dir(here.folder.path().join("results")).unwrap().next().unwrap().unwrap();
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file.path()).unwrap()).unwrap();
    assert_eq!((&kept["rows"], &kept["columns"]), (&serde_json::json!([[9]]), &serde_json::json!(["n"])));
    here.end();
}

/// A client that agrees to another text than it asked for, announces other keys than it has, or leaves.
#[test]
fn clients_that_cheat_about_their_question_get_no_answer() {
    let here = start(JOBS, 0);
    let ask = asking("spent", &over(0, "'x'"));
    let begin = |accepted: u64| {
        let mut session = here.connect();
        let mut said = Said::default();
        said.add(&wire::send(session.channel(), &Message::Ask(ask.clone())).unwrap());
        let (message, bytes) = wire::receive(session.channel(), wire::PROMPT).unwrap();
        said.add(&bytes);
        let Message::Offer(offer) = message else { panic!("{message:?}") };
        here.accept(&mut session, &offer, accepted, &mut said);
        (session, *offer, said)
    };
    // Another text in the agreement: both sides notice before anything is read, and the charge comes back.
    let (mut session, offer, said) = begin(30);
    let mut other = offer.clone();
    other.question.as_mut().unwrap().text = tacit::query::parse(&over(1, "'x'")).unwrap().text;
    let job = other.answer(Side::Client).unwrap();
    let agreement = other.agreement_on_question(&job, &said).unwrap();
    let error = crate::play::agree(&mut session, &agreement).unwrap_err().to_string();
    assert!(error.contains("question"), "{error}");
    drop(session);
    here.wait_for("refunded", 1);
    // The right text, by messages that were not said.
    let (mut session, offer, _) = begin(30);
    let job = offer.answer(Side::Client).unwrap();
    let agreement = offer.agreement_on_question(&job, &Said::default()).unwrap();
    assert!(crate::play::agree(&mut session, &agreement).unwrap_err().to_string().contains("terms"));
    drop(session);
    here.wait_for("refunded", 2);
    // Another question in the run than in the agreement: the circuits differ, which ends it before any result.
    let (mut session, offer, said) = begin(30);
    let job = offer.answer(Side::Client).unwrap();
    crate::play::agree(&mut session, &offer.agreement_on_question(&job, &said).unwrap()).unwrap();
    assert!(matches!(wire::receive(session.channel(), wire::PROMPT).unwrap().0, Message::Ready));
    let mut other = offer.clone();
    other.question.as_mut().unwrap().text = tacit::query::parse(
        &over(0, "'x'").replace("SUM(CLIP(a.cents, 0, 5000))", "MAX(CLIP(a.cents, 0, 5000))"),
    )
    .unwrap()
    .text;
    let wrong = other.answer(Side::Client).unwrap();
    let path = here.folder.path().join("ours.csv");
    let own = wrong
        .read_keys(Source::open(&path, wrong.key.clone(), Dialect::default()).unwrap(), &path, |_| ())
        .unwrap();
    let rows = wrong.read_rows(&own, false).unwrap();
    let asking =
        crate::play::Asking { offer: &offer, job: &wrong, keys: own.keys(), rows: &rows, peer_keys: 40 };
    assert!(crate::play::answer(&mut session, &asking, &()).is_err());
    drop(session);
    here.wait_for("broken off", 1);
    // Fewer keys announced than the run has.
    let (mut session, offer, said) = begin(3);
    crate::play::agree(&mut session, &offer.agreement_on_question(&job, &said).unwrap()).unwrap();
    wire::receive(session.channel(), wire::PROMPT).unwrap();
    let asking =
        crate::play::Asking { offer: &offer, job: &job, keys: own.keys(), rows: &rows, peer_keys: 40 };
    assert!(crate::play::answer(&mut session, &asking, &()).is_err());
    drop(session);
    here.wait_for("broken off", 2);
    let outcomes = listed(audit::load(&here.folder.path().join("state/records")).unwrap());
    let outcomes: Vec<&str> = outcomes.iter().map(audit::Record::outcome).collect();
    assert_eq!(outcomes, ["not begun", "not begun", "broken off", "broken off"]);
    // An acceptance that is none.
    let mut session = here.connect();
    wire::send(session.channel(), &Message::Ask(ask)).unwrap();
    wire::receive(session.channel(), wire::PROMPT).unwrap();
    let accept = Accept { keys: 30, commitment: "00".into(), head: hex(&[0; 32]), proof: None };
    wire::send(session.channel(), &Message::Accept(accept)).unwrap();
    let (message, _) = wire::receive(session.channel(), wire::PROMPT).unwrap();
    assert!(matches!(message, Message::Refusal(refusal) if refusal.rule == "version"));
    drop(session);
    let left = offered(&here, &asking_again()).unwrap().offer.left.clone();
    assert_eq!((left.runs_today, left.aggregates), (7, 28));
    here.end();
}

fn asking_again() -> Ask {
    asking("spent", &over(0, "'x'"))
}

/// The plan of somebody who asks twice: all, and all but a few. The difference is what those few have.
#[test]
fn questions_that_differ_by_a_few_keys_are_refused_charged_and_remembered() {
    let here = start(JOBS, 5);
    let passing = |least: u32| (0..40).filter(|id| id % 10 != 3 && cents(*id) >= least).count();
    let mut limits: Vec<u32> = (0..40).filter(|id| id % 10 != 3).map(cents).collect();
    limits.sort_unstable();
    // Limits that leave this many of the 36 keys out.
    let leaving = |out: usize| if out == 0 { 0 } else { limits[out - 1] + 1 };
    for out in [0, 1, 4, 6, 12] {
        assert_eq!(passing(leaving(out)), 36 - out);
    }
    let ask = |out: usize| asking("spent", &over(leaving(out), "'x'"));
    assert_eq!(answered(&here, &ask(0)).unwrap(), in_the_clear(0, "x"));
    for out in [1, 2, 4] {
        assert_eq!(refused(&here, &ask(out)), "min_difference", "{out}");
    }
    // The same keys again are no other keys.
    answered(&here, &ask(0)).unwrap();
    // Six fewer are enough, and are compared with from now on: eight fewer than all are two fewer than these.
    answered(&here, &ask(6)).unwrap();
    assert_eq!(refused(&here, &ask(8)), "min_difference");
    assert_eq!(refused(&here, &ask(4)), "min_difference");
    answered(&here, &ask(12)).unwrap();
    // Nine runs a day: a refusal of this rule tells of the table, and is charged as an answer.
    assert_eq!(refused(&here, &ask(0)), "runs_a_day");
    here.wait_for("done", 4);
    here.wait_for("broken off", 5);
    let private = std::fs::read_to_string(here.folder.path().join("state/records/private.jsonl")).unwrap();
    assert_eq!(
        private.matches("{\"refused\":\"min_difference\"}").count(),
        5,
        "the record says by which rule"
    );
    let outcomes = listed(audit::load(&here.folder.path().join("state/records")).unwrap());
    let refused = outcomes.iter().filter(|record| record.outcome() == "refused").count();
    assert_eq!((outcomes.len(), refused), (9, 5));
    // The client's record says the same, and none of them counts as a run that it left.
    let theirs = listed(audit::load(&here.folder.path().join("bob")).unwrap());
    assert_eq!(theirs.iter().filter(|record| record.outcome() == "refused").count(), 5);
    let day = theirs[0].value["common"]["started"].as_u64().unwrap();
    let folder = here.folder.path().join("state/records");
    let unsigned = crate::unsigned::Unsigned::of(&folder, crate::clock::Time(day).day(), 0).unwrap();
    let bob = outcomes[0].value["common"]["client"]["key"].as_str().unwrap();
    assert_eq!(unsigned.count(0, bob), 0);
    // What the next process reads of the ledger: the three sets, of this peer and this source alone.
    let charge = |peer: &str, source: &str| crate::ledger::Charge {
        run: String::new(),
        time: 5,
        job: "another".into(),
        source: source.into(),
        input: format!("place of {source}"),
        peer: peer.into(),
        fingerprint: peer.into(),
        rows: 0,
        aggregate: false,
        epsilon: 0,
    };
    let mut ledger = Ledger::look(&here.folder.path().join("state/ledger")).unwrap();
    let known = ledger.filters(&charge("bob", "table"));
    assert_eq!((known.len(), ledger.filters(&charge("eve", "table")).len()), (3, 0));
    assert_eq!(ledger.filters(&charge("bob", "other")).len(), 0);
    assert!(known.iter().all(|name| here.folder.path().join("state/filters").join(name).exists()));
    // A new name for the same peer is the same peer.
    ledger.suppose(&[vec!["peer bob".into(), "peer robert".into()]]);
    assert_eq!(ledger.filters(&charge("robert", "table")), known);
    // A ledger that is made shorter has them too.
    let path = here.folder.path().join("copy");
    std::fs::copy(here.folder.path().join("state/ledger"), &path).unwrap();
    let mut copy = Ledger::open(&path).unwrap();
    copy.shorten();
    drop(copy);
    assert_eq!(Ledger::look(&path).unwrap().filters(&charge("bob", "table")), known);
    here.end();
}

/// Which row of a key counts is compared too: a parameter that picks another row of one key alone would tell of it by a
/// difference, while the same keys pass.
#[test]
fn questions_of_the_same_keys_that_differ_by_a_few_rows_are_refused() {
    for first in [false, true] {
        let other = JOBS.replace("AND a.kind = :kind", "AND a.kind <> :kind");
        let jobs =
            if first { other.replace("min_group", "duplicates = \"first\"\nmin_group") } else { other };
        let here = start(&jobs, 5);
        let ask = |kind: &str| asking("spent", &over(0, kind).replace("a.kind =", "a.kind <>"));
        // Key 25 has two rows, one of each kind; all others have one of a third. With "first" all of them may pass.
        let row = |id: u32| format!("{id},{},none\n", cents(id));
        let mut table = (0..40).filter(|id| *id != 25).map(row).collect::<String>();
        table += "25,1000,x\n25,3000,it's\n";
        if first {
            table += "26,1,x\n";
        }
        std::fs::write(here.folder.path().join("table.csv"), format!("id,cents,kind\n{table}")).unwrap();
        answered(&here, &ask("'x'")).unwrap();
        assert_eq!(refused(&here, &ask("'it''s'")), "min_difference", "{first}");
        answered(&here, &ask("'x'")).unwrap();
        here.end();
        // With twenty keys of that kind there is nothing to tell apart.
        let here = start(&jobs, 5);
        let two = |id: u32| format!("{id},1000,x\n{id},3000,it's\n");
        let mut table = (0..20).map(row).collect::<String>();
        table += &(20..40).map(two).collect::<String>();
        std::fs::write(here.folder.path().join("table.csv"), format!("id,cents,kind\n{table}")).unwrap();
        let sums = ["'x'", "'it''s'"].map(|kind| answered(&here, &ask(kind)).unwrap());
        assert_eq!(sums, [3000, 1000].map(|each| vec![vec![Cell::Integer(20), Cell::Integer(20 * each)]]));
        here.end();
    }
}

/// Two rows with one key that both pass end a run, which tells something about that key: so what passes is compared
/// first, and kept.
#[test]
fn a_key_with_two_rows_ends_a_run_only_after_what_passes_was_compared() {
    let here = start(JOBS, 5);
    let row = |id: u32| format!("{id},{},x\n", id * 10);
    let table = (0..40).map(row).collect::<String>();
    std::fs::write(here.folder.path().join("table.csv"), format!("id,cents,kind\n{table}25,100,x\n"))
        .unwrap();
    let ask = |least: u32| asking("spent", &over(least, "'x'"));
    assert_eq!(refused(&here, &ask(0)), "source", "both rows of key 25 pass");
    // One key fewer, and both rows still pass: the refusal does not tell which key it is.
    assert_eq!(refused(&here, &ask(1)), "min_difference");
    assert_eq!(refused(&here, &ask(20)), "min_difference");
    // Key 25 has one row here, and eleven keys have none.
    assert_eq!(answered(&here, &ask(110)).unwrap()[0][0], Cell::Integer(20));
    assert_eq!(refused(&here, &ask(100)), "min_difference", "two again, beside one key more");
    here.end();
}

/// Rows that a subquery adds up are compared as rows that count: a key with one row more or less is told from the same
/// key, in the same question after a change of the table and between questions with and without the subquery.
#[test]
fn rows_that_are_added_up_are_compared_too() {
    let questions = "[jobs.spent.questions.all]\nsql = \"\"\"SELECT COUNT(*) AS n, SUM(CLIP(a.s, 0, 9000)) AS s FROM\n\
        (SELECT id, SUM(cents) AS s FROM ours WHERE kind <> :none GROUP BY id) a JOIN theirs b ON a.id = b.id\n\
        WHERE a.s >= 0 HAVING COUNT(*) >= 2\"\"\"\nparameters.none = { type = \"text\", values = [\"none\"] }\n";
    let all = "SELECT COUNT(*) AS n, SUM(CLIP(a.s, 0, 9000)) AS s FROM (SELECT id, SUM(cents) AS s FROM ours \
               WHERE kind <> 'none' GROUP BY id) a JOIN theirs b ON a.id = b.id WHERE a.s >= 0 HAVING COUNT(*) >= 2";
    let jobs = format!("{}{questions}", JOBS.replace("min_group", "duplicates = \"first\"\nmin_group"));
    let write = |here: &Here, more: &str| {
        let table = (0..40).map(|id| format!("{id},{},x\n", cents(id))).collect::<String>();
        std::fs::write(here.folder.path().join("table.csv"), format!("id,cents,kind\n{table}{more}"))
            .unwrap();
    };
    let here = start(&jobs, 5);
    write(&here, "25,700,x\n");
    answered(&here, &asking("spent", &over(0, "'x'"))).unwrap();
    assert_eq!(refused(&here, &asking("spent", all)), "min_difference", "key 25 has a second row");
    // Without it both are of the same rows.
    write(&here, "");
    assert_eq!(answered(&here, &asking("spent", all)).unwrap().len(), 1);
    write(&here, "25,700,x\n");
    assert_eq!(refused(&here, &asking("spent", all)), "min_difference", "a row came");
    write(&here, "25,700,none\n");
    assert_eq!(answered(&here, &asking("spent", all)).unwrap().len(), 1, "and does not count");
    here.end();
}

/// A value between the least and the most at which a question becomes another one, which no check of a policy can find.
#[test]
fn a_value_at_which_a_question_changes_more_than_its_filter_is_refused_before_it_costs_anything() {
    let jobs = JOBS.replace(
        "WHERE a.cents >= :least",
        "WHERE CASE WHEN :least = 3 THEN a.cents <> 379 ELSE b.id >= '0' END",
    );
    let here = start(&jobs, 5);
    let ask = |least: u32| {
        let sql = over(least, "'x'").replace(
            &format!("a.cents >= {least}"),
            &format!("CASE WHEN {least} = 3 THEN a.cents <> 379 ELSE b.id >= '0' END"),
        );
        asking("spent", &sql)
    };
    assert_eq!(refused(&here, &ask(3)), "min_difference");
    let left = offered(&here, &ask(4)).unwrap().offer.left.clone();
    assert_eq!(left.runs_today, 9);
    here.end();
}

/// Keys that are read in another way would all be others, and nothing would be compared: a service says so and answers
/// nothing until its operator has set the key back.
#[test]
fn after_a_change_of_the_key_nothing_is_compared_and_nothing_answered() {
    let here = start(JOBS, 5);
    let ask = |least: u32| asking("spent", &over(least, "'x'"));
    answered(&here, &ask(0)).unwrap();
    let path = here.folder.path().join("policy.toml");
    let policy = std::fs::read_to_string(&path).unwrap();
    let changed = policy.replace("key = [\"id\"]", "key = [\"id\"]\ncase_fold = false");
    assert_ne!(changed, policy);
    std::fs::write(&path, changed).unwrap();
    here.signals.send(Signal::Reload).unwrap();
    here.wait_for("reloaded", 1);
    assert_eq!(refused(&here, &ask(0)), "min_difference");
    assert_eq!(refused(&here, &ask(2000)), "min_difference");
    let logged = here.wait_for("refused", 1).words;
    assert!(logged.contains("`key` of [sources.table]"), "the operator is told: {logged}");
    std::fs::write(&path, policy).unwrap();
    here.signals.send(Signal::Reload).unwrap();
    here.wait_for("reloaded", 2);
    answered(&here, &ask(0)).unwrap();
    here.end();
}

/// Epsilons add up over questions and restarts, and what has no noise is not answered.
#[test]
fn a_budget_of_epsilon_is_counted_and_no_restart_resets_it() {
    let sql = |end: &str| {
        format!(
            "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.id = b.id WHERE a.cents >= 0 HAVING COUNT(*) >= 2{end}"
        )
    };
    let jobs = ANY.to_owned();
    let budget = |text: &str| text.replace("min_difference = 0", "epsilon_in_total = 1.25");
    let here = Here::start_changed(&jobs, |text| {
        budget(
            &text
                .replace("concurrency_per_peer = 1", "concurrency_per_peer = 4")
                .replace("aggregate_runs = 3", "aggregate_runs = 30\nmin_difference = 0"),
        )
    });
    let table = (0..40).map(|id| format!("{id},{},x\n", cents(id))).collect::<String>();
    std::fs::write(here.folder.path().join("table.csv"), format!("id,cents,kind\n{table}")).unwrap();
    let ask = |end: &str| Ask { result: Some("client".into()), ..asking("any", &sql(end)) };
    assert_eq!(refused(&here, &ask("")), "epsilon_in_total");
    assert_eq!(refused(&here, &ask(" WITH NOISE EPSILON 1.5")), "epsilon_in_total");
    let found = answered(&here, &ask(" WITH NOISE EPSILON 0.5")).unwrap();
    // Of twenty common keys, with noise of 1.9 on average: at least two, but for once in ten thousand runs.
    assert!(found.len() == 1 && found[0].len() == 1, "{found:?}");
    let offer = offered(&here, &ask(" WITH NOISE EPSILON 0.75")).unwrap();
    let words = offer.offer.question_words().unwrap().join("\n");
    assert!(words.contains("noise: this question takes epsilon 0.75 of the 0.75 that alice"), "{words}");
    let terms = offer.offer.hash().unwrap();
    drop(offer);
    assert_eq!(refused(&here, &ask(" WITH NOISE EPSILON 0.8")), "epsilon_in_total");
    answered(&here, &ask(" WITH NOISE EPSILON 0.2")).unwrap();
    // What is left changes no terms.
    let later = offered(&here, &ask(" WITH NOISE EPSILON 0.75"));
    assert!(later.is_err(), "0.55 is left");
    let first = offered(&here, &ask(" WITH NOISE EPSILON 0.5")).unwrap().offer.hash().unwrap();
    assert_ne!(first, terms);
    answered(&here, &ask(" WITH NOISE EPSILON 0.05")).unwrap();
    assert_eq!(offered(&here, &ask(" WITH NOISE EPSILON 0.5")).unwrap().offer.hash().unwrap(), first);
    answered(&here, &ask(" WITH NOISE EPSILON 0.45")).unwrap();
    // The service's own answers cost nothing.
    let own = Ask { result: Some("service".into()), ..ask("") };
    let words = offered(&here, &own).unwrap().offer.question_words().unwrap().join("\n");
    assert!(!words.contains("noise:"), "{words}");
    let listed = request::list(here.connect()).unwrap();
    let job = listed.iter().find(|listed| listed.job == "any").unwrap();
    assert!(job.words().join("\n").contains("and an epsilon of 0.05"), "{listed:?}");
    here.wait_for("done", 4);
    // What the next process reads, of the whole ledger and of a shorter one.
    let charge = crate::ledger::Charge {
        run: String::new(),
        time: 5,
        job: "any".into(),
        source: "table".into(),
        input: String::new(),
        peer: "bob".into(),
        fingerprint: "bob".into(),
        rows: 0,
        aggregate: false,
        epsilon: 0,
    };
    let path = here.folder.path().join("copy");
    std::fs::copy(here.folder.path().join("state/ledger"), &path).unwrap();
    assert_eq!(Ledger::look(&path).unwrap().spent(&charge).epsilon, 1_200_000);
    let mut copy = Ledger::open(&path).unwrap();
    copy.shorten();
    drop(copy);
    assert_eq!(Ledger::look(&path).unwrap().spent(&charge).epsilon, 1_200_000);
    assert_eq!(refused(&here, &ask(" WITH NOISE EPSILON 0.1")), "epsilon_in_total");
    here.end();
}

/// A service that cannot compare answers nothing.
#[test]
fn without_its_earlier_questions_a_service_that_compares_answers_none() {
    let here = start(JOBS, 6);
    answered(&here, &asking("spent", &over(0, "'x'"))).unwrap();
    let folder = here.folder.path().join("state/filters");
    let kept = std::fs::read(folder.join("key")).unwrap();
    let warned = || {
        let policy = Policy::load(&here.folder.path().join("policy.toml")).unwrap();
        let checked = crate::check::examine(&policy, crate::clock::Time::now());
        checked.warnings.iter().any(|warning| warning.contains("questions are not compared"))
    };
    assert!(!warned());
    std::fs::remove_file(folder.join("key")).unwrap();
    assert!(warned(), "before anybody asks");
    assert_eq!(refused(&here, &asking("spent", &over(0, "'x'"))), "min_difference");
    std::fs::write(folder.join("key"), kept).unwrap();
    answered(&here, &asking("spent", &over(0, "'x'"))).unwrap();
    let sketch =
        std::fs::read_dir(&folder).unwrap().flatten().find(|file| file.file_name() != "key").unwrap();
    std::fs::write(sketch.path(), b"damaged").unwrap();
    assert!(warned());
    assert_eq!(refused(&here, &asking("spent", &over(0, "'x'"))), "min_difference");
    here.end();
}

/// An error in a cell depends on the question and the table: it comes after the charge, and says no more.
#[test]
fn a_cell_that_cannot_be_read_ends_a_run_that_is_charged() {
    let here = start(JOBS, 0);
    let path = here.folder.path().join("table.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\n7,", "\n7,secret", 1)).unwrap();
    let error = answered(&here, &asking("spent", &over(0, "'x'"))).err().unwrap().to_string();
    assert!(error.contains("`source`") && !error.contains("secret"), "{error}");
    here.wait_for("broken off", 1);
    let left = offered(&here, &asking("spent", &over(0, "'x'"))).unwrap().offer.left.clone();
    assert_eq!((left.runs_today, left.aggregates), (8, 29));
    here.end();
}

/// What a user takes at least.
#[test]
fn terms_below_what_the_user_takes_are_rejected() {
    let owner = ANY.replace("[\"peer\", \"me\"]", "[\"peer\", \"both\", \"me\"]\nresult_to_owner = true");
    let here = start(&owner, 0);
    let join = "FROM ours a JOIN theirs b ON a.id = b.id";
    let count = format!("SELECT COUNT(*) AS n {join} HAVING COUNT(*) >= 2");
    let own = format!("SELECT SUM(CLIP(b.x, 0, 9)) AS n {join} HAVING COUNT(*) >= 2");
    let admits = |sql: &str, result: &str, floor: AnswerFloor<'_>| {
        let ask = Ask { result: Some(result.into()), ..asking("any", sql) };
        let taken = offered(&here, &ask).unwrap();
        let words = taken.offer.words(30).unwrap();
        let found = taken.admit_answer(&floor).map(|_| words).map_err(|error| error.to_string());
        taken.decline().unwrap();
        found
    };
    let refused = |found: Result<Vec<String>, String>, word: &str| {
        let error = found.unwrap_err();
        assert!(error.contains(word), "{word}: {error}");
    };
    let words = admits(&count, "client", FLOOR).unwrap().join("\n");
    for said in [
        "job any: question to bob (client)",
        "question: SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.\"id\" = b.\"id\" HAVING COUNT(*) >= 2",
        "ours is the table of alice (service), whose columns the question uses: id to join",
        "groups of at least 2 joined rows; the rules of alice (service) require at least 2 and at most 3 groups",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    refused(admits(&count, "client", AnswerFloor { security: Security::Malicious, ..FLOOR }), "semi-honest");
    refused(admits(&count, "client", AnswerFloor { min_group: 10, ..FLOOR }), "min-group");
    refused(admits(&count, "client", AnswerFloor { allowed: Some(&[]), ..FLOOR }), "id:join");
    refused(
        admits(&count, "client", AnswerFloor { most_service_keys: Some(39), ..FLOOR }),
        "40 distinct keys",
    );
    refused(admits(&count, "client", AnswerFloor { post_quantum: true, ..FLOOR }), "quantum");
    refused(admits(&count, "client", AnswerFloor { terms: Some([7; 32]), ..FLOOR }), "terms changed");
    refused(admits(&count, "service", FLOOR), "result");
    refused(admits(&own, "client", FLOOR), "result-to-owner");
    let words = admits(&own, "client", AnswerFloor { result_to_owner: true, ..FLOOR }).unwrap().join("\n");
    assert!(words.contains("a side gets what is made of its own columns"), "{words}");
    // Allowed, and not needed.
    admits(&count, "client", AnswerFloor { result_to_owner: true, ..FLOOR }).unwrap();
    here.end();
}

/// The faults of questions, each in a policy that is whole without it.
#[test]
fn every_fault_of_a_question_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["alice", "bob"] {
        Identity::generate().unwrap().save(&folder.path().join(format!("{name}.key")), "").unwrap();
    }
    let good = crate::tests::policy(folder.path(), 1, &format!("{JOBS}{ANY}"));
    let fine = Policy::parse(&good, folder.path()).unwrap();
    let words = explain(&fine).join("\n");
    for said in [
        "job spent: answers to 1 question in SQL about table and a table of the client; bob may start 9 runs a day",
        "spent: a question may use these columns of alice (service): id to join, cents to filter",
        "at most 3 groups, and shows none of fewer than 2 joined rows",
        "question over: SELECT COUNT(*) AS n",
        "in over, :least is an integer, from 0 to 3000",
        "in over, :kind is a text, one of 'x', 'it''s'",
        "spent: bob (client) may get the result, alice (service) nothing",
        "job any: answers to any question in SQL",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    let compared = ("aggregate_runs = 3", "aggregate_runs = 3\nmin_difference = 5");
    let cases = [
        ("security = \"semi-honest\"\n", "", "set `security = \"semi-honest\"`"),
        ("security = \"semi-honest\"\n", "security = \"malicious\"\n", "set `security = \"semi-honest\"`"),
        ("security = \"semi-honest\"\n", "security = \"some\"\n", "no `some`"),
        ("\"id:join\", ", "", "column `id` of `ours` to join (rule `columns`)"),
        ("\"id:join\", ", "\"id:look\", ", "write COL:USE"),
        ("columns = [\"id:join\"", "column = [\"id:join\"", "needs `columns`"),
        ("min_group = 2", "min_group = 3", "HAVING COUNT(*) >= 3 in it (rule `min_group`)"),
        ("max_groups = 3", "max_groups = 2000", "from 1 to 1024"),
        (
            "max_peer_keys = 1000\nruns_a_day = 9\n[jobs.spent.q",
            "runs_a_day = 9\n[jobs.spent.q",
            "needs `max_peer_keys`",
        ),
        ("questions = \"any\"", "questions = \"all\"", "no `all`"),
        ("questions = \"any\"\n", "", "needs `questions`"),
        ("sql = \"\"\"SELECT", "sql = \"\"\"SELEKT", "`sql`: a question begins with SELECT"),
        ("sql = \"\"\"SELECT", "text = \"\"\"SELECT", "needs `sql`"),
        ("a.cents >= :least", "a.cents >= :most", "`:most` is not a parameter"),
        ("a.cents >= :least", "a.cents >= 5", "`:least` is not in the text"),
        ("a.id = b.id", "a.cents = b.id", "is joined by id"),
        ("type = \"integer\", ", "type = \"number\", ", "no type `number`"),
        ("type = \"integer\", ", "", "needs `type`"),
        ("least = 0, most = 3000", "least = 0", "`values` or as `least` and `most`"),
        ("least = 0, most = 3000", "least = 0, most = true", "a number, a date, or a text in quotes"),
        ("values = [\"x\", \"it's\"]", "values = []", "`values` or as `least` and `most`"),
        ("output = \"results\"\n", "", "`output` must name the directory"),
        ("rows_in_total = 1000\n", "", "`rows_in_total` in [sources.table]"),
        (compared.0, compared.1, "list templates in place of \"any\""),
        (compared.0, "aggregate_runs = 3\nmin_difference = 5000", "from 0 to 1000"),
        (compared.0, "aggregate_runs = 3\nmin_difference = 1", "1 refuses nothing"),
        (
            compared.0,
            "aggregate_runs = 3\nmin_difference = 5\nepsilon_in_total = 2",
            "tell of keys without noise",
        ),
        ("key = [\"id\"]", "key = [\"id\"]\nor_keys = [\"cents\"]", "a question joins by one key"),
        ("min_group = 2", "min_grup = 2", "did you mean `min_group`?"),
    ];
    for (from, to, word) in cases {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        let faults = Policy::parse(&bad, folder.path()).unwrap_err();
        assert!(faults.iter().any(|fault| fault.what.contains(word)), "{to}: {faults:?}");
        let lines = bad.lines().count();
        assert!(faults.iter().all(|fault| (1..=lines).contains(&fault.line)), "{to}: {faults:?}");
        assert!(faults.iter().all(|fault| !fault.what.contains('\n')), "{to}: {faults:?}");
    }
    // A parameter that min_difference does not see is refused by name.
    let hidden = good.replace(ANY, "").replace(compared.0, compared.1);
    Policy::parse(&hidden, folder.path()).unwrap();
    let hidden =
        hidden.replace("SUM(CLIP(a.cents, 0, 5000))", "SUM(CASE WHEN a.cents > :least THEN 1 ELSE 0 END)");
    let faults = Policy::parse(&hidden, folder.path()).unwrap_err();
    assert!(
        faults[0].what.contains("`:least` changes what is counted, compared or shown of a row"),
        "{faults:?}"
    );
}

/// What a peer is answered of a table is known of it whatever the source is called.
#[test]
fn sources_of_one_table_have_one_rule_for_questions() {
    let here = start(JOBS, 5);
    let text = std::fs::read_to_string(here.folder.path().join("policy.toml")).unwrap();
    let second =
        JOBS.replace("[jobs.spent", "[jobs.other").replace("source = \"table\"", "source = \"second\"");
    let of = |source: &str, job: &str| {
        let text = format!("{text}[sources.second]\nrows_in_total = 99\naggregate_runs = 9\n{source}\n{job}");
        Policy::parse(&text, here.folder.path()).map(|_| ()).map_err(|faults| faults[0].what.clone())
    };
    let same = "input = \"table.csv\"\nkey = [\"id\"]\n";
    let ruled = format!("{same}min_difference = 5");
    assert_eq!(of(&ruled, &second), Ok(()));
    // Another file, and a source that answers no question, are free.
    assert_eq!(of(&same.replace("table.csv", "ours.csv"), &second), Ok(()));
    let rows = "[jobs.other]\nsource = \"second\"\nallow = [\"bob\"]\nreveal = [\"rows\"]\nresult = [\"peer\"]\n\
                max_peer_keys = 9\nruns_a_day = 1\n";
    assert_eq!(of(same, rows), Ok(()));
    std::os::unix::fs::symlink("table.csv", here.folder.path().join("link.csv")).unwrap();
    std::fs::create_dir(here.folder.path().join("inner")).unwrap();
    std::os::unix::fs::symlink("../table.csv", here.folder.path().join("inner/of.csv")).unwrap();
    for (source, word) in [
        (same.to_owned(), "the same `input`, `min_difference`"),
        (format!("{same}min_difference = 4"), "the same `input`, `min_difference`"),
        (format!("{same}epsilon_in_total = 2"), "the same `input`, `min_difference`"),
        (
            ruled.replace("\"table.csv\"", "[\"table.csv\", \"ours.csv\"]"),
            "the same `input`, `min_difference`",
        ),
        (same.replace("table.csv", "./table.csv"), "the same `input`, `min_difference`"),
        (same.replace("table.csv", "link.csv"), "the same `input`, `min_difference`"),
        (same.replace("table.csv", "t*.csv"), "the same `input`, `min_difference`"),
        (same.replace("table.csv", "l?nk.csv"), "the same `input`, `min_difference`"),
        (same.replace("table.csv", "inner"), "the same `input`, `min_difference`"),
        (ruled.replace("table.csv", "inner/*.csv"), "the same `input`, `min_difference`"),
        (format!("{ruled}\nencoding = \"windows-1252\""), "the same `key`"),
        (format!("{ruled}\nnull = [\"7\"]"), "the same `key`"),
        (format!("{ruled}\nquote = \"'\""), "the same `key`"),
        (format!("{ruled}\ncase_fold = false"), "the same `key`"),
        (ruled.replace("[\"id\"]", "[\"id:email\"]"), "the same `key`"),
        (ruled.replace("[\"id\"]", "[\"kind\"]"), "the same `key`"),
    ] {
        let fault = of(&source, &second).unwrap_err();
        assert!(fault.contains(word) || fault.contains("is joined by"), "{source}: {fault}");
    }
    here.end();
}
