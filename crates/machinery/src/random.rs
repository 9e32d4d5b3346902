//! Where randomness comes from: outside.

use mailboat_object::Uid;

/// A source of random numbers.
pub trait Random {
    /// The next number.
    fn next(&mut self) -> u64;
}

/// A source that gives the same numbers for the same seed.
#[derive(Clone, Debug)]
pub struct Seeded(pub u64);

impl Random for Seeded {
    /// SplitMix64: one addition and a mix. Whoever sees one number knows all that follow.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// When a request is made, and what chance holds for it.
pub struct Moment<'a> {
    /// Unix seconds.
    pub now_seconds: u64,
    /// Where uids and generated names come from.
    pub random: &'a mut dyn Random,
}

impl Moment<'_> {
    /// A fresh uid: a UUID of version 4.
    pub(crate) fn uid(&mut self) -> Uid {
        let number = (u128::from(self.random.next()) << 64) | u128::from(self.random.next());
        let version = (number & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        Uid::Uuid(version.to_be_bytes())
    }

    /// A generated name: at most 58 bytes of the base and five characters that make no words.
    pub(crate) fn name(&mut self, base: &str) -> String {
        const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let cut = base.len().min(58);
        let cut = (0..=cut).rev().find(|cut| base.is_char_boundary(*cut)).unwrap_or(0);
        let mut number = self.random.next();
        let mut name = base[..cut].to_owned();
        for _ in 0..5 {
            // The remainder is below 27.
            name.push(char::from(LETTERS[usize::try_from(number % 27).unwrap_or(0)]));
            number /= 27;
        }
        name
    }
}
