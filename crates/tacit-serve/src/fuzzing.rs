//! Parsers of this crate that are not public, as functions of bytes that panic if an invariant of
//! what was read is violated: for `tacit-fuzz`.

use crate::http::{Head, read_head};
use crate::ledger::{Ledger, chained};
use crate::terms::{Offer, Side};
use crate::wire::{Message, receive};
use crate::{certified, json};
use std::path::Path;
use std::time::Duration;
use tacit::data::records::{KeySpec, Normalisation};
use tacit::net::{certificate, fuzzing::hearing};

/// A message of a request, as it comes over a channel; and what an honest side makes of an offer.
pub fn message(bytes: &[u8]) {
    let said = [&(bytes.len() as u64).to_le_bytes(), bytes].concat();
    let [one, two, three, _] = (said.len() as u32).to_le_bytes();
    let mut channel = hearing(&[&[0xd7, one, two, three], &said[..]].concat(), 1 << 16);
    let Ok((message, same)) = receive(&mut channel, Duration::from_secs(1)) else { return };
    assert!(same == bytes, "other bytes than were sent");
    let written = serde_json::to_vec(&message).expect("a message is written");
    let again: Message = serde_json::from_slice(&written).expect("what was written is read");
    assert!(again == message, "a message is read otherwise than it was written");
    match &message {
        Message::Offer(offer) => look_at(offer),
        Message::Listed(listed) => {
            let _ = listed.object();
            let lines = listed.words();
            assert!(
                lines.iter().all(|line| !line.chars().any(char::is_control)),
                "words that move the cursor"
            );
        }
        _ => {}
    }
}

fn look_at(offer: &Offer) {
    let key = KeySpec::text(vec!["email".to_owned()], Normalisation::default());
    for side in [Side::Service, Side::Client] {
        let _ = (offer.job(side, &key), offer.answer(side));
        assert!(!offer.party(side).chars().any(char::is_control), "a name that moves the cursor");
    }
    let _ = (offer.looked_up(), offer.hash(), offer.names_parties(), offer.fits(1000));
    if let Ok(lines) = offer.words(1000) {
        assert!(lines.iter().all(|line| !line.chars().any(char::is_control)), "words that move the cursor");
    }
}

/// The head of a question by HTTP.
pub fn head(bytes: &[u8]) {
    if let Head::Ask { question, .. } = read_head(bytes) {
        let target = question.target.as_bytes();
        assert!(target.is_empty() || bytes.windows(target.len()).any(|part| part == target));
    }
}

/// A ledger of these lines, each with the hash that it should have.
pub fn ledger(text: &str) {
    let (mut ledger, mut chain) = (Ledger::empty(), [0; 32]);
    for (number, entry) in text.lines().enumerate() {
        chain = chained(&chain, entry);
        let hash = json::hex(&chain);
        let line = format!("{hash} {entry}");
        if ledger.read(Path::new("ledger"), number + 1, &line).is_err() {
            return;
        }
        // Its hash is of the lines before it, among which it is now.
        assert!(ledger.read(Path::new("ledger"), number + 1, &line).is_err(), "a line passes twice");
    }
}

/// The certificate of a record's side.
pub fn certificate(text: &str) {
    let Ok(value) = serde_json::from_str(text) else { return };
    if let Some((chain, name, signed)) = certified::read(&value) {
        let _ = certificate::is_for(&chain, name);
        let _ = certificate::is_signed(&chain, &[7; 32], b"what was signed", &signed);
    }
}

/// Whole messages, by the names of the functions above.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let left = r#"{"runs_today":1,"rows":5000,"aggregates":3}"#;
    let offer = format!(
        r#"{{"offer":{{"version":2,"run":"00","service_name":"alice","client_name":"bob","service_key":null,
        "job":"rows","reveal":"payload:name","result":"client","service_gives":["name"],"service_bytes_a_key":64,
        "client_gives":[],"protocol":"vole","security":"malicious","base_ot":"csw20","key_columns":1,
        "key_types":"text","nfc":true,"trim":true,"case_fold":false,"min_matches":0,"service_keys":1000,
        "min_peer_keys":1,"max_peer_keys":2000,"fitting_keys":2000,"publication":null,"left":{left},
        "purpose":"a test","agreement":null,"expires":"2999-06-30","seconds":60}}}}"#
    );
    let answer = format!(
        r#"{{"offer":{{"version":2,"run":"00","service_name":"alice","client_name":"bob","service_key":null,
        "job":"sums","reveal":"question","result":"client","service_gives":[],"client_gives":[],"protocol":"{}",
        "security":"semi-honest","base_ot":"mrr21","key_columns":1,"key_types":"text","nfc":true,"trim":true,
        "case_fold":true,"min_matches":0,"service_keys":1000,"min_peer_keys":1,"max_peer_keys":2000,
        "fitting_keys":2000,"publication":null,"question":{{"text":"SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.k = b.k HAVING COUNT(*) >= 9",
        "template":"all","min_group":9,"max_groups":3,"min_difference":5}},"left":{left},"purpose":null,"agreement":null,
        "expires":null,"seconds":60}}}}"#,
        tacit::catalogue::CIRCUIT.name
    );
    let listed = format!(
        r#"{{"listed":{{"job":"rows","reveal":["rows"],"result":["client"],"gives":[],"key_columns":1,
        "key_types":"text","min_peer_keys":1,"max_peer_keys":2000,"runs_a_day":1,"left":{left},
        "hours":["daily 00:00-24:00"],"purpose":null,"agreement":null,"expires":null,"refused":["hours","no"]}}}}"#
    );
    let charge = r#"{"run":"01","time":1700000000,"job":"rows","source":"t","input":"t.csv","peer":"bob","fingerprint":"aa-bb","rows":100,"aggregate":false}"#;
    let entries = [
        r#"{"same":["peer bob","key aa-bb"]}"#.to_owned(),
        format!(r#"{{"offer":{charge}}}"#),
        format!(r#"{{"charge":{charge}}}"#),
        format!(r#"{{"returned":{charge}}}"#),
        format!(r#"{{"broken":{charge}}}"#),
        r#"{"refund":{"run":"01"}}"#.to_owned(),
        format!(r#"{{"filter":{{"charge":{charge},"filter":"ab"}}}}"#),
    ];
    let short = [
        r#"{"since":{"version":2,"latest":1700000000}}"#,
        r#"{"account":{"peer":"peer bob","source":"source t","totals":{"rows":1,"aggregates":2,"broken":0}}}"#,
        r#"{"filters":{"peer":"peer bob","source":"source t","filters":["ab","cd"]}}"#,
        r#"{"day":{"peer":"peer bob","job":"rows","day":{"day":20000,"runs":1,"offers":2,"returned":0,"source":"t"}}}"#,
    ];
    let messages = [
        r#"{"ask":{"job":"rows","reveal":"rows","result":"client","key":null}}"#,
        r#"{"ask":{"job":"sums","reveal":null,"result":null,"key":null,"question":"SELECT COUNT(*) FROM ours JOIN theirs ON ours.k = theirs.k"}}"#,
        r#""ready""#,
        r#""list""#,
        r#"{"listing":3}"#,
        r#""decline""#,
        r#"{"refusal":{"rule":"hours","what":"no"}}"#,
        r#"{"close":{"result":"00"}}"#,
        r#"{"signature":"00ff"}"#,
        r#"{"accept":{"keys":5,"commitment":"00","head":"00","proof":null}}"#,
        r#"{"go":{"keys":5,"commitment":"00","head":"00","started":1,"proof":{"peer_name":"a","scheme":2055,"signature":"00"},"signature":"00"}}"#,
        &offer,
        &answer,
        &listed,
    ];
    let mut out: Vec<_> = messages.into_iter().map(|text| ("message", text.as_bytes().to_vec())).collect();
    out.push(("ledger", entries.join("\n").into_bytes()));
    out.push(("ledger", short.join("\n").into_bytes()));
    out.push(("head", b"GET /metrics?x=1 HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nAccept: */*\r\n".to_vec()));
    out
}
