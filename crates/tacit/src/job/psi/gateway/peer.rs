//! The other gateway: sessions for jobs, and one for each attempt at a bucket.

use super::job::Job;
use super::words::MAX_LABEL;
use super::{House, serve_aside};
use crate::{Error, Result};
use std::sync::Arc;
use std::time::Duration;
use tacit_crypto::fence::fenced;
use tacit_net::{Agreement, Listener, Reception, Session};

/// What a session is for.
const FOR_JOB: u8 = 1;
const FOR_BUCKET: u8 = 2;
const NO: u8 = 0;
const YES: u8 = 1;
/// How long the gateway looks for sessions before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Between two calls where the other side is not there yet.
const CALLING: Duration = Duration::from_millis(300);
/// For the other gateway's end of an attempt.
pub(super) const MEETING: Duration = Duration::from_secs(30);

/// What two gateways agree on before they speak of a job.
pub(super) fn agreement() -> Agreement {
    Agreement::new("gateway", "gateway", "gateway")
}

/// At the first gateway: receives the other's sessions.
pub(super) fn receive(house: &Arc<House>, listener: &Listener) {
    let mut reception = match Reception::new(listener, house.options.clone()) {
        Ok(reception) => reception,
        Err(error) => return house.say(&format!("nobody can be received: {error}")),
    };
    while !house.is_stopping() {
        match reception.next(LOOK) {
            Ok(Some(session)) => {
                let theirs = house.clone();
                let started = serve_aside("tacit-session", &house.lines, move || {
                    if let Err(error) = serve(&theirs, session)
                        && !error.is_lost_link()
                    {
                        theirs.say(&format!("a session of the other gateway ended: {error}"));
                    }
                });
                if let Err(error) = started {
                    house.say(&error.to_string());
                }
            }
            Ok(None) => {}
            Err(error) => {
                if !house.is_stopping() {
                    house.say(&format!("a caller was turned away: {error}"));
                    std::thread::sleep(LOOK);
                }
            }
        }
    }
}

fn serve(house: &Arc<House>, mut session: Session) -> Result<()> {
    let mut purpose = [0];
    session.channel().recv(&mut purpose)?;
    match purpose {
        [FOR_JOB] => {
            let label = String::from_utf8_lossy(&session.channel().recv_sized(MAX_LABEL)?).into_owned();
            let job = house.find(&label).ok();
            session.channel().send(&[if job.is_some() { YES } else { NO }])?;
            session.channel().flush()?;
            job.map_or(Ok(()), |job| together(&job, &mut session))
        }
        [FOR_BUCKET] => {
            let (mut name, mut attempt) = ([0; 32], [0]);
            session.channel().recv(&mut name)?;
            let number = session.channel().recv_u64()?;
            session.channel().recv(&mut attempt)?;
            let job = house.jobs().values().find(|job| job.has_plan(&name)).cloned();
            if let (Some(job), Ok(number)) = (job, u32::try_from(number)) {
                job.deliver(number, attempt[0], session);
            }
            Ok(())
        }
        _ => Err(Error::Peer("the other gateway asks for something that no gateway does".to_owned())),
    }
}

/// Compares the job's terms, and goes on with it.
fn together(job: &Job, session: &mut Session) -> Result<()> {
    let agreed = session.agree_anew(&job.terms().agreement()).map_err(Error::from);
    if let Err(error) = &agreed
        && !error.is_lost_link()
    {
        job.refuse(error);
    }
    agreed?;
    job.accompany(session)
}

/// At the second gateway: calls the first about a job for as long as there is a reason to.
pub(super) fn call(house: &Arc<House>, job: &Arc<Job>) {
    while job.calls_on() {
        // A call that panics is followed by another one, as one that fails is.
        let called = fenced(|| call_once(house, job)).unwrap_or_else(|panicked| {
            house.say(&format!("a call to the other gateway ended: {panicked}"));
            Err(Error::Other(panicked.to_string()))
        });
        if let Err(error) = called {
            job.met_trouble(&error);
        }
        if job.calls_on() {
            std::thread::sleep(CALLING);
        }
    }
}

fn call_once(house: &House, job: &Job) -> Result<()> {
    let mut session = connect(house)?;
    session.channel().send(&[FOR_JOB])?;
    session.channel().send_sized(job.label.as_bytes())?;
    let mut there = [NO];
    session.channel().recv(&mut there)?;
    if there != [YES] {
        return Err(Error::Peer("the other side has not opened the job yet".to_owned()));
    }
    together(job, &mut session)
}

fn connect(house: &House) -> Result<Session> {
    let target =
        house.target.as_deref().ok_or_else(|| Error::Other("nobody is called from here".to_owned()))?;
    let mut options = house.options.clone();
    options.limits.connect = options.limits.connect.min(MEETING);
    Ok(tacit_net::connect(target, &options)?)
}

/// The session of one attempt at a bucket, on either side.
pub(super) fn join(house: &House, job: &Job, run: &[u8; 32], number: u32, attempt: u8) -> Result<Session> {
    if house.first {
        let mut data = job.await_data(number, attempt, MEETING)?;
        data.channel().send(&[YES])?;
        data.channel().flush()?;
        return Ok(data);
    }
    let mut data = connect(house)?;
    data.channel().send(&[FOR_BUCKET])?;
    data.channel().send(run)?;
    data.channel().send_u64(number.into())?;
    data.channel().send(&[attempt])?;
    let mut there = [NO];
    data.channel().recv(&mut there)?;
    Ok(data)
}

/// The id under which both tasks run an attempt: neither side chose it, and no two attempts share one.
pub(super) fn session_id(data: &Session, run: &[u8; 32], number: u32, attempt: u8) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("tacit 1 gateway: attempt");
    hasher.update(&data.id().0).update(run).update(&number.to_le_bytes()).update(&[attempt]);
    *hasher.finalize().as_bytes()
}
