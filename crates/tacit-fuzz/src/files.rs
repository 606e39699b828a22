//! Sealed files, pools, files of tags, secrets and lists of PAIR, headers of what is prepared, and the archives that results go into.

use crate::{Target, place};
use std::io::{Cursor, Read};
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use tacit::data::csv::Options;
use tacit::job::pair::{Key, List, People, Role, Salt};
use tacit_2pc::{authenticated, wmk17};
use tacit_crypto::{Block, Prg};
use tacit_data::npz;
use tacit_psi::oprf::private::{self, Private};
use tacit_psi::oprf::tags::{self, TagFile, Terms};
use tacit_store::pool::Pool;
use tacit_store::sealed::{FileKey, Keys, Locked, Purpose, SealedReader, SealedWriter};

pub(crate) const FILES_TARGETS: &[Target] = &[
    Target { name: "sealed", run: sealed, longest: 512, words: &[] },
    Target { name: "pool", run: pool, longest: 512, words: &[b"TACITPOL"] },
    Target { name: "prepared", run: prepared, longest: 256, words: &[] },
    Target { name: "tags", run: tag_file, longest: 4096, words: &[b"tacittag"] },
    Target { name: "tags-private", run: tags_private, longest: 1 << 14, words: &[] },
    Target {
        name: "pair-key",
        run: pair_key,
        longest: 256,
        words: &[b"tacit-pair-key 1", b"tacit-pair-salt 1"],
    },
    Target {
        name: "pair-list",
        run: pair_list,
        longest: 512,
        words: &[b"identifier", b"keys", b"adv_pub_id"],
    },
    Target { name: "npz", run: archive, longest: 256, words: &[] },
];

const PURPOSE: Purpose = Purpose { sealing: "fuzzing: seal", mac: "fuzzing: mac", check: "fuzzing: check" };

fn key() -> FileKey {
    FileKey::from_bytes(&[9; 32]).expect("a key of 32 bytes")
}

fn keys() -> Keys {
    Keys::new(&key(), &[5; 32], &PURPOSE).expect("keys of a file")
}

fn honest_stream() -> Vec<u8> {
    let mut out = SealedWriter::new(Vec::new(), keys(), [3; 32]);
    out.write(b"what was sealed, and is not to be changed").expect("memory is written");
    out.finish().expect("memory is written")
}

/// A sealed stream: only the honest one opens.
fn sealed(bytes: &[u8]) {
    let path = place::file("sealed", bytes);
    let file = Locked::open(&path).expect("our own file");
    let mut reader = SealedReader::new(file, keys(), [3; 32], 0, bytes.len() as u64);
    let opened = reader.rest().is_ok();
    assert_eq!(
        opened,
        bytes == honest_stream(),
        "a sealed file passes that was changed, or is refused whole"
    );
}

/// A pool, as it is and with the digest of its header that it should have.
fn pool(bytes: &[u8]) {
    const BODY: usize = 152;
    assert!(Pool::open(&place::file("pool", bytes), &key()).is_err(), "a pool opens that nobody sealed");
    if bytes.len() >= BODY + 32 {
        let (body, rest) = (&bytes[..BODY], &bytes[BODY + 32..]);
        let whole = [body, blake3::hash(body).as_bytes(), rest].concat();
        assert!(Pool::open(&place::file("pool", &whole), &key()).is_err(), "a pool opens that nobody sealed");
    }
}

/// Headers of prepared gates and of a prepared computation.
fn prepared(bytes: &[u8]) {
    let mut body = [0; 192];
    let length = bytes.len().min(body.len());
    body[..length].copy_from_slice(&bytes[..length]);
    authenticated::Header::fuzzed(&body);
    wmk17::StateHeader::fuzzed(&body);
}

fn terms() -> Terms {
    Terms { lifetime: 1000, per_client: 100, key: "email".to_owned() }
}

/// A file of tags and its private half, of five elements, and the digest.
fn published() -> &'static (Vec<u8>, Vec<u8>, [u8; 32]) {
    static PUBLISHED: OnceLock<(Vec<u8>, Vec<u8>, [u8; 32])> = OnceLock::new();
    PUBLISHED.get_or_init(|| {
        let prg = &mut Prg::from_seed(Block::new(7));
        let (mut public, mut own) = (Cursor::new(Vec::new()), Cursor::new(Vec::new()));
        let elements = ["ann", "bob", "cleo", "dan", "eve"];
        let published = tags::publish(&mut public, &elements, terms(), NonZeroUsize::MIN, prg, &mut |_| ());
        let published = published.expect("a publication");
        private::create(&mut own, &published, &key(), prg).expect("its private half");
        (public.into_inner(), own.into_inner(), published.digest)
    })
}

/// A file of tags, as it is and with the hashes that it should have: what its digest vouches for is read the same
/// each time, and no other file has the digest of a publication.
fn tag_file(bytes: &[u8]) {
    let read = |bytes: &[u8]| {
        let mut file = TagFile::open(Cursor::new(bytes)).ok()?;
        assert!(file.publication().chance_log2() <= -40.0, "tags that match by chance");
        let asked = [0, 1, 1 << 40, u128::MAX];
        let found = file.contains(&asked).ok();
        let count = file.check().ok();
        assert!(count.is_none_or(|count| count == file.publication().count));
        assert!(count.is_none() || found.is_some(), "a file is whole and cannot be read");
        Some((*file.digest(), count))
    };
    if let Some((digest, Some(_))) = read(bytes) {
        let (honest, _, same) = published();
        assert!(digest != *same || bytes == honest, "a file passes for another one");
    }
    read(&tags::with_hashes(bytes));
}

/// The private half of a publication.
fn tags_private(bytes: &[u8]) {
    let path = place::file("private", bytes);
    if let Ok(private) = Private::open(&path, &key()) {
        let honest = &published().1;
        // Behind the header stand two places for how far it is, of which one may be damaged.
        assert!(bytes.starts_with(&honest[..256]), "a private file opens that was changed");
        assert!(private.answered() <= terms().lifetime);
    }
}

/// A key and a salt of PAIR: what is read is what was written, but for the ends of lines.
fn pair_key(bytes: &[u8]) {
    let Some(text) = crate::text(bytes) else { return };
    let is_same = |written: &str| assert!(written.lines().eq(text.lines()), "a secret is written otherwise");
    if let Ok(key) = Key::parse(text) {
        is_same(&key.to_text());
        assert!(Salt::parse(text).is_err(), "a key that is a salt too");
    }
    if let Ok(salt) = Salt::parse(text) {
        is_same(&salt.to_text());
    }
}

/// A list of PAIR: it is written as it was read, its order and what was there twice aside.
fn pair_list(bytes: &[u8]) {
    let read = |name, bytes: &[u8]| List::read(&[place::file(name, bytes)], Options::default());
    let list = match read("list.csv", bytes) {
        Ok(list) => list,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "an error of several lines"),
    };
    assert!(list.identifiers.is_sorted() && !list.is_empty());
    let mut out = Vec::new();
    list.write(std::path::Path::new("list.csv"), &mut out).expect("memory is written");
    let again = read("again.csv", &out).expect("our own list");
    assert_eq!((&again.layers, &again.relation), (&list.layers, &list.relation));
    assert!(again.identifiers == list.identifiers && again.duplicates == 0);
}

/// A key, a salt, and a list made with both.
fn pair_whole() -> Vec<(&'static str, Vec<u8>)> {
    let prg = &mut Prg::from_seed(Block::new(9));
    let salt = Salt::generate(20_785, 30, prg).expect("a salt");
    let key = Key::generate(Role::Publisher, 20_785, 180, prg).expect("a key");
    let people = People::of(&["ann", "bob"], "email", &salt);
    let list = people.list(&[&key], Some("shop".to_owned()), NonZeroUsize::MIN, &()).expect("a list");
    let mut out = Vec::new();
    list.write(std::path::Path::new("list.csv"), &mut out).expect("memory is written");
    let texts = [key.to_text(), salt.to_text()].map(|text| ("pair-key", text.as_bytes().to_vec()));
    texts.into_iter().chain([("pair-list", out)]).collect()
}

/// An archive of arrays with shapes out of the bytes: as long as was foreseen, and read by others.
fn archive(bytes: &[u8]) {
    const NAMES: [&str; 3] = ["choices", "messages", "delta"];
    let shapes = bytes.chunks(2).take(NAMES.len());
    let arrays: Vec<npz::Array> = NAMES
        .into_iter()
        .zip(shapes)
        .map(|(name, shape)| {
            let element = if shape[0] % 2 == 0 { npz::Element::U8 } else { npz::Element::U64 };
            let axes: Vec<u64> = shape.iter().map(|axis| u64::from(axis / 8)).collect();
            npz::Array::new(name, element, &axes)
        })
        .collect();
    let sizes = arrays.iter().map(|array| {
        let each = if array.element == npz::Element::U8 { 1 } else { 8 };
        (array.shape.iter().product::<u64>() * each) as usize
    });
    let contents: Vec<Vec<u8>> =
        sizes.map(|size| bytes.iter().copied().cycle().take(size).collect()).collect();
    let mut writer = npz::Writer::new(Cursor::new(Vec::new()), &arrays).expect("memory is written");
    let step = bytes.first().map_or(1, |first| usize::from(*first) + 1);
    for (at, content) in contents.iter().enumerate() {
        content.chunks(step).for_each(|piece| writer.append(at, piece).expect("memory is written"));
    }
    let out = writer.finish().expect("all was written").into_inner();
    assert_eq!(out.len() as u64, npz::length(&arrays), "an archive of another length than foreseen");
    let mut read = zip::ZipArchive::new(Cursor::new(&out)).expect("a zip archive");
    for (array, content) in arrays.iter().zip(&contents) {
        let mut file = read.by_name(&format!("{}.npy", array.name)).expect("an array");
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("a whole array");
        assert!(bytes.starts_with(b"\x93NUMPY") && bytes.ends_with(content), "an array is written otherwise");
    }
}

pub(crate) fn whole() -> Vec<(&'static str, Vec<u8>)> {
    let (public, own, _) = published();
    let mut pool = [&b"TACITPOL"[..], &2u32.to_le_bytes(), &[0, 1, 0, 0], &100u64.to_le_bytes()].concat();
    pool.resize(200, 6);
    let mut out = vec![
        ("sealed", honest_stream()),
        ("pool", pool),
        ("tags", public.clone()),
        ("tags-private", own.clone()),
        ("npz", vec![16, 24, 33, 16, 8]),
    ];
    // The first eight bytes say what kind of file it is; the rest is arbitrary.
    for (magic, format) in [(b"TACITAP1", 2u32), (b"TACITST1", 3)] {
        out.push(("prepared", [&magic[..], &format.to_le_bytes(), &[1, 0, 1, 1], &[1; 176]].concat()));
    }
    out.extend(pair_whole());
    out
}
