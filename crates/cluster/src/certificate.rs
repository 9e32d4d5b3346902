//! When a client certificate ends: all that a 401 does not say.

use base64::Engine as _;
use jiff::Timestamp;
use kube::config::AuthInfo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// When the client certificate that a user shows ends, if one is configured and can be read.
pub(crate) fn ends_at(user: &AuthInfo) -> Option<Timestamp> {
    let pem = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => base64::engine::general_purpose::STANDARD.decode(data).ok()?,
        (None, Some(file)) => std::fs::read(file).ok()?,
        (None, None) => return None,
    };
    not_after(&CertificateDer::from_pem_slice(&pem).ok()?)
}

/// The end of a certificate's validity. Of X.509 just enough is read to find it: the third of the sequences that
/// follow the serial number is the validity, and its second time is the end.
fn not_after(der: &[u8]) -> Option<Timestamp> {
    const SEQUENCE: u8 = 0x30;
    let (_, certificate, _) = element(der)?;
    let (_, mut rest, _) = element(certificate)?;
    let mut sequences = 0;
    while sequences < 3 {
        let (tag, content, after) = element(rest)?;
        if tag == SEQUENCE {
            sequences += 1;
        }
        if sequences == 3 {
            let (_, _, second) = element(content)?;
            let (tag, time, _) = element(second)?;
            return moment(tag, time);
        }
        rest = after;
    }
    None
}

/// The tag and content of the first element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        let (bytes, rest) = rest.split_at_checked(count)?;
        let length = bytes
            .iter()
            .try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)))?;
        (length, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// A UTCTime (two digits of the year, 1950 to 2049) or a GeneralizedTime, both in UTC and with seconds.
fn moment(tag: u8, time: &[u8]) -> Option<Timestamp> {
    const UTC_TIME: u8 = 0x17;
    let text = std::str::from_utf8(time).ok()?.strip_suffix('Z')?;
    let full = match tag {
        UTC_TIME if text < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        _ => text.to_owned(),
    };
    if full.len() != 14 || !full.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let [year, month, day, hour, minute, second] =
        [0..4, 4..6, 6..8, 8..10, 10..12, 12..14].map(|part| &full[part]);
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn user(year: i32) -> AuthInfo {
        let mut params = CertificateParams::default();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 2, 3);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let pem = base64::engine::general_purpose::STANDARD.encode(certificate.pem());
        AuthInfo { client_certificate_data: Some(pem), ..AuthInfo::default() }
    }

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_forms_of_time() {
        for year in [2024, 2049, 2050, 2199] {
            let expected: Timestamp = format!("{year}-02-03T00:00:00Z").parse().unwrap();
            assert_eq!(ends_at(&user(year)), Some(expected), "{year}");
        }
    }

    #[test]
    fn what_is_no_certificate_says_nothing() {
        assert_eq!(ends_at(&AuthInfo::default()), None);
        let der = CertificateDer::from_pem_slice(
            &base64::engine::general_purpose::STANDARD
                .decode(user(2030).client_certificate_data.unwrap())
                .unwrap(),
        )
        .unwrap();
        for length in 0..der.len() {
            // Cut anywhere, it ends without a panic.
            let _ = not_after(&der[..length]);
        }
        assert_eq!(not_after(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
