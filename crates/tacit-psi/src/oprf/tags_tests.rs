//! The file of tags: exact, found again, refused when it was changed, and its chance of a wrong match.

use super::*;
use std::io::Cursor;

const ONE: NonZeroUsize = NonZeroUsize::MIN;

fn terms(lifetime: u64) -> Terms {
    Terms { lifetime, per_client: 1, key: "key v1: test".into() }
}

fn random_tags(n: usize, bits: u32, seed: u128) -> Vec<u128> {
    let mut bytes = vec![0; 16 * n];
    Prg::from_seed(tacit_crypto::Block::new(seed)).fill_bytes(&mut bytes);
    let tags = bytes.as_chunks::<16>().0.iter().map(|b| u128::from_le_bytes(*b) >> (128 - bits));
    tags.collect()
}

fn public() -> Encoding {
    *ServerKey::from_bytes(&[1; 32]).unwrap().public()
}

/// A file of these tags, whatever their length.
fn file_of(tags: &mut [u128], bits: u32) -> TagFile<Cursor<Vec<u8>>> {
    tags.sort_unstable();
    let mut publication = Publication::with_bits([3; 32], public(), tags.len() as u64, terms(1 << 10), bits);
    let mut out = Cursor::new(Vec::new());
    let digest = write(&mut out, &mut publication, tags).unwrap();
    let index = publication.blocks() as usize * ENTRY;
    let index = out.get_ref()[HEADER..HEADER + index].to_vec();
    TagFile { source: out, publication, digest, index, checked: None }
}

/// The file of a publisher that chooses first tags and blocks itself.
pub(in crate::oprf) fn forged(mut publication: Publication, blocks: &[(u128, Vec<u8>)]) -> Vec<u8> {
    let (mut index, mut body) = (Vec::new(), Vec::new());
    for (number, (first, block)) in (0..).zip(blocks) {
        body.extend_from_slice(block);
        index.extend_from_slice(&first.to_le_bytes());
        index.extend_from_slice(&(body.len() as u64).to_le_bytes());
        index.extend_from_slice(&block_hash(number, block));
    }
    publication.body = body.len() as u64;
    let header = publication.to_bytes();
    [&header[..], &index, &digest(&header, &index), &body].concat()
}

/// What a cheater puts into the block that the tag of one key alone falls into.
#[derive(Clone, Copy, Debug)]
pub(in crate::oprf) enum Trap {
    /// Bytes that are no tags.
    Broken,
    /// The tag itself, and so many zeros behind.
    Padded(usize),
    /// The tag itself, rightly coded.
    Valid,
}

/// A file of three blocks whose second has a range of its own: that of the key `target`.
pub(in crate::oprf) fn trapped(key: &ServerKey, target: &[u8], trap: Trap) -> Vec<u8> {
    let count = 3 * BLOCK;
    let publication = Publication::new([8; 32], *key.public(), count as u64, terms(1 << 12)).unwrap();
    let suite = Suite::new(Mode::Verifiable);
    let outputs = suite.apply(key, &[publication.input(target)], b"").unwrap();
    let tag = publication.tags(&outputs)[0];
    let above = (1 << publication.bits) - 1 - tag;
    let mut low: Vec<_> = random_tags(BLOCK, 128, 9).iter().map(|other| other % tag).collect();
    let mut high: Vec<_> = random_tags(BLOCK, 128, 10).iter().map(|other| tag + 1 + other % above).collect();
    low.sort_unstable();
    high.sort_unstable();
    let own = encode(&[tag; BLOCK], publication.rice);
    let own = match trap {
        Trap::Broken => vec![0xff; 8],
        Trap::Padded(zeros) => [own, vec![0; zeros]].concat(),
        Trap::Valid => own,
    };
    let rice = publication.rice;
    forged(publication, &[(low[0], encode(&low, rice)), (tag, own), (high[0], encode(&high, rice))])
}

/// proof: tags 2.7
#[test]
fn a_block_has_one_encoding_and_one_parameter() {
    let key = ServerKey::from_bytes(&[1; 32]).unwrap();
    let open = |trap| TagFile::open(Cursor::new(trapped(&key, b"x", trap)));
    assert_eq!(open(Trap::Valid).unwrap().checked().unwrap(), 3 * BLOCK as u64);
    // More than a block can take is refused by the index, without a look at it.
    for zeros in [4 << 10, 1 << 20] {
        assert!(matches!(open(Trap::Padded(zeros)), Err(Error::Tags(TagsError::Damaged { what: "index" }))));
    }
    for trap in [Trap::Broken, Trap::Padded(1), Trap::Padded(100)] {
        let said = open(trap).unwrap().checked();
        assert!(matches!(said, Err(Error::Tags(TagsError::Damaged { .. }))), "{trap:?}: {said:?}");
    }
    // Ones where the last byte has room.
    let mut publication = Publication::new([8; 32], public(), 3, terms(1)).unwrap();
    let tags = [5, 9, 77];
    let mut block = encode(&tags, publication.rice);
    assert_ne!(2 * (publication.rice + 1) % 8, 0);
    let whole = forged(publication.clone(), &[(5, block.clone())]);
    assert_eq!(TagFile::open(Cursor::new(whole)).unwrap().checked().unwrap(), 3);
    *block.last_mut().unwrap() |= 0x80;
    let mut file = TagFile::open(Cursor::new(forged(publication.clone(), &[(5, block)]))).unwrap();
    assert!(matches!(file.checked(), Err(Error::Tags(TagsError::Damaged { .. }))));
    // Another parameter than that of the tags' length, with blocks of it.
    for rice in [0, publication.rice - 1, publication.rice + 1] {
        publication.rice = rice;
        let tags = [5, 6, 7];
        let said = TagFile::open(Cursor::new(forged(publication.clone(), &[(5, encode(&tags, rice))])));
        assert!(matches!(said, Err(Error::Tags(TagsError::Damaged { what: "header" }))), "{rice}");
    }
}

/// Honest files are far from the most ones of a block, whatever their size.
#[test]
fn blocks_of_uniform_tags_are_within_their_bound() {
    for n in [1, 2, 100, 511, 512, 513, 700, 1023, 1025, 1448, 1449, 5000, 40_000] {
        let bits = tag_bits(n as u64, 1 << 10);
        let mut tags = random_tags(n, bits, n as u128);
        let file = file_of(&mut tags, bits);
        file.check_index().unwrap();
        for block in tags.chunks(BLOCK) {
            let ones: u128 = block.windows(2).map(|two| (two[1] - two[0]) >> file.publication.rice).sum();
            assert!(ones < u128::from(MOST_ONES / 2), "{n} tags: {ones} ones");
        }
    }
}

fn published(n: u32) -> (Vec<u8>, Published, Vec<[u8; 4]>) {
    let elements: Vec<_> = (0..n).map(u32::to_le_bytes).collect();
    let mut out = Cursor::new(Vec::new());
    let mut told = 0;
    let published =
        publish(&mut out, &elements, terms(1 << 10), ONE, &mut Prg::from_os(), &mut |done| told = done)
            .unwrap();
    assert_eq!(told, u64::from(n));
    (out.into_inner(), published, elements)
}

#[test]
fn what_was_published_is_found_and_nothing_else() {
    for n in [0, 1, 2, 511, 512, 513, 1500] {
        let (bytes, published, elements) = published(n);
        let mut file = TagFile::open(Cursor::new(bytes)).unwrap();
        assert_eq!((file.publication(), file.digest()), (&published.publication, &published.digest));
        assert_eq!(file.check().unwrap(), u64::from(n));
        let others: Vec<_> = (n..n + 700).map(u32::to_le_bytes).collect();
        let suite = Suite::new(Mode::Verifiable);
        let mut tags_of = |elements: &[[u8; 4]]| {
            let inputs: Vec<_> = elements.iter().map(|e| published.publication.input(e)).collect();
            let tags = published.publication.tags(&suite.apply(&published.key, &inputs, b"").unwrap());
            file.contains(&tags).unwrap()
        };
        assert_eq!(tags_of(&elements), vec![true; n as usize]);
        assert_eq!(tags_of(&others), vec![false; 700]);
    }
}

/// Decoys count as elements, so that tags are long enough for all, and hide none of the set's.
#[test]
fn elements_are_found_among_decoys() {
    let elements: Vec<_> = (0..300u32).map(u32::to_le_bytes).collect();
    let (mut out, mut prg) = (Cursor::new(Vec::new()), Prg::from_os());
    let published = publish_among(&mut out, &elements, 5000, terms(9), ONE, &mut prg, &mut |_| ()).unwrap();
    assert_eq!((published.publication.count, published.publication.bits), (5300, tag_bits(5300, 9)));
    let mut file = TagFile::open(out).unwrap();
    assert_eq!(file.check().unwrap(), 5300);
    let asked: Vec<_> = (200..400u32).map(u32::to_le_bytes).collect();
    let inputs: Vec<_> = asked.iter().map(|e| published.publication.input(e)).collect();
    let suite = Suite::new(Mode::Verifiable);
    let tags = published.publication.tags(&suite.apply(&published.key, &inputs, b"").unwrap());
    let found: Vec<bool> = (200..400).map(|element| element < 300).collect();
    assert_eq!(file.contains(&tags).unwrap(), found);
    let many =
        publish_among(&mut Cursor::new(vec![]), &["x"], u64::MAX, terms(9), ONE, &mut prg, &mut |_| ());
    assert!(matches!(many, Err(Error::TooManyElements { .. })), "{many:?}");
}

#[test]
fn several_threads_publish_the_same_tags() {
    let elements: Vec<_> = (0..5000u32).map(u32::to_le_bytes).collect();
    let key = ServerKey::from_bytes(&[1; 32]).unwrap();
    let publication = Publication::new([5; 32], *key.public(), 5000, terms(9)).unwrap();
    let made = [1, 3].map(|threads| {
        let threads = NonZeroUsize::new(threads).unwrap();
        let mut tags = vec![0; elements.len()];
        evaluate(&elements, &mut tags, &publication, &key, threads, &mut |_| ()).unwrap();
        tags
    });
    assert_eq!(made[0], made[1]);
}

#[test]
fn every_publication_has_a_key_and_an_id_of_its_own() {
    let (a, b) = (published(40), published(40));
    assert_ne!(a.1.publication.id, b.1.publication.id);
    assert_ne!(a.1.publication.public, b.1.publication.public);
    assert_ne!(a.1.digest, b.1.digest);
    // Under one key the elements would still have other tags, as the id is part of what is asked for.
    let [x, y] =
        [&a, &b].map(|p| Suite::new(Mode::Verifiable).apply(&a.1.key, &[p.1.publication.input(b"x")], b""));
    assert_ne!(x.unwrap(), y.unwrap());
}

#[test]
fn sizes_are_what_the_documents_say() {
    // 2^16 random tags of the length that 2^24 elements and 2^10 queries take, as far apart as there.
    assert_eq!(tag_bits(1 << 24, 1 << 10), 74);
    let mut tags = random_tags(1 << 16, 74 - 8, 1);
    let file = file_of(&mut tags, 74 - 8);
    let each = file.source.get_ref().len() as f64 / (1 << 16) as f64;
    assert!((6.4..6.7).contains(&each), "{each} bytes an element");
}

#[test]
fn all_differences_and_parameters_are_coded_and_decoded() {
    for bits in [41, 63, 64, 65, 66, 96, 112, 127, 128] {
        let top = u128::MAX >> (128 - bits);
        for n in [1, 2, 3, 600, 1025] {
            let mut tags = random_tags(n, bits, bits.into());
            // Equal tags, neighbours, and both ends.
            tags[n / 2] = tags[0];
            if n > 4 {
                (tags[1], tags[2], tags[3]) = (0, top, top - 1);
            }
            let mut file = file_of(&mut tags, bits);
            assert_eq!(file.check().unwrap(), n as u64);
            assert!(file.contains(&tags).unwrap().iter().all(|found| *found), "{bits} bits, {n} tags");
            let near: Vec<u128> = tags.iter().map(|tag| tag ^ 4).filter(|t| !tags.contains(t)).collect();
            assert!(file.contains(&near).unwrap().iter().all(|found| !*found));
        }
    }
    // A few tags at one end, and long runs of ones.
    let mut clustered: Vec<u128> = (0..2000).chain([u128::MAX >> 64]).collect();
    let mut file = file_of(&mut clustered, 64);
    assert!(file.contains(&clustered).unwrap().iter().all(|found| *found));
}

#[test]
fn wrong_matches_are_as_rare_as_the_bound() {
    // Tags of 24 bits, so that 2^12 of them and 2^16 queries meet 2^(12 + 16 - 24) = 16 times.
    let mut tags = random_tags(1 << 12, 24, 7);
    let mut file = file_of(&mut tags, 24);
    let queries = random_tags(1 << 16, 24, 8);
    let hits = file.contains(&queries).unwrap().iter().filter(|found| **found).count();
    assert!(
        (1..=40).contains(&hits),
        "{hits} wrong matches, where the bound says 16 and chance adds 6σ = 24"
    );
    // What is shipped.
    for (n, queries) in
        [(0, 1), (1, 1), (1000, 77), (1 << 24, 1 << 10), (1 << 24, 1 << 16), (1 << 32, 1 << 40)]
    {
        let publication = Publication::new([0; 32], public(), n, terms(queries)).unwrap();
        assert!(publication.chance_log2() <= -40.0);
        assert_eq!(Publication::parse(&publication.to_bytes()).unwrap(), publication);
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let (bytes, ..) = published(1100);
    let read = |bytes: Vec<u8>| TagFile::open(Cursor::new(bytes)).and_then(|mut file| file.check());
    assert_eq!(read(bytes.clone()).unwrap(), 1100);
    let body = HEADER + 3 * ENTRY + DIGEST;
    let mut prg = Prg::from_os();
    let all_of_the_front = (0..body).flat_map(|at| (0..8).map(move |bit| (at, bit)));
    let some_of_the_body = (0..500).map(|_| {
        let at = body + prg.below((bytes.len() - body) as u64) as usize;
        (at, prg.below(8) as u32)
    });
    for (at, bit) in all_of_the_front.chain(some_of_the_body) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << bit;
        assert!(matches!(read(bytes), Err(Error::Tags(_))), "byte {at}, bit {bit}");
    }
    for length in [0, 1, HEADER - 1, HEADER, body - 1, body, bytes.len() - 1] {
        assert!(matches!(read(bytes[..length].to_vec()), Err(Error::Tags(_))), "cut at {length}");
    }
    assert!(matches!(
        read([&bytes[..], &[0]].concat()),
        Err(Error::Tags(TagsError::Length { found, expected })) if found == expected + 1
    ));
}

#[test]
fn a_look_up_refuses_the_block_that_was_changed_and_reads_no_other() {
    let (bytes, published, elements) = published(2048);
    let suite = Suite::new(Mode::Verifiable);
    let inputs: Vec<_> = elements.iter().map(|e| published.publication.input(e)).collect();
    let mut tags = published.publication.tags(&suite.apply(&published.key, &inputs, b"").unwrap()).to_vec();
    tags.sort_unstable();
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 0x10;
    let mut file = TagFile::open(Cursor::new(changed)).unwrap();
    assert!(file.contains(&tags[..1536]).unwrap().iter().all(|found| *found));
    assert!(matches!(file.contains(&tags[1600..1601]), Err(Error::Tags(TagsError::Damaged { .. }))));
}

/// A publisher can hash what it likes: what it put into a block must not make the reader panic or run on.
#[test]
fn blocks_of_a_cheating_publisher_end_in_an_error() {
    let mut prg = Prg::from_os();
    for round in 0..300 {
        let (bits, n) = ([41, 66, 128][round % 3], 1 + prg.below(600) as usize);
        let mut tags = random_tags(n, bits, round as u128);
        let mut file = file_of(&mut tags, bits);
        let body = HEADER + DIGEST + file.index.len();
        let bytes = file.source.get_mut();
        match round % 4 {
            0 => bytes[body..].fill(0xff),
            1 => bytes[body..].fill(0),
            _ => prg.fill_bytes(&mut bytes[body..]),
        }
        let bytes = bytes.clone();
        let (mut start, count) = (body, file.index.len() / ENTRY);
        for at in 0..count {
            let end = body + number(&file.index, at * ENTRY + 16) as usize;
            let hash = block_hash(at as u64, &bytes[start..end]);
            file.index[at * ENTRY + 24..(at + 1) * ENTRY].copy_from_slice(&hash);
            start = end;
        }
        // Zeros are tags of no distance, which is a set like any other.
        match file.check() {
            Ok(count) => assert_eq!(count, n as u64),
            Err(error) => assert!(matches!(error, Error::Tags(TagsError::Damaged { .. })), "{error}"),
        }
        let _ = file.contains(&tags);
    }
}

#[test]
fn terms_out_of_range_are_refused() {
    let long = "k".repeat(TEXT + 1);
    for terms in [
        Terms { lifetime: 0, per_client: 0, key: String::new() },
        Terms { lifetime: 4, per_client: 5, key: String::new() },
        Terms { lifetime: MAX_LIFETIME + 1, per_client: 1, key: String::new() },
        Terms { lifetime: 1, per_client: 1, key: long },
    ] {
        let mut out = Cursor::new(Vec::new());
        let said = publish(&mut out, &["x"], terms, ONE, &mut Prg::from_os(), &mut |_| ());
        assert!(matches!(said, Err(Error::Usage(_))));
        assert!(out.get_ref().is_empty());
    }
    let said = Publication::new([0; 32], public(), MAX_ELEMENTS + 1, terms(1));
    assert!(matches!(said, Err(Error::TooManyElements { .. })));
}
