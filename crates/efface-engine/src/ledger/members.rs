//! The training set as a tree over the commitments of its rows. A change reads the buckets of the rows that it touches
//! and rewrites the paths above them; nothing else is read.

use std::collections::BTreeSet;

use efface_receipt::training_set::{self, SetCells, SetNode, bits_for, bucket, bucket_range};
use efface_receipt::{Hash, SetState};
use rusqlite::{Connection, OptionalExtension, params};

use super::LedgerHead;
use crate::file::{FileFault, damaged};

/// The tables behind the tree.
pub(crate) struct MemberTree<'a>(pub(crate) &'a Connection);

impl SetCells for MemberTree<'_> {
    type Error = FileFault;

    fn get(&self, cell: u64) -> Result<SetNode, FileFault> {
        let mut statement = self.0.prepare_cached(r#"SELECT node FROM "cells" WHERE cell = ?1"#)?;
        let found: Option<[u8; 40]> = statement.query_row([cell], |row| row.get(0)).optional()?;
        Ok(found.map_or(SetNode::EMPTY, |bytes| SetNode::from_bytes(&bytes)))
    }

    fn set(&mut self, cell: u64, node: SetNode) -> Result<(), FileFault> {
        let sql = r#"INSERT INTO "cells" VALUES (?1, ?2) ON CONFLICT DO UPDATE SET node = excluded.node"#;
        self.0.prepare_cached(sql)?.execute(params![cell, node.to_bytes()])?;
        Ok(())
    }
}

impl MemberTree<'_> {
    /// Takes rows out and puts rows in; gives the state of the set afterwards.
    pub(crate) fn change(
        &mut self,
        ledger: &mut LedgerHead,
        gone: &[Hash],
        come: &[Hash],
    ) -> Result<SetState, FileFault> {
        let mut remove = self.0.prepare_cached(r#"DELETE FROM "members" WHERE commitment = ?1"#)?;
        for row in gone {
            if remove.execute([row.as_bytes()])? != 1 {
                return damaged("a row is not in its training set");
            }
        }
        let mut insert = self.0.prepare_cached(r#"INSERT INTO "members" VALUES (?1)"#)?;
        // In order, so that a table filled at once is filled at its end.
        let come_sorted: BTreeSet<&Hash> = come.iter().collect();
        for row in come_sorted {
            insert.execute([row.as_bytes()])?;
        }
        let count = (ledger.set.count + come.len() as u64).saturating_sub(gone.len() as u64);
        // Four times too many or too few rows a bucket: number the buckets anew.
        if bits_for(count).abs_diff(ledger.bits) > 1 {
            ledger.bits = bits_for(count);
            ledger.set = self.build(ledger.bits)?;
        } else {
            let touched: BTreeSet<u64> =
                gone.iter().chain(come).map(|row| bucket(row, ledger.bits)).collect();
            let buckets = touched
                .into_iter()
                .map(|bucket| Ok((bucket, self.bucket(bucket, ledger.bits)?)))
                .collect::<Result<Vec<_>, FileFault>>()?;
            if !buckets.is_empty() {
                ledger.set = training_set::update(self, ledger.bits, &buckets)?;
            }
        }
        if ledger.set.count == count { Ok(ledger.set) } else { damaged("its training set has another size") }
    }

    fn bucket(&self, bucket: u64, bits: u32) -> Result<SetNode, FileFault> {
        let (low, high) = bucket_range(bucket, bits);
        let sql =
            r#"SELECT commitment FROM "members" WHERE commitment BETWEEN ?1 AND ?2 ORDER BY commitment"#;
        let mut statement = self.0.prepare_cached(sql)?;
        let found = statement.query_map(params![low.as_bytes(), high.as_bytes()], |row| row.get(0))?;
        let keys = found.map(|key| Ok(Hash(key?))).collect::<Result<Vec<_>, FileFault>>()?;
        Ok(training_set::subtree(&keys, bits)?)
    }

    /// All cells from all rows.
    fn build(&mut self, bits: u32) -> Result<SetState, FileFault> {
        let connection = self.0;
        connection.execute(r#"DELETE FROM "cells""#, [])?;
        let mut statement = connection.prepare(r#"SELECT commitment FROM "members" ORDER BY commitment"#)?;
        let keys = statement.query_map([], |row| row.get(0))?;
        training_set::build(self, bits, keys.map(|key| Ok(Hash(key?))))
    }
}
