//! Where in an object something stands.

use std::fmt;

/// A place in an object, such as `spec.ports[0].port`; written out only where something is wrong. A name may be as long as the
/// object has room, and stands above everything below it.
#[derive(Clone, Copy)]
pub struct At<'a> {
    above: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Member(&'a str),
    Index(usize),
}

impl At<'_> {
    /// The object itself.
    pub const ROOT: At<'static> = At { above: None, step: Step::Root };

    /// A member of what stands here.
    #[must_use]
    pub fn member<'b>(&'b self, name: &'b str) -> At<'b> {
        At { above: Some(self), step: Step::Member(name) }
    }

    /// An element of what stands here.
    #[must_use]
    pub fn element(&self, index: usize) -> At<'_> {
        At { above: Some(self), step: Step::Index(index) }
    }

    fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }
}

impl fmt::Debug for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
            if matches!(self.step, Step::Member(_)) && !above.is_root() {
                f.write_str(".")?;
            }
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Member(name) => f.write_str(name),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_as_servers_write_them() {
        let ports = At::ROOT.member("spec");
        let ports = ports.member("ports");
        let port = ports.element(3);
        let port = port.member("port");
        let table = [(At::ROOT, ""), (At::ROOT.member("a"), "a"), (port, "spec.ports[3].port")];
        for (at, written) in table {
            assert_eq!(at.to_string(), written);
        }
        assert_eq!(At::ROOT.element(0).to_string(), "[0]");
    }
}
