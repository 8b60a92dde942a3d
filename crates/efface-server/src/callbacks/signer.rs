//! How callbacks are signed: Standard Webhooks 1.0 with an Ed25519 key, whose public half receivers
//! are given.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use data_encoding::BASE64;
use efface_engine::files;
use efface_receipt::{ReceiptSigner, SecretKey};
use zeroize::Zeroizing;

/// The name of the key inside its file.
const KEY_NAME: &str = "callbacks";

/// Signs callbacks with a key of its own, which is none of a model.
#[derive(Debug)]
pub(crate) struct CallbackSigner {
    key: SecretKey,
}

impl CallbackSigner {
    /// The key in a file; one is drawn where the file is not there.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        match files::open_plain(path) {
            Ok(mut file) => {
                let mut text = Zeroizing::new(String::new());
                file.read_to_string(&mut text)?;
                let key = SecretKey::parse(text.trim()).map_err(std::io::Error::other)?;
                Ok(Self { key })
            }
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                let mut seed = Zeroizing::new([0_u8; 32]);
                getrandom::fill(seed.as_mut_slice()).map_err(std::io::Error::other)?;
                let key = SecretKey::from_seed(KEY_NAME, &seed).map_err(std::io::Error::other)?;
                let mut draft = files::DraftFile::create(path)?;
                draft.write_all(key.to_text().as_bytes())?;
                draft.publish(false, files::PRIVATE_MODE)?;
                Ok(Self { key })
            }
            Err(cause) => Err(cause),
        }
    }

    /// The public key as receivers are given it.
    pub(crate) fn public_key(&self) -> String {
        format!("whpk_{}", BASE64.encode(&self.key.public().to_bytes()))
    }

    /// The header `webhook-signature` of an attempt at this time, in seconds since 1970.
    pub(crate) fn signature(
        &self,
        id: &str,
        seconds: u64,
        body: &str,
    ) -> Result<String, efface_receipt::ReceiptFault> {
        let signature = self.key.sign(format!("{id}.{seconds}.{body}").as_bytes())?;
        Ok(format!("v1a,{}", BASE64.encode(&signature.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_stays_and_its_signatures_are_over_id_time_and_body() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("callbacks.key");
        let signer = CallbackSigner::open(&path).unwrap();
        let again = CallbackSigner::open(&path).unwrap();
        assert_eq!(signer.public_key(), again.public_key());
        let header = again.signature("msg_1", 7, "{}").unwrap();
        let bytes = BASE64
            .decode(header.strip_prefix("v1a,").unwrap().as_bytes())
            .unwrap();
        let signature = efface_receipt::Signature(bytes.try_into().unwrap());
        let key = signer.key.public();
        assert!(key.verifies(b"msg_1.7.{}", &signature));
        assert!(!key.verifies(b"msg_1.8.{}", &signature));
    }
}
