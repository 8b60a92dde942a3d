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

/// The methods that the library has.
pub(crate) fn methods() -> PossibleValuesParser {
    PossibleValuesParser::new(efface::methods::names())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_a_column_and_a_value() {
        let found = person("mail=a=b").unwrap();
        assert_eq!((found.column.as_str(), found.value.as_str()), ("mail", "a=b"));
        for wrong in ["u1042", "=u1042", "user_id=", ""] {
            assert!(person(wrong).is_err(), "{wrong}");
        }
    }
}
