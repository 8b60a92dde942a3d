//! Signatures by the key of a certificate, as OpenDSR has them: over the bytes of a body, in
//! base64.

use std::sync::Arc;

use data_encoding::BASE64;
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::SigningKey;

use crate::server::ServeError;
use crate::settings::OpenDsrSettings;
use crate::tls;

/// One scheme for each kind of key, with SHA-256 where there is a choice.
const SCHEMES: [SignatureScheme; 4] = [
    SignatureScheme::RSA_PKCS1_SHA256,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ED25519,
];

/// A certificate and its key, for answers and callbacks of OpenDSR.
#[derive(Debug, Clone)]
pub(crate) struct CertificateSigner {
    key: Arc<dyn SigningKey>,
    /// The domain that the certificate is for.
    pub(crate) domain: String,
    /// The chain of certificates, PEM, for whoever checks.
    pub(crate) chain: String,
}

impl CertificateSigner {
    /// Reads the files.
    pub(crate) fn open(settings: &OpenDsrSettings) -> Result<Self, ServeError> {
        let fault = |path: &std::path::Path, problem: String| ServeError::Certificate {
            path: path.to_owned(),
            problem,
        };
        tls::certificates(&settings.certificate)?;
        let chain = std::fs::read_to_string(&settings.certificate)
            .map_err(|cause| fault(&settings.certificate, cause.to_string()))?;
        let key = PrivateKeyDer::from_pem_file(&settings.key)
            .map_err(|cause| fault(&settings.key, cause.to_string()))?;
        let key = rustls::crypto::ring::sign::any_supported_type(&key);
        let key = key.map_err(|cause| fault(&settings.key, cause.to_string()))?;
        let signer = Self {
            key,
            domain: settings.domain.clone(),
            chain: public_part(&chain),
        };
        if signer.sign(b"").is_none() {
            return Err(fault(
                &settings.key,
                "a key of this kind signs nothing here; RSA, ECDSA and Ed25519 do".into(),
            ));
        }
        Ok(signer)
    }

    /// The signature of a body; None where the key cannot sign.
    pub(crate) fn sign(&self, body: &[u8]) -> Option<String> {
        let signature = self.key.choose_scheme(&SCHEMES)?.sign(body).ok()?;
        Some(BASE64.encode(&signature))
    }

    /// The headers of a signed message, under the name of today and the one from before.
    pub(crate) fn headers(&self, body: &[u8]) -> Option<[(&'static str, String); 4]> {
        let signature = self.sign(body)?;
        Some([
            ("x-opendsr-processor-domain", self.domain.clone()),
            ("x-opendsr-signature", signature.clone()),
            ("x-opengdpr-processor-domain", self.domain.clone()),
            ("x-opengdpr-signature", signature),
        ])
    }
}

/// The certificates of a PEM file, without anything else that may stand in it, such as a key.
fn public_part(text: &str) -> String {
    let mut is_inside = false;
    let mut kept = String::new();
    for line in text.lines() {
        is_inside |= line.starts_with("-----BEGIN CERTIFICATE-----");
        if is_inside {
            kept.push_str(line);
            kept.push('\n');
        }
        is_inside &= !line.starts_with("-----END CERTIFICATE-----");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::public_part;

    #[test]
    fn a_key_beside_a_certificate_is_not_shown() {
        let both = "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n\
                    -----BEGIN CERTIFICATE-----\nopen\n-----END CERTIFICATE-----\nsecret too\n";
        assert_eq!(
            public_part(both),
            "-----BEGIN CERTIFICATE-----\nopen\n-----END CERTIFICATE-----\n"
        );
    }
}
