//! Evaluation in the clear, 64 instances a machine word.

use super::{Circuit, FIRST_INPUT, Gate, ONE, Wire};
use tacit_crypto::BitVec;
use zeroize::Zeroize;

/// The wires' values of `64·W` instances, for streams of gates.
pub struct PlainMemory<const W: usize> {
    wires: Vec<[u64; W]>,
}

impl<const W: usize> Drop for PlainMemory<W> {
    fn drop(&mut self) {
        self.wires.zeroize();
    }
}

impl<const W: usize> PlainMemory<W> {
    /// Memory with the input bits in their places; bit `k` of `inputs[i][w]` is input bit `i` of instance
    /// `64·w + k`.
    pub fn new(inputs: &[[u64; W]]) -> Self {
        let mut wires = Vec::with_capacity(FIRST_INPUT as usize + inputs.len());
        wires.push([0; W]);
        wires.push([u64::MAX; W]);
        wires.extend_from_slice(inputs);
        PlainMemory { wires }
    }

    /// Runs gates. Panics if one reads a wire that was never written.
    pub fn run(&mut self, gates: &[Gate]) {
        for &gate in gates {
            let (a, b) = gate.operands();
            let (a, b) = (self.wires[a as usize], self.wires[b as usize]);
            let mut value = [0; W];
            for (w, v) in value.iter_mut().enumerate() {
                *v = if gate.is_and() { a[w] & b[w] } else { a[w] ^ b[w] };
            }
            let out = gate.out() as usize;
            if out >= self.wires.len() {
                self.wires.resize(out + 1, [0; W]);
            }
            self.wires[out] = value;
        }
    }

    /// The values of `wires`.
    pub fn read(&self, wires: &[Wire]) -> Vec<[u64; W]> {
        wires.iter().map(|&w| self.wires[w as usize]).collect()
    }
}

/// Evaluates `64·W` instances at once: bit `k` of `inputs[i][w]` is input bit `i` of instance `64·w + k`.
///
/// Panics if the number of inputs is not the circuit's.
pub fn evaluate_words<const W: usize>(circuit: &Circuit, inputs: &[[u64; W]]) -> Vec<[u64; W]> {
    assert_eq!(inputs.len(), circuit.shape().input_bits(), "one word array an input bit");
    debug_assert_eq!(ONE, 1);
    let mut memory = PlainMemory::new(inputs);
    memory.wires.reserve_exact(circuit.gates().len());
    memory.run(circuit.gates());
    memory.read(circuit.outputs())
}

/// Evaluates one instance: one bit vector an input, one an output.
///
/// Panics if the widths are not the circuit's.
pub fn evaluate(circuit: &Circuit, inputs: &[BitVec]) -> Vec<BitVec> {
    let widths: Vec<u32> = inputs.iter().map(|i| i.len() as u32).collect();
    assert_eq!(widths, circuit.shape().inputs, "inputs of other widths than the circuit's");
    let words: Vec<[u64; 1]> = inputs.iter().flat_map(|i| i.iter()).map(|bit| [bit as u64]).collect();
    let out = evaluate_words(circuit, &words);
    let mut bits = out.iter().map(|w| w[0] & 1 == 1);
    let of_width = |&width: &u32| BitVec::from_bools(&bits.by_ref().take(width as usize).collect::<Vec<_>>());
    circuit.shape().outputs.iter().map(of_width).collect()
}
