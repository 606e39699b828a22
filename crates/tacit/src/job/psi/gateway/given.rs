//! Columns of the other side's matching rows, bucket by bucket: each has the layout of the whole job, so that
//! a bucket tells no more of the rows that a side gives than one run over all of them would. What a bucket
//! gave has a length that the matches do not change, so that the time in which it reaches the disk tells
//! nothing of them.

use super::words::{Reader, Writer};
use crate::{Error, Result};
use tacit_psi::vole_psi::payload::{Received, Table};
use zeroize::Zeroizing;

/// A row's cells, none for a null.
pub type Row = Vec<Option<Vec<u8>>>;

/// What came of running a bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ran {
    /// The keys that the peer has too, in ascending order; none if only the peer learns.
    Matches {
        /// What stands for each, once for each of the peer's rows of it where its columns were asked for.
        digests: Vec<[u8; 32]>,
        /// Those rows' cells, in the order asked for; without any where no column was.
        cells: Vec<Row>,
        /// Keys whose tag the peer had and whose cells did not open: it cheated, and they count as no
        /// matches. The peer must not learn how many there are.
        unopened: u64,
    },
    /// An earlier bucket wants the task's slot: come again with this one.
    Deferred,
}

/// How the columns that a side gives are laid out in every bucket: its driver finds that out over all rows
/// that have a key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// Each column's name, and the bytes of its longest cell.
    pub columns: Vec<(String, u64)>,
    /// The most rows of a key.
    pub rows: u64,
}

/// A bucket's keys, each once, and the table of what is given of them.
pub(super) struct Gathered {
    pub digests: Zeroizing<Vec<[u8; 32]>>,
    pub table: Option<Table>,
    /// A hash of the rows given.
    rows: [u8; 32],
}

impl Given {
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// An error where it is not the layout of these columns.
    pub(super) fn check(&self, names: &[String]) -> Result<()> {
        if self.columns.iter().map(|(name, _)| name).ne(names) {
            return Err(Error::Usage(
                "a layout is of the columns that are given, and of no others".to_owned(),
            ));
        }
        Ok(())
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.number(self.rows);
        out.number(self.columns.len() as u64);
        for (name, width) in &self.columns {
            out.text(name);
            out.number(*width);
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self> {
        let rows = from.number()?;
        let count = from.number()?;
        let columns = (0..count).map(|_| Ok((from.text()?, from.number()?))).collect::<Result<_>>()?;
        Ok(Given { columns, rows })
    }

    /// Sorts a bucket's rows, and tells its keys apart.
    pub(super) fn gather<'c>(
        &self,
        mut digests: Zeroizing<Vec<[u8; 32]>>,
        cell: &dyn Fn(usize, usize) -> Option<&'c [u8]>,
    ) -> Result<Gathered> {
        if self.is_empty() {
            digests.sort_unstable();
            digests.dedup();
            return Ok(Gathered { digests, table: None, rows: [0; 32] });
        }
        // Engines bring rows in any order, and what is given has to be the same each time.
        let cells = |row: usize| (0..self.columns.len()).map(move |column| cell(row, column));
        let mut order: Vec<u32> = (0..digests.len() as u32).collect();
        order.sort_unstable_by(|one, other| {
            let [one, other] = [*one as usize, *other as usize];
            digests[one].cmp(&digests[other]).then_with(|| cells(one).cmp(cells(other)))
        });
        let mut table = Table::new(self.columns.iter().map(|(name, _)| name.as_str()))?;
        for (name, width) in &self.columns {
            table.widen(name, usize::try_from(*width).unwrap_or(usize::MAX))?;
        }
        table.make_room(usize::try_from(self.rows).unwrap_or(usize::MAX));
        let mut told: Zeroizing<Vec<[u8; 32]>> = Zeroizing::new(Vec::with_capacity(digests.len()));
        let mut hasher = blake3::Hasher::new_derive_key("tacit 1 gateway: rows of a bucket");
        let mut rows = 0;
        for row in order.into_iter().map(|row| row as usize) {
            rows = if told.last() == Some(&digests[row]) { rows + 1 } else { 1 };
            if rows == 1 {
                told.push(digests[row]);
            }
            hasher.update(&digests[row]);
            for (cell, (name, width)) in cells(row).zip(&self.columns) {
                let length = cell.map_or(0, <[u8]>::len) as u64;
                if length > *width || rows > self.rows {
                    let name = tacit_net::shown(name);
                    return Err(Error::Input(format!(
                        "column {name} has a longer cell, or a key more rows, than when the job was opened: the table \
                         is not the same each time that it is read"
                    )));
                }
                hasher.update(&[u8::from(cell.is_some())]).update(&length.to_le_bytes());
                hasher.update(cell.unwrap_or_default());
            }
            table.push(told.len() as u32 - 1, cells(row))?;
        }
        Ok(Gathered { digests: told, table: Some(table), rows: *hasher.finalize().as_bytes() })
    }
}

impl Gathered {
    /// What the bucket is committed to by.
    pub(super) fn commitment(&self, run: &[u8; 32], number: u64) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("tacit 1 gateway: keys of a bucket");
        hasher.update(run).update(&number.to_le_bytes()).update(self.digests.as_flattened());
        if self.table.is_some() {
            hasher.update(&self.rows);
        }
        *hasher.finalize().as_bytes()
    }
}

/// A bit for each of a bucket's places, set where one of its `keys` matches.
pub(super) fn bits(keys: usize, places: u64, matches: impl Iterator<Item = u32>) -> Zeroizing<Vec<u8>> {
    let mut bits = Zeroizing::new(vec![0; places.div_ceil(8) as usize]);
    // What is beyond the keys is padding.
    for at in matches.map(|at| at as usize).filter(|at| *at < keys) {
        bits[at / 8] |= 1 << (at % 8);
    }
    bits
}

/// The bits, and behind them what came with columns: how many did not open, and of each match its rows;
/// filled up to what all of the peer's places could have brought, which is `room`.
pub(super) fn encode(keys: usize, places: u64, received: Option<&Received>, room: u64) -> Zeroizing<Vec<u8>> {
    let Some(received) = received else { return bits(keys, places, std::iter::empty()) };
    let matches = received.matches.iter().filter(|found| (found.element as usize) < keys);
    let bits = bits(keys, places, matches.clone().map(|found| found.element));
    let whole = bits.len() + 8 + room as usize;
    // Set aside at once, so that no copy of a cell stays behind.
    let mut out = Zeroizing::new(Vec::with_capacity(whole));
    out.extend_from_slice(&bits);
    out.extend_from_slice(&received.unopened.to_le_bytes());
    for found in matches {
        out.extend_from_slice(&(found.rows.len() as u32).to_le_bytes());
        for cell in found.rows.iter().flatten() {
            // One more than the length, as zero stands for a null.
            out.extend_from_slice(&cell.as_ref().map_or(0, |cell| cell.len() as u32 + 1).to_le_bytes());
            out.extend_from_slice(cell.as_deref().unwrap_or_default());
        }
    }
    let length = whole.max(out.len());
    out.resize(length, 0);
    out
}

/// What a bucket gave, of what [`bits`] or, where so many columns were asked for, [`encode`] wrote.
pub(super) fn decode(
    digests: &[[u8; 32]],
    places: u64,
    columns: Option<usize>,
    result: &[u8],
) -> Result<Ran> {
    let damaged = || Error::Input("the gateway holds a result that is none of this bucket's".to_owned());
    let (bits, rest) = result.split_at_checked(places.div_ceil(8) as usize).ok_or_else(damaged)?;
    let is_set = |at: usize| bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
    let matches = digests.iter().enumerate().filter(|(at, _)| is_set(*at)).map(|(_, digest)| *digest);
    let Some(columns) = columns else {
        return Ok(Ran::Matches { digests: matches.collect(), cells: Vec::new(), unopened: 0 });
    };
    let mut from = Bytes(rest);
    let unopened = from.array().map(u64::from_le_bytes).ok_or_else(damaged)?;
    let (mut digests, mut cells) = (Vec::new(), Vec::new());
    for digest in matches {
        for _ in 0..from.array().map(u32::from_le_bytes).ok_or_else(damaged)? {
            let row: Option<Row> = (0..columns).map(|_| from.cell()).collect();
            digests.push(digest);
            cells.push(row.ok_or_else(damaged)?);
        }
    }
    Ok(Ran::Matches { digests, cells, unopened })
}

/// Takes a result apart.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    /// A cell, if there is one: a null, or its bytes.
    fn cell(&mut self) -> Option<Option<Vec<u8>>> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        let (cell, rest) = self.0.split_at_checked(length.saturating_sub(1))?;
        self.0 = rest;
        Some((length > 0).then(|| cell.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_psi::vole_psi::payload::Match;

    #[test]
    fn a_result_comes_back_and_has_one_length_whatever_matched() {
        let digests: Vec<[u8; 32]> = (0..20).map(|at| [at; 32]).collect();
        let gained = |matches: &[(u32, usize)]| {
            let rows = |count: usize| vec![vec![Some(vec![b'x'; count]), None]; count];
            let matches =
                matches.iter().map(|(element, count)| Match { element: *element, rows: rows(*count) });
            Received { matches: matches.collect(), unopened: 3 }
        };
        let mut lengths = Vec::new();
        // The last is padding, which is nobody's key.
        for matches in [vec![], vec![(0, 1), (7, 2), (19, 2)], vec![(5, 2), (24, 1)]] {
            let result = encode(20, 25, Some(&gained(&matches)), 30 * 50);
            lengths.push(result.len());
            let Ran::Matches { digests: found, cells, unopened: 3 } =
                decode(&digests, 25, Some(2), &result).unwrap()
            else {
                panic!("no matches")
            };
            let real = matches.iter().filter(|(element, _)| *element < 20);
            let plain: Vec<_> =
                real.flat_map(|(element, count)| vec![([*element as u8; 32], *count); *count]).collect();
            assert_eq!(found.len(), plain.len());
            for ((digest, row), (own, count)) in found.iter().zip(&cells).zip(plain) {
                assert_eq!((digest, row), (&own, &vec![Some(vec![b'x'; count]), None]));
            }
            // What is cut or is another column's is noticed.
            assert!(decode(&digests, 25, Some(2), &result[..3]).is_err());
            if !matches.is_empty() {
                assert!(decode(&digests, 25, Some(2), &result[..20]).is_err());
            }
        }
        assert!(lengths.iter().all(|length| *length == lengths[0]));
    }
}
