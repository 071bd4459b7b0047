//! A connection, plain or under TLS, on either side.

use crate::config::{ClientTls, ServerTls};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// Keys or certificates that cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read as PEM.
    #[error("{path}: {cause}; name a PEM file that exists and that this user may read")]
    Pem {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A file without what it is for.
    #[error("{path} holds no certificate; expected at least one in PEM")]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// Keys or certificates that TLS refuses.
    #[error("{path}: {cause}")]
    Refused {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A name that no certificate can have.
    #[error("`{0}` is neither a host name nor an address; set `server_name`")]
    Name(String),
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |cause: String| TlsError::Pem { path: path.into(), cause };
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?.collect();
    let found = found.map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() { Err(TlsError::Empty { path: path.into() }) } else { Ok(found) }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| TlsError::Pem { path: path.into(), cause: error.to_string() })
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store
            .add(certificate)
            .map_err(|error| TlsError::Refused { path: path.into(), cause: error.to_string() })?;
    }
    Ok(store)
}

/// Makes connections to a master private.
#[derive(Clone)]
pub struct Connector {
    connector: TlsConnector,
    server_name: Option<String>,
}

impl Connector {
    /// Reads the files of a configuration.
    pub fn new(tls: &ClientTls) -> Result<Connector, TlsError> {
        let refused = |path: &Path, cause: String| TlsError::Refused { path: path.to_path_buf(), cause };
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(&tls.authorities, error.to_string()))?
            .with_root_certificates(authorities(&tls.authorities)?);
        let config = match (&tls.certificate, &tls.key) {
            (Some(certificate), Some(private)) => builder
                .with_client_auth_cert(certificates(certificate)?, key(private)?)
                .map_err(|error| refused(certificate, error.to_string()))?,
            _ => builder.with_no_client_auth(),
        };
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Connector { connector, server_name: tls.server_name.clone() })
    }

    /// Shakes hands over `stream` with the server `host`.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<Stream> {
        let name = self.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_string())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, TlsError::Name(name.to_string())))?;
        Ok(Stream::Client(Box::new(self.connector.connect(name, stream).await?)))
    }
}

/// Makes connections of replicas private.
#[derive(Clone)]
pub struct Acceptor(TlsAcceptor);

impl Acceptor {
    /// Reads the files of a configuration.
    pub fn new(tls: &ServerTls) -> Result<Acceptor, TlsError> {
        let refused = |path: &Path, cause: String| TlsError::Refused { path: path.to_path_buf(), cause };
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(&tls.certificate, error.to_string()))?;
        let builder = match &tls.client_authorities {
            Some(path) => {
                let store = Arc::new(authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(store, provider)
                    .build()
                    .map_err(|error| refused(path, error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        let config = builder
            .with_single_cert(certificates(&tls.certificate)?, key(&tls.key)?)
            .map_err(|error| refused(&tls.certificate, error.to_string()))?;
        Ok(Acceptor(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands over `stream`.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<Stream> {
        Ok(Stream::Server(Box::new(self.0.accept(stream).await?)))
    }
}

/// A connection.
pub enum Stream {
    /// Without TLS.
    Plain(TcpStream),
    /// Under TLS, as the one that connected.
    Client(Box<client::TlsStream<TcpStream>>),
    /// Under TLS, as the one that was connected to.
    Server(Box<server::TlsStream<TcpStream>>),
}

impl Stream {
    /// Whether bytes of the peer, or its end, are here that were not read, as far as the system tells.
    pub fn has_input(&self) -> bool {
        let socket = match self {
            Stream::Plain(stream) => stream,
            Stream::Client(stream) => stream.get_ref().0,
            Stream::Server(stream) => stream.get_ref().0,
        };
        let again: Option<std::net::TcpStream> = socket.as_fd().try_clone_to_owned().ok().map(Into::into);
        again.is_none_or(|socket| socket.peek(&mut [0]).is_ok())
    }

    /// The socket, where bytes go over it as they are.
    pub fn socket(&self) -> Option<&TcpStream> {
        match self {
            Stream::Plain(stream) => Some(stream),
            Stream::Client(_) | Stream::Server(_) => None,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Client(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Server(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, data),
            Stream::Client(stream) => Pin::new(stream).poll_write(context, data),
            Stream::Server(stream) => Pin::new(stream).poll_write(context, data),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Client(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Server(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Client(stream) => Pin::new(stream).poll_flush(context),
            Stream::Server(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Client(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Server(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
