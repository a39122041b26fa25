//! Power losses: after each of them, all answered commits are there, and no damage is reported.

use super::super::blocks::Blocks;
use super::super::check::check_backend;
use super::faulty_disk::options;
use super::memory::{Done, Memory};
use super::*;

/// The sector size of the disk. A power loss can lose or tear each unsynced sector.
const SECTOR: usize = 512;

/// The operations on a file in a run of commits.
struct Run {
    log: Vec<Done>,
    /// The number of operations before each answer of a commit, and the content at that moment.
    states: Vec<(usize, Vec<(Key, Record)>)>,
}

async fn run(commits: usize, options: &RedbOptions) -> Run {
    let memory = Memory::logged();
    let store = memory.open_with(options).unwrap();
    let own = Key::in_workspace(workspace(), Kind::Workspace, "");
    store
        .commit(batch([], [Write::Put(own, b"{}".to_vec())]))
        .await
        .unwrap();
    let mut states = vec![(memory.done(), dump(&store).await)];
    for number in 0..commits {
        let text = format!("\"{}\"", "x".repeat(number * 397 % 9000));
        let mut writes = vec![
            put(&format!("agent-{}", number % 23), &text),
            Write::Append {
                log: workspace(),
                value: number.to_string().into_bytes(),
            },
        ];
        if number % 5 == 4 {
            writes.push(Write::Delete(agent(&format!("agent-{}", (number + 9) % 23))));
        }
        store.commit(batch([], writes)).await.unwrap();
        states.push((memory.done(), dump(&store).await));
    }
    Run {
        log: memory.log(),
        states,
    }
}

/// Applies a write as a power loss may leave it: each sector complete, missing or torn.
fn apply_in_part(bytes: &mut [u8], offset: usize, data: &[u8], mode: usize, dice: &mut Dice) {
    let torn_at = dice.below(data.len() + 1);
    for (number, sector) in data.chunks(SECTOR).enumerate() {
        let start = offset + number * SECTOR;
        let kept = match mode {
            0 => dice.below(2) * sector.len(),
            1 => torn_at.saturating_sub(number * SECTOR).min(sector.len()),
            2 => match dice.below(12) {
                0 => dice.below(sector.len() + 1),
                1..6 => sector.len(),
                _ => 0,
            },
            _ => usize::from(torn_at * 2 > data.len()) * sector.len(),
        };
        // Without the resize before it, a sector beyond the end of the file is lost.
        if start + kept <= bytes.len() {
            bytes[start..start + kept].copy_from_slice(&sector[..kept]);
        }
    }
}

/// A state of the disk after a power loss during these unsynced operations.
fn image(synced: &[u8], unsynced: &[Done], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = synced.to_vec();
    let mode = dice.below(4);
    let reached = dice.below(unsynced.len() + 1);
    for done in &unsynced[..reached] {
        match done {
            Done::Write(offset, data) => apply_in_part(&mut bytes, *offset as usize, data, mode, dice),
            Done::SetLen(len) => bytes.resize(*len as usize, 0),
            Done::Sync => {}
        }
    }
    bytes
}

/// The fault of the store in an image; `None` if its content is one of the allowed states.
async fn fault(image: Vec<u8>, allowed: &[&Vec<(Key, Record)>], checked: bool) -> Option<String> {
    if checked {
        match check_backend(Blocks::new(Memory::new(image.clone()))) {
            Ok(report) if report.is_sound() => {}
            other => return Some(format!("a false alarm of a check: {other:?}")),
        }
    }
    let store = match Memory::new(image).open() {
        Ok(store) => store,
        Err(error) => return Some(format!("a false alarm: {error}")),
    };
    let mut found = Vec::new();
    let mut partitions = vec![Partition::Workspace(workspace())];
    partitions.extend((0..1).map(|number| Partition::Global(format!("key-{number}").into())));
    for partition in partitions {
        for kind in kinds(&partition) {
            match store.scan(&Scan::all(partition.clone(), kind)).await {
                Ok(scanned) => found.extend(scanned.entries),
                Err(error) => return Some(format!("a false alarm: {error}")),
            }
        }
    }
    (!allowed.contains(&&found)).then(|| format!("{} records, which are none of the allowed states", found.len()))
}

/// Tries images of each window between two syncs; returns how many were tried, and their faults.
async fn try_images(run: &Run, images: usize, dice: &mut Dice) -> (usize, Vec<String>) {
    let first = run.states[0].0;
    let syncs: Vec<usize> = (first..run.log.len())
        .filter(|at| matches!(run.log[*at], Done::Sync))
        .collect();
    let mut synced = Vec::new();
    let (mut at, mut tried, mut faults) = (0, 0, Vec::new());
    let mut ends = syncs.clone();
    ends.push(run.log.len());
    for (number, end) in ends.iter().enumerate() {
        // The first window creates the file, which is a draft until it is synced.
        let from = if number == 0 { first } else { at };
        for done in &run.log[at..from] {
            apply(&mut synced, done);
        }
        let window = &run.log[from..*end];
        let answered = run.states.iter().rposition(|(done, _)| *done <= from).unwrap();
        let later = (answered + 1).min(run.states.len() - 1);
        let allowed = [&run.states[answered].1, &run.states[later].1];
        for _ in 0..images.div_ceil(ends.len()) {
            tried += 1;
            let image = image(&synced, window, dice);
            faults.extend(fault(image, &allowed, tried % 8 == 0).await);
        }
        for done in window {
            apply(&mut synced, done);
        }
        at = *end;
    }
    (tried, faults)
}

fn apply(bytes: &mut Vec<u8>, done: &Done) {
    match done {
        Done::Write(offset, data) => bytes[*offset as usize..*offset as usize + data.len()].copy_from_slice(data),
        Done::SetLen(len) => bytes.resize(*len as usize, 0),
        Done::Sync => {}
    }
}

#[tokio::test]
async fn no_power_loss_loses_or_damages_answered_commits() {
    for checkpoint_from in [u64::MAX, 0] {
        let run = run(120, &options().checkpoint_from(checkpoint_from)).await;
        let (tried, faults) = try_images(&run, cases(1_000), &mut Dice::new()).await;
        println!(
            "FIGURES crash images, checkpoints from {checkpoint_from} bytes: {tried} tried, {} lost or false alarms",
            faults.len()
        );
        assert!(
            faults.is_empty(),
            "{} of {tried}, such as {:?}",
            faults.len(),
            &faults[..faults.len().min(5)]
        );
    }
}

/// The control: the same run with most syncs left out must lose data, which shows that these tests can find a loss.
#[tokio::test]
async fn without_syncs_power_losses_are_detected() {
    let mut run = run(40, &options()).await;
    let first = run.states[0].0;
    let mut number = 0;
    // A commit has two syncs. Only one sync in 16 is kept.
    let kept: Vec<bool> = run
        .log
        .iter()
        .enumerate()
        .map(|(at, done)| {
            let is_sync = at >= first && matches!(done, Done::Sync);
            number += usize::from(is_sync);
            !is_sync || number % 16 == 0
        })
        .collect();
    for (done, _) in &mut run.states {
        *done = kept[..*done].iter().filter(|kept| **kept).count();
    }
    let mut kept = kept.iter();
    run.log.retain(|_| *kept.next().unwrap());
    let (tried, faults) = try_images(&run, 200, &mut Dice::new()).await;
    println!(
        "FIGURES crash images without syncs (control): {tried} tried, {} lost or damaged",
        faults.len()
    );
    assert!(faults.len() * 4 > tried, "{} of {tried}", faults.len());
}
