//! What a run came to.

use std::fmt;

/// What a run, or many of them, came to.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// A digest of all that happened: the same for the same seed.
    pub digest: u64,
    /// How many events there were: turns of the loop, or requests where there is none.
    pub events: u64,
    /// How many calls changed a server.
    pub writes: u64,
    /// How many of them were deletions.
    pub deletions: u64,
    /// How many copies were let go of, and stay.
    pub let_go: u64,
    /// How many times a process was started.
    pub starts: u64,
    /// How many copies stood at edges in the end.
    pub arrived: u64,
    /// How many mass withdrawals somebody confirmed.
    pub confirmed: u64,
    /// How often a process ended between a first delivery that met a foreign object and its letting go. Until
    /// somebody looks, such an object bears our mark; what is done to it then is not counted as a failure.
    pub cut_short: u64,
    /// How many copies were deleted though somebody wants them, where nothing that is left anywhere could tell this.
    pub unknowable: u64,
}

impl Report {
    /// Adds what another run came to.
    pub fn add(&mut self, other: &Self) {
        self.digest ^= other.digest;
        self.events += other.events;
        self.writes += other.writes;
        self.deletions += other.deletions;
        self.let_go += other.let_go;
        self.starts += other.starts;
        self.arrived += other.arrived;
        self.confirmed += other.confirmed;
        self.cut_short += other.cut_short;
        self.unknowable += other.unknowable;
    }

    /// Takes in something that happened: FNV-1a, so that two runs of one seed must agree in every byte.
    pub fn trace(&mut self, bytes: impl IntoIterator<Item = u8>) {
        let mut digest = self.digest ^ 0xcbf2_9ce4_8422_2325;
        for byte in bytes {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.digest = digest;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            digest,
            events,
            writes,
            deletions,
            let_go,
            starts,
            arrived,
            confirmed,
            cut_short,
            unknowable,
        } = self;
        write!(
            f,
            "{events} events, {writes} writes, {deletions} of them deletions, {let_go} let go of; {starts} starts; "
        )?;
        write!(f, "{arrived} copies at edges in the end, {confirmed} mass withdrawals confirmed, ")?;
        write!(f, "{cut_short} cut short, {unknowable} unknowable; ")?;
        write!(f, "digest {digest:016x}")
    }
}
