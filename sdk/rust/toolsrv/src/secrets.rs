//! Secrets, for tools that have to see one: to sign with it, say. The tool declares their names (`needs(secrets = ["key"])`) and
//! the operator grants them. A secret that is only sent along needs none of this: the operator has the host add it to the
//! requests of [`http`](crate::http), and the tool never sees it.

use crate::{Call, Failure, granted};

/// Returns a secret as it is now. Read it in each call and keep it no longer: it may change. Don't log it, nor put it into a
/// result or an error.
pub fn read(call: &Call, name: impl AsRef<str>) -> Result<Vec<u8>, Failure> {
    granted::secret(call, name.as_ref())
}
