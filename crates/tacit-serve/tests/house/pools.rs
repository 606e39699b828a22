//! Two parties with a pool: no correlation is handed out twice, whatever a disk does.

use crate::disk::{Fault, Kind, Machine};
use crate::town::Kept;
use std::collections::HashSet;
use std::path::PathBuf;
use tacit::crypto::{Block, Prg};
use tacit::net::memory;
use tacit::pool::{Pool, PoolKey, PoolReceiver, PoolSender, make_receiver, make_sender};
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::{CotReceiver, CotSender, Result, Security};

const COUNT: u64 = 4096;
const TAKEN: usize = 16;

fn key(side: usize) -> PoolKey {
    PoolKey::from_bytes(&[side as u8; 32]).unwrap()
}

/// Both halves of a new pool, as bytes.
pub(crate) fn make() -> [Vec<u8>; 2] {
    let base = tacit_ot::base::default();
    let (one, two) = memory::run(
        |channel| -> Result<Vec<u8>> {
            let (mut prg, mut out) = (Prg::from_os(), std::io::Cursor::new(Vec::new()));
            let mut kos = KosSender::setup(channel, &*base, &mut prg)?;
            make_sender(
                channel,
                &mut prg,
                &mut kos,
                Security::Malicious,
                COUNT,
                &key(0),
                &mut out,
                &mut |_| (),
            )?;
            Ok(out.into_inner())
        },
        |channel| -> Result<Vec<u8>> {
            let (mut prg, mut out) = (Prg::from_os(), std::io::Cursor::new(Vec::new()));
            let mut kos = KosReceiver::setup(channel, &*base, &mut prg)?;
            make_receiver(
                channel,
                &mut prg,
                &mut kos,
                Security::Malicious,
                COUNT,
                &key(1),
                &mut out,
                &mut |_| (),
            )?;
            Ok(out.into_inner())
        },
    );
    [one.unwrap(), two.unwrap()]
}

pub(crate) struct Pools {
    machines: [Machine; 2],
    /// What each side was ever handed.
    served: [HashSet<[u8; 16]>; 2],
}

impl Pools {
    pub(crate) fn new(folder: PathBuf, kept: &Kept) -> Self {
        let machines = [0, 1].map(|side| {
            let folder = folder.join(["east", "west"][side]);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("a.pool"), &kept.pool[side]).unwrap();
            Machine::watch(folder)
        });
        Pools { machines, served: Default::default() }
    }

    fn open(&self, side: usize) -> tacit_ot::Result<Pool> {
        Pool::open(&self.machines[side].folder.join("a.pool"), &key(side))
    }

    fn take(&mut self) -> bool {
        let mut rows = [[Block::ZERO; TAKEN]; 2];
        let [sent, received] = &mut rows;
        let (pools, (a, b)) = (&*self, memory::pair());
        let (one, two) = memory::join(
            a,
            b,
            |channel| PoolSender::setup(channel, pools.open(0)?)?.extend(channel, sent),
            |channel| PoolReceiver::setup(channel, pools.open(1)?)?.extend(channel, received),
        );
        let mut both = true;
        for ((side, got), rows) in [one, two].into_iter().enumerate().zip(&rows) {
            both &= got.is_ok();
            for row in rows.iter().filter(|_| got.is_ok()) {
                assert!(
                    self.served[side].insert(row.to_bytes()),
                    "side {side} was served a correlation twice"
                );
            }
        }
        both
    }

    /// Takes some, with a fault of one side's disk; then the side that is behind catches up, and it works again.
    pub(crate) fn happen(&mut self, side: usize, fault: Option<Fault>, seed: u64) {
        if let Some(fault) = fault {
            self.machines[side].plan(fault);
        }
        self.take();
        match fault {
            Some(Fault { kind: Kind::Dead, .. }) => self.machines[side].cut(seed),
            _ => self.machines[side].mend(),
        }
        let mut pools =
            [0, 1].map(|side| self.open(side).expect("a pool that a fault of the disk has damaged"));
        let furthest = pools[0].position().max(pools[1].position());
        pools.iter_mut().for_each(|pool| pool.skip_to(furthest).unwrap());
        drop(pools);
        assert!(self.take(), "a pool that does not serve any more");
    }
}
