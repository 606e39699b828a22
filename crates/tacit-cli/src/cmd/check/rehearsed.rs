//! `tacit check --sql`: a question's answer on two files of this machine, in the clear.

use super::Args;
use crate::cli::Context;
use crate::cli::keys;
use crate::cmd::query::{DuplicatesArg, Table, noise};
use serde_json::json;
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::data::records::KeySpec;
use tacit::data::table::Source;
use tacit::job::psi::{Learns, Own};
use tacit::job::query::{Job, Rows, Side, USUAL_LEAST, rehearsed};
use tacit::{Error, Result};

pub(super) fn rehearse(args: &Args, text: &str, context: &Context) -> Result<()> {
    let Some(theirs) = &args.against else {
        let what = "rehearses a question on two files: name the other side's with --against".to_owned();
        return Err(Error::Parameter { name: "sql", what });
    };
    if args.key.is_given() {
        let what = "the question names the key: ON a.column = b.column; leave it out".to_owned();
        return Err(Error::Parameter { name: "key", what });
    }
    let question =
        tacit::query::parse(text).map_err(|fault| Error::Usage(format!("the question: {fault}")))?;
    let spec = args.key.spec();
    let first = args.duplicates == Some(DuplicatesArg::First);
    let read = |side: Side, input: &[PathBuf]| -> Result<(Own, Rows)> {
        let job = Job::new(question.clone(), side, Learns::Both, spec.normalisation)?;
        let job = Job { key: KeySpec { nulls: spec.nulls.clone(), ..job.key.clone() }, ..job };
        let source = Source::open_all(input, job.key.clone(), args.table.options())?;
        keys::note_errors(&source, input, context);
        let progress = context.progress("reading", source.bytes(), "B");
        let read = job.read(source, Path::new(&keys::files(input)), first, |done| progress.set(done))?;
        progress.finish();
        Ok(read)
    };
    let mine = args.side.map_or(Side::Ours, Side::from);
    let (own, other) = (read(mine, &args.input)?, read(mine.other(), std::slice::from_ref(theirs))?);
    let (ours, theirs) = if mine == Side::Ours { (&own, &other) } else { (&other, &own) };
    let found = rehearsed(&question, (ours.0.keys(), &ours.1), (theirs.0.keys(), &theirs.1));
    let groups = question.group_count();
    let mut object = json!({
        "name": "check",
        "question": question.text,
        "common_keys": found.common,
        "joined_rows": found.joined,
        "table": mine.name(),
        "own_keys": own.0.count(),
        "peer_keys": other.0.count(),
    });
    let mut said = Table::of_shown(&question, &found.shown).tell(groups, None, &mut object);
    if let (Some(exact), Some(noise)) = (&found.exact, noise(&question)) {
        let mut without = json!({});
        let text = Table::of_shown(&question, exact).tell(groups, None, &mut without);
        said += &format!("{noise}; it is drawn anew each time. Without it:\n\n{text}");
        object["rows_without_noise"] = without["rows"].take();
    }
    said += &format!(
        "of {} on this side and {} on the other {} common, {} with a row that passes each side's own part of WHERE\nnote: a run also \
         holds the question against --min-group, which is {USUAL_LEAST} unless you say otherwise, and takes no side's keys twice",
        counted(own.0.count(), "key"),
        other.0.count(),
        match found.common {
            1 => "1 is".to_owned(),
            common => format!("{common} are"),
        },
        found.joined
    );
    context.result(&object, &said)
}
