//! Gives pages that are free back to the file system.
//!
//! Writing the file anew (`VACUUM`) moves what lies at its end to the front and cuts the end off,
//! as it was: rows that are still in the model would lie in free blocks of the disk, where no later
//! forget reaches them. So the file is first written anew with a table of zeros as its last one, at
//! least as large as all of the file: what is cut off in the end are zeros.

use rusqlite::Connection;

use super::FileFault;

/// The table of zeros. It is there while a file is made smaller, and after a crash until the next
/// settle.
pub(super) const SPARE: &str = r#"CREATE TABLE "spare"(bytes BLOB NOT NULL)"#;

const DROP_SPARE: &str = r#"DROP TABLE IF EXISTS "spare""#;

/// Bytes of a file that is no trouble to write anew: 256 MiB. It goes by way of memory, so that
/// nothing lies in a temporary file. A larger one keeps its free pages for rows to come.
const MOST_BYTES: u64 = 1 << 28;

/// Makes the file smaller by its free pages. Their bytes are zeros already.
pub(crate) fn give_back(connection: &Connection) -> Result<(), FileFault> {
    // Only there when an earlier settle did not come to its end.
    connection.execute_batch(DROP_SPARE)?;
    let pragma = |name: &str| {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, u64>(0))
    };
    let bytes = pragma("page_count")? * pragma("page_size")?;
    if pragma("freelist_count")? == 0 || bytes >= MOST_BYTES {
        return Ok(());
    }
    // Both at once: other processes see the table with its zeros or not at all.
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(SPARE)?;
    transaction.execute(r#"INSERT INTO "spare" VALUES (zeroblob(?1))"#, [bytes])?;
    transaction.commit()?;
    Ok(connection.execute_batch(&format!("VACUUM; {DROP_SPARE}; VACUUM"))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{ModelStore, schema};

    #[test]
    fn a_file_gives_its_free_pages_back_also_after_a_crash_on_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let store = ModelStore::create(&path, 0, None).unwrap();
        let size = || std::fs::metadata(&path).unwrap().len();
        store
            .with(|connection| {
                let rows =
                    r#"INSERT INTO "rows" VALUES (1, zeroblob(400000)), (2, zeroblob(100000))"#;
                connection.execute_batch(rows)?;
                connection.execute_batch(r#"DELETE FROM "rows" WHERE row = 1"#)?;
                let before = size();
                // As a crash would leave it after the first step.
                connection.execute_batch(&format!(
                    r#"{SPARE}; INSERT INTO "spare" VALUES (zeroblob(900000))"#
                ))?;
                schema::check(connection)?;
                give_back(connection)?;
                schema::check(connection)?;
                assert!(
                    before > 500_000 && size() < 250_000,
                    "{before} and {} bytes",
                    size()
                );
                let left: u64 =
                    connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
                assert_eq!(left, 0);
                Ok(())
            })
            .unwrap();
    }
}
