//! RFC 9497's own vectors, and what the modes promise.

use super::*;

struct Vector {
    mode: Mode,
    secret: &'static str,
    public: &'static str,
    /// One an input, joined by commas, as in the RFC.
    inputs: &'static str,
    info: &'static str,
    blinds: &'static str,
    blinded: &'static str,
    evaluated: &'static str,
    outputs: &'static str,
    proof: &'static str,
    nonce: &'static str,
}

/// Appendix A.1 of RFC 9497: seed and key info are the same for all.
const SEED: [u8; 32] = [0xa3; 32];
const KEY_INFO: &[u8] = b"test key";
#[rustfmt::skip]
const VECTORS: [Vector; 8] = [
    Vector {
        mode: Mode::Oblivious,
        secret: "5ebcea5ee37023ccb9fc2d2019f9d7737be85591ae8652ffa9ef0f4d37063b0e",
        public: "",
        inputs: "00",
        info: "",
        blinds: "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706",
        blinded: "609a0ae68c15a3cf6903766461307e5c8bb2f95e7e6550e1ffa2dc99e412803c",
        evaluated: "7ec6578ae5120958eb2db1745758ff379e77cb64fe77b0b2d8cc917ea0869c7e",
        outputs: "527759c3d9366f277d8c6020418d96bb393ba2afb20ff90df23fb7708264e2f3ab9135e3bd69955851de4b1f9fe8a097\
            3396719b7912ba9ee8aa7d0b5e24bcf6",
        proof: "",
        nonce: "",
    },
    Vector {
        mode: Mode::Oblivious,
        secret: "5ebcea5ee37023ccb9fc2d2019f9d7737be85591ae8652ffa9ef0f4d37063b0e",
        public: "",
        inputs: "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a",
        info: "",
        blinds: "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706",
        blinded: "da27ef466870f5f15296299850aa088629945a17d1f5b7f5ff043f76b3c06418",
        evaluated: "b4cbf5a4f1eeda5a63ce7b77c7d23f461db3fcab0dd28e4e17cecb5c90d02c25",
        outputs: "f4a74c9c592497375e796aa837e907b1a045d34306a749db9f34221f7e750cb4f2a6413a6bf6fa5e19ba6348eb673934\
            a722a7ede2e7621306d18951e7cf2c73",
        proof: "",
        nonce: "",
    },
    Vector {
        mode: Mode::Verifiable,
        secret: "e6f73f344b79b379f1a0dd37e07ff62e38d9f71345ce62ae3a9bc60b04ccd909",
        public: "c803e2cc6b05fc15064549b5920659ca4a77b2cca6f04f6b357009335476ad4e",
        inputs: "00",
        info: "",
        blinds: "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706",
        blinded: "863f330cc1a1259ed5a5998a23acfd37fb4351a793a5b3c090b642ddc439b945",
        evaluated: "aa8fa048764d5623868679402ff6108d2521884fa138cd7f9c7669a9a014267e",
        outputs: "b58cfbe118e0cb94d79b5fd6a6dafb98764dff49c14e1770b566e42402da1a7da4d8527693914139caee5bd03903af43\
            a491351d23b430948dd50cde10d32b3c",
        proof: "ddef93772692e535d1a53903db24367355cc2cc78de93b3be5a8ffcc6985dd066d4346421d17bf5117a2a1ff0fcb2a75\
            9f58a539dfbe857a40bce4cf49ec600d",
        nonce: "222a5e897cf59db8145db8d16e597e8facb80ae7d4e26d9881aa6f61d645fc0e",
    },
    Vector {
        mode: Mode::Verifiable,
        secret: "e6f73f344b79b379f1a0dd37e07ff62e38d9f71345ce62ae3a9bc60b04ccd909",
        public: "c803e2cc6b05fc15064549b5920659ca4a77b2cca6f04f6b357009335476ad4e",
        inputs: "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a",
        info: "",
        blinds: "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706",
        blinded: "cc0b2a350101881d8a4cba4c80241d74fb7dcbfde4a61fde2f91443c2bf9ef0c",
        evaluated: "60a59a57208d48aca71e9e850d22674b611f752bed48b36f7a91b372bd7ad468",
        outputs: "8a9a2f3c7f085b65933594309041fc1898d42d0858e59f90814ae90571a6df60356f4610bf816f27afdd84f47719e480\
            906d27ecd994985890e5f539e7ea74b6",
        proof: "401a0da6264f8cf45bb2f5264bc31e109155600babb3cd4e5af7d181a2c9dc0a67154fabf031fd936051dec80b0b6ae2\
            9c9503493dde7393b722eafdf5a50b02",
        nonce: "222a5e897cf59db8145db8d16e597e8facb80ae7d4e26d9881aa6f61d645fc0e",
    },
    Vector {
        mode: Mode::Verifiable,
        secret: "e6f73f344b79b379f1a0dd37e07ff62e38d9f71345ce62ae3a9bc60b04ccd909",
        public: "c803e2cc6b05fc15064549b5920659ca4a77b2cca6f04f6b357009335476ad4e",
        inputs: "00,5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a",
        info: "",
        blinds: "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706,222a5e897cf59db8145db8d16e597e8\
            facb80ae7d4e26d9881aa6f61d645fc0e",
        blinded: "863f330cc1a1259ed5a5998a23acfd37fb4351a793a5b3c090b642ddc439b945,90a0145ea9da29254c3a56be4fe1854\
            65ebb3bf2a1801f7124bbbadac751e654",
        evaluated: "aa8fa048764d5623868679402ff6108d2521884fa138cd7f9c7669a9a014267e,cc5ac221950a49ceaa73c8db41b82c2\
            0372a4c8d63e5dded2db920b7eee36a2a",
        outputs: "b58cfbe118e0cb94d79b5fd6a6dafb98764dff49c14e1770b566e42402da1a7da4d8527693914139caee5bd03903af43\
            a491351d23b430948dd50cde10d32b3c,8a9a2f3c7f085b65933594309041fc1898d42d0858e59f90814ae90571a6df6\
            0356f4610bf816f27afdd84f47719e480906d27ecd994985890e5f539e7ea74b6",
        proof: "cc203910175d786927eeb44ea847328047892ddf8590e723c37205cb74600b0a5ab5337c8eb4ceae0494c2cf89529dcf\
            94572ed267473d567aeed6ab873dee08",
        nonce: "419c4f4f5052c53c45f3da494d2b67b220d02118e0857cdbcf037f9ea84bbe0c",
    },
    Vector {
        mode: Mode::PartiallyOblivious,
        secret: "145c79c108538421ac164ecbe131942136d5570b16d8bf41a24d4337da981e07",
        public: "c647bef38497bc6ec077c22af65b696efa43bff3b4a1975a3e8e0a1c5a79d631",
        inputs: "00",
        info: "7465737420696e666f",
        blinds: "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706",
        blinded: "c8713aa89241d6989ac142f22dba30596db635c772cbf25021fdd8f3d461f715",
        evaluated: "1a4b860d808ff19624731e67b5eff20ceb2df3c3c03b906f5693e2078450d874",
        outputs: "ca688351e88afb1d841fde4401c79efebb2eb75e7998fa9737bd5a82a152406d38bd29f680504e54fd4587eddcf2f37a\
            2617ac2fbd2993f7bdf45442ace7d221",
        proof: "41ad1a291aa02c80b0915fbfbb0c0afa15a57e2970067a602ddb9e8fd6b7100de32e1ecff943a36f0b10e3dae6bd266c\
            deb8adf825d86ef27dbc6c0e30c52206",
        nonce: "222a5e897cf59db8145db8d16e597e8facb80ae7d4e26d9881aa6f61d645fc0e",
    },
    Vector {
        mode: Mode::PartiallyOblivious,
        secret: "145c79c108538421ac164ecbe131942136d5570b16d8bf41a24d4337da981e07",
        public: "c647bef38497bc6ec077c22af65b696efa43bff3b4a1975a3e8e0a1c5a79d631",
        inputs: "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a",
        info: "7465737420696e666f",
        blinds: "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706",
        blinded: "f0f0b209dd4d5f1844dac679acc7761b91a2e704879656cb7c201e82a99ab07d",
        evaluated: "8c3c9d064c334c6991e99f286ea2301d1bde170b54003fb9c44c6d7bd6fc1540",
        outputs: "7c6557b276a137922a0bcfc2aa2b35dd78322bd500235eb6d6b6f91bc5b56a52de2d65612d503236b321f5d0bebcbc52\
            b64b92e426f29c9b8b69f52de98ae507",
        proof: "4c39992d55ffba38232cdac88fe583af8a85441fefd7d1d4a8d0394cd1de77018bf135c174f20281b3341ab1f453fe72\
            b0293a7398703384bed822bfdeec8908",
        nonce: "222a5e897cf59db8145db8d16e597e8facb80ae7d4e26d9881aa6f61d645fc0e",
    },
    Vector {
        mode: Mode::PartiallyOblivious,
        secret: "145c79c108538421ac164ecbe131942136d5570b16d8bf41a24d4337da981e07",
        public: "c647bef38497bc6ec077c22af65b696efa43bff3b4a1975a3e8e0a1c5a79d631",
        inputs: "00,5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a",
        info: "7465737420696e666f",
        blinds: "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706,222a5e897cf59db8145db8d16e597e8\
            facb80ae7d4e26d9881aa6f61d645fc0e",
        blinded: "c8713aa89241d6989ac142f22dba30596db635c772cbf25021fdd8f3d461f715,423a01c072e06eb1cce96d23acce06e\
            1ea64a609d7ec9e9023f3049f2d64e50c",
        evaluated: "1a4b860d808ff19624731e67b5eff20ceb2df3c3c03b906f5693e2078450d874,aa1f16e903841036e38075da8a46655\
            c94fc92341887eb5819f46312adfc0504",
        outputs: "ca688351e88afb1d841fde4401c79efebb2eb75e7998fa9737bd5a82a152406d38bd29f680504e54fd4587eddcf2f37a\
            2617ac2fbd2993f7bdf45442ace7d221,7c6557b276a137922a0bcfc2aa2b35dd78322bd500235eb6d6b6f91bc5b56a5\
            2de2d65612d503236b321f5d0bebcbc52b64b92e426f29c9b8b69f52de98ae507",
        proof: "43fdb53be399cbd3561186ae480320caa2b9f36cca0e5b160c4a677b8bbf4301b28f12c36aa8e11e5a7ef551da0781e8\
            63a6dc8c0b2bf5a149c9e00621f02006",
        nonce: "419c4f4f5052c53c45f3da494d2b67b220d02118e0857cdbcf037f9ea84bbe0c",
    },
];

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn list(text: &str) -> Vec<Vec<u8>> {
    text.split(',').map(hex).collect()
}

fn words<const N: usize>(text: &str) -> Vec<[u8; N]> {
    list(text).into_iter().map(|word| word.try_into().unwrap()).collect()
}

fn modes() -> [Suite; 3] {
    [Mode::Oblivious, Mode::Verifiable, Mode::PartiallyOblivious].map(Suite::new)
}

#[test]
fn every_vector_of_rfc_9497_is_met() {
    for vector in &VECTORS {
        let suite = Suite::new(vector.mode);
        let key = suite.derive_key(&SEED, KEY_INFO).unwrap();
        assert_eq!(key.to_bytes()[..], hex(vector.secret)[..]);
        if !vector.public.is_empty() {
            assert_eq!(key.public()[..], hex(vector.public)[..]);
        }
        let (inputs, info) = (list(vector.inputs), hex(vector.info));
        let blinds = Scalars::from_canonical(&words(vector.blinds)).unwrap();
        let blinded = suite.blind_with(&inputs, blinds).unwrap();
        assert_eq!(blinded.elements(), words(vector.blinded));
        let nonce = if vector.nonce.is_empty() { "01" } else { vector.nonce };
        let mut bytes = [0; 32];
        bytes[..nonce.len() / 2].copy_from_slice(&hex(nonce));
        let nonce = Scalars::from_canonical(&[bytes]).unwrap();
        let evaluated = suite.evaluate_with(&key, blinded.elements(), &info, nonce).unwrap();
        assert_eq!(evaluated.elements, words(vector.evaluated));
        if vector.mode != Mode::Oblivious {
            assert_eq!(evaluated.proof[..], hex(vector.proof)[..]);
        }
        let outputs = suite.finalize(&inputs, &blinded, &evaluated, key.public(), &info).unwrap();
        assert_eq!(outputs, words(vector.outputs));
        assert_eq!(suite.apply(&key, &inputs, &info).unwrap(), outputs);
    }
}

#[test]
fn all_sizes_and_modes_come_to_the_function_itself() {
    let mut prg = Prg::from_os();
    let key = ServerKey::generate(&mut prg);
    assert_eq!(ServerKey::from_bytes(&key.to_bytes()).unwrap().public(), key.public());
    for suite in modes() {
        let info: &[u8] = if suite.mode() == Mode::PartiallyOblivious { b"2026" } else { b"" };
        for n in [0, 1, 2, 7, 8, 9, 257] {
            let inputs: Vec<Vec<u8>> = (0..n).map(|i| vec![i as u8; i]).collect();
            let blinded = suite.blind(&inputs, &mut prg).unwrap();
            let evaluated = suite.evaluate(&key, blinded.elements(), info, &mut prg).unwrap();
            let outputs = suite.finalize(&inputs, &blinded, &evaluated, key.public(), info).unwrap();
            assert_eq!(outputs, suite.apply(&key, &inputs, info).unwrap());
        }
        assert!(suite.apply(&key, &[vec![0; MOST]], info).is_ok());
        assert!(matches!(suite.apply(&key, &[vec![0; MOST + 1]], info), Err(Error::Usage(_))));
        assert!(matches!(suite.blind(&[vec![0; MOST + 1]], &mut prg), Err(Error::Usage(_))));
    }
    let [plain, verifiable, partial] = modes();
    assert!(verifiable.apply(&key, &["x"], b"a text").is_err());
    let differ = [
        plain.apply(&key, &["x"], b"").unwrap(),
        verifiable.apply(&key, &["x"], b"").unwrap(),
        partial.apply(&key, &["x"], b"").unwrap(),
        partial.apply(&key, &["x"], b"2026").unwrap(),
    ];
    assert!((0..4).all(|i| (0..i).all(|j| differ[i] != differ[j])));
}

/// What a cheating server makes of its honest answer.
type Cheat<'a> = dyn Fn(&mut Evaluated, &mut Prg, &ServerKey, &Blinded) + 'a;

/// What `finalize` says to an answer of an honest server that `change` was let loose on.
fn tampered(
    suite: &Suite,
    change: impl Fn(&mut Evaluated, &mut Prg, &ServerKey, &Blinded),
) -> Result<Vec<Output>> {
    let mut prg = Prg::from_os();
    let key = ServerKey::generate(&mut prg);
    let inputs = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let blinded = suite.blind(&inputs, &mut prg).unwrap();
    let mut evaluated = suite.evaluate(&key, blinded.elements(), b"", &mut prg).unwrap();
    change(&mut evaluated, &mut prg, &key, &blinded);
    suite.finalize(&inputs, &blinded, &evaluated, key.public(), b"")
}

#[test]
fn a_server_that_uses_two_keys_or_moves_elements_is_caught() {
    for suite in &modes()[1..] {
        assert!(tampered(suite, |_, _, _, _| ()).is_ok());
        let cheats: [&Cheat<'_>; 6] = [
            // One element by another key, with the honest proof.
            &|e, prg, _, blinded| {
                let other = ServerKey::generate(prg);
                e.elements[4] =
                    suite.evaluate(&other, &blinded.elements()[4..5], b"", prg).unwrap().elements[0];
            },
            // All of them by another key, with that key's own proof.
            &|e, prg, _, blinded| {
                *e = suite.evaluate(&ServerKey::generate(prg), blinded.elements(), b"", prg).unwrap();
            },
            // Half by another key, and the proof of all by the first.
            &|e, prg, _, blinded| {
                let other = ServerKey::generate(prg);
                let half = suite.evaluate(&other, &blinded.elements()[5..], b"", prg).unwrap();
                e.elements.splice(5.., half.elements);
            },
            &|e, _, _, _| e.elements.swap(0, 8),
            // An error that sums up to nothing.
            &|e, prg, _, _| {
                let shift = Points::mul_base(&Scalars::random(1, prg));
                let pair = [e.elements[1], e.elements[2]].map(|x| Points::decode(&x).unwrap());
                e.elements[1] = pair[0].add(&shift).encode()[0];
                e.elements[2] = pair[1].sub(&shift).encode()[0];
            },
            // The proof of a part of the batch.
            &|e, prg, key, blinded| {
                e.proof = suite.evaluate(key, &blinded.elements()[..8], b"", prg).unwrap().proof;
            },
        ];
        for (which, cheat) in cheats.iter().enumerate() {
            let said = tampered(suite, cheat);
            assert!(
                matches!(said, Err(Error::Cheated { .. })),
                "{:?}, cheat {which}: {said:?}",
                suite.mode()
            );
        }
    }
    // Without a proof nobody notices: this is what the proof is for.
    assert!(tampered(&modes()[0], |e, _, _, _| e.elements.swap(0, 8)).is_ok());
}

#[test]
fn every_bit_of_a_proof_counts() {
    let (suite, mut prg) = (Suite::new(Mode::Verifiable), Prg::from_os());
    let key = ServerKey::generate(&mut prg);
    let blinded = suite.blind(&["a", "b"], &mut prg).unwrap();
    let honest = suite.evaluate(&key, blinded.elements(), b"", &mut prg).unwrap();
    for bit in 0..8 * PROOF_BYTES {
        let mut evaluated = honest.clone();
        evaluated.proof[bit / 8] ^= 1 << (bit % 8);
        let said = suite.finalize(&["a", "b"], &blinded, &evaluated, key.public(), b"");
        assert!(matches!(said, Err(Error::Cheated { .. })), "bit {bit}");
    }
    for byte in 0..32 {
        let mut public = *key.public();
        public[byte] ^= 2;
        assert!(suite.finalize(&["a", "b"], &blinded, &honest, &public, b"").is_err(), "byte {byte}");
    }
}

#[test]
fn the_identity_and_other_encodings_are_refused_on_both_sides() {
    let mut negative = [0xff; 32];
    (negative[0], negative[31]) = (0xec, 0x7f);
    // The identity, a number above the field's order, a negative one, and bytes that no element has.
    for bad in [[0; 32], [0xff; 32], negative, [1; 32]] {
        for suite in &modes() {
            let mut prg = Prg::from_os();
            let key = ServerKey::generate(&mut prg);
            let good = suite.blind(&["x"], &mut prg).unwrap().elements()[0];
            let said = suite.evaluate(&key, &[good, bad, good], b"", &mut prg);
            assert!(matches!(said, Err(Error::Cheated { .. })), "{:?} {bad:x?}", suite.mode());
            let said = tampered(suite, |e, _, _, _| e.elements[3] = bad);
            assert!(matches!(said, Err(Error::Cheated { .. })), "{:?} {bad:x?}", suite.mode());
            let said = tampered(suite, |e, _, _, _| e.elements.truncate(3));
            assert!(matches!(said, Err(Error::Cheated { .. })));
        }
    }
    assert!(ServerKey::from_bytes(&[0; 32]).is_none() && ServerKey::from_bytes(&[0xff; 32]).is_none());
}

#[test]
fn nothing_secret_is_printed() {
    let (suite, mut prg) = (Suite::new(Mode::Verifiable), Prg::from_os());
    let key = ServerKey::generate(&mut prg);
    let blinded = suite.blind(&["a"], &mut prg).unwrap();
    assert_eq!(format!("{key:?} {blinded:?}"), "ServerKey([secret]) Blinded(1, [secret])");
}
