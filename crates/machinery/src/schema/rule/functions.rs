//! The functions that rules may call.

use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::objects::Value as CelValue;
use kube_cel::cel::{Context, ExecutionError, ResolveResult};

use crate::schema::pattern;

/// What reads a whole text, or a whole list, each time it is called.
pub(super) const READING: [&str; 22] = [
    "contains",
    "matches",
    "find",
    "findAll",
    "split",
    "charAt",
    "substring",
    "indexOf",
    "lastIndexOf",
    "lowerAscii",
    "upperAscii",
    "trim",
    "isSorted",
    "sum",
    "endsWith",
    "ip",
    "isIP",
    "cidr",
    "isCIDR",
    "containsIP",
    "containsCIDR",
    "validate",
];
/// What else a rule may call: functions whose cost and whose result do not outgrow their arguments.
pub(super) const FUNCTIONS: [&str; 32] = [
    "size",
    "startsWith",
    "string",
    "double",
    "int",
    "uint",
    "min",
    "max",
    "duration",
    "timestamp",
    "quantity",
    "isQuantity",
    "isInteger",
    "asInteger",
    "sign",
    "add",
    "sub",
    "greatest",
    "least",
    "ceil",
    "floor",
    "family",
    "isLoopback",
    "isUnspecified",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "prefixLength",
    "masked",
    "hasValue",
    "value",
    "orValue",
];
/// Functions whose names have two parts: what stands before the dot, and after it.
pub(super) const QUALIFIED: [(&str, &[&str]); 3] = [
    ("ip", &["isCanonical"]),
    ("optional", &["none", "of"]),
    (
        "format",
        &[
            "dns1123Label",
            "dns1123LabelPrefix",
            "dns1123Subdomain",
            "dns1123SubdomainPrefix",
            "dns1035Label",
            "dns1035LabelPrefix",
            "qualifiedName",
            "labelValue",
            "uuid",
            "byte",
            "date",
            "datetime",
        ],
    ),
];
/// All functions that rules may call. Those that take patterns are this server's own: a pattern is kept compiled, and bounded.
fn functions() -> Context<'static> {
    let mut functions = Context::default().with_all();
    functions.add_function(
        "matches",
        |This(text): This<Arc<String>>, pattern: Arc<String>| -> ResolveResult {
            pattern::is_match(&pattern, &text).map(CelValue::Bool).map_err(|why| unusable("matches", &why))
        },
    );
    functions.add_function("find", |This(text): This<Arc<String>>, pattern: Arc<String>| -> ResolveResult {
        let found = pattern::find(&pattern, &text).map_err(|why| unusable("find", &why))?;
        Ok(found.to_owned().into())
    });
    functions.add_function(
        "findAll",
        |This(text): This<Arc<String>>, Arguments(asked): Arguments| -> ResolveResult {
            let (pattern, most) = match asked.as_slice() {
                [CelValue::String(pattern)] => (pattern, usize::MAX),
                [CelValue::String(pattern), CelValue::Int(most)] => {
                    (pattern, usize::try_from(*most).unwrap_or(usize::MAX))
                }
                _ => {
                    return Err(ExecutionError::function_error(
                        "findAll",
                        "it takes a pattern, and how many to find",
                    ));
                }
            };
            let found = pattern::find_all(pattern, &text, most).map_err(|why| unusable("findAll", &why))?;
            Ok(CelValue::List(Arc::new(found.into_iter().map(|found| found.to_owned().into()).collect())))
        },
    );
    functions
}

fn unusable(function: &str, why: &pattern::Unusable) -> ExecutionError {
    ExecutionError::function_error(function, why.to_string())
}

/// Does something with them.
pub(super) fn with_functions<T>(work: impl FnOnce(&Context<'_>) -> T) -> T {
    thread_local! {
        static FUNCTIONS: Context<'static> = functions();
    }
    FUNCTIONS.with(work)
}
