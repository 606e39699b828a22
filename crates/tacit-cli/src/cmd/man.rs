//! `tacit man`: the manual's pages.

use crate::cli::Context;
use crate::cli::output::{Output, name};
use clap::Command;
use clap_mangen::Man;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::{Error, Result};

const AFTER: &str = "\
Examples:
  tacit man | man -l -
  tacit man ~/.local/share/man/man1";

/// Prints the manual's first page, or writes every page to a directory.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// An existing directory for the pages, one per subcommand: tacit.1, tacit-psi.1, …
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let mut command = crate::command();
    command.build();
    let Some(folder) = args.dir else {
        let page = render(command)?;
        let mut out = std::io::stdout().lock();
        let fault = |e| tacit_console::stdout_fault(&e);
        return out.write_all(&page).and_then(|()| out.flush()).map_err(fault);
    };
    if !folder.is_dir() {
        return Err(Error::Input(format!("{}: no such directory; create it first", name(&folder))));
    }
    let mut pages = Vec::new();
    collect("tacit", command, &folder, &mut pages)?;
    // All are looked at before the first is written.
    pages.iter().try_for_each(|(path, _)| Output::check(path, false))?;
    for (path, page) in &pages {
        let mut out = Output::create(path)?;
        out.write_all(page).map_err(|e| Error::file(path, "writing the page", e))?;
        out.commit()?;
    }
    let object = json!({ "name": "man", "folder": folder, "pages": pages.len() });
    context.result(&object, &format!("{} written to {}", counted(pages.len(), "page"), name(&folder)))
}

/// The pages of the command called `title` and of every subcommand below it.
fn collect(title: &str, command: Command, folder: &Path, pages: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<()> {
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help" && !inner.is_hide_set())
    {
        collect(&format!("{title}-{}", inner.get_name()), inner.clone(), folder, pages)?;
    }
    pages.push((folder.join(format!("{title}.1")), render(command)?));
    Ok(())
}

fn render(command: Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.disable_help_subcommand(true));
    man.render(&mut page).map_err(|e| Error::Other(format!("a page of the manual: {e}")))?;
    Ok(page)
}
