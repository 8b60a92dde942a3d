//! Valid files for the fuzz targets to start from: `torture seeds FOLDER` writes a folder for every
//! target that reads one. The targets `sealed` and `resigned` make their own models and logs, and
//! start from lists of edits.

use std::path::Path;
use std::sync::Arc;

use efface_engine::{Engine, ForgetOptions, ForgetRequest};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::{Result, ids, model, table, tell};

pub(crate) fn write(folder: &Path) -> Result {
    let mut written = 0;
    let mut put = |target: &str, name: &str, bytes: &[u8]| -> Result {
        std::fs::create_dir_all(folder.join(target))?;
        written += 1;
        Ok(std::fs::write(folder.join(target).join(name), bytes)?)
    };
    put("csv", "plain", b"id,x,y\na,1,2\nb,-3.5,4\n")?;
    put(
        "csv",
        "quoted",
        b"id,\"a \"\"b\"\"\",y\r\n\"two\nlines\",,1e5\r\n",
    )?;
    put(
        "jsonl",
        "plain",
        b"{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"y\":null,\"z\":true}\n",
    )?;
    put("svmlight", "plain", b"1 1:0.5 4:-2e3 # why\n-1 qid:3 2:1\n")?;
    put(
        "condition",
        "plain",
        b"split = train and not (hours >= 20.5 or `a b` != 'it''s')",
    )?;
    put("synonyms", "plain", b"good great fine\nbad poor\n")?;
    put("embedding", "glove", b"the 0.1 0.2\ncat -1 3e-2\n")?;
    put(
        "embedding",
        "half",
        b"\x06the\ncat\n\x00\x3c\x00\x40\x00\x3c\x00\x40",
    )?;
    put("parquet", "plain", &parquet_file()?)?;

    let home = tempfile::tempdir()?;
    let path = home.path().join("model.efface");
    let mut engine = model(&path, table((0..12).map(|at| format!("r{at}")), 2, 1))?;
    engine.forget(
        &ForgetRequest::new(ids(&["r3".into()])),
        &ForgetOptions::default(),
    )?;
    receipts(&engine, &mut put)?;
    drop(engine);
    put("model", "ridge", &std::fs::read(&path)?)?;
    for base in 0..5 {
        put("sealed", &format!("unedited{base}"), &[base])?;
        put(
            "sealed",
            &format!("edited{base}"),
            &[base, 0, 40, 0, 3, 2, 1, 9, 7],
        )?;
    }
    put("resigned", "unedited", &[])?;
    put("resigned", "edited", &[1, 9, 3, 0])?;
    tell(
        "seeds for the fuzz targets",
        &format!("{written} files in {}", folder.display()),
    );
    Ok(())
}

/// Everything that a verifier reads.
fn receipts(engine: &Engine, put: &mut dyn FnMut(&str, &str, &[u8]) -> Result) -> Result {
    let bundle = engine.bundle("1")?;
    put("receipt", "bundle", &bundle.to_bytes()?)?;
    put("receipt", "signed", &bundle.signed.to_bytes()?)?;
    put("receipt", "checkpoint", engine.checkpoint()?.as_bytes())?;
    put(
        "receipt",
        "key",
        engine.public_keys()?.remove(0).key.to_string().as_bytes(),
    )?;
    put("receipt", "time", b"2026-03-02T09:15:00.000Z")
}

fn parquet_file() -> Result<Vec<u8>> {
    let schema =
        "message rows { required int64 id; optional double x; optional binary name (UTF8); }";
    let schema = Arc::new(parse_message_type(schema)?);
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::new()))?;
    let mut group = writer.next_row_group()?;
    while let Some(mut chunk) = group.next_column()? {
        match chunk.untyped() {
            ColumnWriter::Int64ColumnWriter(column) => {
                column.write_batch(&[1, -2, i64::MAX], None, None)?
            }
            ColumnWriter::DoubleColumnWriter(column) => {
                column.write_batch(&[0.5, f64::NAN], Some(&[1, 0, 1]), None)?
            }
            ColumnWriter::ByteArrayColumnWriter(column) => {
                let names = [ByteArray::from("Ada"), ByteArray::from("")];
                column.write_batch(&names, Some(&[1, 1, 0]), None)?
            }
            _ => return Err("the schema has another column".into()),
        };
        chunk.close()?;
    }
    group.close()?;
    Ok(writer.into_inner()?)
}
