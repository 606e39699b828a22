//! Functions of two parties: what Yao's protocol and cut-and-choose cost, by the messages that they send.

use super::{Candidate, Link, Machine, SETUP_BYTES, SETUP_POINTS, names};
use crate::Security;
use crate::security::protocol_name;
use std::time::Duration;
use tacit_2pc::semi_honest::{OutputTo, Owner, Prepared, ROWS_AT_ONCE};
use tacit_2pc::wmk17::Copies;
use tacit_2pc::wmk17::probe::ProbeMatrix;
use tacit_ot::extension::{iknp, kos};

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
}

impl EvalRequest {
    /// One evaluation of `function`.
    pub fn new(function: &Prepared, output_to: OutputTo, security: Security) -> Self {
        let circuit = function.circuit();
        let owned = |owner| {
            let inputs = function.owners().iter().zip(&circuit.shape().inputs);
            inputs.filter(|(of, _)| **of == owner).map(|(_, &bits)| u64::from(bits)).sum()
        };
        EvalRequest {
            ands: circuit.stats().and,
            inputs: [owned(Owner::Garbler), owned(Owner::Evaluator)],
            outputs: circuit.shape().output_bits() as u64,
            output_to,
            rows: 1,
            threads: 1,
            security,
            copies: None,
        }
    }

    /// The copies of cut-and-choose with which it is fastest over `link`, on a machine of any speed: computing and bytes are weighed as
    /// on the reference machine.
    pub fn copies(&self, link: &Link) -> Copies {
        let times =
            |copies: Copies| Cost::wmk17(self, copies).over(self, Some(copies), link, &Machine::REFERENCE);
        let mut known = self.copies.map_or(Copies::ALL.to_vec(), |copies| vec![copies]);
        known.sort_by_key(|&copies| times(copies).candidate.time);
        known.first().copied().unwrap_or(Copies::STANDARD)
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
}

/// Every protocol that evaluates with at least the security asked for, with all that is left open of it, the fastest first.
///
/// Times fit circuits whose AND gates are many to a level, as most are.
pub fn eval(request: &EvalRequest, link: &Link, machine: &Machine) -> Vec<EvalCandidate> {
    let copies = request.copies.map_or(Copies::ALL.to_vec(), |copies| vec![copies]);
    let mut all: Vec<EvalCandidate> = copies
        .into_iter()
        .map(|copies| Cost::wmk17(request, copies).over(request, Some(copies), link, machine))
        .collect();
    if request.security == Security::SemiHonest {
        all.push(Cost::yao(request).over(request, None, link, machine));
    }
    all.sort_by_key(|way| way.candidate.time);
    all
}

/// A job without its base OTs.
struct Cost {
    /// One thread's computing on the reference machine, in nanoseconds.
    ns: f64,
    /// What garbler and evaluator send, all threads together.
    bytes: [f64; 2],
    trips: f64,
    /// Rows of one thread, and the bytes of each that travel while a round trip is waited for.
    early: [f64; 2],
}

/// Of Yao's protocol on the reference machine, in nanoseconds: a run, an AND gate of one row and of many side by side, and bits.
const YAO_NS: f64 = 0.2e6;
const YAO_ROW_NS: f64 = 27.0;
const YAO_ROWS_NS: f64 = 20.0;
const YAO_OWN_BIT_NS: f64 = 42.0;
const YAO_PEER_BIT_NS: f64 = 60.0;
const YAO_OUTPUT_NS: f64 = 12.0;
const YAO_TRIPS: f64 = 2.0;

/// Of cut-and-choose: an execution, an AND gate in all copies, with whole tables and with coded ones; bits in 44 copies.
const RUN_NS: f64 = 3.4e6;
const GATE_NS: [f64; 2] = [1_320.0, 1_700.0];
const OWN_BIT_NS: f64 = 3_400.0;
const PEER_BIT_NS: f64 = 4_600.0;
const OUTPUT_NS: f64 = 4_500.0;
const WMK17_TRIPS: f64 = 3.0;
/// Tables that are sent while P2 opens the committing OT, at most.
const EARLY: f64 = (8 << 20) as f64;
/// More where the garbler learns outputs.
const RETURN_TRIPS: f64 = 2.0;

/// Round trips of the base OTs, and the bytes of their sender.
const BASE_TRIPS: f64 = 0.5;
const BASE_SENDER: f64 = 36.0;

/// Correlations that prove the opening of the committing OT.
const OPENING_CHECKS: usize = 128;
const POINT: u64 = 32;
const DIGEST: u64 = 32;
const BLOCK: u64 = 16;

impl Cost {
    fn yao(request: &EvalRequest) -> Cost {
        let EvalRequest { ands, inputs, outputs, rows, output_to, .. } = *request;
        let threads = request.threads.max(1) as u64;
        let each = rows.div_ceil(threads);
        let bits = inputs[1] * each;
        // Terms, the hash's start, and what every row takes.
        let decoding = if output_to.evaluator() { outputs.div_ceil(8) } else { 0 };
        let garbler = threads * (49 + BLOCK) + rows * (2 * BLOCK * ands + BLOCK * inputs[0] + decoding);
        let labels = if output_to.garbler() { BLOCK * outputs * rows } else { 0 };
        let evaluator = threads * (49 + iknp::bytes(bits as usize) + bits.div_ceil(8)) + labels;
        let gate = if each >= ROWS_AT_ONCE as u64 { YAO_ROWS_NS } else { YAO_ROW_NS };
        Cost {
            ns: YAO_NS
                + each as f64
                    * (ands as f64 * gate
                        + inputs[0] as f64 * YAO_OWN_BIT_NS
                        + inputs[1] as f64 * YAO_PEER_BIT_NS
                        + outputs as f64 * YAO_OUTPUT_NS),
            bytes: [garbler as f64, evaluator as f64],
            trips: YAO_TRIPS,
            early: [0.0; 2],
        }
    }

    /// The messages of the table in [`tacit_2pc::wmk17`], row after row.
    fn wmk17(request: &EvalRequest, copies: Copies) -> Cost {
        let EvalRequest { ands, inputs, outputs, rows, output_to, .. } = *request;
        let (total, sent) = (copies.total() as u64, copies.tables() as u64);
        let encoded = ProbeMatrix::new(inputs[1] as usize).encoded() as u64;
        // Outputs for P1 alone are masked by further input bits of its.
        let own = inputs[0] + if output_to == OutputTo::Garbler { outputs } else { 0 };
        let kinds = 1 + u64::from(output_to.garbler());
        let terms = 1 + DIGEST;
        // The committing OT runs the other way, from random OTs of the first extension.
        let committing = kos::bytes_by_hash(own as usize + OPENING_CHECKS);
        let transfer = kos::bytes_by_hash(kos::SEEDS + (total + encoded) as usize);
        let garbler = terms
            + committing
            + BLOCK
            + 2 * BLOCK * total
            + 2 * BLOCK * total * encoded
            + own.div_ceil(8)
            + (2 * BLOCK + 2 * DIGEST) * total * own
            + kinds * (2 * DIGEST * outputs + total * (DIGEST + 2 * BLOCK * outputs))
            + 2 * BLOCK * sent * ands
            + DIGEST * total
            + BLOCK * (1 + outputs)
            + (POINT + BLOCK) * total;
        let evaluator = terms
            + 2 * POINT
            + BLOCK
            + transfer
            + total.div_ceil(8)
            + encoded.div_ceil(8)
            + BLOCK
            + DIGEST
            + POINT;
        let (back, answer) = match output_to {
            OutputTo::Evaluator => (0, 0),
            _ => (2 * BLOCK * outputs, 2 * DIGEST + 1 + BLOCK * outputs),
        };
        let coded = usize::from(copies.coded());
        let copy = total as f64 / Copies::STANDARD.total() as f64;
        let ns = RUN_NS
            + ands as f64 * GATE_NS[coded]
            + copy * (own as f64 * OWN_BIT_NS + inputs[1] as f64 * PEER_BIT_NS)
            + copy * kinds as f64 * outputs as f64 * OUTPUT_NS;
        let each = rows.div_ceil(request.threads.max(1) as u64) as f64;
        Cost {
            ns: each * ns,
            bytes: [(rows * (garbler + back)) as f64, (rows * (evaluator + answer)) as f64],
            trips: each * (WMK17_TRIPS + if output_to.garbler() { RETURN_TRIPS } else { 0.0 }),
            early: [each, ((2 * BLOCK * sent * ands) as f64).min(EARLY)],
        }
    }

    /// With the base OTs of every thread; computing and the link work at the same time.
    fn over(
        &self,
        request: &EvalRequest,
        copies: Option<Copies>,
        link: &Link,
        machine: &Machine,
    ) -> EvalCandidate {
        let threads = request.threads.max(1) as f64;
        // The garbler receives the base OTs.
        let [garbler, evaluator] =
            [self.bytes[0] + threads * (SETUP_BYTES - BASE_SENDER), self.bytes[1] + threads * BASE_SENDER];
        let passing = garbler.max(evaluator) * 8e3 / link.megabits;
        let computing = self.ns * machine.aes / Machine::REFERENCE.aes;
        let rounds = BASE_TRIPS + self.trips;
        let trip = link.round_trip.as_secs_f64() * 1e9;
        let [rows, early] = self.early;
        let waiting = rounds * trip - rows * trip.min(early * 8e3 / link.megabits);
        let nanoseconds = SETUP_POINTS * machine.point + computing.max(passing) + waiting;
        let security = if copies.is_some() { Security::Malicious } else { Security::SemiHonest };
        let protocol = protocol_name(security);
        EvalCandidate {
            candidate: Candidate {
                protocol,
                variant: copies.map_or_else(String::new, |copies| format!("{} copies", copies.name())),
                security,
                time: Duration::from_secs_f64((nanoseconds / 1e9).min(1e15)),
                bytes: (garbler + evaluator) as u64,
                rounds: rounds.ceil() as u64,
                assumptions: names(protocol),
            },
            copies,
            garbler_bytes: garbler as u64,
            evaluator_bytes: evaluator as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::eval::{Job, Options};
    use tacit_2pc::circuit::named;
    use tacit_2pc::semi_honest::fields;
    use tacit_crypto::BitVec;
    use tacit_net::{Channel, memory};

    /// What garbler and evaluator sent for `rows` evaluations on zeros.
    fn sent(name: &str, request: &EvalRequest) -> [u64; 2] {
        let function = named::find(name).unwrap();
        let prepared = Prepared::from_function(&function).unwrap();
        let base = crate::ot::base_ot(None, request.security).unwrap();
        let side = |role, channel: &mut Channel| {
            let row: Vec<BitVec> =
                fields(&function, role).iter().map(|f| BitVec::zeros(f.bits() as usize)).collect();
            let options = Options { copies: request.copies, ot: None };
            let EvalRequest { output_to, security, .. } = *request;
            let job = Job { function: &prepared, role, output_to, security, options };
            job.run_marked(channel, &*base, &vec![row; request.rows as usize], &mut |_| ()).unwrap();
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
                for way in eval(&request, &link, &Machine::REFERENCE) {
                    let copies = way.copies;
                    let security = if copies.is_some() { Security::Malicious } else { Security::SemiHonest };
                    let sent = sent(name, &EvalRequest { copies, security, ..request });
                    for (sent, told) in sent.into_iter().zip([way.garbler_bytes, way.evaluator_bytes]) {
                        let off = told as f64 / sent as f64 - 1.0;
                        assert!(
                            off.abs() < 0.01,
                            "{name} {}: told {told}, sent {sent}",
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
            let all = eval(request, &link, &Machine::REFERENCE);
            assert!(all.windows(2).all(|two| two[0].candidate.time <= two[1].candidate.time));
            assert!(all.iter().all(|way| request.security == Security::SemiHonest
                || way.candidate.security == Security::Malicious));
            all[0].clone()
        };
        let sha = request("sha256", OutputTo::Evaluator, Security::Malicious);
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

    #[test]
    fn time_follows_rows_threads_and_the_link() {
        let aes = request("aes128", OutputTo::Evaluator, Security::Malicious);
        let seconds = |request: &EvalRequest, megabits: f64, ms: u64| {
            let link = Link { megabits, round_trip: Duration::from_millis(ms) };
            eval(request, &link, &Machine::REFERENCE)[0].candidate.time.as_secs_f64()
        };
        let many = EvalRequest { rows: 64, ..aes };
        assert!(seconds(&many, 1e6, 0) > 30.0 * seconds(&aes, 1e6, 0));
        assert!(seconds(&EvalRequest { threads: 2, ..many }, 1e6, 0) < 0.6 * seconds(&many, 1e6, 0));
        let way = &eval(
            &EvalRequest { copies: Some(Copies::SPARSE), ..aes },
            &Link { megabits: 8.0, round_trip: Duration::ZERO },
            &Machine::REFERENCE,
        )[0];
        // A megabyte a second.
        assert!(way.candidate.time.as_secs_f64() >= way.garbler_bytes as f64 / 1e6);
    }
}
