//! Certificates.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio_rustls::TlsAcceptor;

use crate::server::ServeError;
use crate::settings::TlsFiles;

/// What makes TLS of a connection.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServeError> {
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|cause| fault(&files.key, cause))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|cause| fault(&files.certificate, cause))?;
    let builder = match &files.client_authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|cause| fault(path, cause))?;
            }
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|cause| fault(path, cause))?)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|cause| fault(&files.certificate, cause))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The certificates of a PEM file; at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let read = CertificateDer::pem_file_iter(path).map_err(|cause| fault(path, cause))?;
    let chain = read
        .collect::<Result<Vec<_>, _>>()
        .map_err(|cause| fault(path, cause))?;
    if chain.is_empty() {
        return Err(fault(path, "it holds no certificate in PEM form"));
    }
    Ok(chain)
}

fn fault(path: &Path, problem: impl std::fmt::Display) -> ServeError {
    ServeError::Certificate {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}
