//! The types of keys by the published vectors, by properties, and against the clock.

use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Instant;
use tacit_data::keys::{KeyType, Named, Reason, SPECIFICATION};
use tacit_data::records::{KeyHasher, KeySet, KeySpec, Listing, Normalisation, Shown, plain_join};

fn normal(kind: &KeyType, text: &str) -> Result<String, Reason> {
    let mut out = String::new();
    kind.normalise(Normalisation::default(), text, &mut out).map(|()| out)
}

#[test]
fn every_published_vector_holds() {
    let file: Value = serde_json::from_str(include_str!("../../../../docs/keys-vectors.json")).unwrap();
    assert_eq!(file["version"], SPECIFICATION);
    let (mut kinds, mut reasons) = (BTreeSet::new(), BTreeSet::new());
    let mut wrong = Vec::new();
    let vectors = file["vectors"].as_array().unwrap();
    for vector in vectors {
        let (name, value) = (vector["type"].as_str().unwrap(), vector["value"].as_str().unwrap());
        let kind = KeyType::named(name).unwrap();
        assert_eq!(kind.to_string(), name);
        let got = normal(&kind, value).map_err(|reason| reason.word().to_owned());
        let want = match vector["normal"].as_str() {
            Some(normal) => Ok(normal.to_owned()),
            None => Err(vector["refused"].as_str().unwrap().to_owned()),
        };
        reasons.extend(want.clone().err());
        kinds.insert(name.split(':').next().unwrap().to_owned());
        if got != want {
            wrong.push(format!("{name} {value:?}: {got:?}, not {want:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(vectors.len() >= 600);
    assert_eq!((kinds.len(), reasons.len()), (10, 8), "{kinds:?}, {reasons:?}");
}

/// A key of the types of each identifier.
fn spec_of(types: &Value) -> KeySpec {
    let named = types.as_array().unwrap().iter().map(|columns| {
        let columns = columns.as_array().unwrap().iter().map(|kind| kind.as_str().unwrap());
        columns.map(|kind| Named::parse(&format!("c:{kind}")).unwrap()).collect::<Vec<_>>()
    });
    let mut named = named.collect::<Vec<_>>().into_iter();
    let first = KeySpec::named(named.next().unwrap(), Normalisation::default());
    named.fold(first, KeySpec::or)
}

/// Rows with several identifiers: their elements, and by which identifier the rows of both tables match.
#[test]
fn every_published_vector_of_several_identifiers_holds() {
    let file: Value = serde_json::from_str(include_str!("../../../../docs/keys-vectors.json")).unwrap();
    let tables = file["identifiers"].as_array().unwrap();
    for case in tables {
        let mut sets = Vec::new();
        for side in ["ours", "theirs"] {
            let spec = spec_of(&case[side]["types"]);
            let (mut hasher, mut set) = (KeyHasher::of(&spec), KeySet::of(spec.identifiers()));
            for row in case[side]["rows"].as_array().unwrap() {
                let cells = row["cells"].as_array().unwrap().iter().map(|cell| cell.as_str().unwrap());
                let elements = hasher.hash_row(cells);
                let hex =
                    |element: &[u8; 32]| element.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                let said: Vec<Option<String>> =
                    elements.iter().map(|element| element.as_ref().map(hex)).collect();
                assert_eq!(serde_json::json!(said), row["elements"], "{row}");
                set.push_all(&elements).unwrap();
            }
            sets.push(set);
        }
        match_as_published(case, &sets);
    }
    assert!(tables.len() >= 4);
}

/// Rows of both sides match by the identifiers that the case says.
fn match_as_published(case: &Value, sets: &[KeySet]) {
    for (side, own, other) in [("ours", 0, 1), ("theirs", 1, 0)] {
        let found = plain_join(sets[own].elements(), sets[other].elements());
        for (at, row) in (0u64..).zip(case[side]["rows"].as_array().unwrap()) {
            let by = sets[own].first_of(at, |element| found.contains(&(element as u32)));
            assert_eq!(serde_json::json!(by.map(|by| by.identifier)), row["matches_by"], "{row}");
        }
    }
}

/// Types for near matches: the variants of values, and by which identifier the rows of both tables match.
#[test]
fn every_published_vector_of_near_matches_holds() {
    let file: Value = serde_json::from_str(include_str!("../../../../docs/keys-vectors.json")).unwrap();
    let values = file["near"]["values"].as_array().unwrap();
    for case in values {
        let (name, value) = (case["type"].as_str().unwrap(), case["value"].as_str().unwrap());
        let kind = KeyType::named(name).unwrap();
        match normal(&kind, value) {
            Ok(normal) => {
                assert_eq!(serde_json::json!(kind.variants(&normal)), case["variants"], "{name} {value}");
            }
            Err(reason) => assert_eq!(case["refused"], reason.word(), "{name} {value}"),
        }
    }
    let tables = file["near"]["tables"].as_array().unwrap();
    for case in tables {
        let mut sets = Vec::new();
        for side in ["ours", "theirs"] {
            let spec = spec_of(&case[side]["types"]);
            let (mut hasher, mut set) = (KeyHasher::of(&spec), KeySet::listed(Listing::of(&spec)));
            for row in case[side]["rows"].as_array().unwrap() {
                let cells = row["cells"].as_array().unwrap().iter().map(|cell| cell.as_str().unwrap());
                let elements = hasher.hash_row(cells);
                let each = elements.split(Option::is_none).take(spec.identifiers());
                let hex = |element: &Option<[u8; 32]>| {
                    element.iter().flatten().map(|byte| format!("{byte:02x}")).collect::<String>()
                };
                let said: Vec<Vec<String>> = each.map(|of| of.iter().map(hex).collect()).collect();
                assert_eq!(serde_json::json!(said), row["elements"], "{row}");
                set.push_all(&elements).unwrap();
            }
            sets.push(set);
        }
        match_as_published(case, &sets);
    }
    assert!(values.len() >= 25 && tables.len() >= 3);
}

const NAMES: [&str; 31] = [
    "text",
    "text:nfkc",
    "email",
    "email:gmail",
    "phone",
    "phone:NL",
    "phone:US",
    "phone:IT",
    "phone:HU",
    "phone:RU",
    "phone:IN",
    "phone:AR",
    "date",
    "date:DMY",
    "date:MDY",
    "date:YMD",
    "int",
    "decimal",
    "uuid",
    "name",
    "name~1",
    "date~1",
    "date:DMY~1",
    "int~7",
    "postcode",
    "postcode:NL",
    "postcode:US",
    "postcode:SE",
    "postcode:IT",
    "sha256-hex",
    "sha256-hex:email",
];

/// Values near those of each type, and any text at all.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ A-Za-zÀ-ÿŁłŒœﬁıİß'’.\u{301}\u{200b}-]{0,16}",
        "[A-Za-z.+Öß]{1,8}@[A-Za-zÄ中.-]{1,8}\\.(de|com|рф)",
        "(gmail|[A-Z.+a-z]{1,5})@g(oogle)?mail\\.com",
        "(\\+|00|0|8|06|1|)[ ]?[0-9٠-٩０-９() ./-]{4,16}",
        "[0-9]{1,4}[./ -][0-9]{1,2}[./ -][0-9]{1,4}( 00:00)?",
        "[+−-]?[0-9٣]{0,24}",
        "[+−-]?[0-9٣]{0,8}[.,]?[0-9]{0,8}([eE][+-]?[0-9]{1,4})?",
        "[A-Z]{0,3}[ -]?[0-9]{2,5}[ -]?[0-9A-Z]{0,4}",
        "[{]?[0-9a-fA-F]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}[}]?",
        "[0-9a-fA-F]{64}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whoever has normalised values already has the same keys; and no text makes a type panic.
    #[test]
    fn a_normal_form_is_its_own(text in values()) {
        for name in NAMES {
            let kind = KeyType::named(name).unwrap();
            if let Ok(once) = normal(&kind, &text) {
                prop_assert!(!once.is_empty(), "{name} {text:?}");
                prop_assert_eq!(normal(&kind, &once), Ok(once), "{} {:?}", name, text);
            }
        }
    }

    /// A side with clear values and a side with their hashes have the same keys, and neither takes the
    /// other's.
    #[test]
    fn a_hashed_list_is_the_hashes_of_the_clear_one(text in values()) {
        let kind = |name: &str| KeyType::named(name).unwrap();
        for name in ["text", "email", "phone:NL", "date:DMY", "int", "name"] {
            let (ours, theirs) = (kind(&format!("{name}:sha256")), kind(&format!("sha256-hex:{name}")));
            prop_assert_eq!(ours.agreed(), theirs.agreed());
            let Ok(hash) = normal(&ours, &text) else { continue };
            prop_assert!(normal(&kind(name), &text).is_ok());
            prop_assert_eq!(normal(&theirs, &hash), Ok(hash.clone()));
            prop_assert_eq!(normal(&ours, &hash), Err(Reason::Hashed));
            prop_assert!(matches!(normal(&theirs, &text), Err(Reason::Clear | Reason::Empty)));
        }
    }
}

#[test]
fn what_is_refused_is_counted_by_column_and_reason_and_shown_only_on_request() {
    let spec = |columns: &[&str]| {
        let named = columns.iter().map(|column| Named::parse(column).unwrap());
        KeySpec::named(named, Normalisation::default())
    };
    let rows = [
        ["Ann@example.org", "31.1.2024"],
        ["ann@example.org", "2024-01-31"],
        ["ann", "2024-01-31"],
        ["", "2024-01-31"],
        ["bob@example.org", "30.2.2024"],
        ["eve", "no date"],
    ];
    for (refused, forms) in [(0, 0), (2, 1)] {
        let spec = KeySpec { shown: Shown { refused, forms }, ..spec(&["mail:email", "born:date:DMY"]) };
        let mut hasher = KeyHasher::of(&spec);
        let elements: Vec<_> = rows.iter().map(|row| hasher.hash(row.iter().copied())).collect();
        assert!(elements[0].is_some() && elements[0] == elements[1]);
        assert!(elements[2..].iter().all(Option::is_none));
        let tally = hasher.take_tally();
        let counted: Vec<_> = tally.refused.iter().map(|(of, rows)| (*of, *rows)).collect();
        let expected = [((0, Reason::Empty), 1), ((0, Reason::Form), 2), ((1, Reason::Range), 1)];
        assert_eq!(counted, expected);
        assert_eq!(tally.unfit(), 3);
        let samples: Vec<_> = tally.samples.iter().map(|sample| (sample.row, &*sample.text)).collect();
        assert_eq!(samples, [(3, "ann"), (5, "30.2.2024")][..refused]);
        assert_eq!(tally.forms, [["ann@example.org", "2024-01-31"]][..forms]);
        assert!(!format!("{:?}", tally.samples).contains("ann"));
    }
    // The agreement names types and their order, not the columns, and what either side chooses for its own.
    let one = spec(&["mail:email", "tel:phone:NL"]).agreement();
    assert_eq!(one, spec(&["adresse:email", "fon:phone:DE"]).agreement());
    assert_ne!(one, spec(&["tel:phone:NL", "mail:email"]).agreement());
    assert_ne!(one, spec(&["private=mail:email", "tel:phone:NL"]).agreement());
    // Columns without types are what they were before there were types: published files stay valid.
    let plain = KeySpec::text(vec!["a".into(), "b".into()], Normalisation::default());
    assert_eq!(spec(&["a", "b:text"]).agreement(), plain.agreement());
}

/// A bound that a debug build on a busy machine keeps and anything quadratic does not; `examples/keys.rs`
/// measures.
#[test]
fn a_long_cell_takes_no_longer_than_its_length() {
    let start = Instant::now();
    for unit in ["a", "0", "é", "@", ".", "-", "\u{301}", "中"] {
        let text = unit.repeat((1 << 18) / unit.len());
        for name in NAMES {
            let _ = normal(&KeyType::named(name).unwrap(), &text);
        }
    }
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}
