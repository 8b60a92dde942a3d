//! Where the key is that signs for a model: in its key file, in a program, or in an agent. A
//! program or an agent keeps the key to itself; what it signs is checked against the key that the
//! log names before it is believed.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use data_encoding::BASE64;
use efface_receipt::{PublicKey, ReceiptFault, ReceiptSigner, Signature};

use super::agent;
use super::key::KeyFile;
use super::passphrase::Passphrase;
use crate::error::{Error, Result};

/// The largest answer of a program that is read. A key or a signature is far smaller.
const LARGEST_ANSWER: u64 = 64 * 1024;

/// Where a signing key is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeyPlace {
    /// In the key file beside the model.
    #[default]
    KeyFile,
    /// In a program. The shell runs `COMMAND public`, which prints the public key, and `COMMAND
    /// sign`, which reads a message and prints its Ed25519 signature.
    Command(String),
    /// In an agent that speaks the protocol of ssh-agent, at this socket.
    Agent(PathBuf),
}

/// How an engine comes to the keys of its model.
#[derive(Debug, Clone, Default)]
pub struct KeyAccess {
    /// Where the signing key is.
    pub place: KeyPlace,
    /// What the key file is encrypted with.
    pub passphrase: Option<Passphrase>,
    /// The model whose key file is meant, where it is not the one that is open.
    pub beside: Option<PathBuf>,
}

impl KeyAccess {
    /// The key file of a model.
    pub(crate) fn file(&self, model: &Path) -> KeyFile {
        KeyFile::of(
            self.beside.as_deref().unwrap_or(model),
            self.passphrase.clone(),
        )
    }

    /// What signs for the key that a model names.
    pub(crate) fn signer(&self, model: &Path, public: &str) -> Result<Box<dyn ReceiptSigner>> {
        let public = PublicKey::parse(public)?;
        match &self.place {
            KeyPlace::KeyFile => Ok(Box::new(self.file(model).load(&public)?)),
            place => Ok(Box::new(ExternalSigner {
                public,
                place: place.clone(),
            })),
        }
    }
}

/// A program or an agent that signs.
pub(crate) struct ExternalSigner {
    public: PublicKey,
    place: KeyPlace,
}

impl ExternalSigner {
    /// Asks a program or an agent for its key, for a log of this name.
    pub(crate) fn ask(origin: &str, place: &KeyPlace) -> Result<Self> {
        let bytes = match place {
            KeyPlace::KeyFile => Err("the key file is no program".to_owned()),
            KeyPlace::Command(command) => {
                run(command, "public", b"").and_then(|text| read_public(&text))
            }
            KeyPlace::Agent(socket) => agent::public_key(socket),
        };
        let bytes = bytes.map_err(|problem| Error::Signing { problem })?;
        Ok(Self {
            public: PublicKey::from_bytes(origin, &bytes)?,
            place: place.clone(),
        })
    }
}

impl ReceiptSigner for ExternalSigner {
    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn sign(&self, message: &[u8]) -> std::result::Result<Signature, ReceiptFault> {
        let bytes = match &self.place {
            KeyPlace::KeyFile => Err("the key file is no program".to_owned()),
            KeyPlace::Command(command) => {
                run(command, "sign", message).and_then(|found| read_signature(&found))
            }
            KeyPlace::Agent(socket) => agent::sign(socket, &self.public.to_bytes(), message),
        };
        let signature = Signature(bytes.map_err(ReceiptFault::Signing)?);
        if self.public.verifies(message, &signature) {
            return Ok(signature);
        }
        let key = self.public.id();
        Err(ReceiptFault::Signing(format!(
            "what was given back is not a signature by key {key}"
        )))
    }
}

/// Runs a command of the user through the shell, with one word more; gives what it prints.
fn run(command: &str, word: &str, input: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let told = |what: &str, cause: std::io::Error| {
        format!("the signing command cannot be {what}: {cause}")
    };
    let mut child = Command::new("/bin/sh")
        .args(["-c", &format!("{command} {word}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|cause| told("run", cause))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that needs no input may end before it is written; what it prints decides.
        let _ = stdin.write_all(input);
    }
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout
            .take(LARGEST_ANSWER)
            .read_to_end(&mut output)
            .map_err(|cause| told("read", cause))?;
    }
    let status = child.wait().map_err(|cause| told("waited for", cause))?;
    if status.success() {
        Ok(output)
    } else {
        Err(format!("the signing command ended with {status}"))
    }
}

/// A public key as tools print it: PEM (SubjectPublicKeyInfo), or its 32 bytes in base64.
fn read_public(printed: &[u8]) -> std::result::Result<[u8; 32], String> {
    let text = String::from_utf8_lossy(printed);
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("-----"));
    let decoded = BASE64
        .decode(lines.collect::<String>().as_bytes())
        .unwrap_or_default();
    // The key is the end of a SubjectPublicKeyInfo, whose first 12 bytes say that it is one of
    // Ed25519 (RFC 8410).
    let key = match decoded.len() {
        32 => Some(decoded.as_slice()),
        44 if decoded.starts_with(&[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70]) => {
            decoded.get(12..)
        }
        _ => None,
    };
    key.and_then(|key| <[u8; 32]>::try_from(key).ok())
        .ok_or_else(|| "the signing command printed no Ed25519 key, in PEM or base64".to_owned())
}

/// A signature as tools print it: 64 bytes, or those in base64.
fn read_signature(printed: &[u8]) -> std::result::Result<[u8; 64], String> {
    let text = printed.trim_ascii();
    let decoded = BASE64
        .decode(text)
        .ok()
        .and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
    decoded
        .or_else(|| <[u8; 64]>::try_from(printed).ok())
        .ok_or_else(|| {
            "the signing command printed no signature of 64 bytes, plain or in base64".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use efface_receipt::SecretKey;

    #[test]
    fn keys_and_signatures_are_read_in_the_forms_of_tools() {
        let secret = SecretKey::from_seed("efface/a", &[7; 32]).unwrap();
        let public = secret.public();
        let bytes = public.to_bytes();
        assert_eq!(
            read_public(BASE64.encode(&bytes).as_bytes()).unwrap(),
            bytes
        );
        assert_eq!(read_public(public.to_pem().as_bytes()).unwrap(), bytes);
        for wrong in [
            &b""[..],
            b"no key",
            &[0; 31],
            b"-----BEGIN PUBLIC KEY-----\nAAAA\n",
        ] {
            assert!(read_public(wrong).is_err());
        }
        let signature = secret.sign(b"message").unwrap().0;
        assert_eq!(read_signature(&signature).unwrap(), signature);
        assert_eq!(
            read_signature(format!("{}\n", BASE64.encode(&signature)).as_bytes()).unwrap(),
            signature
        );
        assert!(read_signature(b"").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_command_that_signs_with_another_key_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let secret = SecretKey::from_seed("efface/a", &[7; 32]).unwrap();
        let path = folder.path().join("signature");
        std::fs::write(&path, secret.sign(b"message").unwrap().0).unwrap();
        let place = KeyPlace::Command(format!("cat {} #", path.display()));
        let signer = ExternalSigner {
            public: secret.public(),
            place: place.clone(),
        };
        assert_eq!(
            signer.sign(b"message").unwrap(),
            secret.sign(b"message").unwrap()
        );
        let fault = signer.sign(b"another").unwrap_err().to_string();
        assert!(fault.contains("not a signature by key"), "{fault}");
        let failing = ExternalSigner {
            public: secret.public(),
            place: KeyPlace::Command("exit 3 #".into()),
        };
        assert!(
            failing
                .sign(b"message")
                .unwrap_err()
                .to_string()
                .contains("ended with")
        );
        assert!(ExternalSigner::ask("efface/a", &place).is_err());
    }
}
