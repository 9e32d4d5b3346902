//! A few values by name, in the order of their names. An edit has one or two in each of its maps, for which a tree's nodes
//! would be most of what the edit costs.

#[derive(Clone)]
pub(super) struct Named<V>(Vec<(Box<str>, V)>);

impl<V> Named<V> {
    pub(super) fn insert(&mut self, name: &str, value: V) {
        match self.find(name) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (name.into(), value)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&V> {
        self.find(name).ok().map(|at| &self.0[at].1)
    }

    /// The value of a name, made if there is none.
    pub(super) fn get_or_insert_with(&mut self, name: &str, make: impl FnOnce() -> V) -> &mut V {
        let at = match self.find(name) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (name.into(), make()));
                at
            }
        };
        &mut self.0[at].1
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.iter().map(|(name, _)| name).collect()
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }
}

impl<V> Default for Named<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}
