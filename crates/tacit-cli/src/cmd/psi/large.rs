//! `tacit psi --memory`: tables whose keys do not fit in memory, in buckets on disk.

use super::{Args, suspicious_text, union};
use crate::cli::Context;
use crate::cli::identifiers;
use crate::cli::keys;
use crate::cli::output::{Output, name};
use crate::cli::report::Report;
use crate::cli::results::Put;
use serde_json::json;
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::data::place;
use tacit::data::records::Counts;
use tacit::data::table::{Pass, Source};
use tacit::job::Ran;
use tacit::job::psi::{Bucketed, Disk, Job, MAX_BUCKETS, Resume, Reveal, is_free, refuse_variants};
use tacit::net::Identity;
use tacit::sealed::FileKey;
use tacit::{Error, Result, security_name};

/// Bytes on disk of each row with a key, at most.
const ROW_ON_DISK: u64 = 120;

/// A number of bytes: `2GiB`, `500MB`, or plain.
pub(in crate::cmd) fn size(text: &str) -> std::result::Result<u64, String> {
    const UNITS: [(&str, u64); 9] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("", 1),
    ];
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, bytes)| *bytes);
    let bytes = unit.zip(number.parse::<u64>().ok()).and_then(|(unit, number)| number.checked_mul(unit));
    bytes.ok_or_else(|| "a number of bytes, such as 2GiB or 500MB".to_owned())
}

/// A number of bytes for each key.
pub(in crate::cmd) fn key_size(text: &str) -> std::result::Result<u64, String> {
    let most = tacit::job::psi::MAX_SEALED as u64;
    size(text)
        .ok()
        .filter(|bytes| (64..=most).contains(bytes))
        .ok_or_else(|| "from 64 bytes to 1MiB".to_owned())
}

/// Runs the job in buckets.
pub(super) fn run(args: &Args, job: &Job, memory: u64, context: &Context) -> Result<()> {
    let refuse = |name, what: &str| Err(Error::Parameter { name, what: what.to_owned() });
    if job.reveal != Reveal::Rows {
        return refuse("memory", "buckets reveal only rows; leave --memory or --reveal out");
    }
    if !args.give.is_empty() {
        return refuse("give", "buckets reveal only rows; leave it out");
    }
    let kept = kept(args)?;
    if let Some(spec) = &job.key {
        refuse_variants(spec, "buckets take")?;
    }
    let spec = job.key.clone().ok_or_else(|| Error::Usage("--key names no column".into()))?;
    let source = Source::open_all(&args.input, spec, args.table.options())?;
    keys::note_errors(&source, &args.input, context);
    args.results.admit(&source)?;
    if let Some(column) = &args.matched_by.matched_by {
        is_free(&source, column)?;
    }
    args.results.prove(&source)?;
    let folder = folder(args);
    let resume = kept.as_ref().map(|(folder, key, peer)| Resume { folder, key, peer });
    let disk = Disk { folder: &folder, memory, buckets: args.buckets, at_once: args.peer.threads(), resume };
    disk.check()?;
    if args.dry_run {
        args.peer.base(args.base_ot.as_deref(), args.security)?;
        return dry_run(&source, job, &disk, context);
    }
    let mut session = args.peer.session(args.security, context)?;
    if let Some(name) = &args.base_ot {
        session = session.base_ot(name);
    }
    let base = session.base()?.name();
    let may_stand = args.resume.as_deref().is_some_and(Resume::may_have_result);
    let create = if may_stand { Output::create_again } else { Output::create };
    let mut results = args.results.open(create)?;
    let page = args.report.open(|| args.peer.sides(&args.input))?;
    results.reserve(source.bytes())?;
    let most = args.max_peer_rows.unwrap_or(u64::MAX);
    let progress = context.progress("waiting", 0, "keys");
    let (ran, pass) = session.run_psi_in_buckets(job, &source, most, &disk, |_| (), &progress)?;
    progress.finish();

    let (names, identifiers) = job
        .key
        .as_ref()
        .map_or_else(|| (Vec::new(), 1), |spec| (spec.identifier_names(), spec.identifiers()));
    let put = match &ran.result.matches {
        None => Put::default(),
        Some(_) => {
            let matches_by = |row: u64| ran.result.matches_by(row, identifiers);
            let by = args.matched_by.by(&names);
            let note = || disk.resume.as_ref().map_or(Ok(()), |resume| resume.note_result());
            results.write_rows(&source, &pass, (matches_by, by), note)?
        }
    };
    if let Some(resume) = &disk.resume {
        resume.forget()?;
    }
    if !ran.result.confirmed {
        context.note("note: the peer did not confirm that it is done too");
    }
    report(args, job, context, &ran, &pass, &put, (base, page))
}

/// The folder of --resume, what it is sealed with, and what names the peer.
fn kept(args: &Args) -> Result<Option<(PathBuf, FileKey, String)>> {
    let Some(folder) = &args.resume else { return Ok(None) };
    let is_stream =
        |input: &PathBuf| input.as_os_str() == "-" || input.exists() && !input.is_file() && !input.is_dir();
    if args.input.iter().any(is_stream) {
        let what = "with --resume the input must be a file that can be read again".into();
        return Err(Error::Parameter { name: "input", what });
    }
    let key = match (&args.seal_key, args.peer.identity()) {
        (Some(file), _) => {
            FileKey::from_file(file).map_err(|fault| Error::Input(format!("{}: {fault}", name(file))))?
        }
        (None, Some(identity)) => FileKey::from_identity(&Identity::load(identity)?),
        (None, None) => {
            let what = "its files are encrypted: without a key of tacit keygen, give --seal-key FILE";
            return Err(Error::Parameter { name: "resume", what: what.into() });
        }
    };
    Ok(Some((folder.clone(), key, args.peer.peer_name()?.unwrap_or_default())))
}

/// Where the buckets lie: where we are told, or beside the output, or here.
fn folder(args: &Args) -> PathBuf {
    let output = args.results.output.as_deref().filter(|output| !place::is_remote(output));
    let beside = output.and_then(Path::parent).filter(|path| !path.as_os_str().is_empty());
    args.spill.clone().or_else(|| beside.map(Path::to_owned)).unwrap_or_else(|| PathBuf::from("."))
}

/// What a run would put on disk, as if the peer had as many keys.
fn dry_run(source: &Source, job: &Job, disk: &Disk<'_>, context: &Context) -> Result<()> {
    let progress = context.progress("reading", source.bytes(), "B");
    let pass = source.each_key(|done| progress.set(done), |_| Ok::<_, Error>(()))?;
    progress.finish();
    let keys = pass.keys;
    let buckets = job.buckets(keys, keys, disk).ok_or_else(|| Error::Parameter {
        name: "memory",
        what: format!(
            "{} are too little for {keys} in {MAX_BUCKETS} buckets; give more",
            counted(disk.memory, "byte"),
            keys = counted(keys, "key")
        ),
    })?;
    let bytes = ROW_ON_DISK.saturating_mul(keys);
    let object = json!({
        "name": "plan", "job": "psi", "rows": pass.rows, "keys_at_most": keys, "buckets": buckets,
        "disk_bytes": bytes, "folder": disk.folder, "memory": disk.memory,
    });
    let text = format!(
        "{}, at most {}: {}; up to {} MB in {}, encrypted, deleted at the end",
        counted(pass.rows, "row"),
        counted(keys, "key"),
        counted(buckets, "bucket"),
        bytes.div_ceil(1_000_000),
        name(disk.folder)
    );
    context.result(&object, &text)
}

fn report(
    args: &Args,
    job: &Job,
    context: &Context,
    ran: &Ran<Bucketed>,
    pass: &Pass,
    put: &Put,
    (base, page): (&str, Option<Report>),
) -> Result<()> {
    let Ran { result, wall, stats } = ran;
    let learned = job.has_learned_in_buckets(result);
    let duplicates = pass.keys - result.own;
    let mut object = json!({
        "name": "psi",
        "protocol": "vole",
        "base_ot": base,
        "security": security_name(job.security),
        "result": job.result_name(),
        "reveal": job.reveal.name(),
        "own_rows": pass.rows,
        "own_keys": result.own,
        "duplicates": duplicates,
        "rows_without_key": pass.without_key,
        "peer_keys": result.peer,
        "peer_keys_tested_at_most": result.tested.map(|tested| tested.most),
        "buckets": result.buckets,
        "repeated": result.repeated,
        "confirmed": result.confirmed,
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": learned,
    });
    let several = job.key.as_ref().filter(|spec| spec.has_several());
    if let Some(spec) = several {
        object["identifiers"] = identifiers::object(spec, &pass.with_each, None);
    }
    let mut text = match result.common {
        Some(common) => {
            object["matches"] = json!(common);
            let text = suspicious_text(common, result.own, result.peer, &mut object);
            let by =
                several.map(|spec| identifiers::matched(spec, &by_each(result, pass), false, &mut object));
            by.map_or(text.clone(), |by| {
                let common = counted(common, "identifier");
                let suspicious = text.split_once('\n').map_or("", |(_, suspicious)| suspicious);
                format!("{by}{common} in common\n{suspicious}")
            })
        }
        None => "the peer has the result\n".to_owned(),
    };
    if let Some(spec) = &job.key {
        object["key"] = json!(spec.agreed_types());
        keys::refused(spec, &pass.tally, &mut object);
    }
    super::columns(job, &mut object);
    text += &put.report(&args.results, &mut object);
    text += &job
        .key
        .as_ref()
        .map_or_else(String::new, |spec| keys::refused_text(spec, &pass.tally, context.has_notes()));
    if result.repeated > 0 {
        text += &format!("the connection was lost; started over: {}\n", counted(result.repeated, "bucket"));
    }
    let noun = identifiers::noun(job.key.as_ref());
    text += &format!(
        "your file: {}, {}, {duplicates}, {} without a key\n\
         the peer: {}\n\
         {:.3} s, {} sent, {} received, {}; vole in {} ({})\n\
         the other side learned {learned}",
        counted(pass.rows, "row"),
        counted(result.own, noun),
        counted(pass.without_key, "row"),
        counted(result.peer, noun) + &union(&object),
        wall.as_secs_f64(),
        counted(stats.bytes_sent, "byte"),
        stats.bytes_received,
        counted(stats.rounds, "round"),
        counted(result.buckets, "bucket"),
        security_name(job.security),
        duplicates = counted(duplicates, "duplicate"),
    );
    if let Some(page) = page {
        page.write(&object, context)?;
    }
    context.result(&object, &text)
}

/// How many rows match by each identifier.
fn by_each(result: &Bucketed, pass: &Pass) -> Vec<Counts> {
    let mut by = vec![Counts::default(); pass.with_each.len()];
    let found = (0..pass.rows).filter_map(|row| result.matches_by(row, pass.with_each.len()));
    found.for_each(|identifier| by[identifier].rows += 1);
    by
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_read_or_refused() {
        for (text, bytes) in [("2GiB", 2 << 30), ("500MB", 500_000_000), ("64 KiB", 65_536), ("7", 7)] {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "GiB", "2gib", "-1", "1.5GB", "99999999999TiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
