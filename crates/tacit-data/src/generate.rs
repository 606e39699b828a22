//! Realistic test data from a seed: two customer tables that share some people, written the way people write.
//!
//! Equal seeds and settings give equal bytes. The two tables hold different columns beside the shared ones,
//! their rows are shuffled, and a share of the rows spells its key columns in another way (capitals, stray
//! spaces, decomposed accents) that the default [`Normalisation`](crate::records::Normalisation) removes. All
//! people are invented.

use std::io::Write;
use tacit_crypto::{Block, Prg};
use unicode_normalization::UnicodeNormalization;

/// What to generate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// People in each of the two tables.
    pub people: [u32; 2],
    /// People that are in both; at most the smaller of [`people`](Self::people).
    pub common: u32,
    /// Share of rows whose key columns are spelt in another way, from 0 to 1.
    pub variants: f64,
    /// Share of people who have a second row, from 0 to 1.
    pub duplicates: f64,
    /// The seed.
    pub seed: u64,
}

impl Default for Settings {
    /// 100,000 people a table, 30,000 of them common, a quarter of the rows spelt otherwise, one in a hundred
    /// twice.
    fn default() -> Self {
        Settings { people: [100_000; 2], common: 30_000, variants: 0.25, duplicates: 0.01, seed: 2026 }
    }
}

/// Which of the two tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// A shop's: `customer_id,name,email,birthdate,city,phone`.
    Shop,
    /// An insurer's: `email,name,birthdate,plan,premium`.
    Insurer,
}

/// Writes one of the two tables as CSV and returns its number of rows. `email` alone, and `email` with
/// `birthdate`, name a person.
pub fn write_table(settings: &Settings, side: Side, out: impl Write) -> std::io::Result<u64> {
    let [shop, insurer] = settings.people;
    if settings.common > shop.min(insurer) || shop.checked_add(insurer).is_none() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "more common people than people"));
    }
    // People 0..shop shop; the insurer has the first `common` of them and then people of its own.
    let mut people: Vec<u32> = match side {
        Side::Shop => (0..shop).collect(),
        Side::Insurer => (0..settings.common).chain(shop..shop + insurer - settings.common).collect(),
    };
    let mut prg = Prg::from_seed(Block::from_halves(settings.seed, 1 + side as u64));
    let once = people.len();
    for at in 0..once {
        if chance(&mut prg, settings.duplicates) {
            people.push(people[at]);
        }
    }
    for at in (1..people.len()).rev() {
        people.swap(at, prg.below(at as u64 + 1) as usize);
    }

    let mut writer = ::csv::Writer::from_writer(out);
    match side {
        Side::Shop => writer.write_record(["customer_id", "name", "email", "birthdate", "city", "phone"])?,
        Side::Insurer => writer.write_record(["email", "name", "birthdate", "plan", "premium"])?,
    }
    for (row, &number) in people.iter().enumerate() {
        let mut person = Person::new(settings.seed, number);
        if chance(&mut prg, settings.variants) {
            for field in [&mut person.name, &mut person.email, &mut person.birthdate] {
                *field = variant(field, prg.below(6));
            }
        }
        match side {
            Side::Shop => writer.write_record([
                &format!("C{:07}", row + 1),
                &person.name,
                &person.email,
                &person.birthdate,
                CITIES[prg.below(CITIES.len() as u64) as usize],
                &format!("+{} {:09}", 30 + prg.below(60), prg.below(1_000_000_000)),
            ])?,
            Side::Insurer => writer.write_record([
                &person.email,
                &person.name,
                &person.birthdate,
                ["basic", "family", "plus", "travel, worldwide"][prg.below(4) as usize],
                &format!("{}.{:02}", 9 + prg.below(190), prg.below(100)),
            ])?,
        }
    }
    writer.flush()?;
    Ok(people.len() as u64)
}

struct Person {
    name: String,
    email: String,
    birthdate: String,
}

impl Person {
    /// Person `number` of this seed, the same in both tables; the number in the address makes it one
    /// person's.
    fn new(seed: u64, number: u32) -> Self {
        let mut prg = Prg::from_seed(Block::from_halves(seed, 1 << 32 | number as u64));
        let mut draw = [0u8; 16];
        prg.fill_bytes(&mut draw);
        let mut pool = u128::from_le_bytes(draw);
        let mut below = |bound: usize| {
            let drawn = (pool % bound as u128) as usize;
            pool /= bound as u128;
            drawn
        };
        let first = FIRST_NAMES[below(FIRST_NAMES.len())];
        let last = LAST_NAMES[below(LAST_NAMES.len())];
        let host = HOSTS[below(HOSTS.len())];
        let dot = ["", ".", "_", "-"][below(4)];
        // Most mail hosts take plain letters only; some take accents.
        let local = format!("{first}{dot}{last}").to_lowercase().replace([' ', '\''], "");
        let local = if below(8) == 0 { local } else { local.nfd().filter(char::is_ascii).collect() };
        Person {
            name: format!("{first} {last}"),
            email: format!("{local}{number}@{host}"),
            birthdate: format!("{}-{:02}-{:02}", 1930 + below(78), 1 + below(12), 1 + below(28)),
        }
    }
}

/// Another spelling of `text` with the same normal form.
fn variant(text: &str, way: u64) -> String {
    match way {
        0 => text.to_uppercase(),
        1 => text.nfd().collect(),
        2 => format!("  {text}"),
        3 => format!("{text}\u{a0} "),
        4 => format!("\t{} ", text.nfd().collect::<String>().to_uppercase()),
        _ => text.split(' ').map(capitalised).collect::<Vec<_>>().join(" "),
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn chance(prg: &mut Prg, share: f64) -> bool {
    // 2^53 steps, exact in a float.
    ((prg.u64() >> 11) as f64) < share * (1u64 << 53) as f64
}

const FIRST_NAMES: [&str; 48] = [
    "Anna",
    "Zoë",
    "José",
    "François",
    "Jürgen",
    "Søren",
    "Łukasz",
    "Chloé",
    "Noah",
    "Mia",
    "Renée",
    "Ângela",
    "Björn",
    "Siân",
    "Óscar",
    "Nuria",
    "Emma",
    "Liam",
    "Olivia",
    "Mateo",
    "Aiko",
    "Wei",
    "Fatima",
    "Omar",
    "Priya",
    "Arjun",
    "Ngozi",
    "Kwame",
    "Elif",
    "Mehmet",
    "Ivana",
    "Dušan",
    "Žofie",
    "Ondřej",
    "Ágnes",
    "László",
    "Ștefan",
    "Ioana",
    "Håkon",
    "Åsa",
    "Päivi",
    "Jānis",
    "Agnieszka",
    "Δήμητρα",
    "Νίκος",
    "Ольга",
    "Андрій",
    "Strauß",
];

const LAST_NAMES: [&str; 48] = [
    "Smith",
    "García",
    "Müller",
    "Nuñez",
    "O'Brien",
    "Dvořák",
    "Łoś",
    "Weiß",
    "Groß",
    "Lefèvre",
    "Gonçalves",
    "Sánchez",
    "Ångström",
    "Østergaard",
    "Håkansson",
    "Mäkinen",
    "Kowalska",
    "Nagy",
    "Szabó",
    "Popescu",
    "Ionescu",
    "Novák",
    "Horvat",
    "Petrović",
    "Çelik",
    "Şahin",
    "Papadopoulos",
    "Rossi",
    "Bianchi",
    "Ricci",
    "de la Cruz",
    "van der Berg",
    "Janssen",
    "Peeters",
    "Dubois",
    "Moreau",
    "Tanaka",
    "Suzuki",
    "Nguyen",
    "Kim",
    "Li",
    "Wang",
    "Okafor",
    "Mensah",
    "Khan",
    "Patel",
    "Sharma",
    "Ó Briain",
];

const CITIES: [&str; 24] = [
    "Lisboa",
    "Köln",
    "Zürich",
    "Málaga",
    "Kraków",
    "Brno",
    "Győr",
    "Malmö",
    "Århus",
    "Tromsø",
    "Oulu",
    "Rīga",
    "Nantes",
    "Liège",
    "Gent",
    "Torino",
    "Πάτρα",
    "Львів",
    "İzmir",
    "Cork",
    "Leeds",
    "São Paulo",
    "Bogotá",
    "Kyoto",
];

const HOSTS: [&str; 8] = [
    "example.com",
    "example.org",
    "example.net",
    "mail.example.com",
    "post.example.org",
    "correo.example.com",
    "poczta.example.net",
    "sub.example.org",
];
