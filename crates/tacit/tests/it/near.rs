//! Near matches between two parties in one process: generated people with errors of every kind, compared with the plain
//! definition, and a client that adds variants to its set.

use tacit::data::keys::Named;
use tacit::data::records::{KeyHasher, KeySet, KeySpec, Listing, Normalisation};
use tacit::job::psi::{Job, Learns, Reveal};
use tacit::net::memory;
use tacit::{Result, Security};
use tacit_ot::base;

fn spec() -> KeySpec {
    let named = ["last:name~1", "born:date~1", "house:int~2"].map(|column| Named::parse(column).unwrap());
    KeySpec::named(named, Normalisation::default())
}

/// A person as one list has it: last name, date of birth, number of the house. All are in normal form.
type Person = (String, String, i64);

/// Small numbers out of a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most) as usize
    }
}

fn person(dice: &mut Dice) -> Person {
    let last =
        ["meyer", "schmidt", "ito", "li", "garcia lopez", "van den berg", "o"][dice.below(7)].to_owned();
    let day = (1950 + dice.below(40), 1 + dice.below(12), 1 + dice.below(28));
    (last, format!("{}-{:02}-{:02}", day.0, day.1, day.2), dice.below(40) as i64 - 20)
}

/// The same person with errors: a letter lost, put in, replaced or exchanged with its neighbour; a digit of the date
/// changed, or day and month exchanged; a number a little off.
fn misspelt(dice: &mut Dice, (mut last, mut born, mut house): Person) -> Person {
    if dice.below(2) == 0 {
        let mut letters: Vec<char> = last.chars().collect();
        let at = dice.below(letters.len() as u64);
        match dice.below(4) {
            0 if letters.len() > 1 => drop(letters.remove(at)),
            1 => letters.insert(at, 'x'),
            2 => letters[at] = 'a',
            _ => {
                let next = (at + 1) % letters.len();
                letters.swap(at, next);
            }
        }
        last = letters.into_iter().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if dice.below(2) == 0 {
        let (year, rest) = born.split_at(5);
        let (month, day) = rest.split_once('-').unwrap();
        born = match dice.below(3) {
            0 if day <= "12" => format!("{year}{day}-{month}"),
            1 => format!("{year}{month}-0{}", &day[1..]).replace("-00", "-01"),
            _ => format!("19{}{rest}", &year[2..]).replacen("19", "20", dice.below(2)),
        };
    }
    house += dice.below(7) as i64 - 3;
    (last, born, house)
}

fn common(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut best = vec![0; other.len() + 1];
    for a in one.chars() {
        let mut corner = 0;
        for (at, b) in other.iter().enumerate() {
            let above = best[at + 1];
            best[at + 1] = if a == *b { corner + 1 } else { above.max(best[at]) };
            corner = above;
        }
    }
    best[other.len()]
}

/// What docs/keys.md says of two people, without variants.
fn are_near(one: &Person, other: &Person) -> bool {
    let longer = one.0.chars().count().max(other.0.chars().count());
    let names = one.0 == other.0 || longer >= 3 && common(&one.0, &other.0) + 1 >= longer;
    let digits = one.1.bytes().zip(other.1.bytes()).filter(|(a, b)| a != b).count();
    let is_exchanged =
        one.1[..4] == other.1[..4] && one.1[5..7] == other.1[8..] && one.1[8..] == other.1[5..7];
    names && (digits <= 1 || is_exchanged) && one.2.abs_diff(other.2) <= 2
}

fn keys(people: &[Person]) -> KeySet {
    let spec = spec();
    let (mut hasher, mut set) = (KeyHasher::of(&spec), KeySet::listed(Listing::of(&spec)));
    for (last, born, house) in people {
        set.push_all(&hasher.hash_row([last.as_str(), born.as_str(), &house.to_string()])).unwrap();
    }
    set
}

fn run(
    channel: &mut tacit::net::Channel,
    learns: Learns,
    set: &[[u8; 32]],
    most: u64,
) -> Result<(Job, tacit::job::psi::Outcome)> {
    let job = Job { key: Some(spec()), ..Job::new(learns, Security::Malicious) };
    job.check()?;
    let outcome = job.run(std::slice::from_mut(channel), &*base::default(), set, most, &())?;
    Ok((job, outcome))
}

#[test]
fn people_with_errors_match_as_defined() {
    let (mut near, mut pairs) = (0, 0);
    for seed in 0..4 {
        let mut dice = Dice(seed);
        let people: Vec<Person> = (0..60).map(|_| person(&mut dice)).collect();
        let list = |dice: &mut Dice| -> Vec<Person> {
            let drawn: Vec<Person> = (0..50).map(|_| people[dice.below(60)].clone()).collect();
            drawn.into_iter().map(|one| misspelt(dice, one)).collect()
        };
        let (ours, theirs) = (list(&mut dice), list(&mut dice));
        let (own, other) = (keys(&ours), keys(&theirs));
        let (a, b) = memory::run(
            |channel| run(channel, Learns::Both, own.elements(), 1 << 20).unwrap().1,
            |channel| run(channel, Learns::Both, other.elements(), 1 << 20).unwrap().1,
        );
        for (set, people, others, outcome) in [(&own, &ours, &theirs, a), (&other, &theirs, &ours, b)] {
            let matches = outcome.matches.unwrap();
            let mut wanted = vec![false; set.elements().len()];
            matches.iter().for_each(|at| wanted[*at as usize] = true);
            for (row, one) in (0..).zip(people) {
                let found = set.first_of(row, |at| wanted[at]).is_some();
                assert_eq!(found, others.iter().any(|other| are_near(one, other)), "{one:?}");
                near += usize::from(found && !others.contains(one));
                pairs += usize::from(found);
            }
        }
    }
    assert!(near > 50 && pairs > near && pairs < 350, "{near} {pairs}");
}

/// A client that adds what are no variants of its rows, to match names further off: each counts as a key, against the most
/// that it may have and in what the other side is told.
#[test]
fn a_client_that_adds_variants_pays_for_each() {
    let person = |last: &str| (last.to_owned(), "1975-03-12".to_owned(), 7);
    let service = keys(&[person("maier"), person("schmidt")]);
    let honest = keys(&[person("meyer")]);
    assert!(tacit::data::records::plain_join(honest.elements(), service.elements()).is_empty());
    // Names two letters away from its own, whose variants are no variants of its own.
    let guesses = keys(&["meyer", "mayer", "meier", "maier"].map(person));
    let cheating = guesses.elements();
    let (most, own) = (honest.elements().len() as u64, service.elements().len() as u64);
    assert_eq!((most, cheating.len() as u64), (6 * 9 * 3, 20 * 9 * 3));
    let (said, got) = memory::run(
        |channel| run(channel, Learns::Peer, service.elements(), most),
        |channel| run(channel, Learns::Me, cheating, 1 << 20),
    );
    let said = said.err().unwrap().to_string();
    assert!(said.contains("540 elements where at most 162"), "{said}");
    assert!(got.is_err());
    // Within the bound it learns of the other's name, and the number says that it asked for more.
    let (said, got) = memory::run(
        |channel| run(channel, Learns::Peer, service.elements(), 540).unwrap(),
        |channel| run(channel, Learns::Me, cheating, 1 << 20).unwrap().1,
    );
    assert!(!got.matches.unwrap().is_empty());
    let (job, outcome) = said;
    let learned = job.has_learned(own, &outcome).unwrap();
    for words in [
        "distinct variants in all, each of which counts as a key",
        "for each variant of its own rows",
        "It announced 540 keys",
    ] {
        assert!(learned.contains(words), "{words}: {learned}");
    }
    assert!(job.reveals_at_most(own, 540).unwrap() > job.reveals_at_most(own, most).unwrap());
}

/// Numbers over matching keys, and keys that no row can have, are refused in a line.
#[test]
fn what_variants_cannot_do_is_refused() {
    let job = Job { key: Some(spec()), ..Job::new(Learns::Me, Security::Malicious) };
    job.check().unwrap();
    for reveal in [Reveal::Count, Reveal::Sum("n".into()), Reveal::Mean("n".into()), Reveal::Shares] {
        let said = Job { reveal, ..job.clone() }.check().unwrap_err().to_string();
        assert!(said.contains("counts once for each variant that both sides have"), "{said}");
    }
    Job { reveal: Reveal::Payload(vec!["n".into()]), ..job.clone() }.check().unwrap();
    let named = ["a:int~99", "b:int~99"].map(|column| Named::parse(column).unwrap());
    let wide = Job { key: Some(KeySpec::named(named, Normalisation::default())), ..job.clone() };
    // More than a number counts.
    let many = vec![Named::parse("n:int~99").unwrap(); 40];
    let many = Job { key: Some(KeySpec::named(many, Normalisation::default())), ..job };
    assert!(many.check().unwrap_err().to_string().contains("give fewer columns a near type"));
    let said = wide.check().unwrap_err().to_string();
    assert!(
        said.contains("int~99, int~99 makes at least 10000 variants of each row, more than the 4096"),
        "{said}"
    );
}
