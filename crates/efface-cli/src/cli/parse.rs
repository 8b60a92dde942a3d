//! Values of options that need more than a type.

use clap::builder::PossibleValuesParser;

/// A person, by a column and the value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) column: String,
    pub(crate) value: String,
}

/// `user_id=u1042`; the value may hold further equals signs.
pub(crate) fn person(text: &str) -> Result<Person, String> {
    match text.split_once('=') {
        Some((column, value)) if !column.is_empty() && !value.is_empty() => {
            Ok(Person { column: column.into(), value: value.into() })
        }
        _ => Err("write it as COLUMN=VALUE, as in user_id=u1042".into()),
    }
}

/// Two numbers, as in `8x4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid(pub(crate) usize, pub(crate) usize);

/// `8x4`.
pub(crate) fn grid(text: &str) -> Result<Grid, String> {
    let parts = text.split_once(['x', '×']).map(|(a, b)| (a.trim().parse(), b.trim().parse()));
    match parts {
        Some((Ok(a), Ok(b))) => Ok(Grid(a, b)),
        _ => Err("write it as two whole numbers with an x between them, as in 8x4".into()),
    }
}

/// The methods that the library has.
pub(crate) fn methods() -> PossibleValuesParser {
    PossibleValuesParser::new(efface::methods::table::method_names())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_two_numbers() {
        assert_eq!(grid("8x4"), Ok(Grid(8, 4)));
        for wrong in ["8", "x4", "8x", "8x-1", "axb", "1e3x2", ""] {
            assert!(grid(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_person_is_a_column_and_a_value() {
        let found = person("mail=a=b").unwrap();
        assert_eq!((found.column.as_str(), found.value.as_str()), ("mail", "a=b"));
        for wrong in ["u1042", "=u1042", "user_id=", ""] {
            assert!(person(wrong).is_err(), "{wrong}");
        }
    }
}
