//! PAIR by the published vectors, which an independent script made (`tools/pair`), and its tables.

use serde_json::Value;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use tacit::data::csv::Options;
use tacit::data::keys::{KeyType, Named};
use tacit::data::records::{KeySpec, Normalisation};
use tacit::job::pair::{self, Key, LEAST_LISTED, List, Matched, People, Role, Salt};

const ONE: NonZeroUsize = NonZeroUsize::MIN;

struct Published {
    file: Value,
    salt: Salt,
    publisher: Key,
    advertiser: Key,
}

fn published() -> Published {
    let file: Value = serde_json::from_str(include_str!("../../../../docs/pair-vectors.json")).unwrap();
    let text = |name: &str| file[name].as_str().unwrap();
    let salt = Salt::parse(text("salt")).unwrap();
    let [publisher, advertiser] = ["publisher", "advertiser"].map(|name| Key::parse(text(name)).unwrap());
    assert_eq!(salt.to_text().as_str(), text("salt"));
    assert_eq!(publisher.to_text().as_str(), text("publisher"));
    assert_eq!(advertiser.to_text().as_str(), text("advertiser"));
    Published { file, salt, publisher, advertiser }
}

#[test]
fn every_published_vector_of_pair_holds() {
    let Published { file, salt, publisher, advertiser } = published();
    assert_eq!(file["version"], 1);
    let vectors = file["identifiers"].as_array().unwrap();
    assert!(vectors.len() >= 30);
    for vector in vectors {
        let field = |name: &str| vector[name].as_str().unwrap();
        let kind = KeyType::named(field("type")).unwrap().hashed();
        let mut key = String::new();
        kind.normalise(Normalisation::default(), field("value"), &mut key).unwrap();
        assert_eq!(key, field("match_key"));
        let people = People::of(&[&key], "x", &salt);
        let made = |keys: &[&Key]| pair::text(&people.encrypted(keys, ONE, &()).unwrap()[0]);
        let expected = ["publisher", "advertiser", "both"].map(field);
        let got = [made(&[&publisher]), made(&[&advertiser]), made(&[&advertiser, &publisher])];
        assert_eq!(got, expected);
        let own = people.list(&[&publisher], None, ONE, &()).unwrap();
        let both = own.again(&salt, &advertiser, ONE, &()).unwrap();
        assert_eq!(pair::text(&both.identifiers[0]), field("both"));
        let back = both.publishers(&salt, &advertiser, ONE, &()).unwrap();
        assert_eq!(pair::text(&back[0]), field("publisher"));
    }
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn read(path: PathBuf) -> tacit::Result<List> {
    List::read(&[path], Options::default())
}

#[test]
fn a_list_with_a_refused_vector_is_refused_with_its_line() {
    let Published { file, salt, publisher, .. } = published();
    let folder = tempfile::tempdir().unwrap();
    let keys = format!("email salt:{} publisher:{}", salt.id(), publisher.id());
    let honest = file["identifiers"][0]["publisher"].as_str().unwrap();
    let list = |rows: &[&str]| {
        let rows: String = rows.iter().map(|row| format!("{row},{keys}\n")).collect();
        read(write(folder.path(), "list.csv", &format!("identifier,keys\n{rows}")))
    };
    assert_eq!(list(&[honest, honest]).unwrap().duplicates, 1);
    let refused = file["refused"].as_array().unwrap();
    assert!(refused.len() >= 10);
    let texts = refused.iter().map(|one| one["identifier"].as_str().unwrap());
    let unpadded = honest.trim_end_matches('=');
    for wrong in texts.chain(["", "AAAA", unpadded, &honest.replace('=', "*"), &format!(" {honest}")]) {
        let error = list(&[honest, wrong, honest]).unwrap_err().to_string();
        assert!(error.contains("list.csv, line 3: not an encrypted identifier"), "{wrong}: {error}");
        assert!(error.lines().count() == 1 && (wrong.is_empty() || !error.contains(wrong)));
    }
    // Behind the rows that are checked together.
    let many: Vec<&str> =
        std::iter::repeat_n(honest, 1500).chain([refused[0]["identifier"].as_str().unwrap()]).collect();
    assert!(list(&many).unwrap_err().to_string().contains("line 1502"));
}

#[test]
fn tables_that_are_no_lists_are_refused_with_what_to_do() {
    let Published { file, salt, publisher, .. } = published();
    let folder = tempfile::tempdir().unwrap();
    let keys = format!("email salt:{} publisher:{}", salt.id(), publisher.id());
    let honest = file["identifiers"][0]["publisher"].as_str().unwrap();
    let other = keys.replace("email", "phone");
    for (text, expected) in [
        (
            format!("identifier,keys\n{honest},email\n"),
            "line 2: its column keys does not say how it was made",
        ),
        (format!("identifier,keys\n{honest},{keys}\n{honest},{other}\n"), "line 3: made with other keys"),
        (
            format!("identifier,keys,adv_pub_id\n{honest},{keys},a\n{honest},{keys},b\n"),
            "line 3: of another adv_pub_id",
        ),
        (
            format!("identifier,keys,adv_pub_id\n{honest},{keys},{}\n", "x".repeat(201)),
            "line 2: the name of a",
        ),
        ("identifier,keys\n".to_owned(), "the list has no rows"),
        (format!("id,keys\n{honest},{keys}\n"), "no column is named `identifier`"),
    ] {
        let error = read(write(folder.path(), "list.csv", &text)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn lists_are_the_same_in_every_format() {
    let Published { salt, publisher, .. } = published();
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..3000).map(|number| format!("person {number}")).collect();
    let people = People::of(&names, "text", &salt);
    let relation = Some("shop, \"daily\"".to_owned());
    let list = people.list(&[&publisher], relation, ONE, &()).unwrap();
    let in_order = people.encrypted(&[&publisher], ONE, &()).unwrap();
    assert_ne!(list.identifiers, in_order, "an order that links");
    let sorted = |mut list: Vec<[u8; 32]>| {
        list.sort_unstable();
        list
    };
    for name in ["list.csv", "list.parquet", "list.arrow", "list.tsv"] {
        let path = folder.path().join(name);
        let mut bytes = Vec::new();
        list.write(&path, &mut bytes).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let again = read(path).unwrap();
        assert_eq!((&again.layers, &again.relation), (&list.layers, &list.relation));
        assert_eq!(sorted(again.identifiers), sorted(in_order.clone()));
    }
}

#[test]
fn lists_that_do_not_belong_together_are_named() {
    let Published { salt, publisher, advertiser, .. } = published();
    let prg = &mut tacit::crypto::Prg::from_os();
    let salt_2 = Salt::generate(20_785, 30, prg).unwrap();
    let advertiser_2 = Key::generate(Role::Advertiser, 20_785, 180, prg).unwrap();
    let of = |salt: &Salt, kind: &str, keys: &[&Key], relation: Option<&str>| {
        People::of(&["ann", "bob"], kind, salt).list(keys, relation.map(str::to_owned), ONE, &()).unwrap()
    };
    let (p, a, a_2) = (&publisher, &advertiser, &advertiser_2);
    let theirs = || of(&salt, "email", &[a, p], Some("one"));
    for (ours, expected) in [
        (of(&salt, "phone", &[p, a], None), "types differ: own list has phone, own list has email"),
        (of(&salt_2, "email", &[p, a], None), "salts differ"),
        (of(&salt, "email", &[p, a_2], None), "advertiser's keys differ"),
        (of(&salt, "email", &[p], None), "encrypted by one side"),
        (of(&salt, "email", &[a, p], None), "a list of the advertiser's, and the publisher's is expected"),
        (
            of(&salt, "email", &[p, a], Some("two")),
            "relationships differ: own list has two, own list has one",
        ),
    ] {
        let error = Matched::of(ours, theirs()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(Matched::of(of(&salt, "email", &[p, a], Some("one")), theirs()).unwrap().common.len(), 2);
    // Encrypting again, and taking a key away.
    let single = || of(&salt, "email", &[p], None);
    let double = || of(&salt, "email", &[p, a], None);
    let faults = [
        (single().again(&salt_2, a, ONE, &()), "hashed with salt"),
        (single().again(&salt, p, ONE, &()), "a list of the publisher's, and so is the key"),
        (double().again(&salt, a, ONE, &()), "encrypted by both sides already"),
    ];
    for (result, expected) in faults {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let faults = [
        (double().publishers(&salt_2, a, ONE, &()), "hashed with salt"),
        (double().publishers(&salt, p, ONE, &()), "the advertiser's key is taken away"),
        (double().publishers(&salt, a_2, ONE, &()), "and yours is"),
        (single().publishers(&salt, a, ONE, &()), "not encrypted by both sides"),
    ];
    for (result, expected) in faults {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(People::of(&["ann"], "text", &salt).list(&[p, p], None, ONE, &()).is_err());
    assert!(pair::check_length("x", LEAST_LISTED, LEAST_LISTED).is_ok());
    let error = pair::check_length("x.csv", 1, LEAST_LISTED).unwrap_err().to_string();
    assert!(error.starts_with("min-list: x.csv has 1 distinct identifier, and at least 1000"), "{error}");
}

#[test]
fn only_one_column_with_the_usual_rules_is_hashed() {
    let spec = |named: &[&str]| {
        KeySpec::named(named.iter().map(|named| Named::parse(named).unwrap()), Normalisation::default())
    };
    let types = |named: &str| pair::match_keys(spec(&[named])).unwrap().types[0].to_string();
    assert_eq!(types("mail:email"), "email:sha256");
    assert_eq!(types("mail:email:sha256"), "email:sha256");
    assert_eq!(types("mail:sha256-hex:email"), "sha256-hex:email");
    assert!(pair::match_keys(spec(&["a:email", "b:phone"])).unwrap_err().to_string().contains("one column"));
    let mut odd = spec(&["a"]);
    odd.normalisation.trim = false;
    assert!(pair::match_keys(odd).unwrap_err().to_string().contains("no settings for text"));
}
