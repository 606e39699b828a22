//! Options that several commands have, as the command line has them.

use clap::ValueEnum;
use tacit::ot::Kind;
use tacit::two_pc::OutputTo;

/// `--security`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Security {
    /// A peer that may do anything
    Malicious,
    /// A peer that follows the protocol and studies what it saw
    SemiHonest,
}

impl From<Security> for tacit::Security {
    fn from(security: Security) -> Self {
        match security {
            Security::Malicious => tacit::Security::Malicious,
            Security::SemiHonest => tacit::Security::SemiHonest,
        }
    }
}

/// `--role` of transfers, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Role {
    /// Holds both messages, or Δ
    Sender,
    /// Holds the choices
    Receiver,
}

impl From<Role> for tacit::job::ot::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Sender => tacit::job::ot::Role::Sender,
            Role::Receiver => tacit::job::ot::Role::Receiver,
        }
    }
}

/// `--kind`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum KindArg {
    /// Correlated OT: w = v ⊕ u·Δ
    Cot,
    /// Random OT: two random messages, one of which is received
    Rot,
    /// OT on chosen messages and choices: those given, or drawn at random
    Ot,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Cot => Kind::Cot,
            KindArg::Rot => Kind::Rot,
            KindArg::Ot => Kind::Ot,
        }
    }
}

/// `--output-to`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum OutputArg {
    /// Only the garbler learns the outputs
    Garbler,
    /// Only the evaluator learns the outputs
    Evaluator,
    /// Both learn the outputs
    Both,
}

/// The library's name of it.
pub fn output_to(to: OutputArg) -> OutputTo {
    match to {
        OutputArg::Garbler => OutputTo::Garbler,
        OutputArg::Evaluator => OutputTo::Evaluator,
        OutputArg::Both => OutputTo::Both,
    }
}
