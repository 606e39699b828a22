//! `tacit serve` and `tacit request --sql` between real processes: answers against the same computed in the clear, budgets
//! and comparisons that outlive a restart, and what is refused.

use crate::common::town::{Service, Town};
use serde_json::{Value, json};

const JOB: &str = "[jobs.spending]\nkind = \"question\"\nsource = \"customers\"\nallow = [\"bob\"]\n\
    columns = [\"email:join\", \"amount:filter\", \"amount:aggregate\"]\nresult = [\"peer\"]\n\
    security = \"semi-honest\"\nmin_group = 3\nmax_groups = 4\nmax_peer_keys = 1000\nruns_a_day = 6\n\
    purpose = \"a study\"\n[jobs.spending.questions.by_segment]\nsql = \"\"\"\n\
    SELECT b.segment, COUNT(*) AS n, SUM(CLIP(a.amount, 0, 99)) AS spent -- :least of ours\n\
    FROM ours a JOIN theirs b ON a.email = b.mail\n\
    WHERE a.amount >= :least AND b.segment IN ('basic', 'plus', 'rare')\nGROUP BY b.segment HAVING COUNT(*) >= 3\"\"\"\n\
    [jobs.spending.questions.by_segment.parameters.least]\ntype = \"integer\"\nleast = 0\nmost = 30\n";

/// What one peer may get of the table, compared or not.
fn source(min_difference: u64) -> String {
    format!("rows_in_total = 100000\naggregate_runs = 1000\nmin_difference = {min_difference}\n")
}

fn question(least: u32) -> String {
    format!(
        "select b.segment, count(*) as n, sum(CLIP(a.amount, 0, 99)) as spent from ours a join theirs b on a.email = b.mail \
         where a.amount >= {least} and b.segment in ('basic', 'plus', 'rare') group by b.segment having count(*) >= 3;"
    )
}

const fn segment(number: u32) -> &'static str {
    match number % 8 {
        0 => "rare",
        1..=3 => "plus",
        _ => "basic",
    }
}

/// A town whose client has segments: 20 of its 30 keys are the service's too.
fn town() -> Town {
    let town = Town::new();
    let row = |number: u32| format!("user{number}@example.com,{}\n", segment(number));
    town.bench.write("members.csv", "mail,segment\n".to_owned() + &(20..50).map(row).collect::<String>());
    town
}

/// The words of a question, for [`Town::ask`], which the helper gives a key otherwise.
fn asking<'w>(sql: &'w str, more: &[&'w str]) -> Vec<&'w str> {
    [&["--input", "members.csv", "--sql", sql, "--security", "semi-honest", "--min-group", "3"], more]
        .concat()
}

/// The rows that the tables give in the clear.
fn in_the_clear(least: u32) -> Value {
    let of = |name: &str| {
        let common = (20..40).filter(|number| *number >= least && segment(*number) == name);
        let found: Vec<u32> = common.collect();
        (found.len() >= 3).then(|| json!([name, found.len(), found.iter().sum::<u32>()]))
    };
    ["basic", "plus", "rare"].into_iter().filter_map(of).collect()
}

#[test]
fn a_service_answers_its_questions_and_both_sides_record_them() {
    let town = town();
    town.policy("", &source(0), JOB);
    let check = town.bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    for words in [
        "job spending: answers to 1 question in SQL about customers",
        "in by_segment, :least is an integer, from 0 to 30",
        "spending: purpose: a study",
        "spending: bob has 1000 aggregates and 100000 rows left, and an answer is charged 1 and 40: room for 1000 runs",
    ] {
        assert!(check.success().contains(words), "{words}: {check:?}");
    }
    let service = Service::start(&town.bench);
    let list = town.bench.run(&[
        "request",
        "--list",
        "--connect",
        &format!("127.0.0.1:{}", town.port),
        "--identity",
        "bob.key",
        "--peer",
        "alice.pub",
    ]);
    for words in [
        "spending: question to client",
        "question by_segment: SELECT b.segment",
        "WHERE a.amount >= :least AND b.segment IN ('basic', 'plus', 'rare') GROUP BY b.segment HAVING",
        ":least is an integer, from 0 to 30",
    ] {
        assert!(list.success().contains(words), "{words}: {list:?}");
    }

    // Terms say what is asked of whom before anything is sent.
    let sql = question(25);
    let terms = town.granted("bob", "spending", &asking(&sql, &["--dry-run"]));
    let words = terms["words"].to_string();
    // The text as a whole, however long it is: what was left out of it could be a condition.
    let text = "SELECT b.segment, COUNT(*) AS n, SUM(CLIP(a.amount, 0, 99)) AS spent FROM ours a JOIN theirs b \
                ON a.email = b.mail WHERE a.amount >= 25 AND b.segment IN ('basic', 'plus', 'rare') \
                GROUP BY b.segment HAVING COUNT(*) >= 3";
    let by = format!("question, by the service's template by_segment: {text}");
    for said in [&*by, "amount to filter", "theirs is the table of bob (client)"] {
        assert!(words.contains(said), "{said}: {words}");
    }
    assert_eq!((&terms["refused"], &terms["own_keys"]), (&Value::Null, &json!(30)));
    let hash = terms["terms_hash"].as_str().unwrap();

    for least in [0, 25, 30] {
        let sql = question(least);
        let found = town.granted(
            "bob",
            "spending",
            &asking(&sql, &["--allow", "mail:join,segment:filter,segment:group"]),
        );
        assert_eq!(found["rows"], in_the_clear(least), "{least}: {found}");
        assert_eq!((&found["template"], &found["signed_by_both"]), (&json!("by_segment"), &json!(true)));
        assert_eq!((&found["groups"], &found["peer_keys"]), (&json!(3), &json!(40)));
        let shown = found["rows"].as_array().unwrap().len();
        assert_eq!(found["groups_not_shown"], json!(3 - shown));
    }
    // By its name, with the value alone: the same text.
    let by_name = |more: &[&'static str]| {
        let first = ["--input", "members.csv", "--security", "semi-honest", "--min-group", "3", "--question"];
        [&first[..], more].concat()
    };
    let named = town.granted("bob", "spending", &by_name(&["by_segment", "--set", "least=25", "--dry-run"]));
    assert_eq!(named["terms_hash"], terms["terms_hash"]);
    let found = town.granted("bob", "spending", &by_name(&["by_segment", "--set", ":least=25"]));
    assert_eq!((&found["rows"], &found["template"]), (&in_the_clear(25), &json!("by_segment")));
    for (wrong, said) in [
        (&["by_segment"][..], "--set: least has no value; give it one: :least is an integer, from 0 to 30"),
        (&["by_segment", "--set", "least=1", "--set", "least=2"], "least has two values"),
        (&["by_segment", "--set", "most=1"], "the question by_segment has no parameter most; it has least"),
        (&["by_segment", "--set", "least=a"], "`a` is not an integer"),
        (&["by_segment", "--set", "least"], "write NAME=VALUE"),
        (&["segments"], "--question: the job spending has no question segments; it has by_segment"),
        (&["by_segment", "--set", "least=1", "--sql", "x"], "cannot be used with"),
    ] {
        town.ask("bob", "spending", &by_name(wrong)).fails_with(2, &[said]);
    }
    // What the service does not allow is the service's refusal.
    town.ask("bob", "spending", &by_name(&["by_segment", "--set", "least=31"]))
        .fails_with(4, &["`questions`", "from 0 to 30"]);
    // As a table in a file, by terms that were pinned; a question in a file, from a service with other terms.
    town.bench.write("q.sql", &sql);
    let more =
        ["--input", "members.csv", "--sql-file", "q.sql", "--security", "semi-honest", "--min-group", "3"];
    town.granted("bob", "spending", &[&more[..], &["--terms", hash, "--output", "answer.csv"]].concat());
    let answer = town.bench.read("answer.csv");
    assert!(answer.starts_with("segment,n,spent\nbasic,"), "{answer}");
    let other = question(24);
    town.ask("bob", "spending", &asking(&other, &["--terms", hash])).fails_with(4, &["terms changed"]);

    let log = service.end();
    assert!(!log.iter().any(|event| event.to_string().contains("user2")), "no key is in the log");
    for whose in ["state/records", "bob.records"] {
        assert_eq!(town.verify(whose, &[])["signed_by_both"], 5, "{whose}");
    }
    town.bench
        .run(&["audit", "export", "state/records", "--peer", "bob.pub", "--output", "for-bob.jsonl"])
        .success();
    let compared = town.verify(
        "bob.records",
        &["--key", "bob.pub", "--against", "for-bob.jsonl", "--against-key", "alice.pub"],
    );
    assert_eq!(compared["compared"], 5);
    let shown = town.bench.run(&["audit", "show", "bob.records"]);
    assert!(shown.success().contains("job spending: question to"), "{shown:?}");
    assert!(shown.success().contains("a.amount >= 25"), "{shown:?}");
}

#[test]
fn what_is_no_question_of_the_service_is_refused_by_its_rule() {
    let town = town();
    town.policy("", &source(0), JOB);
    let service = Service::start(&town.bench);
    let injected = question(0).replace("a.amount >= 0", "(a.amount >= 0 or 1 = 1)");
    let other = question(0).replace("sum(", "max(");
    let value = question(31);
    let hidden = question(0).replace("'rare'", "'rare'' OR TRUE --'");
    for sql in [&injected, &other, &value, &hidden] {
        let message = town.refused("bob", "spending", "questions", &asking(sql, &[]));
        assert!(!message.contains("user"), "{message}");
    }
    let message = town.refused("bob", "spending", "questions", &asking(&value, &[]));
    assert!(message.contains(":least is an integer, from 0 to 30, and the question has 31"), "{message}");
    let sql = question(0);
    town.refused("carol", "spending", "allow", &asking(&sql, &[]));
    town.refused("bob", "spending", "result", &asking(&sql, &["--result", "both"]));
    town.refused("bob", "spending", "questions", &[]);
    // What the client's own rules say, before the service hears more than the question.
    for (more, words) in [
        (&["--security", "malicious"][..], "--security"),
        (&["--allow", "mail:join"], "segment:group"),
        (&["--min-group", "4"], "--min-group"),
    ] {
        let words_of = ["--input", "members.csv", "--sql", &sql];
        let usual = [("--security", "semi-honest"), ("--min-group", "3")];
        let usual = usual
            .iter()
            .filter(|(option, _)| !more.contains(option))
            .flat_map(|(option, value)| [*option, *value]);
        let all: Vec<&str> = words_of.into_iter().chain(usual).chain(more.iter().copied()).collect();
        town.ask("bob", "spending", &all).fails_with(2, &[words]);
    }
    for (more, words) in [
        (&["--key", "mail"][..], "the question names the key"),
        (&["--reveal", "count"], "--reveal"),
        (&["--output-rest", "rest.csv"], "--output-rest"),
        (&["--duplicates", "all"], "--duplicates"),
    ] {
        town.ask("bob", "spending", &asking(&sql, more)).fails_with(2, &[words]);
    }
    town.ask("bob", "spending", &asking("SELECT 1", &[])).fails_with(2, &["the question"]);
    assert!(service.events("granted").is_empty());
    service.end();
}

/// A policy with a template that is none has one line for it, and starts no service.
#[test]
fn a_wrong_template_is_refused_with_its_line() {
    let town = town();
    for (from, to, words) in [
        ("GROUP BY b.segment HAVING", "GROUP BY :least HAVING", "GROUP BY 0 names nothing"),
        ("SUM(CLIP(a.amount, 0, 99))", "SUM(a.amount)", "`sql`:"),
        ("amount:aggregate", "amount:group", "does not let a question use the column `amount`"),
        ("min_group = 3", "min_group = 9", "HAVING COUNT(*) >= 9"),
        ("max_groups = 4", "max_groups = 2", "has 3 groups"),
    ] {
        town.policy("", &source(0), &JOB.replace(from, to));
        let said = town.bench.run(&["serve", "--policy", "policy.toml", "--check"]);
        said.fails_with(3, &["policy.toml, line ", words]);
    }
    // A column that the table does not have, and cells that are no numbers, show on today's table.
    town.policy("", &source(0), &JOB.replace("a.amount", "a.email").replace("amount:", "email:"));
    let said = town.bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    said.fails_with(3, &["the question by_segment", "email"]);
    assert!(!said.err.contains("user1@"), "{said:?}");
    town.policy("", &source(0), &JOB.replace("a.amount", "a.amont").replace("amount:", "amont:"));
    town.bench.run(&["serve", "--policy", "policy.toml", "--check"]).fails_with(3, &["no column `amont`"]);
}

/// Runs and earlier questions are counted in files: a process that is killed forgets none of them.
#[test]
fn no_restart_gives_budgets_or_earlier_questions_again() {
    let town = town();
    town.policy("", &source(8), JOB);
    let service = Service::start(&town.bench);
    // 40 keys, and 20 of them.
    let (all, half) = (question(0), question(20));
    town.granted("bob", "spending", &asking(&all, &[]));
    service.kill();
    let service = Service::start(&town.bench);
    let near = question(5);
    let message = town.refused("bob", "spending", "min_difference", &asking(&near, &[]));
    assert!(message.contains("by fewer than 8 keys; the run is charged"), "{message}");
    town.granted("bob", "spending", &asking(&half, &[]));
    service.kill();
    let service = Service::start(&town.bench);
    let near = question(22);
    town.refused("bob", "spending", "min_difference", &asking(&near, &[]));
    town.granted("bob", "spending", &asking(&all, &[]));
    town.granted("bob", "spending", &asking(&half, &[]));
    // Six runs a day, two of them refused: each was charged.
    town.refused("bob", "spending", "runs_a_day", &asking(&all, &[]));
    service.kill();
    let service = Service::start(&town.bench);
    town.refused("bob", "spending", "runs_a_day", &asking(&all, &[]));
    service.end();
    assert_eq!(town.verify("bob.records", &[])["signed_by_both"], 4);
}

/// A side that gets what is made of its own columns has to be allowed that, by both, in so many words.
#[test]
fn an_owner_gets_its_own_numbers_only_where_both_say_so() {
    let town = town();
    let any = JOB
        .split("[jobs.spending.questions")
        .next()
        .unwrap()
        .replace("columns", "questions = \"any\"\ncolumns");
    town.policy("", &source(0), &any);
    let sql = "SELECT SUM(CLIP(b.points, 0, 9)) AS p FROM ours a JOIN theirs b ON a.email = b.mail HAVING COUNT(*) >= 3";
    let rows =
        (20..50).map(|number| format!("user{number}@example.com,{}\n", number % 10)).collect::<String>();
    town.bench.write("members.csv", format!("mail,points\n{rows}"));
    let service = Service::start(&town.bench);
    town.refused("bob", "spending", "result_to_owner", &asking(sql, &["--result-to-owner"]));
    service.end();
    town.policy("", &source(0), &any.replace("min_group", "result_to_owner = true\nmin_group"));
    let service = Service::start(&town.bench);
    town.ask("bob", "spending", &asking(sql, &[])).fails_with(2, &["--result-to-owner"]);
    let found = town.granted("bob", "spending", &asking(sql, &["--result-to-owner"]));
    assert_eq!((&found["rows"], &found["template"]), (&json!([[90]]), &Value::Null));
    service.end();
}
