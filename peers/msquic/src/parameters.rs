//! Parameters of msquic, which its crate leaves to the C interface.

use std::ffi::c_void;
use std::ptr;

use msquic::ffi::HQUIC;
use msquic::{Api, Status};

/// Sets a parameter of the handle of a connection or a configuration.
///
/// # Errors
/// When msquic refuses the value.
///
/// # Safety
/// The handle is open, and `T` is the type that msquic expects. What the value points to lives as long as msquic uses it.
pub unsafe fn set<T>(handle: HQUIC, parameter: u32, value: &T) -> Result<(), Status> {
    // SAFETY: the caller vouches for it, and msquic copies the value during the call.
    unsafe {
        set_bytes(
            handle,
            parameter,
            ptr::from_ref(value).cast(),
            size_of::<T>(),
        )
    }
}

/// Sets a parameter of the library.
///
/// # Errors
/// As of [`set`].
///
/// # Safety
/// As of [`set`].
pub unsafe fn set_global<T>(parameter: u32, value: &T) -> Result<(), Status> {
    // It opens the library, which `set_param` expects.
    let _ = Api::get_ffi();
    // SAFETY: as of `set`.
    unsafe { set(ptr::null_mut(), parameter, value) }
}

/// Sets a parameter whose value has any length.
///
/// # Errors
/// As of [`set`].
///
/// # Safety
/// As of [`set`]; the value has `length` bytes.
pub unsafe fn set_bytes(
    handle: HQUIC,
    parameter: u32,
    value: *const c_void,
    length: usize,
) -> Result<(), Status> {
    let length = u32::try_from(length).map_err(|_| failed())?;
    // SAFETY: the caller vouches for it.
    unsafe { Api::set_param(handle, parameter, length, value) }
}

/// Returns an error for a callback without a status of msquic.
pub fn failed() -> Status {
    msquic::StatusCode::QUIC_STATUS_INTERNAL_ERROR.into()
}
