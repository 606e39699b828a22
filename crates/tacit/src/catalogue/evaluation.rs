//! Two-party computation: what a protocol is asked, and what it answers.

use super::cost::{Candidate, Link, Machine, SETUP_BYTES, SETUP_POINTS};
use super::from_base::changed_bytes;
use super::{ENTRIES, Entry, Runs};
use crate::Security;
use tacit_2pc::authenticated::buckets::Level;
use tacit_2pc::wmk17::Copies;
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_ot::BaseOt;

/// What is to be evaluated, as far as its cost goes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EvalRequest {
    /// AND gates.
    pub ands: u64,
    /// Input bits of the garbler and of the evaluator.
    pub inputs: [u64; 2],
    /// Output bits.
    pub outputs: u64,
    /// Who learns them.
    pub output_to: OutputTo,
    /// Evaluations of the function, over all threads together.
    pub rows: u64,
    /// Computing threads of each party.
    pub threads: usize,
    /// Against which peer at least.
    pub security: Security,
    /// The copies of cut-and-choose, if they are settled already.
    pub copies: Option<Copies>,
    /// The protocol's name, if it is settled already.
    pub protocol: Option<&'static str>,
    /// Levels of AND gates, and the most AND gates of a level; of interest where each level is a round.
    pub levels: u64,
    /// See [`levels`](Self::levels).
    pub width: u64,
    /// The OT extension's name, if it is settled already and the protocol takes one.
    pub ot: Option<&'static str>,
}

impl EvalRequest {
    /// One evaluation of `function`.
    pub fn new(function: &Prepared, output_to: OutputTo, security: Security) -> Self {
        let circuit = function.circuit();
        let owned = |owner| {
            let inputs = function.owners().iter().zip(&circuit.shape().inputs);
            inputs.filter(|(of, _)| **of == owner).map(|(_, &bits)| u64::from(bits)).sum()
        };
        let stats = circuit.stats();
        EvalRequest {
            ands: stats.and,
            inputs: [owned(Owner::Garbler), owned(Owner::Evaluator)],
            outputs: circuit.shape().output_bits() as u64,
            output_to,
            rows: 1,
            threads: 1,
            security,
            copies: None,
            protocol: None,
            levels: stats.and_depth.into(),
            width: stats.width,
            ot: None,
        }
    }

    /// The copies of cut-and-choose with which it is fastest over `link`, on a machine of any speed:
    /// computing and bytes are weighed as on the reference machine.
    pub fn copies(&self, link: &Link) -> Copies {
        let strict = EvalRequest { security: Security::Malicious, ..*self };
        let ways = ways(&strict, link, &Machine::REFERENCE);
        ways.into_iter().find_map(|way| way.copies).unwrap_or(Copies::STANDARD)
    }
}

/// A way to evaluate, and what it would cost.
#[derive(Clone, Debug)]
pub struct EvalCandidate {
    /// The protocol and its cost.
    pub candidate: Candidate,
    /// The copies of cut-and-choose.
    pub copies: Option<Copies>,
    /// What the garbler sends.
    pub garbler_bytes: u64,
    /// What the evaluator sends.
    pub evaluator_bytes: u64,
    /// Whether there are base OTs in both directions.
    both_ways: bool,
}

impl EvalCandidate {
    /// As [`Candidate::with_base`].
    pub fn with_base(self, base: &dyn BaseOt, link: &Link, machine: &Machine) -> Self {
        let batches = self.candidate.base_batches as f64;
        // The garbler receives the base OTs, or each side one half of them.
        let [evaluator, garbler] = changed_bytes(base).unwrap_or_default();
        let both = (evaluator + garbler) / 2.0;
        let [evaluator, garbler] = if self.both_ways { [both; 2] } else { [evaluator, garbler] };
        let changed = |bytes: u64, of: f64| (bytes as f64 + batches * of).max(0.0) as u64;
        EvalCandidate {
            garbler_bytes: changed(self.garbler_bytes, garbler),
            evaluator_bytes: changed(self.evaluator_bytes, evaluator),
            candidate: self.candidate.with_base(base, link, machine),
            ..self
        }
    }
}

/// What evaluates circuits.
#[derive(Debug)]
pub struct Evaluation {
    /// What a request costs in every way that it leaves open.
    pub ways: fn(&EvalRequest) -> Vec<Cost>,
}

/// What a job costs without its base OTs.
pub struct Cost {
    /// The copies of cut-and-choose.
    pub copies: Option<Copies>,
    /// One thread's computing on the reference machine, in nanoseconds.
    pub ns: f64,
    /// What garbler and evaluator send, all threads together.
    pub bytes: [f64; 2],
    /// Round trips.
    pub trips: f64,
    /// Rows of one thread, and the bytes of each that travel while a round trip is waited for.
    pub early: [f64; 2],
    /// Whether there are base OTs in both directions, and not the garbler's to receive alone.
    pub both_ways: bool,
}

pub(super) const BLOCK: u64 = 16;

/// Round trips of the base OTs, and the bytes of their sender.
const BASE_TRIPS: f64 = 0.5;
const BASE_SENDER: f64 = 36.0;

/// Every protocol that evaluates with at least the security asked for, with all that is left open of it, the
/// fastest first.
///
/// Times fit circuits whose AND gates are many to a level, as most are.
pub(crate) fn ways(request: &EvalRequest, link: &Link, machine: &Machine) -> Vec<EvalCandidate> {
    let mut all = Vec::new();
    for entry in computations() {
        let asked = request.protocol.is_none_or(|name| name == entry.name);
        let enough = request.security == Security::SemiHonest || entry.security == Security::Malicious;
        let enough = asked && enough;
        if let (Runs::Computation(evaluation), true) = (entry.runs, enough) {
            let costs = (evaluation.ways)(request).into_iter();
            all.extend(costs.map(|cost| cost.over(entry, request, link, machine)));
        }
    }
    all.sort_by_key(|way| way.candidate.time);
    all
}

/// Every protocol that evaluates functions.
pub fn computations() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().copied().filter(|entry| matches!(entry.runs, Runs::Computation(_)))
}

/// The first protocol of the catalogue that evaluates functions at just this level; against a malicious peer
/// the link may decide for another.
pub fn protocol_name(security: Security) -> &'static str {
    computations().find(|entry| entry.security == security).map_or("none", |entry| entry.name)
}

impl Cost {
    /// With the base OTs of every thread; computing and the link work at the same time.
    pub(super) fn over(
        &self,
        entry: &Entry,
        request: &EvalRequest,
        link: &Link,
        machine: &Machine,
    ) -> EvalCandidate {
        let threads = request.threads.max(1) as f64;
        // The garbler receives the base OTs.
        let setup = if self.both_ways { [SETUP_BYTES; 2] } else { [SETUP_BYTES - BASE_SENDER, BASE_SENDER] };
        let [garbler, evaluator] = [0, 1].map(|side| self.bytes[side] + threads * setup[side]);
        let setups = if self.both_ways { 2.0 } else { 1.0 };
        let computing = self.ns * machine.aes / Machine::REFERENCE.aes;
        let rounds = BASE_TRIPS + self.trips;
        let [rows, early] = self.early;
        let waiting = link.wait(rounds) - rows * link.wait(1.0).min(link.pass(early));
        let passing = link.pass(garbler.max(evaluator));
        let nanoseconds = setups * SETUP_POINTS * machine.point + computing.max(passing) + waiting;
        let bytes = (garbler + evaluator) as u64;
        let candidate = entry.candidate(entry.security, nanoseconds, bytes, rounds.ceil() as u64);
        let level = Level::among(request.threads);
        let variant =
            self.copies.map_or_else(String::new, |copies| format!("{} copies", copies.at(level).name()));
        let base_batches = request.threads.max(1) as u64 * if self.both_ways { 2 } else { 1 };
        EvalCandidate {
            candidate: Candidate { variant, base_batches, ..candidate },
            copies: self.copies,
            garbler_bytes: garbler as u64,
            evaluator_bytes: evaluator as u64,
            both_ways: self.both_ways,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::eval::{Job, Options};
    use std::time::Duration;
    use tacit_2pc::circuit::{Builder, Uint, named};
    use tacit_crypto::BitVec;
    use tacit_net::{Channel, memory};

    /// What garbler and evaluator sent for `rows` evaluations on zeros.
    fn sent(name: &str, request: &EvalRequest) -> [u64; 2] {
        let function = named::find(name).unwrap();
        let prepared = Prepared::from_function(&function).unwrap();
        let base = crate::ot::base_ot(None, request.security).unwrap();
        let side = |role, channel: &mut Channel| {
            let row: Vec<BitVec> =
                function.fields(role).iter().map(|f| BitVec::zeros(f.bits() as usize)).collect();
            let options = Options {
                protocol: request.protocol.and_then(super::super::find),
                copies: request.copies,
                ot: None,
            };
            let EvalRequest { output_to, security, .. } = *request;
            let job = Job { function: &prepared, role, output_to, security, options };
            job.run_marked(channel, 1, &*base, &vec![row; request.rows as usize], &mut |_| ()).unwrap();
            channel.flush().unwrap();
            channel.stats().bytes_sent
        };
        let (garbler, evaluator) =
            memory::run(|channel| side(Owner::Garbler, channel), |channel| side(Owner::Evaluator, channel));
        [garbler, evaluator]
    }

    fn request(name: &str, output_to: OutputTo, security: Security) -> EvalRequest {
        let function = Prepared::from_function(&named::find(name).unwrap()).unwrap();
        EvalRequest::new(&function, output_to, security)
    }

    #[test]
    fn predicted_bytes_are_those_that_are_sent() {
        let link = Link { megabits: 100.0, round_trip: Duration::from_millis(1) };
        for (name, output_to, rows) in [
            ("add32", OutputTo::Both, 2),
            ("aes128", OutputTo::Evaluator, 1),
            ("add128", OutputTo::Garbler, 1),
        ] {
            for security in [Security::SemiHonest, Security::Malicious] {
                let request = EvalRequest { rows, ..request(name, output_to, security) };
                for way in ways(&request, &link, &Machine::REFERENCE) {
                    let (copies, protocol) = (way.copies, Some(way.candidate.protocol));
                    let security = way.candidate.security;
                    let sent = sent(name, &EvalRequest { copies, protocol, security, ..request });
                    for (sent, told) in sent.into_iter().zip([way.garbler_bytes, way.evaluator_bytes]) {
                        let off = told as f64 / sent as f64 - 1.0;
                        assert!(
                            off.abs() < 0.01,
                            "{name} {} {}: told {told}, sent {sent}",
                            way.candidate.protocol,
                            way.candidate.variant
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn fewer_tables_over_slower_links_and_never_less_security() {
        let pick = |request: &EvalRequest, megabits: f64, ms: u64| {
            let link = Link { megabits, round_trip: Duration::from_millis(ms) };
            let all = ways(request, &link, &Machine::REFERENCE);
            assert!(all.windows(2).all(|two| two[0].candidate.time <= two[1].candidate.time));
            assert!(all.iter().all(|way| request.security == Security::SemiHonest
                || way.candidate.security == Security::Malicious));
            all[0].clone()
        };
        let sha = request("sha256", OutputTo::Evaluator, Security::Malicious);
        let sha = EvalRequest { protocol: Some("wmk17"), ..sha };
        assert_eq!(pick(&sha, 20_000.0, 0).copies, Some(Copies::STANDARD));
        assert_eq!(pick(&sha, 20.0, 80).copies, Some(Copies::SPARSE));
        let fast = Link { megabits: f64::INFINITY, round_trip: Duration::ZERO };
        assert_eq!(sha.copies(&fast), Copies::STANDARD);
        let named = EvalRequest { copies: Some(Copies::CODED), ..sha };
        assert_eq!(pick(&named, 20_000.0, 0).copies, Some(Copies::CODED));
        // Where inputs outweigh gates, fewer copies are fewer bytes, and combinations never more than tables.
        let comparison = EvalRequest { ands: 100, inputs: [16_384; 2], outputs: 1, ..sha };
        assert_eq!(pick(&comparison, 8.0, 80).copies, Some(Copies::CODED));
        let yao = pick(&request("sha256", OutputTo::Both, Security::SemiHonest), 20.0, 80);
        assert_eq!((yao.candidate.protocol, yao.copies), ("yao", None));
    }

    /// Few gates over a long way take few rounds; else a ninth of the bytes decides.
    #[test]
    fn the_malicious_protocol_follows_gates_and_link() {
        let pick = |name, rows, megabits, ms| {
            let request = EvalRequest { rows, ..request(name, OutputTo::Both, Security::Malicious) };
            let link = Link { megabits, round_trip: Duration::from_millis(ms) };
            ways(&request, &link, &Machine::REFERENCE)[0].candidate.protocol
        };
        assert_eq!(pick("add32", 1, 100.0, 80), "wmk17");
        assert_eq!(pick("sha256", 1, 100.0, 10), "authenticated");
        assert_eq!(pick("aes128", 100, 100.0, 1), "authenticated");
        assert_eq!(pick("aes128", 1, 20_000.0, 0), "authenticated");
        // Where both were measured: 0.32 and 0.47 s, 0.67 and 0.80, 1.30 and 1.44; but 1.04 and 0.71.
        assert_eq!(pick("aes128", 1, 100.0, 20), "authenticated");
        assert_eq!(pick("sha1", 1, 100.0, 40), "authenticated");
        assert_eq!(pick("sha256", 1, 100.0, 80), "authenticated");
        assert_eq!(pick("aes128", 1, 100.0, 80), "wmk17");
        // Rows by the one see the delay once, by the other each.
        assert_eq!(pick("add32", 20, 100.0, 80), "authenticated");
    }

    /// Messages and bytes follow from the number of gates: a chain of them takes as many as a few layers.
    #[test]
    fn depth_changes_no_message() {
        let side = 64;
        let circuit = |chain: bool| {
            let mut b = Builder::new();
            let (x, y) = (b.input(side), b.input(side));
            let (mut last, mut made) = (x.bits()[0], x.bits().to_vec());
            for i in 0..1024 {
                let at = i % made.len();
                let before = if chain { last } else { made[at] };
                let mixed = b.xor(before, x.bits()[(i * 7 + 1) % x.bits().len()]);
                last = b.and(mixed, y.bits()[(i + i / 64) % y.bits().len()]);
                made[at] = last;
            }
            let circuit = b.finish(&[Uint::from_bits(made)]).unwrap();
            Prepared::new(circuit, vec![Owner::Garbler, Owner::Evaluator]).unwrap()
        };
        let (deep, flat) = (circuit(true), circuit(false));
        let [gates, also] = [&deep, &flat].map(|function| function.circuit().stats());
        assert_eq!((gates.and, also.and), (1024, 1024));
        assert!(gates.and_depth > 30 * also.and_depth, "{gates:?} {also:?}");
        let passed = |function: &Prepared, protocol| {
            let base = crate::ot::base_ot(None, Security::Malicious).unwrap();
            let run = |role, channel: &mut Channel| {
                let copies = (protocol == "wmk17").then_some(Copies::STANDARD);
                let options = Options { protocol: super::super::find(protocol), copies, ot: None };
                let (output_to, security) = (OutputTo::Both, Security::Malicious);
                let job = Job { function, role, output_to, security, options };
                job.run_marked(channel, 1, &*base, &[vec![BitVec::zeros(64)]], &mut |_| ()).unwrap();
                channel.flush().unwrap();
                let stats = channel.stats();
                (stats.rounds, stats.messages_sent, stats.bytes_sent)
            };
            memory::run(|channel| run(Owner::Garbler, channel), |channel| run(Owner::Evaluator, channel))
        };
        for protocol in ["authenticated", "wmk17"] {
            let [deep, flat] = [&deep, &flat].map(|function| passed(function, protocol));
            for (deep, flat) in [(deep.0, flat.0), (deep.1, flat.1)] {
                assert_eq!((deep.0, deep.1), (flat.0, flat.1), "{protocol}");
                // Which copies are checked is a coin's, and so are a few bytes.
                assert!((deep.2 as f64 / flat.2 as f64 - 1.0).abs() < 1e-3, "{protocol}: {deep:?} {flat:?}");
            }
        }
    }

    #[test]
    fn time_follows_rows_threads_and_the_link() {
        let aes = request("aes128", OutputTo::Evaluator, Security::Malicious);
        let aes = EvalRequest { protocol: Some("wmk17"), ..aes };
        let seconds = |request: &EvalRequest, megabits: f64, ms: u64| {
            let link = Link { megabits, round_trip: Duration::from_millis(ms) };
            ways(request, &link, &Machine::REFERENCE)[0].candidate.time.as_secs_f64()
        };
        let many = EvalRequest { rows: 64, ..aes };
        assert!(seconds(&many, 1e6, 0) > 30.0 * seconds(&aes, 1e6, 0));
        assert!(seconds(&EvalRequest { threads: 2, ..many }, 1e6, 0) < 0.6 * seconds(&many, 1e6, 0));
        let way = &ways(
            &EvalRequest { copies: Some(Copies::SPARSE), ..aes },
            &Link { megabits: 8.0, round_trip: Duration::ZERO },
            &Machine::REFERENCE,
        )[0];
        // A megabyte a second.
        assert!(way.candidate.time.as_secs_f64() >= way.garbler_bytes as f64 / 1e6);
    }
}
