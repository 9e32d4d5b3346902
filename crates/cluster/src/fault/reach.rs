//! Why a server could not be reached, or why an open connection broke, in one sentence that says what to do.

use std::error::Error;
use std::io;

use mailboat_object::wire::{Fault, FaultKind};
use rustls::{AlertDescription, CertificateError};

/// A connection could not be made.
pub(crate) fn unreachable(server: &str, error: &(dyn Error + 'static)) -> Fault {
    Fault::new(FaultKind::Away, format!("cannot connect to {server}: {}", reason(error)))
}

/// A connection broke while an answer was awaited or read. What was asked may or may not have been done.
pub(crate) fn broken(server: &str, error: &(dyn Error + 'static)) -> Fault {
    Fault::new(FaultKind::Retry(None), format!("the connection to {server} broke: {}", innermost(error)))
}

fn reason(error: &(dyn Error + 'static)) -> String {
    if let Some(tls) = find::<rustls::Error>(error) {
        return tls_reason(tls);
    }
    let text = chain(error);
    if text.contains("dns error") || text.contains("failed to lookup address") {
        return "its host name is not known; check `server` in the kubeconfig and the name service".into();
    }
    if text.contains("tunnel error") || text.contains("SOCKS error") {
        return format!(
            "the proxy does not let us through ({}); check https_proxy, no_proxy and `proxy-url`",
            innermost(error)
        );
    }
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => {
            "nothing listens there (connection refused); check that the server runs and that `server` in the \
             kubeconfig has the right port"
                .into()
        }
        Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
            "there is no route to it; check the network and the address in the kubeconfig".into()
        }
        Some(io::ErrorKind::TimedOut) => {
            "it does not answer; check the network, firewalls and the address in the kubeconfig".into()
        }
        Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
            "it closed the connection during the TLS handshake; check that `server` in the kubeconfig is an API server".into()
        }
        _ => innermost(error),
    }
}

fn tls_reason(error: &rustls::Error) -> String {
    use rustls::Error as Tls;
    match error {
        Tls::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "its certificate is not signed by the certificate authority we trust; check \
                 `certificate-authority-data` in the kubeconfig"
                    .into()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired; renew the server's certificate, or check the clocks".into()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet; check the clocks of both sides".into()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another host name; check `server`, or set `tls-server-name` in the kubeconfig"
                    .into()
            }
            other => format!("its certificate is not valid: {other}"),
        },
        Tls::InvalidMessage(_) => {
            "it does not speak TLS there; check whether `server` in the kubeconfig should begin with http:// or has another port".into()
        }
        Tls::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRevoked
            | AlertDescription::UnknownCA,
        ) => "it does not accept our client certificate; renew it in the kubeconfig".into(),
        other => format!("TLS: {other}"),
    }
}

/// Finds an error of this type in a chain, also inside an `io::Error`, whose `source` skips what it wraps.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = wrapped(error).or_else(|| error.source());
    }
    None
}

fn wrapped<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let inner = error.downcast_ref::<io::Error>()?.get_ref()?;
    Some(inner as &(dyn Error + 'static))
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(next) = wrapped(last).or_else(|| last.source()) {
        last = next;
    }
    last.to_string()
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = wrapped(error).or_else(|| error.source());
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = wrapped(error).or_else(|| error.source());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: impl Error + 'static) -> String {
        let fault = unreachable("https://edge.example.com:6443", &error);
        assert_eq!(fault.kind, FaultKind::Away);
        fault.text
    }

    #[test]
    fn each_reason_is_one_sentence_that_names_the_cause_and_what_to_do() {
        let tls = |error| io::Error::other(io::Error::other(rustls::Error::InvalidCertificate(error)));
        for (text, cause, hint) in [
            (
                of(tls(CertificateError::UnknownIssuer)),
                "not signed by the certificate authority",
                "certificate-authority-data",
            ),
            (of(tls(CertificateError::Expired)), "certificate has expired", "renew"),
            (of(tls(CertificateError::NotValidForName)), "another host name", "tls-server-name"),
            (of(tls(CertificateError::NotValidYet)), "not valid yet", "clocks"),
            (of(io::Error::from(io::ErrorKind::ConnectionRefused)), "refused", "right port"),
            (of(io::Error::from(io::ErrorKind::TimedOut)), "does not answer", "firewalls"),
            (of(io::Error::from(io::ErrorKind::HostUnreachable)), "no route", "network"),
            (
                of(io::Error::other(rustls::Error::AlertReceived(AlertDescription::CertificateExpired))),
                "client certificate",
                "renew",
            ),
            (
                of(io::Error::other(rustls::Error::InvalidMessage(
                    rustls::InvalidMessage::InvalidContentType,
                ))),
                "does not speak TLS",
                "http://",
            ),
        ] {
            assert!(text.starts_with("cannot connect to https://edge.example.com:6443: "), "{text}");
            assert!(text.contains(cause) && text.contains(hint), "{text}");
            assert!(!text.contains('\n') && !text.contains(". "), "one sentence: {text}");
        }
    }
}
