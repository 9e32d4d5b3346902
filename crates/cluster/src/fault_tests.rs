use super::*;

/// The words of real servers: kube-apiserver 1.36.3 and kcp 0.28.1.
fn status(code: u16, rest: &str) -> (u16, String) {
    (
        code,
        format!(
            r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure",{rest},"code":{code}}}"#
        ),
    )
}

const CONFIG_MAP: Asked<'_> =
    Asked { name: "menu", resource: "configmaps", kind_name: "ConfigMap", json_patch: false };
const LIST: Asked<'_> = Asked { name: "", resource: "configmaps", kind_name: "ConfigMap", json_patch: false };
const JSON_PATCH: Asked<'_> = Asked { json_patch: true, ..CONFIG_MAP };
const RETRY: FaultKind = FaultKind::Retry(None);

fn fault(answer: &(u16, String), asked: &Asked<'_>) -> Fault {
    let answer = Answer {
        status: StatusCode::from_u16(answer.0).unwrap(),
        content_type: "application/json",
        retry_after: None,
        body: answer.1.as_bytes(),
    };
    classify(&answer, asked)
}

#[test]
fn every_answer_that_servers_gave_is_classified() {
    let second = FaultKind::Retry(Some(Duration::from_secs(1)));
    let rows: &[(&str, (u16, String), Asked<'_>, FaultKind)] = &[
        (
            "an object that is not there",
            status(
                404,
                r#""message":"configmaps \"menu\" not found","reason":"NotFound","details":{"name":"menu","kind":"configmaps"}"#,
            ),
            CONFIG_MAP,
            FaultKind::NotFound,
        ),
        (
            "the same from a custom resource's handler",
            status(
                404,
                r#""message":"ConfigMap \"menu\" not found","reason":"NotFound","details":{"name":"menu","kind":"ConfigMap"}"#,
            ),
            CONFIG_MAP,
            FaultKind::NotFound,
        ),
        (
            "a 404 about another object of that name",
            status(
                404,
                r#""message":"secrets \"menu\" not found","reason":"NotFound","details":{"name":"menu","kind":"secrets"}"#,
            ),
            CONFIG_MAP,
            FaultKind::Unserved,
        ),
        (
            "a resource that the group does not have",
            status(
                404,
                r#""message":"the server could not find the requested resource","reason":"NotFound","details":{}"#,
            ),
            CONFIG_MAP,
            FaultKind::Unserved,
        ),
        (
            "a write to all workspaces at once",
            status(
                404,
                r#""message":"the server could not find the requested resource","reason":"NotFound","details":{"causes":[{"reason":"UnexpectedServerResponse","message":"404 page not found"}]}"#,
            ),
            CONFIG_MAP,
            FaultKind::Unserved,
        ),
        ("a group that kcp does not serve", (404, "404 page not found\n".into()), LIST, FaultKind::Unserved),
        (
            "a create in a namespace that is not there",
            status(
                404,
                r#""message":"namespaces \"till\" not found","reason":"NotFound","details":{"name":"till","kind":"namespaces"}"#,
            ),
            CONFIG_MAP,
            FaultKind::NoNamespace,
        ),
        (
            "a namespace on its way out",
            status(
                403,
                r#""message":"configmaps \"menu\" is forbidden: unable to create new content in namespace term because it is being terminated","reason":"Forbidden","details":{"name":"menu","kind":"configmaps","causes":[{"reason":"NamespaceTerminating","message":"namespace term is being terminated","field":"metadata.namespace"}]}"#,
            ),
            CONFIG_MAP,
            RETRY,
        ),
        (
            "no right to read",
            status(
                403,
                r#""message":"configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API group \"\" at the cluster scope: access denied","reason":"Forbidden","details":{"kind":"configmaps"}"#,
            ),
            LIST,
            FaultKind::Forbidden,
        ),
        (
            "no right to read one",
            status(
                403,
                r#""message":"configmaps \"menu\" is forbidden: User \"alice\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"till\"","reason":"Forbidden","details":{"name":"menu","kind":"configmaps"}"#,
            ),
            CONFIG_MAP,
            FaultKind::Forbidden,
        ),
        (
            "an export that kcp's caches do not know yet",
            status(
                403,
                r#""message":"apibindings.apis.kcp.io \"menu\" is forbidden: unable to create APIBinding: no permission to bind to export root:espw:kubernetes","reason":"Forbidden","details":{"name":"menu","group":"apis.kcp.io","kind":"apibindings"}"#,
            ),
            CONFIG_MAP,
            RETRY,
        ),
        (
            "admission refusing",
            status(
                403,
                r#""message":"pods \"menu\" is forbidden: violates PodSecurity \"restricted:latest\"","reason":"Forbidden","details":{"name":"menu","kind":"pods"}"#,
            ),
            CONFIG_MAP,
            FaultKind::Invalid,
        ),
        (
            "a credential nobody knows",
            status(401, r#""message":"Unauthorized","reason":"Unauthorized""#),
            CONFIG_MAP,
            FaultKind::Unauthorized,
        ),
        (
            "a create of what is there",
            status(
                409,
                r#""message":"configmaps \"menu\" already exists","reason":"AlreadyExists","details":{"name":"menu","kind":"configmaps"}"#,
            ),
            CONFIG_MAP,
            FaultKind::Exists,
        ),
        (
            "an uid precondition of a delete",
            status(
                409,
                r#""message":"Operation cannot be fulfilled on ConfigMap \"menu\": the UID in the precondition (f99e773f) does not match the UID in record (3395a0a0). The object might have been deleted and then recreated","reason":"Conflict","details":{"name":"menu","kind":"ConfigMap"}"#,
            ),
            CONFIG_MAP,
            FaultKind::Conflict,
        ),
        (
            "an apply on fields of others",
            status(
                409,
                r#""message":"Apply failed with 1 conflict: conflict with \"m1\": .data.x","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"m1\"","field":".data.x"}]}"#,
            ),
            CONFIG_MAP,
            FaultKind::Conflict,
        ),
        (
            "an apply with an uid where nothing is",
            status(
                409,
                r#""message":"Operation cannot be fulfilled on configmaps \"menu\": uid mismatch: the provided object specified uid f99e773f, and no existing object was found","reason":"Conflict","details":{"name":"menu","kind":"configmaps"}"#,
            ),
            CONFIG_MAP,
            FaultKind::Conflict,
        ),
        (
            "a patch or apply with the uid of one that was replaced",
            status(
                422,
                r#""message":"ConfigMap \"menu\" is invalid: metadata.uid: Invalid value: \"f99e773f\": field is immutable","reason":"Invalid","details":{"name":"menu","kind":"ConfigMap","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"f99e773f\": field is immutable","field":"metadata.uid"},{"reason":"FieldValueInvalid","message":"Invalid value: \"f99e773f\": field is immutable","field":"metadata.uid"}]}"#,
            ),
            CONFIG_MAP,
            FaultKind::Conflict,
        ),
        (
            "a JSON patch whose test fails",
            status(
                422,
                r#""message":"the server rejected our request due to an error in our request","reason":"Invalid","details":{}"#,
            ),
            JSON_PATCH,
            FaultKind::Conflict,
        ),
        (
            "the same words for anything else",
            status(
                422,
                r#""message":"the server rejected our request due to an error in our request","reason":"Invalid","details":{}"#,
            ),
            CONFIG_MAP,
            FaultKind::Invalid,
        ),
        (
            "a compacted version",
            status(
                410,
                r#""message":"The resourceVersion for the provided watch is too old.","reason":"Expired""#,
            ),
            LIST,
            FaultKind::Expired,
        ),
        (
            "a continue token from elsewhere",
            status(
                400,
                r#""message":"invalid continue token: continue key is not valid","reason":"BadRequest""#,
            ),
            LIST,
            FaultKind::Expired,
        ),
        (
            "a version that this server has not reached",
            status(
                504,
                r#""message":"Timeout: Too large resource version: 99999999, current: 226","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}"#,
            ),
            LIST,
            FaultKind::Expired,
        ),
        (
            "a body over the server's limit",
            status(
                413,
                r#""message":"Request entity too large: limit is 3145728","reason":"RequestEntityTooLarge""#,
            ),
            CONFIG_MAP,
            FaultKind::TooLarge,
        ),
        (
            "an object over etcd's limit",
            status(500, r#""message":"etcdserver: request is too large""#),
            CONFIG_MAP,
            FaultKind::TooLarge,
        ),
        (
            "an apply that does not fit the schema",
            status(
                500,
                r#""message":"failed to create typed patch object (ns/pos; /v1, Kind=ConfigMap): .wrong: field not declared in schema""#,
            ),
            CONFIG_MAP,
            FaultKind::Invalid,
        ),
        (
            "an object whose kind is being claimed",
            status(
                403,
                r#""message":"apibindings.apis.kcp.io \"x\" is forbidden: metadata.labels[claimed.internal.apis.kcp.io/6MfA]: Invalid value: \"\": must be \"6719\"","reason":"Forbidden","details":{"name":"x","group":"apis.kcp.io","kind":"apibindings"}"#,
            ),
            CONFIG_MAP,
            RETRY,
        ),
        (
            "a kind whose storage is being made",
            status(
                429,
                r#""message":"storage is (re)initializing","reason":"TooManyRequests","details":{"retryAfterSeconds":1}"#,
            ),
            LIST,
            second,
        ),
        (
            "a server that is busy",
            status(
                503,
                r#""message":"the server is currently unable to handle the request","reason":"ServiceUnavailable""#,
            ),
            CONFIG_MAP,
            RETRY,
        ),
        (
            "a view of an export that is gone",
            (
                500,
                "Internal Server Error: \"/services/apiexport/root:espw/nope\": API export not found".into(),
            ),
            LIST,
            RETRY,
        ),
        (
            "our own mistake",
            status(
                415,
                r#""message":"415: Unsupported Media Type","reason":"UnsupportedMediaType","details":{}"#,
            ),
            CONFIG_MAP,
            FaultKind::Bug,
        ),
    ];
    for (what, answer, asked, expected) in rows {
        let fault = fault(answer, asked);
        assert_eq!(fault.kind, *expected, "{what}: {fault}");
        assert!(!fault.text.is_empty() && !fault.text.contains('\n'), "{what}: {fault}");
    }
}

#[test]
fn a_refusal_names_the_fields_and_never_their_values() {
    let answer = status(
        422,
        r#""message":"Service \"s\" is invalid: [spec.ports[0].name: Invalid value: \"sec ret\": a label must…]","reason":"Invalid","details":{"name":"s","kind":"Service","causes":[
            {"reason":"FieldValueInvalid","message":"Invalid value: \"sec \\\" ret\": a lowercase RFC 1123 label must consist of lower case characters","field":"spec.ports[0].name"},
            {"reason":"FieldValueInvalid","message":"Invalid value: 70000: must be between 1 and 65535, inclusive","field":"spec.ports[0].port"},
            {"reason":"FieldValueInvalid","message":"Invalid value: 70000: must be between 1 and 65535, inclusive","field":"spec.ports[0].port"},
            {"reason":"FieldValueInvalid","message":"Invalid value: {\"password\":\"hunter2\"}: no","field":"spec.secret"},
            {"reason":"FieldValueRequired","message":"Required value: at least one port","field":"spec.ports"}]}"#,
    );
    let fault = fault(&answer, &Asked { name: "s", ..CONFIG_MAP });
    assert_eq!(
        fault.text,
        "the server refuses Service \"s\": spec.ports[0].name: Invalid value: a lowercase RFC 1123 label must consist of lower case characters; \
         spec.ports[0].port: Invalid value: must be between 1 and 65535, inclusive; spec.secret: Invalid value; spec.ports: Required value: at least one port"
    );
    assert_eq!(fault.kind, FaultKind::Invalid);
}

#[test]
fn a_decoding_error_does_not_quote_the_body() {
    let answer = status(
        400,
        r#""message":"the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character 'b' ({bad secret)","reason":"BadRequest""#,
    );
    let said = fault(&answer, &CONFIG_MAP);
    assert_eq!((said.kind, said.text.contains("secret")), (FaultKind::Invalid, false), "{said}");
    let webhook = status(
        400,
        r#""message":"admission webhook \"no.example.com\" denied the request: boats only","reason":"BadRequest""#,
    );
    let said = fault(&webhook, &CONFIG_MAP).text;
    assert!(said.ends_with("admission webhook \"no.example.com\" denied it"), "{said}");
}

#[test]
fn who_refuses_an_object_is_said_and_what_he_quotes_of_it_is_not() {
    for (code, message, said) in [
        (
            403,
            "admission webhook \\\"no.example.com\\\" denied the request: password hunter2 is weak",
            "\"no.example.com\" denied it",
        ),
        (
            422,
            "boats \\\"pos\\\" is forbidden: ValidatingAdmissionPolicy 'short' with binding 'b' denied request: hunter2 is long",
            "Policy \"short\" denied it",
        ),
        (
            403,
            "pods \\\"pos\\\" is forbidden: violates PodSecurity \\\"restricted:latest\\\": hunter2 (container)",
            "violates PodSecurity \"restricted:latest\"",
        ),
        (
            403,
            "pods \\\"pos\\\" is forbidden: exceeded quota: small, requested: hunter2=1",
            "exceeds the quota \"small\"",
        ),
        (
            500,
            "failed to create typed patch object (ns/pos; /v1, Kind=ConfigMap): .spec.port: expected number, got \\\"hunter2\\\"",
            "schema at .spec.port",
        ),
        (422, "something of hunter2 and more", "may quote the object"),
        (403, "admission webhook \\\"hunter2 is no name\\\" denied the request: x", "may quote the object"),
    ] {
        let body = format!(
            r#""message":"{message}","reason":"Invalid","details":{{"name":"pos","kind":"configmaps"}}"#
        );
        let fault = fault(&status(code, &body), &CONFIG_MAP);
        assert_eq!(fault.kind, FaultKind::Invalid, "{message}");
        assert!(!fault.text.contains("hunter2") && fault.text.contains(said), "{}", fault.text);
    }
    // As kube-apiserver passes on what a webhook answers: without details.
    let webhook = status(
        403,
        r#""message":"admission webhook \"no.example.com\" denied the request: hunter2","reason":"Forbidden""#,
    );
    assert_eq!(fault(&webhook, &CONFIG_MAP).text, "admission webhook \"no.example.com\" denied it");
}

#[test]
fn a_page_for_people_is_no_api_server() {
    for (code, content_type) in [(404, "text/html; charset=utf-8"), (302, "text/html"), (301, "")] {
        let answer = Answer {
            status: StatusCode::from_u16(code).unwrap(),
            content_type,
            retry_after: None,
            body: b"<html><body>Not Found</body></html>",
        };
        let fault = classify(&answer, &LIST);
        assert_eq!(fault.kind, FaultKind::Away, "{fault}");
        assert!(
            fault.text.contains("no Kubernetes API server") && fault.text.contains("kubeconfig"),
            "{fault}"
        );
    }
}

#[test]
fn no_server_makes_us_wait_for_ever() {
    let answer = Answer {
        status: StatusCode::TOO_MANY_REQUESTS,
        content_type: "text/plain",
        retry_after: Some(Duration::from_hours(24)),
        body: b"Too many requests, please try again later.",
    };
    assert_eq!(classify(&answer, &LIST).kind, FaultKind::Retry(Some(RETRY_AFTER_LIMIT)));
}

#[test]
fn no_server_is_asked_again_at_once() {
    let none = Answer {
        status: StatusCode::SERVICE_UNAVAILABLE,
        content_type: "text/plain",
        retry_after: Some(Duration::ZERO),
        body: b"",
    };
    assert_eq!(classify(&none, &LIST).kind, RETRY);
    let body = r#"{"kind":"Status","message":"busy","details":{"retryAfterSeconds":0}}"#;
    let both = Answer { content_type: "application/json", body: body.as_bytes(), ..none };
    assert_eq!(classify(&both, &LIST).kind, RETRY);
}

#[test]
fn a_text_has_one_line_and_an_end() {
    let answer = status(503, &format!(r#""message":"line one\nline two {}""#, "x".repeat(5000)));
    let text = fault(&answer, &LIST).text;
    assert!(
        text.starts_with("line one line two") && text.chars().count() <= TEXT_LIMIT_CHARACTERS + 1,
        "{text}"
    );
}
