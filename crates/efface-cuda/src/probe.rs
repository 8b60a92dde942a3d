//! Whether driver and libraries are there, in a version that will do. The bindings end the process
//! where a function is missing, so that this is asked first, of the library that they would take.

use std::ffi::c_int;
use std::mem::ManuallyDrop;

use libloading::Library;

use crate::error::CudaError;

/// The oldest driver: that of CUDA 13.0.
const DRIVER: c_int = 13_000;

/// The libraries, the functions that tell their versions, and the major versions that come with
/// CUDA 13.
const LIBRARIES: [(&str, &[u8], c_int); 2] = [
    ("cublas", b"cublasGetProperty\0", 13),
    ("cusolver", b"cusolverGetProperty\0", 12),
];

/// Checks everything that a card needs but the card itself.
///
/// # Errors
/// Something is missing, or is of another version.
pub(crate) fn check() -> Result<(), CudaError> {
    let driver = first_of("cuda").ok_or(CudaError::NoDriver)?;
    let found = number_from(&driver, b"cuDriverGetVersion\0").ok_or(CudaError::NoDriver)?;
    if found < DRIVER {
        return Err(CudaError::OldDriver {
            found: version(found),
            needed: version(DRIVER),
        });
    }
    for (name, property, needed) in LIBRARIES {
        let library = first_of(name).ok_or(CudaError::NoLibrary(name))?;
        match major_from(&library, property) {
            Some(found) if found == needed => {}
            Some(found) => {
                return Err(CudaError::LibraryVersion {
                    name,
                    found,
                    needed,
                });
            }
            None => return Err(CudaError::NoLibrary(name)),
        }
    }
    Ok(())
}

/// Checks that there is a compiler of kernels, which networks need and sums do not.
///
/// # Errors
/// It is missing, or is of another version.
pub(crate) fn check_compiler() -> Result<(), CudaError> {
    const NEEDED: c_int = 13;
    let name = "nvrtc";
    let library = first_of(name).ok_or(CudaError::NoLibrary(name))?;
    let [mut found, mut minor] = [0; 2];
    // SAFETY: the function writes two numbers in every version, and needs nothing before it.
    let status = unsafe {
        let function =
            library.get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(b"nvrtcVersion\0");
        function.map_err(|_| CudaError::NoLibrary(name))?(&mut found, &mut minor)
    };
    match (status, found) {
        (0, NEEDED) => Ok(()),
        (0, found) => Err(CudaError::LibraryVersion {
            name,
            found,
            needed: NEEDED,
        }),
        _ => Err(CudaError::NoLibrary(name)),
    }
}

/// The versions of driver and cuBLAS, which decide in what order sums are made.
pub(crate) fn versions() -> String {
    let driver =
        first_of("cuda").and_then(|library| number_from(&library, b"cuDriverGetVersion\0"));
    let blas = first_of("cublas").map(|library| {
        [0, 1, 2].map(|part| property_from(&library, b"cublasGetProperty\0", part).unwrap_or(0))
    });
    let [major, minor, patch] = blas.unwrap_or_default();
    format!(
        "CUDA {}, cuBLAS {major}.{minor}.{patch}",
        version(driver.unwrap_or(0))
    )
}

fn version(number: c_int) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

/// The library of this name that the bindings would take. It stays loaded, because they take it
/// next.
fn first_of(name: &str) -> Option<ManuallyDrop<Library>> {
    // SAFETY: the libraries are NVIDIA's; to load one runs its start-up code, which has no
    // conditions.
    let load = |file: &String| unsafe { Library::new(file) }.ok();
    cudarc::get_lib_name_candidates(name)
        .iter()
        .find_map(load)
        .map(ManuallyDrop::new)
}

/// What a function that writes one number into its argument writes.
fn number_from(library: &Library, function: &[u8]) -> Option<c_int> {
    let mut value = 0;
    // SAFETY: `cuDriverGetVersion` has this signature in every version, and may be called before
    // all others.
    let status = unsafe {
        let function = library
            .get::<unsafe extern "C" fn(*mut c_int) -> c_int>(function)
            .ok()?;
        function(&mut value)
    };
    (status == 0).then_some(value)
}

/// The major version that a library says it has.
fn major_from(library: &Library, function: &[u8]) -> Option<c_int> {
    property_from(library, function, 0)
}

/// A part of the version that a library says it has, as `libraryPropertyType` counts them: major,
/// minor, patch.
fn property_from(library: &Library, function: &[u8], part: c_int) -> Option<c_int> {
    let mut value = 0;
    // SAFETY: both functions take a property and a place for its value in every version, and need
    // no handle.
    let status = unsafe {
        let function = library
            .get::<unsafe extern "C" fn(c_int, *mut c_int) -> c_int>(function)
            .ok()?;
        function(part, &mut value)
    };
    (status == 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_as_people_write_them() {
        assert_eq!(version(13_000), "13.0");
        assert_eq!(version(12_080), "12.8");
    }

    #[test]
    fn a_library_that_is_not_there_is_not_found() {
        assert!(first_of("no-such-library-of-efface").is_none());
    }
}
