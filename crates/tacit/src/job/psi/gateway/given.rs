//! Columns of the other side's matching rows, bucket by bucket: each has the layout of the whole job, so that
//! a bucket tells no more of the rows that a side gives than one run over all of them would. What a bucket
//! gave has a length that the matches do not change, so that the time in which it reaches the disk tells
//! nothing of them.

use super::super::reveal::of_text;
use super::words::{Reader, Writer};
use crate::{Error, Result};
use tacit_psi::vole_psi::payload::{Collected, Table, received_from};
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
pub(super) fn bits(keys: usize, places: u64, marks: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut bits = Zeroizing::new(vec![0; places.div_ceil(8) as usize]);
    // What is beyond the keys is padding.
    for (at, mark) in marks.iter().enumerate().take(keys) {
        bits[at / 8] |= (mark & 1) << (at % 8);
    }
    bits
}

/// The bits, and behind them the rows that came with columns, filled up to as many as could have come.
pub(super) fn encode(keys: usize, places: [u64; 2], collected: &mut Collected) -> Zeroizing<Vec<u8>> {
    let marks = collected.marks(places[0] as usize);
    let mut out = bits(keys, places[0], marks.as_ref().map_or(&[], |marks| marks));
    if let Some(rows) = collected.to_bytes(places[0].min(places[1]) as usize) {
        // Set aside at once, so that no copy of a cell stays behind.
        let mut whole = Zeroizing::new(Vec::with_capacity(out.len() + rows.len()));
        whole.extend_from_slice(&out);
        whole.extend_from_slice(&rows);
        out = whole;
    }
    out
}

/// What a bucket gave, of what [`bits`] or, where so many columns were asked for, [`encode`] wrote.
pub(super) fn decode(
    digests: &[[u8; 32]],
    places: u64,
    columns: Option<usize>,
    result: &[u8],
) -> Result<Ran> {
    let damaged = || Error::Input("the gateway has a result that does not belong to this bucket".to_owned());
    let (bits, rest) = result.split_at_checked(places.div_ceil(8) as usize).ok_or_else(damaged)?;
    let is_set = |at: usize| bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
    let matches = digests.iter().enumerate().filter(|(at, _)| is_set(*at)).map(|(_, digest)| *digest);
    let Some(columns) = columns else {
        return Ok(Ran::Matches { digests: matches.collect(), cells: Vec::new(), unopened: 0 });
    };
    let received = of_text(received_from(rest).ok_or_else(damaged)?);
    let (keys, mut digests, mut cells) = (digests, Vec::new(), Vec::new());
    // What is beyond the keys is padding.
    let found = received.matches.into_iter().filter(|found| (found.element as usize) < keys.len());
    for found in found {
        for row in found.rows {
            if row.len() != columns {
                return Err(damaged());
            }
            digests.push(keys[found.element as usize]);
            cells.push(row);
        }
    }
    Ok(Ran::Matches { digests, cells, unopened: received.unopened })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_comes_back_and_has_one_length_whatever_matched() {
        let digests: Vec<[u8; 32]> = (0..20).map(|at| [at; 32]).collect();
        for marks in [[0; 25], [1; 25]] {
            let result = bits(20, 25, &marks);
            assert_eq!(result.len(), 4);
            let Ran::Matches { digests: found, cells, unopened: 0 } =
                decode(&digests, 25, None, &result).unwrap()
            else {
                panic!("no matches")
            };
            // The last five are padding, which is nobody's key.
            assert_eq!((found.len(), cells.len()), (20 * usize::from(marks[0]), 0));
            // What is cut or is no rows is noticed.
            assert!(decode(&digests, 25, None, &result[..3]).is_err());
            assert!(decode(&digests, 25, Some(2), &[&result[..], &[7; 40]].concat()).is_err());
        }
    }
}
