//! A server killed under load, again and again: nothing that it acknowledged is lost, and a request
//! that is sent again has one effect.

use std::collections::HashMap;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use super::ServerProcess;
use super::client::HttpClient;
use crate::{Dice, Result, model, sound, table, tell};

const WIDTH: usize = 12;
const CLIENTS: u64 = 4;

/// What a client was told: the key, the row and the receipt.
struct Acknowledged {
    key: String,
    row: String,
    receipt: String,
}

pub(crate) fn kills(count: u64) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("people.efface");
    let rows = 40 * count.max(10);
    drop(model(
        &path,
        table((0..rows).map(|at| format!("r{at}")), WIDTH, 7),
    )?);
    let mut known: HashMap<String, (String, String)> = HashMap::new();
    let mut replayed = 0_u64;
    let mut dice = Dice(count);
    for round in 0..count {
        let server = ServerProcess::start("serve-child", folder.path())?;
        let (tell_parent, heard) = mpsc::channel();
        for client in 0..CLIENTS {
            let address = server.address.clone();
            let tell_parent = tell_parent.clone();
            std::thread::spawn(move || send(&address, round, client, rows, &tell_parent));
        }
        drop(tell_parent);
        let life = Duration::from_millis(20 + dice.below(150));
        let mut acknowledged = Vec::new();
        let end = std::time::Instant::now() + life;
        while let Some(left) = end.checked_duration_since(std::time::Instant::now()) {
            acknowledged.extend(heard.recv_timeout(left).ok());
        }
        server.kill()?;
        acknowledged.extend(heard.iter());
        for Acknowledged { key, row, receipt } in acknowledged {
            known.insert(key, (row, receipt));
        }
        // A part of what was ever acknowledged is sent again to the next server, with the same
        // keys.
        let server = ServerProcess::start("serve-child", folder.path())?;
        let mut client = HttpClient::connect(&server.address)?;
        let every = (known.len() / 200).max(1);
        for (key, (row, receipt)) in known.iter().step_by(every) {
            let again = erase(&mut client, key, row)?.ok_or_else(|| format!("{key} is lost"))?;
            if again != *receipt {
                return Err(format!("{key} had a second effect").into());
            }
            replayed += 1;
        }
        server.kill()?;
        sound(&path)?;
    }
    let left = efface_engine::Engine::open_read_only(&path)?
        .summary()?
        .rows as u64;
    let gone: std::collections::HashSet<&String> = known.values().map(|(row, _)| row).collect();
    if left > rows - gone.len() as u64 {
        return Err("a row that was erased is there".into());
    }
    tell(
        &format!("{count} kills of a server under load from {CLIENTS} clients"),
        &format!(
            "{} erasures acknowledged, none lost; {replayed} sent again, no second effect",
            known.len()
        ),
    );
    Ok(())
}

/// Sends requests until the server is gone.
fn send(address: &str, round: u64, client: u64, rows: u64, heard: &mpsc::Sender<Acknowledged>) {
    let Ok(mut connection) = HttpClient::connect(address) else {
        return;
    };
    let mut dice = Dice(round * CLIENTS + client + 1);
    for at in 0_u64.. {
        let key = format!("k{round}-{client}-{at}");
        let row = format!("r{}", dice.below(rows));
        match erase(&mut connection, &key, &row) {
            Ok(Some(receipt)) => {
                if heard.send(Acknowledged { key, row, receipt }).is_err() {
                    return;
                }
            }
            Ok(None) => {}
            Err(_) => return,
        }
    }
}

/// Erases a row; the id of the receipt, or None where it was refused.
fn erase(client: &mut HttpClient, key: &str, row: &str) -> Result<Option<String>> {
    let body = json!({"rows": [row], "allow_missing": true}).to_string();
    let answer = client.post("/v1/models/people/erasures", Some(key), body.as_bytes())?;
    if answer.status != 200 {
        return Ok(None);
    }
    let answer: Value = serde_json::from_slice(&answer.body)?;
    Ok(answer["models"][0]["receipt"]["id"]
        .as_str()
        .map(str::to_owned))
}
