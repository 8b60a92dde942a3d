//! The structs of Parquet's format, as far as the decoder reads them field by field.
//!
//! The decoder goes by the number of a field and not by the type that the file gives it. A header
//! whose types are others than these makes it take other bytes for the field than the type says,
//! and read on from there: a few hundred bytes can then announce lists that keep it busy for
//! minutes.

/// What a field is.
pub(super) enum FieldShape {
    Boolean,
    Byte,
    Integer,
    Double,
    Binary,
    List(&'static FieldShape),
    /// Fields by their numbers, from 1 on. A field with another number is passed over by the type
    /// that the file gives it.
    Struct(&'static [FieldShape]),
    /// The decoder passes over it by the type that the file gives it.
    Passed,
}

use FieldShape::{Binary, Boolean, Byte, Double, Integer, List, Passed, Struct};

/// A struct without fields, which says something by being there.
const MARK: FieldShape = Struct(&[]);

/// The header of a page.
pub(super) static PAGE: FieldShape = Struct(&[
    Integer,
    Integer,
    Integer,
    Integer,
    Struct(&[Integer, Integer, Integer, Integer, Passed]),
    Struct(&[]),
    Struct(&[Integer, Integer, Boolean]),
    Struct(&[
        Integer, Integer, Integer, Integer, Integer, Integer, Boolean, Passed,
    ]),
]);

/// The footer of a file.
pub(super) static FOOTER: FieldShape = Struct(&[
    Integer,
    List(&SCHEMA_ELEMENT),
    Integer,
    List(&ROW_GROUP),
    List(&Struct(&[Binary, Binary])),
    Binary,
    List(&Struct(&[MARK])),
    Passed,
    Passed,
]);

static SCHEMA_ELEMENT: FieldShape = Struct(&[
    Integer,
    Integer,
    Integer,
    Binary,
    Integer,
    Integer,
    Integer,
    Integer,
    Integer,
    LOGICAL_TYPE,
]);

const TIME: FieldShape = Struct(&[Boolean, Struct(&[MARK, MARK, MARK])]);

const LOGICAL_TYPE: FieldShape = Struct(&[
    MARK,
    MARK,
    MARK,
    MARK,
    Struct(&[Integer, Integer]),
    MARK,
    TIME,
    TIME,
    Passed,
    Struct(&[Byte, Boolean]),
    MARK,
    MARK,
    MARK,
    MARK,
    MARK,
    Struct(&[Byte]),
    Struct(&[Binary]),
    Struct(&[Binary, Integer]),
]);

static ROW_GROUP: FieldShape = Struct(&[
    List(&Struct(&[
        Binary, Integer, COLUMN, Integer, Integer, Integer, Integer, Passed, Passed,
    ])),
    Integer,
    Integer,
    List(&Struct(&[Integer, Boolean, Boolean])),
    Integer,
    Passed,
    Integer,
]);

const COLUMN: FieldShape = Struct(&[
    Integer,
    List(&Integer),
    Passed,
    Integer,
    Integer,
    Integer,
    Integer,
    Passed,
    Integer,
    Integer,
    Integer,
    STATISTICS,
    List(&Struct(&[Integer, Integer, Integer])),
    Integer,
    Integer,
    Struct(&[Integer, List(&Integer), List(&Integer)]),
    Struct(&[BOUNDING_BOX, List(&Integer)]),
]);

const STATISTICS: FieldShape = Struct(&[
    Binary, Binary, Integer, Integer, Binary, Binary, Boolean, Boolean,
]);

const BOUNDING_BOX: FieldShape = Struct(&[
    Double, Double, Double, Double, Double, Double, Double, Double,
]);
