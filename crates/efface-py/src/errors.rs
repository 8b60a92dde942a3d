//! From errors of the libraries to exceptions. The classes live in `efface._errors`, so that they
//! can have the parents that scikit-learn users catch.

use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

use crate::arguments::argument;

/// An exception of `efface._errors` by name; the message alone where the package cannot be
/// imported.
fn named(py: Python<'_>, class: &str, message: String) -> PyErr {
    let made = py
        .import("efface._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((message.as_str(),)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyValueError::new_err(message),
    }
}

/// An error of the numerics.
pub(crate) fn core(py: Python<'_>, error: efface::Error) -> PyErr {
    use efface::Error;
    let message = error.to_string();
    match error {
        Error::UnknownRow(_) => named(py, "UnknownRowError", message),
        Error::DuplicateRow(_) => named(py, "DuplicateRowError", message),
        Error::Singular { .. } | Error::LeverageOne { .. } | Error::Separable => {
            named(py, "NotDeterminedError", message)
        }
        Error::NotConverged { .. } | Error::NotTrained { .. } => {
            named(py, "NotConvergedError", message)
        }
        Error::Damaged(_) => named(py, "BadModelError", message),
        Error::Stopped => PyRuntimeError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// An error of the engine, with its hint.
pub(crate) fn engine(py: Python<'_>, error: efface_engine::Error) -> PyErr {
    use efface_engine::{Error, ErrorKind};
    let mut message = match &error {
        Error::Core(efface::Error::Feature(error)) => error.worded(argument),
        error => error.to_string(),
    };
    if let Some(hint) = error.hint() {
        message = format!("{message}; hint: {}", hint.worded(argument));
    }
    match (&error, error.kind()) {
        (Error::UnknownRow { .. } | Error::WasForgotten { .. }, _) => {
            named(py, "UnknownRowError", message)
        }
        (error, ErrorKind::Io) if is_missing_file(error) => PyFileNotFoundError::new_err(message),
        (Error::Exists { .. }, _) => PyFileExistsError::new_err(message),
        (_, ErrorKind::Io) => PyOSError::new_err(message),
        (_, ErrorKind::NotFound) => named(py, "UnknownRowError", message),
        (_, ErrorKind::Refused) => named(py, "RefusedError", message),
        (_, ErrorKind::BadModel) => named(py, "BadModelError", message),
        (_, ErrorKind::Internal) => PyRuntimeError::new_err(message),
        (_, ErrorKind::Usage | ErrorKind::Data) => PyValueError::new_err(message),
    }
}

/// Whether the operating system has no file of that name.
fn is_missing_file(error: &efface_engine::Error) -> bool {
    use efface_engine::Error;
    let cause = match error {
        Error::Io { cause, .. } => cause,
        Error::Read(error) => match error.fault.as_ref() {
            efface_io::ReadFault::Open(cause) | efface_io::ReadFault::Read { cause, .. } => cause,
            _ => return false,
        },
        Error::Encoder(efface_nn::minilm::MiniLmError::Read { source, .. }) => source,
        _ => return false,
    };
    cause.kind() == std::io::ErrorKind::NotFound
}

/// A receipt that does not hold.
pub(crate) fn receipt(py: Python<'_>, fault: &efface_receipt::ReceiptFault) -> PyErr {
    named(
        py,
        "VerificationError",
        format!("{}: {fault}", fault.check()),
    )
}
