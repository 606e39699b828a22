//! `tacit request JOB --tags FILE`: lookups in a published file of tags.

use super::{Args, keep, open_records, record_text, shown, taken};
use crate::cli::Context;
use crate::cli::keys::{self, all};
use crate::cli::output::{self, Output};
use crate::cli::results::Put;
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use tacit::crypto::text::counted;
use tacit::data::records::{KeyHasher, KeySet, KeySpec, Normalisation};
use tacit::data::table::Source;
use tacit::job::psi::refuse_variants;
use tacit::job::tags::TagFile;
use tacit::net::Identity;
use tacit::{Error, Result};
use tacit_serve::json::hex;
use tacit_serve::request::Offered;

/// What is looked up.
enum Asked<'a> {
    /// A table's rows.
    Table(Source),
    /// Single keys.
    Values(&'a [String]),
}

impl Asked<'_> {
    /// What our record commits to: the file, or the keys a line each.
    fn digest(&self) -> Result<[u8; 32]> {
        match self {
            Asked::Table(source) => Ok(source.digest()?),
            Asked::Values(values) => {
                let mut hasher = blake3::Hasher::new();
                values.iter().for_each(|value| _ = hasher.update(value.as_bytes()).update(b"\n"));
                Ok(*hasher.finalize().as_bytes())
            }
        }
    }

    fn keys(&self, spec: &KeySpec, context: &Context) -> Result<KeySet> {
        match self {
            Asked::Table(source) => {
                let progress = context.progress("reading", source.bytes(), "B");
                let keys = source.read_keys(|done| progress.set(done))?;
                progress.finish();
                Ok(keys)
            }
            Asked::Values(values) => {
                let mut hasher = KeyHasher::of(spec);
                let mut keys = KeySet::new();
                for value in *values {
                    let element = hasher.hash([value.as_str()]);
                    if element.is_none() {
                        let kind = spec.agreed_types();
                        let what =
                            format!("{} is not a valid key of the type {kind}", tacit::net::shown(value));
                        return Err(Error::Parameter { name: "value", what });
                    }
                    keys.push(element).map_err(|error| Error::Input(error.to_string()))?;
                }
                Ok(keys)
            }
        }
    }
}

/// Opens the file of tags and reads all of it, so that a damaged one is refused before the service hears of us.
pub(super) fn open(tags: &Path) -> Result<TagFile<File>> {
    let of_tags = |error: tacit::psi::Error| Error::Input(format!("{}: {error}", tags.display()));
    let mut file = TagFile::open(output::open(tags)?).map_err(of_tags)?;
    file.checked().map_err(of_tags)?;
    Ok(file)
}

/// Looks up what `args` name in `file`, by an offer that the service has made.
pub(super) fn run(
    args: &Args,
    mut file: TagFile<File>,
    offered: Offered,
    identity: &Identity,
    context: &Context,
) -> Result<()> {
    args.or_key.refuse("a tag file has one key; leave it out")?;
    let named = KeySpec::named(all(&args.key), Normalisation::default());
    refuse_variants(&named, "a tag file has")?;
    let spec = KeySpec { nulls: all(&args.null), ..named };
    let asked = match args.input.as_slice() {
        [] if spec.columns.len() != 1 => {
            let what = "accepts keys of one column; for more name a table with --input".into();
            return Err(Error::Parameter { name: "value", what });
        }
        [] => Asked::Values(&args.value),
        paths => {
            let source = Source::open_all_pinned(paths, spec.clone(), args.table.options())?;
            keys::note_errors(&source, paths, context);
            Asked::Table(source)
        }
    };
    let mut results = None;
    if let Asked::Table(source) = &asked {
        args.results.admit(source)?;
        args.results.prove(source)?;
        let mut files = args.results.open(Output::create)?;
        files.reserve(source.bytes())?;
        results = Some(files);
    }
    let keys = asked.keys(&spec, context)?;
    let count = keys.elements().len() as u64;
    let admitted = match args.post_quantum {
        true => tacit::catalogue::require_post_quantum(&offered.offer.protocol),
        false => Ok(()),
    };
    let admitted = admitted.and_then(|()| offered.admit_lookups(&args.floor(&all(&args.give))));
    let admitted = admitted.and_then(|()| offered.admit_tags(&file, count, &spec));
    if args.dry_run {
        shown(&offered, count, admitted.err(), context)?;
        return offered.decline();
    }
    admitted?;
    if !taken(args, &offered, count, context)? {
        return offered.decline();
    }

    let (folder, records) = open_records(args, identity, context)?;
    let offer = offered.offer.clone();
    let progress = context.progress("querying", count, "keys");
    let digest = asked.digest()?;
    let mut done = offered.look_up(&mut file, &digest, (&keys, &spec), (identity, &records), &progress)?;
    progress.finish();
    let learns = done.service_learned().unwrap_or_default();
    let signed = done.record();
    let matches = &done.ran.result;
    let put = match (results, &asked) {
        (Some(results), Asked::Table(source)) => results.write_matches(source, &keys, matches)?,
        _ => Put::default(),
    };

    let stats = done.ran.stats;
    let mut object = json!({
        "name": "request",
        "job": offer.job,
        "run": offer.run,
        "terms_hash": hex(&offer.hash()?),
        "protocol": offer.protocol,
        "security": offer.security,
        "result": "me",
        "reveal": offer.reveal,
        "own_rows": keys.rows(),
        "own_keys": count,
        "peer_keys": offer.service_keys,
        "matches": matches.len(),
        "queries_left": offer.left.rows.saturating_sub(count),
        "wall_ms": done.ran.wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": learns,
        "records": folder,
        "signed_by_both": matches!(signed, Ok(true)),
    });
    let mut text = String::new();
    if let Asked::Values(values) = &asked {
        let is_found = |at: usize| {
            let element = keys.element_of(at as u64);
            element.is_some_and(|element| matches.contains(&(element as u32)))
        };
        let found: Vec<bool> = (0..values.len()).map(is_found).collect();
        for (value, found) in values.iter().zip(&found) {
            let is = if *found { "published" } else { "not published" };
            text += &format!("{}: {is}\n", tacit::net::shown(value));
        }
        object["found"] = Value::from(found);
    } else {
        text += &format!("{}\n", counted(matches.len(), "match"));
    }
    text += &put.report(&args.results, &mut object);
    text += &record_text(&signed, &offer.run, &folder);
    text += &format!(
        "{count} to {}, {} left; {:.3} s, {} sent, {} received\n{learns}",
        counted(offer.service_keys, "published key"),
        offer.left.rows.saturating_sub(count),
        done.ran.wall.as_secs_f64(),
        counted(stats.bytes_sent, "byte"),
        stats.bytes_received,
        count = counted(count, "query"),
    );
    context.result(&object, &text)?;
    keep(signed, &folder)
}
