//! Tables of a new file, written in the order of their keys as pages of SQLite's, without a
//! statement for every row: full leaves one behind the other, and above them the pages that say
//! where each begins (<https://sqlite.org/fileformat2.html#b_tree_pages>). SQLite reads and changes
//! them like those that it wrote itself.

use std::io;
use std::path::Path;

use rusqlite::Connection;

use super::FileFault;
use super::page_writer::PageWriter;

/// Bytes in front of the cells of a leaf, and of a branch.
const LEAF: usize = 8;
const BRANCH: usize = 12;

/// The most bytes of a number in SQLite's form.
const NUMBER: usize = 9;

/// Bytes of the keys of a set.
const KEY: usize = 32;

/// A key of a set with all that SQLite puts before it: the length of the record and of its head,
/// and that a blob of 32 bytes follows.
const ENTRY: usize = KEY + 3;

/// What kinds of pages a tree has.
#[derive(Clone, Copy)]
enum TreeKind {
    /// A table by the numbers of its rows.
    Table,
    /// A table without such numbers, whose entries are its keys.
    Index,
}

impl TreeKind {
    fn leaf_mark(self) -> u8 {
        match self {
            Self::Table => 13,
            Self::Index => 10,
        }
    }

    fn branch_mark(self) -> u8 {
        match self {
            Self::Table => 5,
            Self::Index => 2,
        }
    }

    /// The most bytes that lie between two children of a branch.
    fn separator(self) -> usize {
        match self {
            Self::Table => NUMBER,
            Self::Index => ENTRY,
        }
    }
}

/// A page that is being filled: pointers from the front, cells from the end.
struct OpenPage {
    bytes: Vec<u8>,
    front: usize,
    cells: usize,
    /// Where the first cell begins.
    content: usize,
}

impl OpenPage {
    fn new(size: usize, mark: u8, front: usize) -> Self {
        let mut bytes = vec![0; size];
        bytes[0] = mark;
        Self {
            bytes,
            front,
            cells: 0,
            content: size,
        }
    }

    fn has_room(&self, cell: usize) -> bool {
        self.content - self.front - 2 * self.cells >= cell + 2
    }

    /// Room for a cell of so many bytes, which must be there.
    fn add(&mut self, cell: usize) -> &mut [u8] {
        self.content -= cell;
        let pointer = self.front + 2 * self.cells;
        self.bytes[pointer..][..2].copy_from_slice(&(self.content as u16).to_be_bytes());
        self.cells += 1;
        &mut self.bytes[self.content..][..cell]
    }

    /// The page with its head.
    fn closed(&mut self) -> &[u8] {
        self.bytes[3..5].copy_from_slice(&(self.cells as u16).to_be_bytes());
        self.bytes[5..7].copy_from_slice(&(self.content as u16).to_be_bytes());
        &self.bytes
    }

    /// Takes the last cell out, which has so many bytes.
    fn take_last(&mut self, cell: usize) -> Vec<u8> {
        let taken = self.bytes[self.content..][..cell].to_vec();
        self.bytes[self.content..][..cell].fill(0);
        self.content += cell;
        self.cells -= 1;
        self.bytes[self.front + 2 * self.cells..][..2].fill(0);
        taken
    }

    /// Empties the page. Nothing of its old cells may stay in the room between those of the next.
    fn clear(&mut self) {
        self.bytes[1..].fill(0);
        self.cells = 0;
        self.content = self.bytes.len();
    }
}

/// A page below a branch, and what lies between it and the next.
struct ChildPage {
    number: u32,
    separator: Vec<u8>,
}

/// The pages above the leaves of a tree, level by level.
struct BranchPages {
    root: u32,
    kind: TreeKind,
    levels: Vec<Vec<ChildPage>>,
}

impl BranchPages {
    fn most_children(&self, pages: &PageWriter) -> usize {
        (pages.size() - BRANCH) / (4 + self.kind.separator() + 2)
    }

    fn add(&mut self, pages: &mut PageWriter, level: usize, child: ChildPage) -> io::Result<()> {
        if self.levels.len() == level {
            self.levels.push(Vec::new());
        }
        let most = self.most_children(pages);
        self.levels[level].push(child);
        // Two stay behind: a branch must have more than one child.
        if self.levels[level].len() == most + 2 {
            let full = self.levels[level].drain(..most).collect();
            self.write(pages, level, full)?;
        }
        Ok(())
    }

    /// Writes a branch, and enters it into the level above.
    fn write(
        &mut self,
        pages: &mut PageWriter,
        level: usize,
        children: Vec<ChildPage>,
    ) -> io::Result<()> {
        let number = pages.append(self.branch(pages, &children).closed())?;
        let separator = children
            .into_iter()
            .last()
            .map(|last| last.separator)
            .unwrap_or_default();
        self.add(pages, level + 1, ChildPage { number, separator })
    }

    fn branch(&self, pages: &PageWriter, children: &[ChildPage]) -> OpenPage {
        let mut branch = OpenPage::new(pages.size(), self.kind.branch_mark(), BRANCH);
        if let Some((last, others)) = children.split_last() {
            branch.bytes[8..BRANCH].copy_from_slice(&last.number.to_be_bytes());
            for child in others {
                let (number, separator) = branch.add(4 + child.separator.len()).split_at_mut(4);
                number.copy_from_slice(&child.number.to_be_bytes());
                separator.copy_from_slice(&child.separator);
            }
        }
        branch
    }

    /// Writes the last leaf and all that is above it. The top of it goes where the table begins.
    fn finish(&mut self, pages: &mut PageWriter, last: &mut OpenPage) -> io::Result<()> {
        if self.levels.is_empty() {
            return pages.replace(self.root, last.closed());
        }
        let number = pages.append(last.closed())?;
        self.add(
            pages,
            0,
            ChildPage {
                number,
                separator: Vec::new(),
            },
        )?;
        let most = self.most_children(pages);
        let mut level = 0;
        loop {
            let mut children = std::mem::take(&mut self.levels[level]);
            if level + 1 == self.levels.len() && children.len() <= most {
                return pages.replace(self.root, self.branch(pages, &children).closed());
            }
            if children.len() > most {
                let rest = children.split_off(children.len() / 2);
                self.write(pages, level, std::mem::replace(&mut children, rest))?;
            }
            self.write(pages, level, children)?;
            level += 1;
        }
    }
}

/// The page at which an empty table begins.
fn root_of(connection: &Connection, table: &str) -> rusqlite::Result<u32> {
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    connection.query_row(sql, [table], |row| row.get(0))
}

/// An empty table of blobs by the numbers of its rows, which is filled.
pub(super) struct BlobLoad {
    leaf: OpenPage,
    /// The number of the last row.
    last: u64,
    top: BranchPages,
}

impl BlobLoad {
    pub(super) fn new(
        connection: &Connection,
        pages: &PageWriter,
        table: &str,
    ) -> rusqlite::Result<Self> {
        let kind = TreeKind::Table;
        let top = BranchPages {
            root: root_of(connection, table)?,
            kind,
            levels: Vec::new(),
        };
        Ok(Self {
            leaf: OpenPage::new(pages.size(), kind.leaf_mark(), LEAF),
            last: 0,
            top,
        })
    }

    /// Adds a row; numbers must ascend.
    pub(super) fn push(&mut self, pages: &mut PageWriter, row: u64, blob: &[u8]) -> io::Result<()> {
        // The head of the record says how long it is, that the number is not in it, and how long
        // the blob is.
        let mut head = ShortBytes::default();
        head.push(&[0, 0]);
        head.number(12 + 2 * blob.len() as u64);
        head.bytes[0] = head.length as u8;
        let payload = head.length + blob.len();
        let local = local_bytes(pages.size(), payload);
        let mut front = ShortBytes::default();
        front.number(payload as u64);
        front.number(row);
        front.push(&head.bytes[..head.length]);
        let here = local - head.length;
        let overflow = if local < payload { 4 } else { 0 };
        let size = front.length + here + overflow;
        if !self.leaf.has_room(size) {
            let mut separator = ShortBytes::default();
            separator.number(self.last);
            let separator = separator.bytes[..separator.length].to_vec();
            let number = pages.append(self.leaf.closed())?;
            self.leaf.clear();
            self.top.add(pages, 0, ChildPage { number, separator })?;
        }
        let cell = self.leaf.add(size);
        cell[..front.length].copy_from_slice(&front.bytes[..front.length]);
        cell[front.length..][..here].copy_from_slice(&blob[..here]);
        if overflow > 0 {
            cell[front.length + here..].copy_from_slice(&pages.next().to_be_bytes());
            overflow_pages(pages, &blob[here..])?;
        }
        self.last = row;
        Ok(())
    }

    pub(super) fn finish(&mut self, pages: &mut PageWriter) -> io::Result<()> {
        self.top.finish(pages, &mut self.leaf)
    }
}

/// How many bytes of a record lie in its leaf.
fn local_bytes(page: usize, payload: usize) -> usize {
    let most = page - 35;
    if payload <= most {
        return payload;
    }
    let least = (page - 12) * 32 / 255 - 23;
    let usual = least + (payload - least) % (page - 4);
    if usual <= most { usual } else { least }
}

/// Writes what does not fit into a leaf. Every page names the next.
fn overflow_pages(pages: &mut PageWriter, rest: &[u8]) -> io::Result<()> {
    let mut parts = rest.chunks(pages.size() - 4).peekable();
    while let Some(part) = parts.next() {
        let next = if parts.peek().is_some() {
            pages.after(pages.next())?
        } else {
            0
        };
        let mut page = vec![0; pages.size()];
        page[..4].copy_from_slice(&next.to_be_bytes());
        page[4..][..part.len()].copy_from_slice(part);
        pages.append(&page)?;
    }
    Ok(())
}

/// A few bytes.
#[derive(Default)]
struct ShortBytes {
    bytes: [u8; 32],
    length: usize,
}

impl ShortBytes {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// A number as SQLite writes it: seven bits a byte, the highest first, with a mark on all but
    /// the last. Numbers of rows and lengths are below 2⁵⁶, so that none takes the ninth byte,
    /// which is unlike the others.
    fn number(&mut self, number: u64) {
        let bytes = (64 - number.leading_zeros()).div_ceil(7).max(1);
        for at in (0..bytes).rev() {
            let mark = if at > 0 { 0x80 } else { 0 };
            self.push(&[(number >> (7 * at)) as u8 & 0x7f | mark]);
        }
    }
}

/// An empty table of keys alone, which is filled. SQLite must not be in a transaction, and begin
/// none before the end.
pub(crate) struct KeyLoad {
    pages: PageWriter,
    leaf: OpenPage,
    /// The last entry, where it found no room in the leaf: it lies in a branch, between this leaf
    /// and the next, if there is a next.
    beyond: Option<[u8; ENTRY]>,
    top: BranchPages,
}

impl KeyLoad {
    /// For a table of the file at this path.
    pub(crate) fn begin(
        connection: &Connection,
        path: &Path,
        table: &str,
    ) -> Result<Self, FileFault> {
        let kind = TreeKind::Index;
        let pages = PageWriter::open(path)?;
        let top = BranchPages {
            root: root_of(connection, table)?,
            kind,
            levels: Vec::new(),
        };
        let leaf = OpenPage::new(pages.size(), kind.leaf_mark(), LEAF);
        Ok(Self {
            pages,
            leaf,
            beyond: None,
            top,
        })
    }

    /// Adds a key; keys must ascend.
    pub(crate) fn push(&mut self, key: &[u8; KEY]) -> io::Result<()> {
        if let Some(between) = self.beyond.take() {
            self.close_leaf(between.to_vec())?;
        }
        let mut entry = [0; ENTRY];
        entry[..3].copy_from_slice(&[ENTRY as u8 - 1, 2, 12 + 2 * KEY as u8]);
        entry[3..].copy_from_slice(key);
        if self.leaf.has_room(ENTRY) {
            self.leaf.add(ENTRY).copy_from_slice(&entry);
        } else {
            self.beyond = Some(entry);
        }
        Ok(())
    }

    fn close_leaf(&mut self, separator: Vec<u8>) -> io::Result<()> {
        let number = self.pages.append(self.leaf.closed())?;
        self.leaf.clear();
        self.top
            .add(&mut self.pages, 0, ChildPage { number, separator })
    }

    /// Lets SQLite change other tables in between.
    pub(crate) fn aside(
        &mut self,
        change: impl FnOnce() -> Result<(), FileFault>,
    ) -> Result<(), FileFault> {
        self.pages.finish()?;
        change()?;
        Ok(self.pages.resume()?)
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        if let Some(last) = self.beyond.take() {
            // No leaf may be empty: the entry before lies between, and the last one in a leaf of
            // its own.
            let between = self.leaf.take_last(ENTRY);
            self.close_leaf(between)?;
            self.leaf.add(ENTRY).copy_from_slice(&last);
        }
        self.top.finish(&mut self.pages, &mut self.leaf)?;
        self.pages.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;

    /// A file with the tables of a model, or with larger pages.
    fn file(path: &Path, arrays: usize) -> Connection {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch(&schema::stamp(arrays)).unwrap();
        connection
    }

    fn whole(connection: &Connection) {
        let found: String = connection
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(found, "ok");
    }

    #[test]
    fn tables_are_whole_whatever_the_number_and_the_size_of_their_rows() {
        // Up to three levels of pages, one entry more or less than fits, rows that take several
        // pages.
        let shapes: [(u64, usize); 12] = [
            (0, 0),
            (1, 10),
            (2, 4061),
            (3, 4062),
            (70, 100_000),
            (999, 1000),
            (1000, 1000),
            (272, 4000),
            (273, 4000),
            (274, 4000),
            (275, 4000),
            (80_000, 4000),
        ];
        for arrays in [0, 1 << 20] {
            for (rows, size) in shapes {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("model");
                let connection = file(&path, arrays);
                let blob = |row: u64| vec![row as u8 | 1; size + (row % 3) as usize];
                let mut pages = PageWriter::open(&path).unwrap();
                let mut load = BlobLoad::new(&connection, &pages, "rows").unwrap();
                let mut beside = BlobLoad::new(&connection, &pages, "keys").unwrap();
                for row in 0..rows {
                    load.push(&mut pages, row, &blob(row)).unwrap();
                    beside.push(&mut pages, row, &[7; 48]).unwrap();
                }
                load.finish(&mut pages).unwrap();
                beside.finish(&mut pages).unwrap();
                pages.finish().unwrap();
                whole(&connection);
                let mut statement = connection
                    .prepare("SELECT row, payload FROM rows ORDER BY row")
                    .unwrap();
                let found = statement
                    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
                    .unwrap();
                let found: Vec<(u64, Vec<u8>)> = found.map(Result::unwrap).collect();
                assert!(
                    found
                        .iter()
                        .eq(&(0..rows).map(|row| (row, blob(row))).collect::<Vec<_>>())
                );
                // They go on like any other table.
                connection
                    .execute("INSERT INTO rows VALUES (?1, ?2)", (rows, blob(rows)))
                    .unwrap();
                connection
                    .execute("UPDATE rows SET payload = zeroblob(length(payload))", [])
                    .unwrap();
                whole(&connection);
            }
        }
    }

    #[test]
    fn sets_of_keys_are_whole_whatever_their_number() {
        for arrays in [0, 1 << 20] {
            // A leaf of 4 kB holds 110 keys, a branch over such leaves 99.
            for keys in [
                0,
                1,
                109,
                110,
                111,
                112,
                221,
                222,
                223,
                10_000,
                110 * 99 + 98,
                40_000,
            ] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("model");
                let connection = file(&path, arrays);
                let mut all: Vec<[u8; 32]> = (0..keys as u64)
                    .map(|key| efface_receipt::sha256(&key.to_be_bytes()).0)
                    .collect();
                all.sort_unstable();
                let mut load = KeyLoad::begin(&connection, &path, "members").unwrap();
                let (first, rest) = all.split_at(all.len() / 2);
                first.iter().for_each(|key| load.push(key).unwrap());
                // SQLite adds pages of its own in between.
                let fill = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n LIMIT 1000) INSERT INTO cells SELECT x, zeroblob(40) FROM n";
                load.aside(|| Ok(connection.execute_batch(fill)?)).unwrap();
                rest.iter().for_each(|key| load.push(key).unwrap());
                load.finish().unwrap();
                whole(&connection);
                let mut statement = connection
                    .prepare("SELECT commitment FROM members")
                    .unwrap();
                let found = statement.query_map([], |row| row.get(0)).unwrap();
                let found: Vec<[u8; 32]> = found.map(Result::unwrap).collect();
                assert_eq!(found, all);
                connection
                    .execute("INSERT INTO members VALUES (zeroblob(32))", [])
                    .unwrap();
                connection
                    .execute("DELETE FROM members WHERE commitment < x'40'", [])
                    .unwrap();
                whole(&connection);
            }
        }
    }
}
