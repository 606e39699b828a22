//! Where the rows of a result go: those that match, the others, or all of them with a mark.

use super::output::{Output, destination};
use crate::cli::Context;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::data::records::KeySet;
use tacit::data::table::{Pass, Source};
use tacit::data::{By, Written};
use tacit::job::psi::{Job, Own, Reveal, Revealed};
use tacit::{Error, Result};

/// Bytes of a text that has room in a cell of a workbook in any case.
const WORKBOOK_CELL: u64 = 32_767;

/// The files that the rows of a result go to.
#[derive(clap::Args)]
pub(crate) struct ResultArgs {
    /// Writes your matching rows, with all their columns, to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Writes your other rows, whose key the peer does not have or which have none, to this file
    #[arg(long, value_name = "FILE")]
    output_rest: Option<PathBuf>,
    /// Writes all of your rows to this file, with a column `matched` and the peer's columns, which are empty
    /// where a row does not match
    #[arg(long, value_name = "FILE")]
    output_all: Option<PathBuf>,
    /// What happens to a cell, yours or the peer's, that does not fit into an output: the run does not start,
    /// or such cells are left empty and counted
    #[arg(long, value_enum, default_value = "refuse")]
    unfit: Unfit,
}

/// `--unfit`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Unfit {
    /// The run does not start if a cell does not fit
    Refuse,
    /// The cell is left empty, and counted
    Null,
}

impl Unfit {
    /// Tells a table what becomes of its cells that an output cannot hold.
    pub(crate) fn tell(self, source: &Source) {
        if self == Unfit::Null {
            source.leave_unfit_empty();
        }
    }
}

/// These files, open.
pub(crate) struct Results {
    output: Option<Output>,
    rest: Option<Output>,
    all: Option<Output>,
}

/// What was written.
#[derive(Default)]
pub(crate) struct Put {
    output: Option<Written>,
    rest: Option<u64>,
    all: Option<Written>,
    /// Cells of ours that an output could not hold.
    own_emptied: u64,
}

impl ResultArgs {
    fn targets(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let options =
            [("output", &self.output), ("output-rest", &self.output_rest), ("output-all", &self.output_all)];
        options.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)))
    }

    /// Whether the rows that do not match are written.
    pub(crate) const fn has_rest(&self) -> bool {
        self.output_rest.is_some()
    }

    /// Whether all rows are written.
    pub(crate) const fn has_all(&self) -> bool {
        self.output_all.is_some()
    }

    /// Whether matching rows are written anywhere.
    pub(crate) fn has_matches(&self) -> bool {
        self.targets().any(|(option, _)| option != "output-rest")
    }

    /// Refuses files for a result that only the peer gets.
    pub(crate) fn check_none(&self) -> Result<()> {
        match self.targets().next() {
            Some((name, _)) => {
                let what = "is empty with --result peer; leave one of the two out".into();
                Err(Error::Parameter { name, what })
            }
            None => Ok(()),
        }
    }

    /// Refuses rows without a file for them, where a run that is charged would lose them.
    pub(crate) fn wanted(&self, reveal: &Reveal) -> Result<()> {
        if self.targets().next().is_none() && matches!(reveal, Reveal::Rows | Reveal::Payload(_)) {
            let what = "--yes without --output: the run would be charged, and its rows lost; give --output \
                        FILE, or --json for only their number";
            return Err(Error::Usage(what.into()));
        }
        Ok(())
    }

    /// Tells that no row will be written, where that may be a mistake.
    pub(crate) fn note_none(&self, reveal: &Reveal, context: &Context) {
        if self.targets().next().is_none() && matches!(reveal, Reveal::Rows | Reveal::Payload(_)) {
            context.note("note: no --output: only the number of matches will be shown");
        }
    }

    /// Refuses files for a result that has no rows.
    pub(crate) fn check(&self, reveal: &Reveal) -> Result<()> {
        match self.targets().next() {
            Some((name, _)) if reveal.is_aggregate() => {
                let what = format!("is empty: {} reveals no rows; leave it out", reveal.name());
                Err(Error::Parameter { name, what })
            }
            _ => Ok(()),
        }
    }

    /// Errors if rows of this table cannot go to the files, by their columns' types. Tells the table what `--unfit`
    /// wants done with single cells.
    pub(crate) fn admit(&self, source: &Source) -> Result<()> {
        self.unfit.tell(source);
        self.targets().try_for_each(|(_, target)| Ok(source.admits(target)?))
    }

    /// Finds what of this table's rows cannot be written, before the peer is called.
    pub(crate) fn prove(&self, source: &Source) -> Result<()> {
        self.targets().try_for_each(|(_, target)| Ok(source.prove(target)?))
    }

    /// The same of a job's table, and of cells that the peer may give.
    pub(crate) fn prove_job(&self, own: &Own, job: &Job) -> Result<()> {
        for (option, target) in self.targets() {
            own.prove(target)?;
            if self.unfit == Unfit::Refuse && option != "output-rest" {
                own.holds(job, target)?;
            }
        }
        Ok(())
    }

    /// The most bytes that the peer's columns may take for each of its keys, if `wanted` is what the caller takes: a
    /// cell of a workbook holds no more.
    pub(crate) fn most_cell(&self, wanted: u64) -> u64 {
        let is_workbook = |(_, target): (&str, &Path)| {
            target.extension().is_some_and(|end| end.eq_ignore_ascii_case("xlsx"))
        };
        let holds = self.unfit == Unfit::Refuse && self.targets().any(is_workbook);
        if holds { wanted.min(WORKBOOK_CELL) } else { wanted }
    }

    /// Opens the files by `create`.
    pub(crate) fn open(&self, create: fn(&Path) -> Result<Output>) -> Result<Results> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(create).transpose();
        let (output, rest) = (open(&self.output)?, open(&self.output_rest)?);
        Ok(Results { output, rest, all: open(&self.output_all)? })
    }
}

impl Results {
    /// Makes room for a table of so many bytes, or one part of it, in each file.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<()> {
        let files = [&mut self.output, &mut self.rest, &mut self.all];
        // Every row may match, and one without a line's end gets one.
        files.into_iter().flatten().try_for_each(|output| output.reserve(bytes.saturating_add(2)))
    }

    /// Writes the rows of a job's result, and ends the files.
    pub(crate) fn write(self, own: &Own, job: &Job, result: &Revealed) -> Result<Put> {
        let mut put = Put::default();
        if let Some(mut rest) = self.rest {
            let target = rest.target().to_owned();
            put.rest = own.write_rest(result, &target, &mut rest)?;
            rest.commit()?;
        }
        if let Some(mut all) = self.all {
            let target = all.target().to_owned();
            put.all = own.write_all(job, result, &target, &mut all)?;
            all.commit()?;
        }
        if let Some(mut output) = self.output {
            let target = output.target().to_owned();
            put.output = own.write(job, result, &target, &mut output)?;
            output.commit()?;
        }
        put.own_emptied = own.left_empty();
        Ok(put)
    }

    /// Writes the rows of a table with these matches, and ends the files.
    pub(crate) fn write_matches(self, source: &Source, keys: &KeySet, matches: &[u32]) -> Result<Put> {
        let mut put = Put::default();
        let plain = |rows| Written { rows, emptied: 0 };
        if let Some(mut rest) = self.rest {
            let target = rest.target().to_owned();
            put.rest = Some(source.write_rest(keys, matches, &target, &mut rest)?);
            rest.commit()?;
        }
        if let Some(mut all) = self.all {
            let target = all.target().to_owned();
            put.all = Some(plain(source.write_marked(keys, matches, &target, &mut all)?));
            all.commit()?;
        }
        if let Some(mut output) = self.output {
            let target = output.target().to_owned();
            put.output = Some(plain(source.write_matches(keys, matches, &target, &mut output)?));
            output.commit()?;
        }
        put.own_emptied = source.left_empty();
        Ok(put)
    }

    /// Writes the rows of a table for whose numbers `matches_by` gives an identifier, with a column that says which one
    /// where there is a `by`, and closes the files. `done` is called when the file of matching rows is written and all
    /// others are closed.
    pub(crate) fn write_rows(
        self,
        source: &Source,
        pass: &Pass,
        (matches_by, by): (impl Fn(u64) -> Option<usize>, Option<By<'_>>),
        done: impl FnOnce() -> Result<()>,
    ) -> Result<Put> {
        let mut put = Put::default();
        let plain = |rows| Written { rows, emptied: 0 };
        let is_match = |row| matches_by(row).is_some();
        if let Some(mut rest) = self.rest {
            let target = rest.target().to_owned();
            put.rest = Some(source.write_rows(pass, |row| !is_match(row), &target, &mut rest)?);
            rest.commit()?;
        }
        if let Some(mut all) = self.all {
            let target = all.target().to_owned();
            let rows = source.write_rows_by(pass, &matches_by, (true, by), &target, &mut all)?;
            put.all = Some(plain(rows));
            all.commit()?;
        }
        if let Some(mut output) = self.output {
            let target = output.target().to_owned();
            let rows = match by {
                Some(_) => source.write_rows_by(pass, &matches_by, (false, by), &target, &mut output)?,
                None => source.write_rows(pass, is_match, &target, &mut output)?,
            };
            put.output = Some(plain(rows));
            done()?;
            output.commit()?;
        }
        put.own_emptied = source.left_empty();
        Ok(put)
    }
}

impl Put {
    /// What was written, for programs and for people, a line each.
    pub(crate) fn report(&self, args: &ResultArgs, object: &mut Value) -> String {
        let mut text = String::new();
        let mut emptied = 0;
        if let (Some(path), Some(written)) = (&args.output, self.output) {
            object["output"] = json!(path);
            object["output_rows"] = json!(written.rows);
            emptied += written.emptied;
            text += &format!("{} of yours written to {}\n", counted(written.rows, "row"), destination(path));
        }
        if let (Some(path), Some(rows)) = (&args.output_rest, self.rest) {
            object["rest"] = json!(path);
            object["rest_rows"] = json!(rows);
            text += &format!("{} without a match written to {}\n", counted(rows, "row"), destination(path));
        }
        if let (Some(path), Some(written)) = (&args.output_all, self.all) {
            object["all"] = json!(path);
            object["all_rows"] = json!(written.rows);
            emptied += written.emptied;
            text += &format!("all {} written to {}\n", counted(written.rows, "row"), destination(path));
        }
        object["cells_left_empty"] = json!(emptied + self.own_emptied);
        if emptied > 0 {
            text += &format!(
                "note: {emptied} of the peer's that do not fit into the output, left empty\n",
                emptied = counted(emptied, "cell")
            );
        }
        if self.own_emptied > 0 {
            let emptied = counted(self.own_emptied, "cell");
            text += &format!("note: {emptied} of yours that do not fit into the output, left empty\n");
        }
        text
    }
}
