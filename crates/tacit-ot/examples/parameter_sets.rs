//! Prints the LPN parameter sets of silent OT as JSON, for `tools/lpn-security`.

use tacit_ot::silent::bcgikrs19::Code;
use tacit_ot::silent::ferret::Params;
use tacit_ot::silent::ferret_uni::UniParams;

fn primal(name: &str, noise: &str, samples: usize, k: usize, t: usize, claimed: u32) -> String {
    format!(
        "{{\"name\": \"{name}\", \"noise\": \"{noise}\", \"N\": {samples}, \"k\": {k}, \"t\": {t}, \"claimed\": {claimed}}}"
    )
}

/// The least noise at the smallest and the largest run; what is in between has more of one or the other.
fn dual(code: Code, assumed: &str) -> impl Iterator<Item = String> {
    let (name, t) = (code.name(), code.weight());
    let assumed = assumed.to_owned();
    [1usize << 15, 1 << 24].into_iter().map(move |n| {
        format!(
            "{{\"name\": \"silent {name}, n = {n}\", \"N\": {}, \"n\": {n}, \"t\": {t}, {assumed}}}",
            2 * n
        )
    })
}

fn main() {
    let mut sets: Vec<String> = Vec::new();
    for p in Params::ALL {
        sets.push(primal(&format!("ferret {}", p.name), "regular", p.samples(), p.k, p.t, p.security_bits));
    }
    for p in [UniParams::MAIN, UniParams::SETUP] {
        let name = format!("ferret-uni {}", p.name);
        sets.push(primal(&name, "uniform", p.samples(), p.k, p.t, p.security_bits));
    }
    sets.extend(dual(Code::QuasiCyclic, "\"quasi_cyclic\": true"));
    sets.extend(dual(Code::Linear, "\"distance\": 0.2"));
    println!("[{}]", sets.join(",\n "));
}
