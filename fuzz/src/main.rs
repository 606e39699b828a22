//! libFuzzer on one of `tacit_fuzz::targets`, which the variable `TACIT_FUZZ` names. With `TACIT_FUZZ_PREPARE` it
//! writes whole inputs, dictionaries and a list of all targets into that folder instead.
#![no_main]

use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use tacit_fuzz::Target;

static TARGET: OnceLock<&Target> = OnceLock::new();

fn prepare(folder: &Path) -> std::io::Result<()> {
    let mut list = String::new();
    for target in tacit_fuzz::targets() {
        fs::create_dir_all(folder.join(target.name))?;
        fs::write(folder.join(format!("{}.dict", target.name)), target.dictionary())?;
        list += &format!("{} {}\n", target.name, target.longest);
    }
    for (number, (name, bytes)) in tacit_fuzz::whole().into_iter().enumerate() {
        fs::write(folder.join(name).join(format!("whole-{number:03}")), bytes)?;
    }
    fs::write(folder.join("targets"), list)
}

fn choose() {
    if let Some(folder) = std::env::var_os("TACIT_FUZZ_PREPARE") {
        let done = prepare(Path::new(&folder));
        std::process::exit(done.map_or(1, |()| 0));
    }
    let name = std::env::var("TACIT_FUZZ").unwrap_or_default();
    let Some(target) = tacit_fuzz::target(&name) else {
        let names: Vec<&str> = tacit_fuzz::targets().map(|target| target.name).collect();
        eprintln!("set TACIT_FUZZ to one of: {}", names.join(" "));
        std::process::exit(2);
    };
    let _ = TARGET.set(target);
}

libfuzzer_sys::fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(target) = TARGET.get() {
        (target.run)(data);
    }
});
