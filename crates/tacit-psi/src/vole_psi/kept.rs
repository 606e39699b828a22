//! The rows of matches as they came, kept until the last message has passed.
//!
//! Every row is moved to the first place that is free, and only where it is of a match does this place stop
//! being free: one kind of move for all rows, over memory that is touched as rows come, whatever they are. So
//! a giver that sees when the asker takes its next bytes sees the same whatever matches.

use super::layout::{Layout, Match, Received};
use super::sealing::{MARK, STREAM, Sealer, at_once};
use super::{Marks, Proof, Tags};
use crate::matching::{Found, Pair};
use crate::room::reserve;
use crate::{Result, work};
use tacit_crypto::Block;
use tacit_net::Channel;
use zeroize::Zeroizing;

/// Rows of matches.
pub(super) struct Kept {
    layout: Layout,
    /// A place for each match that there can be, and one.
    texts: Zeroizing<Vec<u8>>,
    /// The key of each place: behind the matches, those of some elements.
    keys: Zeroizing<Vec<Proof>>,
    found: Found,
    /// Of each place 1 where a match's text opened and is rows, else 0; once it was checked.
    fits: Option<Zeroizing<Vec<u8>>>,
}

impl Kept {
    /// Bytes that are held for at most so many matches.
    pub(super) fn memory(layout: &Layout, matches: u64) -> u64 {
        (matches + 1).saturating_mul((layout.sealed() + size_of::<Proof>() + 1) as u64)
    }

    /// Receives the texts of `count` elements, and keeps those whose places were `found`.
    pub(super) fn receive(
        channel: &mut Channel,
        layout: Layout,
        count: usize,
        tags: &Tags,
        found: Found,
    ) -> Result<Self> {
        let length = layout.sealed();
        let at_once = at_once(length);
        let (places, filled) = (found.filled().len(), found.filled());
        let mut piece = Zeroizing::new(vec![0; at_once.min(count) * length]);
        let mut texts = Zeroizing::new(reserve::<u8>(places * length)?);
        let mut kept = 0;
        for first in (0..count).step_by(at_once) {
            let here = at_once.min(count - first);
            let piece = &mut piece[..here * length];
            channel.recv(piece)?;
            // The peer has paid for as much.
            texts.resize(places.min(first + here) * length, 0);
            for (at, text) in (first..).zip(piece.chunks_exact(length)) {
                texts[kept * length..][..length].copy_from_slice(text);
                kept += usize::from(filled[kept][0] as usize == at);
            }
            work::done(work::Kind::Moved, piece.len());
        }
        let keys = filled.iter().map(|[_, element]| tags.proofs[*element as usize]).collect();
        Ok(Kept { layout, texts, keys: Zeroizing::new(keys), found, fits: None })
    }

    /// For rows that come after the places and elements of their matches, all of which are to fit.
    pub(super) fn proven(layout: Layout, pairs: &[Pair]) -> Result<Self> {
        let fits = Some(Zeroizing::new(Vec::with_capacity(pairs.len())));
        let (texts, keys) = (Zeroizing::default(), Zeroizing::default());
        Ok(Kept { layout, texts, keys, found: Found::of(pairs)?, fits })
    }

    /// The next such rows, already opened; whether they are `authentic` and rows.
    pub(super) fn push(&mut self, texts: &[u8], authentic: bool) -> bool {
        let length = self.layout.sealed();
        let rows = texts.chunks_exact(length).all(|text| self.layout.is_rows(&text[..length - MARK]) == 1);
        self.texts.extend_from_slice(texts);
        if let Some(fits) = &mut self.fits {
            fits.resize(self.texts.len() / length, 1);
        }
        authentic & rows
    }

    /// Opens every place, whether it has a match or not.
    pub(super) fn check(&mut self) {
        if self.fits.is_some() {
            return;
        }
        // proof: vole-psi 6.2
        let (sealer, length) = (Sealer::new(STREAM), self.layout.sealed());
        let places = self.texts.len() / length;
        let mut fits = Zeroizing::new(Vec::with_capacity(places));
        let at_once = at_once(length);
        for (keys, texts) in self.keys[..places].chunks(at_once).zip(self.texts.chunks_mut(at_once * length))
        {
            let mut texts: Vec<_> = texts.chunks_exact_mut(length).collect();
            let authentic = sealer.open(keys, &mut texts);
            // A text that authenticates and is no rows is the giver's doing as well.
            let rows = texts.iter().map(|text| self.layout.is_rows(&text[..length - MARK]));
            fits.extend(authentic.iter().zip(rows).map(|(authentic, rows)| u8::from(*authentic) & rows));
            work::done(work::Kind::Opened, texts.len() * length);
        }
        for (fits, [place, _]) in fits.iter_mut().zip(self.found.filled()) {
            *fits &= u8::from(*place != Found::NONE[0]);
        }
        self.fits = Some(fits);
    }

    /// Of each place whether its text fits.
    fn fits(&self) -> &[u8] {
        self.fits.as_ref().map_or(&[], |fits| fits.as_slice())
    }

    /// For each of so many elements whether it matches and its text fits.
    pub(super) fn marks(&self, elements: usize) -> Marks {
        let mut marks = Zeroizing::new(vec![0; elements]);
        for (fits, [_, element]) in self.fits().iter().zip(self.found.filled()) {
            marks[*element as usize] |= fits;
        }
        work::done(work::Kind::Marked, self.fits().len());
        marks
    }

    /// The places and elements of the matches whose texts fit.
    pub(super) fn opened(&self) -> Vec<Pair> {
        let pairs = self.fits().iter().zip(self.found.filled());
        pairs.filter(|(fits, _)| **fits == 1).map(|(_, pair)| *pair).collect()
    }

    /// Everything, filled up to what `most` matches take: the layout, and of each place what it is (a match, one
    /// that did not open, or nothing), the element and the text.
    pub(super) fn to_bytes(&self, most: usize) -> Zeroizing<Vec<u8>> {
        let (length, widths) = (self.layout.sealed(), &self.layout.widths);
        let each = 5 + length - MARK;
        let mut out = Zeroizing::new(Vec::with_capacity(8 * (2 + widths.len()) + most * each));
        for number in [self.layout.rows, widths.len()].iter().chain(widths) {
            out.extend_from_slice(&(*number as u64).to_le_bytes());
        }
        let texts = self.texts.chunks_exact(length).zip(self.fits()).take(most);
        for ((text, fits), [place, element]) in texts.zip(self.found.filled()) {
            let is_match = u8::from(*place != Found::NONE[0]);
            out.push(is_match * (2 - fits));
            // Of other places nothing: which element follows which shows the order of the own tags.
            let keep = Block::mask(*fits == 1).low();
            out.extend_from_slice(&(element & keep as u32).to_le_bytes());
            out.extend(text[..length - MARK].iter().map(|byte| byte & keep as u8));
        }
        out.resize(8 * (2 + widths.len()) + most * each, 0);
        work::done(work::Kind::Moved, out.len());
        out
    }

    /// The rows of what [`to_bytes`](Self::to_bytes) made.
    pub(super) fn read(bytes: &[u8]) -> Option<Received> {
        let (numbers, _) = bytes.as_chunks::<8>();
        let number = |at: usize| usize::try_from(u64::from_le_bytes(*numbers.get(at)?)).ok();
        let (rows, columns) = (number(0)?, number(1)?);
        if columns > numbers.len() {
            return None;
        }
        let widths = (0..columns).map(|column| number(2 + column)).collect::<Option<Vec<_>>>()?;
        let layout = Layout { widths, rows };
        if rows == 0 || layout.is_too_large() {
            return None;
        }
        let mut received = Received::none();
        for place in bytes.get(8 * (2 + columns)..)?.chunks_exact(5 + layout.sealed() - MARK) {
            let (head, text) = place.split_first_chunk::<5>()?;
            let element = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
            match head[0] {
                0 => {}
                1 => received.matches.push(Match { element, rows: layout.read(text)? }),
                _ => received.unopened += 1,
            }
        }
        received.matches.sort_unstable_by_key(|found| found.element);
        Some(received)
    }

    /// The rows.
    pub(super) fn open(mut self) -> Received {
        self.check();
        let length = self.layout.sealed();
        let mut received = Received { matches: Vec::new(), unopened: 0 };
        let texts = self.texts.chunks_exact(length).zip(self.fits());
        for ((text, fits), [_, element]) in texts.zip(self.found.pairs()) {
            match (*fits == 1).then(|| self.layout.read(&text[..length - MARK])).flatten() {
                Some(rows) => received.matches.push(Match { element: *element, rows }),
                None => received.unopened += 1,
            }
        }
        work::done(work::Kind::Read, received.matches.len());
        received.matches.sort_unstable_by_key(|found| found.element);
        received
    }
}
