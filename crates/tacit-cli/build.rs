//! Tells the command which commit it was built from.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=TACIT_COMMIT");
    let git = |args: &[&str]| {
        let out = Command::new("git").args(args).output().ok().filter(|out| out.status.success())?;
        Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    // The log of HEAD changes with every commit and checkout.
    if let Some(log) =
        git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|p| std::path::Path::new(p).exists())
    {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let commit = std::env::var("TACIT_COMMIT").ok().or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    println!("cargo:rustc-env=TACIT_COMMIT={}", commit.unwrap_or_else(|| "unknown".to_owned()));
}
