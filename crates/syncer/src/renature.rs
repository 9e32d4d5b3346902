//! What an object is called on the other side: real kinds for denatured ones, and the conversions that people ask for.

use mailboat_api::names::{denatured_group, natured_group};
use mailboat_object::edit::{BadPath, Edit};
use mailboat_object::json::Raw;
use mailboat_object::key::{KindId, Name};
use mailboat_object::object::Object;
use serde_json::Value;

use crate::config::{Conversion, Form};

/// How an object is called in one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Group and plural.
    pub kind: KindId,
    /// The kind's name.
    pub kind_name: Name,
    /// The version that a conversion asks for; empty: whichever the place serves.
    pub version: Name,
    /// The namespace; empty if it lives in none.
    pub namespace: Name,
    /// The name.
    pub name: Name,
}

/// A conversion whose kinds are known by their plurals.
#[derive(Clone, Debug)]
pub struct KnownConversion {
    /// As it is written.
    pub given: Conversion,
    /// The kind in the mailbox.
    pub upstream: KindId,
    /// The kind at the edge.
    pub downstream: KindId,
}

/// The kind under which objects of a natured kind are stored where they must not take effect.
pub fn denatured(kind: &KindId) -> KindId {
    KindId::new(&denatured_group(kind.group()), kind.resource())
}

/// The kind that a denatured kind stands for; `None` if it is not denatured.
pub fn natured(kind: &KindId) -> Option<KindId> {
    natured_group(kind.group()).map(|group| KindId::new(group, kind.resource()))
}

impl Shape {
    /// What an object is called where it is.
    pub fn of(object: &Object) -> Self {
        Self {
            kind: object.key.kind.clone(),
            kind_name: Name::new(&object.kind_name()),
            version: Name::EMPTY,
            namespace: object.key.namespace.clone(),
            name: object.key.name.clone(),
        }
    }

    /// What a mailbox's object is called at the edge: as a conversion says, or by its natured kind.
    pub fn downward(object: &Object, conversions: &[KnownConversion]) -> Self {
        let own = Self::of(object);
        for conversion in conversions {
            let (from, to) = (&conversion.given.upstream, &conversion.given.downstream);
            if own.kind == conversion.upstream && own.fits(from) {
                return own.converted(&conversion.downstream, to);
            }
        }
        match natured(&own.kind) {
            Some(kind) => Self { kind, ..own },
            None => own,
        }
    }

    /// What an edge's object is called in the mailbox: as a conversion says, or denatured where the mailbox has the
    /// denatured kind, so that it takes no effect there.
    pub fn upward(
        object: &Object,
        conversions: &[KnownConversion],
        serves_denatured: impl Fn(&KindId) -> bool,
    ) -> Self {
        let own = Self::of(object);
        for conversion in conversions {
            let (from, to) = (&conversion.given.downstream, &conversion.given.upstream);
            // Turned round, "any name keeps its name" of one side must not catch what the other side names.
            let named = from.name.is_some() || to.name.as_ref().is_none_or(|name| *name == own.name);
            if own.kind == conversion.downstream && own.fits(from) && named {
                return own.converted(&conversion.upstream, to);
            }
        }
        let kind = denatured(&own.kind);
        if serves_denatured(&kind) { Self { kind, ..own } } else { own }
    }

    fn fits(&self, form: &Form) -> bool {
        form.name.as_ref().is_none_or(|name| *name == self.name)
            && form.namespace.as_ref().is_none_or(|namespace| *namespace == self.namespace)
    }

    fn converted(self, kind: &KindId, to: &Form) -> Self {
        let namespace = to.namespace.clone().filter(|_| !self.namespace.is_empty());
        Self {
            kind: kind.clone(),
            kind_name: to.kind.clone(),
            version: to.version.clone(),
            namespace: namespace.unwrap_or(self.namespace),
            name: to.name.clone().unwrap_or(self.name),
        }
    }

    /// Gives a copy this shape. `version` is the version that the place serves.
    pub fn put_on(&self, object: &Object, edit: &mut Edit<'_>, version: &str) -> Result<(), BadPath> {
        let own = object.api_version();
        let own_version = own.rsplit('/').next().unwrap_or_default();
        let version = match (self.version.as_str(), version) {
            ("", "") => own_version,
            (asked, "") => asked,
            (_, served) => served,
        };
        let api_version = match self.kind.group() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        if own != api_version {
            edit.set_api_version(&api_version);
        }
        if *object.kind_name() != *self.kind_name {
            edit.set_kind(&self.kind_name);
        }
        if object.key.namespace != self.namespace {
            edit.set_namespace(&self.namespace);
        }
        if object.key.name != self.name {
            edit.set_name(&self.name);
            self.rename_definition(object, edit)?;
        }
        Ok(())
    }

    /// A CRD is named after the kind that it defines, so another name is another group.
    fn rename_definition(&self, object: &Object, edit: &mut Edit<'_>) -> Result<(), BadPath> {
        if self.kind.resource() == "customresourcedefinitions"
            && let Some((_, group)) = self.name.split_once('.')
            && object.get(&["spec", "group"]).and_then(Raw::as_str).is_some_and(|old| old != group)
        {
            edit.set(&["spec", "group"], Value::from(group))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigId, ConfigKind};
    use crate::testing::object;

    fn conversion(upstream: (&str, &str, &str), downstream: (&str, &str, &str)) -> KnownConversion {
        let form = |(group, kind, name): (&str, &str, &str)| Form {
            group: Name::new(group),
            version: Name::EMPTY,
            kind: Name::new(kind),
            namespace: None,
            name: (!name.is_empty()).then(|| Name::new(name)),
        };
        let plural = |(group, kind, _): (&str, &str, &str)| {
            KindId::new(group, &format!("{}s", kind.to_ascii_lowercase()))
        };
        KnownConversion {
            given: Conversion {
                config: ConfigId { kind: ConfigKind::EdgeSyncConfig, name: Name::new("c") },
                path: String::new(),
                upstream: form(upstream),
                downstream: form(downstream),
            },
            upstream: plural(upstream),
            downstream: plural(downstream),
        }
    }

    #[test]
    fn a_denatured_kind_gets_its_real_group_also_in_the_core_group() {
        for (group, natured) in
            [("rbac.authorization.k8s.io.denatured", "rbac.authorization.k8s.io"), ("core.denatured", "")]
        {
            let source = object("mb", group, "things", r#"{"kind":"Thing","metadata":{"name":"a"}}"#);
            let shape = Shape::downward(&source, &[]);
            assert_eq!(shape.kind, KindId::new(natured, "things"));
            let mut edit = source.edit().unwrap();
            shape.put_on(&source, &mut edit, "v1").unwrap();
            let made: Value = serde_json::from_slice(&edit.finish().unwrap().json).unwrap();
            let expected = if natured.is_empty() { "v1".to_owned() } else { format!("{natured}/v1") };
            assert_eq!(made["apiVersion"], expected, "the core group has no slash");
        }
    }

    #[test]
    fn a_conversion_names_the_crd_and_its_group_anew() {
        let crd = ("apiextensions.k8s.io", "CustomResourceDefinition");
        let conversions = [conversion(
            (crd.0, crd.1, "policyreports.wgpolicyk8s.io.denatured"),
            (crd.0, crd.1, "policyreports.wgpolicyk8s.io"),
        )];
        let source = object(
            "mb",
            crd.0,
            "customresourcedefinitions",
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"policyreports.wgpolicyk8s.io.denatured"},
                "spec":{"group":"wgpolicyk8s.io.denatured","scope":"Namespaced"}}"#,
        );
        let shape = Shape::downward(&source, &conversions);
        let mut edit = source.edit().unwrap();
        shape.put_on(&source, &mut edit, "v1").unwrap();
        let made: Value = serde_json::from_slice(&edit.finish().unwrap().json).unwrap();
        assert_eq!(made["metadata"]["name"], "policyreports.wgpolicyk8s.io");
        assert_eq!(made["spec"]["group"], "wgpolicyk8s.io");
        let other = object("mb", crd.0, "customresourcedefinitions", r#"{"metadata":{"name":"b.example"}}"#);
        assert_eq!(Shape::downward(&other, &conversions).name, other.key.name, "others keep their names");
    }

    #[test]
    fn a_conversion_of_a_whole_kind_keeps_names_and_turns_round() {
        let conversions = [conversion(("far.example", "Boat", ""), ("near.example", "Ship", ""))];
        let source = object(
            "mb",
            "far.example",
            "boats",
            r#"{"kind":"Boat","metadata":{"name":"a","namespace":"n"}}"#,
        );
        let down = Shape::downward(&source, &conversions);
        assert_eq!(
            (down.kind.to_string().as_str(), &*down.kind_name, &*down.name),
            ("ships.near.example", "Ship", "a")
        );
        let there = object(
            "edge",
            "near.example",
            "ships",
            r#"{"kind":"Ship","metadata":{"name":"a","namespace":"n"}}"#,
        );
        let up = Shape::upward(&there, &conversions, |_| false);
        assert_eq!(up, Shape::of(&source));
    }

    #[test]
    fn what_comes_up_is_denatured_where_the_mailbox_has_it_so() {
        let role = object(
            "edge",
            "rbac.authorization.k8s.io",
            "roles",
            r#"{"kind":"Role","metadata":{"name":"a","namespace":"n"}}"#,
        );
        assert_eq!(Shape::upward(&role, &[], |_| false).kind, role.key.kind);
        let shape = Shape::upward(&role, &[], |kind| kind.group() == "rbac.authorization.k8s.io.denatured");
        assert_eq!(natured(&shape.kind), Some(role.key.kind.clone()));
    }
}
