//! Somebody without the key alters one value of one table. `verify` must refuse the file, whatever
//! the value is; a forget must refuse it wherever it reads the value.

use std::collections::BTreeMap;
use std::path::Path;

use efface_engine::{Engine, ErrorKind, ForgetOptions, ForgetRequest, PolicyChange};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::{Dice, Result, ids, model, sound, table, tell};

fn named(at: usize) -> ForgetRequest {
    ForgetRequest {
        id: Some(format!("T-{at}")),
        ..ForgetRequest::new(ids(&[format!("r{at}")]))
    }
}

/// A file with something in every table, rows that wait to be scrubbed included.
fn eventful(path: &Path) -> Result {
    let mut engine = model(path, table((0..300).map(|at| format!("r{at}")), 5, 1))?;
    engine.export("json", Some("a server"))?;
    for at in 0..40 {
        engine.forget(&named(at), &ForgetOptions::default())?;
    }
    engine.set_policy(&PolicyChange {
        settle_after: Some(50),
        ..PolicyChange::default()
    })?;
    for at in 40..60 {
        engine.forget(&named(at), &ForgetOptions::default())?;
    }
    sound(path)
}

/// Alters one value of a table, or takes a record out; gives what was done.
fn alter(connection: &Connection, table: &str, dice: &mut Dice) -> Result<String> {
    let count: u64 =
        connection.query_row(&format!("SELECT count(*) FROM \"{table}\""), [], |row| {
            row.get(0)
        })?;
    let sql = format!(
        "SELECT * FROM \"{table}\" LIMIT 1 OFFSET {}",
        dice.below(count)
    );
    let mut statement = connection.prepare(&sql)?;
    let names: Vec<String> = statement.column_names().map(String::from).collect();
    let values: Vec<Value> =
        statement.query_row([], |row| (0..names.len()).map(|at| row.get(at)).collect())?;
    let all: Vec<String> = (1..=names.len())
        .map(|at| format!("\"{}\" IS ?{at}", names[at - 1]))
        .collect();
    let which = all.join(" AND ");
    if dice.below(4) == 0 {
        let sql = format!("DELETE FROM \"{table}\" WHERE {which}");
        connection.execute(&sql, rusqlite::params_from_iter(&values))?;
        return Ok(format!("a record of {table} taken out"));
    }
    let column = dice.below(names.len() as u64) as usize;
    let flip = |mut bytes: Vec<u8>, dice: &mut Dice| {
        let at = dice.below(bytes.len() as u64) as usize;
        // The last bit alone: a text stays a text.
        bytes[at] ^= 1;
        bytes
    };
    let altered = match values[column].clone() {
        Value::Null => Value::Integer(1),
        Value::Integer(number) => Value::Integer(number ^ 1 << dice.below(20)),
        Value::Real(number) => Value::Real(number + 1.0),
        Value::Text(text) => Value::Text(String::from_utf8(flip(text.into_bytes(), dice))?),
        Value::Blob(bytes) if bytes.is_empty() => Value::Blob(vec![1]),
        Value::Blob(bytes) => Value::Blob(flip(bytes, dice)),
    };
    let mut given = values.clone();
    given.push(altered);
    let sql = format!(
        "UPDATE OR REPLACE \"{table}\" SET \"{}\" = ?{} WHERE {which}",
        names[column],
        given.len()
    );
    connection.execute(&sql, rusqlite::params_from_iter(&given))?;
    Ok(format!("{}.{}", table, names[column]))
}

fn is_refused(path: &Path) -> Result<bool> {
    match Engine::open_read_only(path).and_then(|engine| engine.verify(None)) {
        Ok(checks) => Ok(checks.iter().any(|check| !check.passed)),
        Err(error) if error.kind() == ErrorKind::BadModel => Ok(true),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn run(count: u64) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.efface");
    eventful(&path)?;
    let whole = std::fs::read(&path)?;
    let connection = Connection::open(&path)?;
    let mut statement =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables: Vec<String> = statement
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    drop(statement);
    drop(connection);
    let mut dice = Dice(11);
    let mut accepted: BTreeMap<&str, u64> = BTreeMap::new();
    for table in &tables {
        for _ in 0..count {
            std::fs::write(&path, &whole)?;
            // The last round may have changed it: this is no rollback.
            let _ = std::fs::remove_file(path.with_extension("efface.head"));
            let connection = Connection::open(&path)?;
            connection.execute_batch("PRAGMA synchronous = OFF")?;
            let what = alter(&connection, table, &mut dice)?;
            drop(connection);
            if !is_refused(&path)? {
                return Err(format!("verify accepts {what}").into());
            }
            let forgot = Engine::open(&path).and_then(|mut engine| {
                engine
                    .forget(&named(200), &ForgetOptions::default())
                    .map(drop)
            });
            match forgot {
                Ok(()) => *accepted.entry(table).or_default() += 1,
                Err(error) if error.kind() == ErrorKind::BadModel => {}
                Err(error) => return Err(format!("{what}: {error}").into()),
            }
        }
    }
    let rest: Vec<String> = accepted
        .iter()
        .map(|(table, times)| format!("{table} {times}"))
        .collect();
    let told = if rest.is_empty() {
        "all".into()
    } else {
        format!("all but {} (not read)", rest.join(", "))
    };
    tell(
        "values altered without the key, table by table",
        &format!(
            "{} in {} tables: verify refuses all; a forget {told}",
            count * tables.len() as u64,
            tables.len()
        ),
    );
    Ok(())
}
