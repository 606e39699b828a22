//! Services that offer something else than what was asked for, and users who do not look.

use super::{Ask, Floor, ToOwner, agreement, ask, list};
use crate::json::hex;
use crate::listed::Listed;
use crate::terms::{Left, Offer, QuestionTerms};
use crate::tests::{id, offer};
use crate::wire::{self, Message};
use std::thread::JoinHandle;
use tacit::Security;
use tacit::net::{self, Identity, Listener, Options, Protection, Session, Tls};

fn asked(reveal: Option<&str>, result: Option<&str>) -> Ask {
    Ask {
        job: "match".into(),
        reveal: reveal.map(str::to_owned),
        result: result.map(str::to_owned),
        key: None,
        question: None,
    }
}

/// A session with a service that does `serve` once it has been asked something; the client's key, and the service's
/// thread.
fn served<T: Send + 'static>(
    serve: impl FnOnce(&mut Session) -> T + Send + 'static,
) -> (Session, Identity, JoinHandle<T>) {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let by = |agreement, own: &Identity, peer: &Identity| {
        Options::new(agreement, Protection::Tls(Tls::pinned(own, peer.public()).unwrap()))
    };
    let service = by(wire::agreement("service", "client"), &alice, &bob);
    let thread = std::thread::spawn(move || {
        let mut session: Session = listener.accept(&service).unwrap();
        wire::receive(session.channel(), wire::PROMPT).unwrap();
        let served = serve(&mut session);
        // Whatever the client says to that, or that it leaves.
        let _ = wire::receive(session.channel(), wire::PROMPT);
        served
    });
    (net::connect(&address, &by(agreement(), &bob, &alice)).unwrap(), bob, thread)
}

/// What came of a request to a service that offers this, whatever it is asked.
fn offered(request: &Ask, change: impl FnOnce(&mut Offer) + Send + 'static) -> tacit::Result<super::Offered> {
    let (session, bob, thread) = served(move |session| {
        let mut offer = offer(&hex(&session.id().0[..16]));
        change(&mut offer);
        wire::send(session.channel(), &Message::Offer(Box::new(offer))).unwrap();
    });
    let got = ask(session, request, &bob);
    if got.is_err() {
        thread.join().unwrap();
    }
    got
}

/// A service that lists jobs without end, each with as much text as a message holds.
#[test]
fn a_list_of_jobs_is_bounded_in_bytes() {
    let (session, _, thread) = served(|session| {
        let job = Listed {
            job: "match".into(),
            reveal: vec!["rows".into()],
            result: vec!["client".into()],
            gives: Vec::new(),
            question_rules: None,
            questions: Vec::new(),
            questions_left_out: 0,
            key_columns: 1,
            key_types: Some("text".into()),
            min_peer_keys: 0,
            max_peer_keys: 1,
            runs_a_day: 1,
            left: Left { runs_today: 1, rows: 1, aggregates: 0, epsilon: None },
            hours: Vec::new(),
            purpose: Some("x".repeat(15_000)),
            agreement: None,
            expires: None,
            refused: None,
        };
        // 30 MB, fewer than the most jobs.
        for _ in 0..2_000 {
            if wire::send(session.channel(), &Message::Listed(Box::new(job.clone()))).is_err() {
                return;
            }
        }
        let _ = wire::send(session.channel(), &Message::Listing(2_000));
    });
    assert!(list(session).is_err());
    thread.join().unwrap();
}

#[test]
fn an_offer_of_another_run_than_the_one_that_was_asked_for_is_rejected() {
    let fails = |request: &Ask, word: &str, change: fn(&mut Offer)| {
        let error = offered(request, change).err().unwrap().to_string();
        assert!(error.contains("does not match the request") && error.contains(word), "{error}");
    };
    let to_client = asked(None, Some("client"));
    fails(&to_client, "who gets", |offer| offer.result = "service".into());
    fails(&to_client, "who gets", |offer| offer.result = "both".into());
    let rows = asked(Some("rows"), None);
    fails(&rows, "the kind", |offer| offer.reveal = "payload".into());
    fails(&rows, "the kind", |offer| offer.reveal = "count".into());
    let sum = asked(Some("sum:amount"), None);
    fails(&sum, "the kind", |offer| offer.reveal = "sum:age".into());
    let columns = asked(Some("payload:amount,age"), None);
    fails(&columns, "columns", |offer| {
        (offer.reveal, offer.service_gives) = ("payload".into(), vec!["amount".into()]);
    });
    fails(&columns, "the kind", |offer| offer.service_gives = vec!["amount".into(), "age".into()]);
    let sql = "SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k";
    let question = Ask { question: Some(sql.into()), ..asked(None, None) };
    fails(&question, "the question", |offer| {
        let text = "SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k WHERE a.x > 5".into();
        let terms = QuestionTerms { text, template: None, min_group: 1, max_groups: 1, min_difference: None };
        offer.question = Some(terms);
    });
    let error = offered(&question, |_| ()).err().unwrap().to_string();
    assert!(error.contains("answers no questions in SQL"), "{error}");
    // What was asked for, and what was left open.
    let same: fn(&mut Offer) = |offer| {
        (offer.reveal, offer.service_gives) = ("payload".into(), vec!["amount".into(), "age".into()]);
    };
    for request in [&columns, &asked(Some("payload"), Some("client")), &asked(None, None)] {
        offered(request, same).unwrap().decline().unwrap();
    }
}

/// A policy whose result was turned to the service, met by a command of a scheduler.
#[test]
fn unattended_requests_reject_what_only_the_service_gains_by() {
    let floor = |unattended, most, terms| Floor {
        security: Security::SemiHonest,
        gives: &[],
        result_to_owner: ToOwner::Never,
        post_quantum: false,
        most_service_keys: most,
        terms,
        unattended,
    };
    let admit = |change: fn(&mut Offer), floor: Floor<'_>| {
        let offered = offered(&asked(None, None), change).unwrap();
        let done = offered.admit(&offered.job(&id()).unwrap(), &floor);
        offered.decline().unwrap();
        done
    };
    type Change = fn(&mut Offer);
    let cases: [(Change, bool); 4] = [
        (|offer| offer.result = "service".into(), false),
        (|offer| offer.result = "both".into(), false),
        (
            |offer| {
                (offer.reveal, offer.result, offer.security) =
                    ("count".into(), "service".into(), "semi-honest".into())
            },
            false,
        ),
        (|_| (), true),
    ];
    for (change, is_taken) in cases {
        assert_eq!(admit(change, floor(true, None, None)).is_ok(), is_taken);
        assert!(admit(change, floor(false, None, None)).is_ok(), "somebody looks, or named the side");
    }
    // Numbers alone have a weaker form that is taken, and its column's owner gets none without the client's word.
    assert!(admit(|offer| offer.security = "semi-honest".into(), floor(false, None, None)).is_err());
    let to_owner: fn(&mut Offer) = |offer| {
        (offer.reveal, offer.client_gives) = ("sum:amount".into(), vec!["amount".into()]);
        (offer.bounds, offer.result_to_owner) = (Some("0..9".into()), true);
    };
    let gives = ["amount".to_owned()];
    for (word, accepted) in [
        (ToOwner::Never, false),
        (ToOwner::AsOffered, true),
        (ToOwner::Within("0..9"), true),
        (ToOwner::Within("-1..10"), true),
        (ToOwner::Within("0..8"), false),
        (ToOwner::Within("1..9"), false),
        (ToOwner::Within("0..9.5"), false),
    ] {
        let floor = Floor { result_to_owner: word, gives: &gives, ..floor(false, None, None) };
        assert_eq!(admit(to_owner, floor).is_ok(), accepted, "{word:?}");
    }
    // In the column's own unit.
    let in_cents: fn(&mut Offer) = |offer| {
        (offer.reveal, offer.client_gives) = ("sum:eur:decimal2".into(), vec!["eur:decimal2".into()]);
        (offer.bounds, offer.result_to_owner) = (Some("0.00..9.00".into()), true);
    };
    let gives = ["eur:decimal2".to_owned()];
    for (bounds, accepted) in [("0..9", true), ("0..9.5", true), ("0..8.99", false), ("0.01..9", false)] {
        let result_to_owner = ToOwner::Within(bounds);
        let floor = Floor { result_to_owner, gives: &gives, ..floor(false, None, None) };
        assert_eq!(admit(in_cents, floor).is_ok(), accepted, "{bounds}");
    }
    // The service's set is bounded by the client too.
    assert!(admit(|_| (), floor(true, Some(40), None)).is_ok());
    let error = admit(|_| (), floor(true, Some(39), None)).unwrap_err().to_string();
    assert!(error.contains("up to 39"), "{error}");
    // Terms that were reviewed once: run, budgets and sizes may differ, nothing else may.
    let reviewed = Some(offer("0").hash().unwrap());
    assert!(admit(|offer| offer.service_keys = 77, floor(true, None, reviewed)).is_ok());
    assert!(admit(|offer| offer.left.rows = 1, floor(true, None, reviewed)).is_ok());
    let changes: [fn(&mut Offer); 4] = [
        |offer| offer.purpose = Some("another".into()),
        |offer| offer.min_peer_keys = 1,
        |offer| offer.service_name = "Mallory".into(),
        |offer| offer.nfc = false,
    ];
    for change in changes {
        let error = admit(change, floor(true, None, reviewed)).unwrap_err().to_string();
        assert!(error.contains("terms changed"), "{error}");
    }
}
