//! `--report`: what a run was, on one page for the file, in words for those who were not there.

mod page;

use super::Context;
use super::output::{Output, name};
use super::pdf::{self, Page};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tacit::net::{Identity, PublicKey, calendar, certificate};
use tacit::{Error, Result};

/// Where the page goes.
#[derive(clap::Args)]
pub(crate) struct ReportArgs {
    /// Writes one page about the run to this file, .html or .pdf: the sides, the time, what was computed,
    /// limits, and what each side learned. It has no rows, shares or keys
    #[arg(long, value_name = "FILE.html|.pdf", conflicts_with = "dry_run")]
    report: Option<PathBuf>,
}

/// The two sides of a run, as the page has them.
pub(crate) struct Sides {
    own: String,
    peer: String,
    /// The tables that were put in.
    input: String,
}

impl Sides {
    /// Named by their keys, or by `certificates`: the file of the own chain, and the name in the peer's.
    pub(crate) fn new(
        keys: (Option<&Path>, Option<&Path>),
        certificates: (Option<&Path>, Option<&str>),
        input: &[PathBuf],
    ) -> Result<Self> {
        let unknown = || NOT_AUTHENTICATED.to_owned();
        let own = match (certificates.0, keys.0) {
            (Some(chain), _) => match &certificate::names_in(chain)?[..] {
                [] => format!("certificate in {}", name(chain)),
                names => format!("certificate of {} ({})", names.join(", "), name(chain)),
            },
            (None, Some(file)) => called(Identity::load(file)?.public(), file, &file.with_extension("pub")),
            (None, None) => unknown(),
        };
        let peer = match (certificates.1, keys.1) {
            (Some(called), _) => format!("certificate of {called}"),
            (None, Some(file)) => called(PublicKey::load(file)?, file, file),
            (None, None) => unknown(),
        };
        Ok(Sides { own, peer, input: super::keys::files(input) })
    }
}

/// A side with the `key` out of `file`, and the name that the comment in the public key file gives it.
fn called(key: PublicKey, file: &Path, public: &Path) -> String {
    let proved = format!("key {} ({})", key.fingerprint(), name(file));
    match key.comment_in(public) {
        // In quotes that it cannot close, as it may read like the rest.
        Some(comment) => {
            let comment = comment.replace(['"', '“', '”'], "'");
            format!("\"{comment}\" (a name in the key file, unverified), {proved}")
        }
        None => proved,
    }
}

/// Who takes part where nobody shows a key.
const NOT_AUTHENTICATED: &str = "not authenticated: the run was without TLS";

/// A page that is written when the run is over.
pub(crate) struct Report {
    output: Output,
    is_pdf: bool,
    begun: SystemTime,
    sides: Sides,
}

impl ReportArgs {
    /// Refuses a page where none is written.
    pub(crate) fn refuse(&self, of: &str) -> Result<()> {
        match &self.report {
            Some(_) => Err(Error::Parameter {
                name: "report",
                what: format!("is not written of {of}; leave it out"),
            }),
            None => Ok(()),
        }
    }

    /// Opens the file if there is to be one, so that what keeps it from being written shows before the run. It names
    /// these `sides`.
    pub(crate) fn open(&self, sides: impl FnOnce() -> Result<Sides>) -> Result<Option<Report>> {
        let Some(path) = &self.report else { return Ok(None) };
        let is_pdf = match ending(path).as_deref() {
            Some("pdf") => true,
            Some("html" | "htm") => false,
            _ => {
                let what = format!("{}: name it .html or .pdf", name(path));
                return Err(Error::Parameter { name: "report", what });
            }
        };
        let sides = sides()?;
        Ok(Some(Report { output: Output::create(path)?, is_pdf, begun: SystemTime::now(), sides }))
    }
}

fn ending(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

impl Report {
    /// Writes what the result, as `--json` has it, says of the run.
    pub(crate) fn write(mut self, run: &Value, context: &Context) -> Result<()> {
        let page = page::of(&self.sides, run, self.begun, SystemTime::now());
        let bytes = if self.is_pdf { pdf::of(&page) } else { html(&page).into_bytes() };
        let target = self.output.target().to_owned();
        self.output.write_all(&bytes).map_err(|e| Error::file(&target, "writing the report", e))?;
        self.output.commit()?;
        context.note(&format!("note: {} has a page about this run", name(&target)));
        Ok(())
    }
}

/// A moment in UTC.
fn moment(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (day, of_day) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{} {hour:02}:{minute:02}:{second:02} UTC", calendar::date(day))
}

fn html(page: &Page) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>\n\
         body{{font:15px/1.45 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1b1f23}}\n\
         h1{{font-size:1.5rem}}h2{{font-size:1.05rem;margin:1.4rem 0 .3rem}}table{{border-collapse:collapse;width:100%}}\n\
         th{{text-align:left;font-weight:normal;color:#555;width:12rem;vertical-align:top}}\n\
         td,th{{padding:.2rem .6rem .2rem 0;border-top:1px solid #ddd;overflow-wrap:anywhere}}\n\
         footer{{margin-top:2rem;color:#555;font-size:.85rem}}@media print{{body{{margin:0;font-size:11px}}}}\n\
         </style></head><body>\n<h1>{title}</h1>\n",
        title = escaped(&page.title)
    );
    for section in &page.sections {
        let _ = writeln!(out, "<h2>{}</h2><table>", section.heading);
        for (name, text) in &section.rows {
            let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", escaped(text));
        }
        out += "</table>\n";
    }
    let _ = writeln!(out, "<footer>{}</footer></body></html>", escaped(&page.foot));
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
