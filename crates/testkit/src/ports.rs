//! Ports on 127.0.0.1 that stay free until the server that they are meant for listens.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use crate::error::{Doing, Error, Result};
use crate::random;

/// Below the range from which Linux takes ports for outgoing connections (32768 and up): a port from there may
/// be gone again before the server that it was chosen for gets to listen on it.
const FIRST: u16 = 23_000;
const LAST: u16 = 31_999;

/// A port that no other process of this crate will choose while this value lives, even between a server's stop
/// and its restart.
#[derive(Debug)]
pub struct Port {
    number: u16,
    // Released by the operating system when this process ends, however it ends.
    _lock: File,
}

impl Port {
    /// Reserves a free port.
    pub fn reserve() -> Result<Self> {
        let folder = locks_folder();
        fs::create_dir_all(&folder).doing("creating", &folder)?;
        let count = LAST - FIRST + 1;
        let offset = random::below(count);
        for step in 0..count {
            let number = FIRST + (offset + step) % count;
            if let Some(port) = Self::try_reserve(&folder, number)? {
                return Ok(port);
            }
        }
        Err(Error::NoFreePort { first: FIRST, last: LAST })
    }

    /// The port's number.
    pub fn number(&self) -> u16 {
        self.number
    }

    fn try_reserve(folder: &std::path::Path, number: u16) -> Result<Option<Self>> {
        let path = folder.join(number.to_string());
        let lock = OpenOptions::new().create(true).append(true).open(&path).doing("opening", &path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(source)) => {
                return Err(Error::Io { doing: format!("locking {}", path.display()), source });
            }
        }
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok();
        Ok(free.then_some(Self { number, _lock: lock }))
    }
}

fn locks_folder() -> PathBuf {
    std::env::temp_dir().join(format!("mailboat-ports-{}", rustix::process::getuid().as_raw()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn reserved_ports_differ_and_can_be_listened_on() {
        let ports: Vec<Port> = (0..20).map(|_| Port::reserve().unwrap()).collect();
        let numbers: BTreeSet<u16> = ports.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), ports.len(), "{numbers:?}");
        for number in numbers {
            TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        }
    }

    #[test]
    fn a_port_that_is_listened_on_or_reserved_is_not_given() {
        let port = Port::reserve().unwrap();
        let folder = locks_folder();
        assert!(Port::try_reserve(&folder, port.number()).unwrap().is_none(), "reserved twice: {port:?}");
        let number = port.number();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        drop(port);
        assert!(Port::try_reserve(&folder, number).unwrap().is_none(), "{number} is listened on");
    }
}
