//! Times the ring's operations one by one, ns a call, the least of many runs.

use std::hint::black_box;
use std::time::Instant;
use tacit_crypto::ring::{Noise, Poly, RING_256_7681, RING_512_13313, RING_1024_12289, Ring, XofBlocks};
use tacit_crypto::{Block, Prg};

fn least(mut run: impl FnMut()) -> f64 {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..100 {
            run();
        }
        start.elapsed().as_nanos() as f64 / 100.0
    };
    (0..200).map(|_| time(&mut run)).fold(f64::MAX, f64::min)
}

fn measure<const N: usize>(name: &str, ring: &Ring<N>) {
    let mut prg = XofBlocks::from_prg(&mut Prg::from_os());
    let mut x = Poly::<N>::ZERO;
    let mut scratch = vec![Block::ZERO; N];
    Noise::Binomial2.sample(&mut prg, &mut scratch, &mut x);
    let y = x.clone();
    let mut z = Poly::<N>::ZERO;
    let mut bytes = vec![0u8; ring.packed_len()];
    let (mut signal, mut key) = (vec![0u16; N / 16], vec![0u16; N / 16]);
    let coins = vec![0x5555u16; N / 16];
    println!("{name}");
    println!("  forward   {:7.0}", least(|| ring.forward(black_box(&mut x))));
    println!("  inverse   {:7.0}", least(|| ring.inverse(black_box(&mut x))));
    println!(
        "  dot       {:7.0}",
        least(|| ring.dot(std::slice::from_ref(&x), std::slice::from_ref(&y), black_box(&mut z)))
    );
    println!("  add       {:7.0}", least(|| ring.add(black_box(&mut x), &y)));
    println!(
        "  add twice {:7.0}",
        least(|| {
            ring.add_twice(black_box(&mut z), &y);
            z.0[0] = 0;
        })
    );
    println!("  pack      {:7.0}", least(|| ring.pack(&x, black_box(&mut bytes))));
    println!(
        "  unpack    {:7.0}",
        least(|| {
            let _ = black_box(ring.unpack(&bytes, &mut z));
        })
    );
    println!("  signal    {:7.0}", least(|| ring.signal(&x, &coins, black_box(&mut signal), &mut key)));
    println!("  extract   {:7.0}", least(|| ring.extract(&x, &signal, black_box(&mut key))));
    println!(
        "  uniform   {:7.0}",
        least(|| {
            let mut reader = blake3::Hasher::new_keyed(&[7; 32]).update(&[1; 41]).finalize_xof();
            ring.uniform(&mut reader, std::slice::from_mut(black_box(&mut z)));
        })
    );
    println!(
        "  xof 1 KiB {:7.0}",
        least(|| {
            let mut reader = blake3::Hasher::new_keyed(&[7; 32]).update(&[1; 41]).finalize_xof();
            reader.fill(bytemuck::cast_slice_mut(black_box(&mut scratch[..64])));
        })
    );
    println!(
        "  binomial  {:7.0}",
        least(|| Noise::Binomial2.sample(&mut prg, &mut scratch, black_box(&mut z)))
    );
    println!(
        "  gaussian  {:7.0}",
        least(|| Noise::Gaussian2.sample(&mut prg, &mut scratch, black_box(&mut z)))
    );
    println!(
        "  its PRG   {:7.0}",
        least(|| tacit_crypto::ring::RandomBlocks::fill_blocks(&mut prg, black_box(&mut scratch[..N / 4])))
    );
}

fn main() {
    measure("256, 7681", &RING_256_7681);
    measure("512, 13313", &RING_512_13313);
    measure("1024, 12289", &RING_1024_12289);
}
