//! Algebra, files, and what is refused. The published vectors are in `crates/tacit/tests/it/pair.rs`.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tacit_crypto::{Block, base64};

const ONE: NonZeroUsize = NonZeroUsize::MIN;
const TODAY: u64 = 20_785;

fn prg() -> Prg {
    Prg::from_seed(Block::new(38))
}

fn secrets(prg: &mut Prg) -> (Salt, Key, Key) {
    let salt = Salt::generate(TODAY, keys::SALT_DAYS, prg).unwrap();
    let key = |role, prg: &mut Prg| Key::generate(role, TODAY, keys::KEY_DAYS, prg).unwrap();
    let publisher = key(Role::Publisher, prg);
    (salt, publisher, key(Role::Advertiser, prg))
}

fn hashed(salt: &Salt, numbers: impl IntoIterator<Item = usize>) -> Vec<Hashed> {
    numbers.into_iter().map(|number| hash(salt, format!("person {number}").as_bytes())).collect()
}

fn encrypted(exponent: &Exponent, hashed: &[Hashed]) -> Vec<Encoding> {
    exponent.encrypt(hashed, ONE, &mut |_| ())
}

#[test]
fn keys_commute_come_off_again_and_may_be_used_at_once() {
    let mut prg = prg();
    let (salt, p, a) = secrets(&mut prg);
    for n in [0, 1, 7, 8, 9, 511, 512, 513, 1500] {
        let hashed = hashed(&salt, 0..n);
        let threads = NonZeroUsize::new(1 + n % 3).unwrap();
        let again = |key, list: &[Encoding]| Exponent::of(key).multiply(list, threads, &mut |_| ()).unwrap();
        let (by_p, by_a) = (encrypted(&Exponent::of(&p), &hashed), encrypted(&Exponent::of(&a), &hashed));
        let both = again(&a, &by_p);
        assert_eq!(both, again(&p, &by_a));
        assert_eq!(both, encrypted(&Exponent::of_both(&a, &p), &hashed));
        let without = Exponent::without(&a).multiply(&both, threads, &mut |_| ()).unwrap();
        assert_eq!(without, by_p);
        let all: BTreeSet<&Encoding> = by_p.iter().chain(&by_a).chain(&both).collect();
        assert_eq!(all.len(), 3 * n, "an identifier that two people or two keys share");
    }
}

#[test]
fn the_kernels_and_any_number_of_threads_give_the_same() {
    let (salt, p, _) = secrets(&mut prg());
    let hashed = hashed(&salt, 0..1200);
    let mut told = Vec::new();
    let one = Exponent::of(&p).encrypt(&hashed, ONE, &mut |done| told.push(done));
    assert_eq!(told, [512, 1024, 1200]);
    assert_eq!(one, Exponent::of(&p).encrypt(&hashed, NonZeroUsize::new(3).unwrap(), &mut |_| ()));
    // dalek, an identifier at a time.
    for (hashed, encrypted) in hashed.iter().zip(&one).step_by(97) {
        let uniform: [u8; UNIFORM_BYTES] = Sha512::digest(hashed).into();
        let point = Points::from_uniform_on(tacit_crypto::simd::Backend::PORTABLE, &[uniform]);
        assert_eq!(point.mul_same(p.secret()).encode(), [*encrypted]);
    }
}

#[test]
fn what_is_no_element_is_refused_with_its_place() {
    let (salt, p, _) = secrets(&mut prg());
    let honest = encrypted(&Exponent::of(&p), &hashed(&salt, 0..1100));
    let mut odd = honest[0];
    odd[0] |= 1;
    // RFC 9496, appendix A.3: a field element that is not canonical, negative, of no point, and the identity.
    let mut large = [0xff; 32];
    (large[0], large[31]) = (0xee, 0x7f);
    for wrong in [[0; 32], [0xff; 32], large, odd] {
        for at in [0, 5, 511, 512, 1099] {
            let mut list = honest.clone();
            list[at] = wrong;
            assert_eq!(check(&list), Err(InvalidElement(at)));
            for threads in [1, 2, 3] {
                let threads = NonZeroUsize::new(threads).unwrap();
                let result = Exponent::of(&p).multiply(&list, threads, &mut |_| ());
                assert_eq!(result, Err(InvalidElement(at)));
            }
        }
    }
    assert_eq!(check(&honest), Ok(()));
}

#[test]
fn files_of_secrets_are_read_as_written_and_nothing_else_is() {
    let (salt, p, a) = secrets(&mut prg());
    for key in [&p, &a] {
        let text = key.to_text();
        let read = Key::parse(&text).unwrap();
        assert_eq!((read.role(), read.id(), read.lifetime()), (key.role(), key.id(), key.lifetime()));
        assert_eq!(read.secret().to_bytes(), key.secret().to_bytes());
        assert_eq!(*read.to_text(), *text);
        let secret = base64::encode(&key.secret().to_bytes()[0]);
        assert!(text.contains(secret.as_str()) && !format!("{key:?}").contains(&secret[..8]));
        assert_eq!(
            Salt::parse(&text).unwrap_err().to_string(),
            "this is a key, and a salt is expected; give the other file"
        );
    }
    let text = salt.to_text();
    let read = Salt::parse(&text).unwrap();
    assert_eq!((read.id(), read.lifetime(), read.bytes()), (salt.id(), salt.lifetime(), salt.bytes()));
    assert!(matches!(Key::parse(&text), Err(KeyFault::Swapped { found: "salt", .. })));
    assert!(matches!(Key::parse("x"), Err(KeyFault::Other("key"))));
    assert!(matches!(Salt::parse(""), Err(KeyFault::Other("salt"))));
    let text = p.to_text();
    assert_eq!(Key::parse(&text.replace("key 1", "key 2")).unwrap_err(), KeyFault::Version("key"));
    let lines: Vec<&str> = text.lines().collect();
    for at in 1..lines.len() {
        let damaged = KeyFault::Damaged { what: "key", line: at + 1 };
        let with = |line: &str| [&lines[..at], &[line], &lines[at + 1..]].concat().join("\n");
        assert_eq!(Key::parse(&with("")).unwrap_err(), damaged);
        assert_eq!(Key::parse(&lines[..at].join("\n")).unwrap_err(), damaged);
    }
    let last = KeyFault::Damaged { what: "key", line: lines.len() };
    // Another secret than the id's, zero, and one line too much.
    let of = |secret: &[u8; 32]| {
        text.replace(&base64::encode(&p.secret().to_bytes()[0])[..], &base64::encode(secret))
    };
    assert_eq!(Key::parse(&of(&[1; 32].map(|b: u8| b & 0x0f))).unwrap_err(), last);
    assert_eq!(Key::parse(&of(&[0; 32])).unwrap_err(), last);
    assert_eq!(Key::parse(&of(&[0xff; 32])).unwrap_err(), last);
    assert!(Key::parse(&format!("{}more", &*text)).is_err());
}

#[test]
fn no_changed_bit_of_a_file_gives_another_secret() {
    let (salt, p, _) = secrets(&mut prg());
    let flipped = |text: &str| -> Vec<String> {
        let bits = (0..text.len()).flat_map(|at| (0..8).map(move |bit| (at, bit)));
        let flip = |(at, bit): (usize, u32)| {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] ^= 1 << bit;
            String::from_utf8(bytes).ok()
        };
        bits.filter_map(flip).collect()
    };
    let mut kept = 0;
    for text in flipped(&p.to_text()) {
        if let Ok(read) = Key::parse(&text) {
            assert_eq!((read.role(), read.id()), (p.role(), p.id()), "{text}");
            assert_eq!(read.secret().to_bytes(), p.secret().to_bytes());
            kept += 1;
        }
    }
    for text in flipped(&salt.to_text()) {
        if let Ok(read) = Salt::parse(&text) {
            assert_eq!((read.id(), read.bytes()), (salt.id(), salt.bytes()), "{text}");
            kept += 1;
        }
    }
    // Dates of another lifetime that is allowed: the id is the secret's alone.
    assert!((1..40).contains(&kept), "{kept}");
}

/// A room that cheats: what `docs/use/pair.md` says it learns.
#[test]
fn a_room_with_an_exponent_for_each_of_its_people_sees_which_match_and_their_identifiers() {
    let mut prg = prg();
    let (salt, p, _) = secrets(&mut prg);
    let publisher = Exponent::of(&p);
    // Sent by an honest publisher's room in the first exchange.
    let members: BTreeSet<Encoding> = encrypted(&publisher, &hashed(&salt, 0..50)).into_iter().collect();
    let (own, mut marks, mut list) = (40..60, Vec::new(), Vec::new());
    for person in own.clone() {
        let mark = Key::generate(Role::Advertiser, TODAY, keys::KEY_DAYS, &mut prg).unwrap();
        list.extend(encrypted(&Exponent::of(&mark), &hashed(&salt, [person])));
        marks.push(mark);
    }
    // What the honest room does with it.
    let mut back = publisher.multiply(&list, ONE, &mut |_| ()).unwrap();
    shuffle(&mut back, &mut prg);
    for (person, mark) in own.zip(&marks) {
        let without = Exponent::without(mark).multiply(&back, ONE, &mut |_| ()).unwrap();
        let found: Vec<&Encoding> = without.iter().filter(|one| members.contains(*one)).collect();
        let identifier = encrypted(&publisher, &hashed(&salt, [person]))[0];
        let expected = if person < 50 { vec![&identifier] } else { vec![] };
        assert_eq!(found, expected, "person {person}");
        // Of who is no member too, who may become one: it will be known in bid requests.
        assert!(without.contains(&identifier));
    }
}

#[test]
fn secrets_serve_from_their_first_day_to_the_one_before_they_expire() {
    let (salt, p, _) = secrets(&mut prg());
    for (lifetime, days) in [(p.lifetime(), keys::KEY_DAYS), (salt.lifetime(), keys::SALT_DAYS)] {
        assert!(lifetime.check(TODAY).is_ok() && lifetime.check(TODAY + days - 1).is_ok());
        assert!(matches!(lifetime.check(TODAY + days), Err(KeyFault::Expired { .. })));
        assert!(matches!(lifetime.check(TODAY - 1), Err(KeyFault::Early { .. })));
    }
    let error = salt.lifetime().check(TODAY + 30).unwrap_err().to_string();
    assert_eq!(error, "this salt expired on 2026-12-28; make a new one, and all lists with it");
    let prg = &mut prg();
    for days in [0, keys::KEY_DAYS + 1] {
        assert!(matches!(Key::generate(Role::Publisher, TODAY, days, prg), Err(KeyFault::Days { .. })));
    }
    assert_eq!(
        Salt::generate(TODAY, 31, prg).unwrap_err().to_string(),
        "a salt of PAIR serves from 1 day to 30 days"
    );
    // Nor by a file whose dates somebody changed.
    let longer = salt.to_text().replace("2026-12-28", "2026-12-29");
    assert!(matches!(Salt::parse(&longer), Err(KeyFault::Days { what: "salt", most: 30 })));
}

#[test]
fn every_order_is_as_likely() {
    let mut prg = prg();
    let (mut seen, rounds) = (std::collections::BTreeMap::new(), 24_000);
    for _ in 0..rounds {
        let mut list: Vec<Encoding> = (0..4).map(|at| [at; 32]).collect();
        shuffle(&mut list, &mut prg);
        *seen.entry(list).or_insert(0u32) += 1;
    }
    // Each of 24 orders 1,000 times; six standard deviations are 186.
    assert_eq!(seen.len(), 24);
    assert!(seen.values().all(|count| (800..1200).contains(count)), "{:?}", seen.values());
}

#[test]
fn lists_say_what_was_done_to_them() {
    let (salt, p, a) = secrets(&mut prg());
    let own = Layers::new("email:gmail", salt.id(), [(p.role(), p.id())]).unwrap();
    let both = own.with(a.role(), a.id()).unwrap();
    assert_eq!(
        (own.owner(), own.is_double(), both.owner(), both.is_double()),
        (Role::Publisher, false, Role::Publisher, true)
    );
    for layers in [&own, &both] {
        assert_eq!(Layers::parse(&layers.to_string()).as_ref(), Some(layers));
    }
    assert_eq!(both.without(Role::Advertiser), Some(own.clone()));
    assert_eq!(
        (own.with(p.role(), a.id()), both.with(a.role(), a.id()), own.without(Role::Publisher)),
        (None, None, None)
    );
    let text = both.to_string();
    for wrong in [
        "".to_owned(),
        text.to_uppercase(),
        text.replace("salt", "sal"),
        text.replace("email:gmail", ""),
        text.replace("email:gmail", "e,mail"),
        text.replace(' ', "  "),
        format!("{text} "),
        format!("{text} publisher:{}", p.id()),
        text.replace("advertiser", "publisher"),
        text.split(" publisher").next().unwrap().to_owned(),
    ] {
        assert_eq!(Layers::parse(&wrong), None, "{wrong}");
    }
    let other = Layers::new("email", salt.id(), [(p.role(), p.id())]).unwrap();
    assert_eq!(own.differs(&other).unwrap().0, "types");
    assert_eq!(own.differs(&both).unwrap().0, "advertiser's keys");
    let turned = Layers::new("email:gmail", salt.id(), [(a.role(), a.id()), (p.role(), p.id())]).unwrap();
    assert_eq!(both.differs(&turned), None);
}

proptest! {
    #[test]
    fn common_elements_are_those_of_plain_sets(one in proptest::collection::vec(0u8..60, 0..50), other in proptest::collection::vec(0u8..60, 0..50)) {
        let list = |numbers: &[u8]| numbers.iter().map(|number| [*number; 32]).collect::<Vec<Encoding>>();
        let (mut a, mut b) = (list(&one), list(&other));
        let removed = remove_duplicates(&mut a);
        remove_duplicates(&mut b);
        let set = |list: &[Encoding]| list.iter().copied().collect::<BTreeSet<_>>();
        prop_assert_eq!(removed as usize, one.len() - set(&a).len());
        let expected: Vec<Encoding> = set(&a).intersection(&set(&b)).copied().collect();
        prop_assert_eq!(common(&a, &b), expected);
    }
}
