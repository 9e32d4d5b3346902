//! What holds in every combination of what is wanted, seen, marked, remembered and possible.

use super::*;

fn forms() -> Vec<Form> {
    let mut forms = vec![
        Form::Undecided(Hold { reason: "not known".to_owned(), on: None }),
        Form::No(gone(false)),
        Form::No(gone(true)),
        Form::No(deleting(false)),
        Form::No(deleting(true)),
        Form::No(deselected()),
    ];
    for delivery in
        [Delivery::Apply, Delivery::CreateOnly, Delivery::ThreeWay, Delivery::Overlay, Delivery::Keep]
    {
        for adopt in [Adopt::Never, Adopt::Unmarked] {
            for status in [StatusReturn::Off, StatusReturn::Subresource, StatusReturn::Inline] {
                for finalizer in [false, true] {
                    forms.push(Form::By(want(delivery, adopt, status, finalizer)));
                }
            }
        }
    }
    forms
}

const READY: [Ready; 8] = [
    Ready::Yes,
    Ready::ClusterAway,
    Ready::KindUnserved,
    Ready::NamespaceMissing,
    Ready::NamespaceEnding,
    Ready::Resting,
    Ready::Rejected,
    Ready::Contended,
];
const LIKENESS: [Likeness; 4] = [Likeness::Same, Likeness::Outdated, Likeness::Rewritten, Likeness::Unread];
const TELLINGS: [Telling; 3] = [Telling::Now, Telling::Later, Telling::Away];
const PERMITS: [Permit; 3] = [Permit::Open, Permit::Pending, Permit::Held(ChangeId(1))];

/// What may stand in a slot, and what is known of whose it is.
struct Standing<'a> {
    target: Seen<&'a Object>,
    missing: bool,
    marked: &'a Marked,
    proof: Proof,
    likeness: Likeness,
}

/// All that may stand there. Whose it is and what it is like is asked only of what is present; whether a reading missed it
/// only of what is not known.
fn standings<'a>(objects: [&'a Object; 2], marks: &'a [Marked], nobodys: &'a Marked) -> Vec<Standing<'a>> {
    let bare = |target, missing| {
        let (proof, likeness) = (Proof::Ours, Likeness::Same);
        Standing { target, missing, marked: nobodys, proof, likeness }
    };
    let mut all = vec![bare(Seen::Absent(absence()), false)];
    all.extend(
        Doubt::ALL
            .into_iter()
            .flat_map(|doubt| [false, true].map(|missing| bare(Seen::Unknown(doubt), missing))),
    );
    for target in objects {
        for marked in marks {
            let ours = matches!(marked, Marked::Ours(mark) if mark.owner == owner());
            let proofs: &[_] =
                if ours { &[Proof::Ours, Proof::NotOurs, Proof::Open] } else { &[Proof::Ours] };
            for proof in proofs {
                all.extend(LIKENESS.map(|likeness| {
                    let (target, proof) = (Seen::Present(target), *proof);
                    Standing { target, missing: false, marked, proof, likeness }
                }));
            }
        }
    }
    all
}

fn records(live: &Object) -> [Record; 4] {
    let odd = |odd: Oddity| Record { odd: odd.into(), ..Record::default() };
    [
        Record::default(),
        Record { uid: Some(live.uid.clone()), ..Record::default() },
        odd(Oddity { hidden: Some(live.uid.clone()), ..Oddity::default() }),
        odd(Oddity { unclear_at: Some(live.version), ..Oddity::default() }),
    ]
}

/// Calls `check` with every combination there is.
fn every_slot(mut check: impl FnMut(&Slot<'_>, &Plan)) -> usize {
    let (live, ending) = (object(false, &[]), object(true, &[]));
    let (source, source_ending) = (object(false, &[FINALIZER]), object(true, &[FINALIZER]));
    let bare_source = object(false, &[]);
    let (key, owner, finalizer) = (key(), owner(), Name::new(FINALIZER));
    let others = Marked::Others(OwnerId(Name::new("them")));
    let marks =
        [mark("us", false), mark("us", true), overlaid(), mark("them", false), others, Marked::Nobodys];
    let standings = standings([&live, &ending], &marks, &Marked::Nobodys);
    let records = records(&live);
    let mut count = 0;
    for (form, last) in forms().iter().flat_map(|form| [(form, true), (form, false)]) {
        // Only a source that waits for its copies asks which is the last.
        if !last && !matches!(form, Form::No(Evidence::SourceDeleting(_))) {
            continue;
        }
        let wanted = matches!(form, Form::By(_));
        for standing in &standings {
            // What is not wanted is compared with nothing.
            if !wanted && standing.likeness != Likeness::Same {
                continue;
            }
            for (source, record, apply) in product(
                &[None, Some(&source), Some(&source_ending), Some(&bare_source)],
                &records.each_ref(),
                &[true, false],
            ) {
                // A finalizer of ours on what stands there concerns only what nobody wants.
                let strays: &[Option<&Name>] =
                    if wanted || !present(standing) { &[None] } else { &[None, Some(&finalizer)] };
                for ((ready, permit, telling), stray) in product(&READY, &PERMITS, &TELLINGS)
                    .into_iter()
                    .flat_map(|all| strays.iter().map(move |stray| (all, *stray)))
                {
                    let slot = Slot {
                        key: &key,
                        owner: &owner,
                        wanted: form.wanted(),
                        source,
                        target: standing.target,
                        missing: standing.missing,
                        marked: standing.marked,
                        proof: standing.proof,
                        likeness: standing.likeness,
                        record,
                        ready,
                        telling,
                        apply,
                        permit,
                        last,
                        finalizer: Some(&finalizer),
                        stray,
                    };
                    check(&slot, &plan(&slot));
                    count += 1;
                }
            }
        }
    }
    count
}

fn present(standing: &Standing<'_>) -> bool {
    matches!(standing.target, Seen::Present(_))
}

fn product<A: Copy, B: Copy, C: Copy>(a: &[A], b: &[B], c: &[C]) -> Vec<(A, B, C)> {
    a.iter().flat_map(|a| b.iter().flat_map(move |b| c.iter().map(move |c| (*a, *b, *c)))).collect()
}

fn show(slot: &Slot<'_>, plan: &Plan) -> String {
    let wanted = match &slot.wanted {
        Wanted::By(want) => format!("by {:?}", want.policy),
        Wanted::No(evidence) => format!("no: {evidence:?}"),
        Wanted::Undecided(_) => "undecided".to_owned(),
    };
    let target = match &slot.target {
        Seen::Present(target) => format!("present, deleting {}", target.deleting),
        Seen::Absent(_) => "absent".to_owned(),
        Seen::Unknown(doubt) => format!("unknown: {doubt}, missing {}", slot.missing),
    };
    let (marked, proof, record) = (slot.marked, slot.proof, slot.record);
    let (ready, likeness, permit, apply) = (slot.ready, slot.likeness, slot.permit, slot.apply);
    format!(
        "wanted {wanted}; target {target}; {marked:?}, {proof:?}; {ready:?}, telling {:?}; {likeness:?}; {permit:?}; \
         apply {apply}; stray {:?}; {record:?}; gives {plan:?}",
        slot.telling, slot.stray
    )
}

fn is_ours(slot: &Slot<'_>) -> bool {
    bears_fields_of_ours(slot) && !matches!(slot.marked, Marked::Ours(mark) if mark.overlay)
}

fn bears_fields_of_ours(slot: &Slot<'_>) -> bool {
    matches!(slot.marked, Marked::Ours(mark) if mark.owner == *slot.owner)
}

/// Only the object that was seen, as it was seen.
fn is_of_the_target(slot: &Slot<'_>, uid: &Uid, version: Version) -> bool {
    matches!(slot.target, Seen::Present(target) if target.uid == *uid && target.version == version)
}

#[test]
fn the_laws_hold_in_every_combination() {
    let count = every_slot(|slot, plan| {
        for action in &plan.actions {
            if let Err(law) = is_lawful(slot, action) {
                panic!("{law}: {}", show(slot, plan));
            }
        }
        if let Err(law) = is_lawful_as_a_whole(slot, plan) {
            panic!("{law}: {}", show(slot, plan));
        }
    });
    assert_eq!(count, 20_892_672, "a combination was left out");
}

fn law(holds: bool, breach: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(breach) }
}

/// What must hold where one thing is done.
fn is_lawful(slot: &Slot<'_>, action: &Action) -> Result<(), &'static str> {
    let present = matches!(slot.target, Seen::Present(_));
    let policy = match &slot.wanted {
        Wanted::By(want) => Some(&*want.policy),
        Wanted::No(_) | Wanted::Undecided(_) => None,
    };
    match action {
        Action::Delete(warrant) => {
            law(present && is_ours(slot) && slot.proof == Proof::Ours, "deletes what is not ours")?;
            law(is_of_the_target(slot, warrant.uid(), warrant.version()), "deletes another than was seen")?;
            law(matches!(slot.wanted, Wanted::No(_)), "deletes what is wanted")?;
            law(slot.permit == Permit::Open, "deletes against the breaker")?;
            law(!matches!(slot.marked, Marked::Ours(mark) if mark.leave), "deletes what stays")?;
            law(warrant.why().is_confirmed(), "deletes without a fresh look")
        }
        Action::Release { uid, version } | Action::LetGo { uid, version } => {
            law(is_of_the_target(slot, uid, *version), "lets go of another than was seen")?;
            law(bears_fields_of_ours(slot), "releases what is not ours")?;
            if slot.proof != Proof::NotOurs {
                let Wanted::No(evidence) = &slot.wanted else {
                    return Err("lets go of what is wanted and ours");
                };
                law(evidence.is_confirmed(), "lets go without a fresh look")?;
                let asked = slot.permit == Permit::Open || !is_ours(slot);
                law(asked, "lets go of a copy against the breaker")?;
                let stays = matches!(slot.marked, Marked::Ours(mark) if mark.leave || mark.overlay);
                law(stays, "lets go of what is to be deleted")?;
            }
            law(
                slot.apply || matches!(action, Action::Release { .. }),
                "lets go by an apply where there is none",
            )
        }
        Action::Deliver { expect, how } => delivery_is_lawful(slot, policy, expect, *how),
        Action::EnsureNamespace => {
            law(policy.is_some_and(|policy| policy.delivery != Delivery::Keep), "makes room for nothing")?;
            law(slot.ready == Ready::NamespaceMissing && !present, "makes a namespace that is there")
        }
        Action::Report(how) => {
            law(present && slot.source.is_some(), "reports nothing, or to nobody")?;
            law(policy.is_some_and(|policy| policy.status == *how), "reports what nobody asked for")?;
            law(is_ours(slot) || overlays(policy), "reports what another's object says")
        }
        Action::Finalizer { add: true, name } => {
            law(policy.is_some_and(|policy| policy.finalizer), "an unasked finalizer")?;
            let takes = slot.source.is_some_and(|source| {
                !source.deleting && !source.finalizers().any(|finalizer| finalizer == name.as_str())
            });
            law(takes, "a finalizer on what goes, or bears it already")
        }
        Action::Finalizer { add: false, .. } => {
            if !matches!(slot.wanted, Wanted::No(Evidence::SourceDeleting(_))) {
                // Or off what stands there itself, which waits for nobody.
                let waits_for_nobody = slot.stray.is_some() && matches!(slot.wanted, Wanted::No(_));
                law(waits_for_nobody, "lets a source go that stays")?;
                law(present && !bears_fields_of_ours(slot), "takes a finalizer off a copy of ours")?;
                return law(slot.ready == Ready::Yes || namespace_only(slot.ready), "writes where it cannot");
            }
            let clear = match slot.target {
                Seen::Present(_) => !bears_fields_of_ours(slot),
                Seen::Absent(_) => true,
                Seen::Unknown(_) => slot.missing,
            };
            law(clear && slot.last, "lets the source go while a copy stands, or may stand")
        }
        Action::LookBefore { version } => {
            let seen = matches!(slot.target, Seen::Present(target) if target.version == *version);
            law(seen && slot.proof == Proof::Open, "asks about the past of what is clear")
        }
        Action::Read => law(!slot.missing, "reads again what was just read"),
        Action::Compare => law(present && policy.is_some(), "compares with nothing"),
        Action::ConfirmGone(source) => {
            let open = match &slot.wanted {
                Wanted::No(Evidence::SourceGone(gone)) => !gone.is_confirmed() && gone.source() == source,
                Wanted::No(Evidence::SourceDeleting(one)) => !one.is_confirmed() && one.source() == source,
                _ => false,
            };
            law(open && present && bears_fields_of_ours(slot), "looks at a source for nothing")?;
            law(slot.permit == Permit::Open || !is_ours(slot), "looks for what may not go yet")
        }
    }
}

/// Whether nothing but a namespace keeps a place from being written: what stands there can be.
fn namespace_only(ready: Ready) -> bool {
    matches!(ready, Ready::NamespaceMissing | Ready::NamespaceEnding)
}

fn overlays(policy: Option<&Policy>) -> bool {
    policy.is_some_and(|policy| policy.delivery == Delivery::Overlay)
}

fn delivery_is_lawful(
    slot: &Slot<'_>,
    policy: Option<&Policy>,
    expect: &Expect,
    how: How,
) -> Result<(), &'static str> {
    let Some(policy) = policy else { return Err("delivers what is not wanted") };
    law(slot.ready == Ready::Yes, "writes where it cannot")?;
    law(slot.proof == Proof::Ours, "writes what may not be ours")?;
    law(policy.delivery != Delivery::Keep, "changes what is only to be kept")?;
    law(how != How::Apply || slot.apply, "applies where a place does not truly apply")?;
    law(how != How::Mark || policy.delivery == Delivery::CreateOnly, "writes nothing but a mark")?;
    let hidden = |uid: &Uid| slot.record.odd.hidden.as_ref() == Some(uid);
    match (expect, &slot.target) {
        (Expect::Uid(uid), Seen::Present(target)) if *uid == target.uid && !target.deleting => {
            let asked = policy.adopt == Adopt::Unmarked || overlays(Some(policy));
            let nobodys = *slot.marked == Marked::Nobodys || (bears_fields_of_ours(slot) && !is_ours(slot));
            law(is_ours(slot) || (nobodys && asked), "touches a foreign object")
        }
        (expect, Seen::Absent(_) | Seen::Unknown(_)) => {
            let as_seen = match expect {
                Expect::New => true,
                Expect::Uid(uid) => hidden(uid),
            };
            law(as_seen, "expects what was never there")?;
            law(!slot.source.is_some_and(|source| source.deleting), "makes a copy of what goes")?;
            law(!overlays(Some(policy)), "makes an object for fields")?;
            match slot.target {
                Seen::Unknown(doubt) => {
                    law(slot.missing && told_by_reading(doubt), "makes what may be there")
                }
                Seen::Absent(_) | Seen::Present(_) => Ok(()),
            }
        }
        (Expect::New | Expect::Uid(_), Seen::Present(_)) => Err("expects what is not there"),
    }
}

/// What must hold of all that is said and done at once.
fn is_lawful_as_a_whole(slot: &Slot<'_>, plan: &Plan) -> Result<(), &'static str> {
    let none = plan.actions.is_empty();
    let only = |allowed: fn(&Action) -> bool| plan.actions.iter().all(allowed);
    match (&slot.target, slot.proof) {
        (Seen::Present(_), Proof::NotOurs) => {
            law(
                only(|a| matches!(a, Action::LetGo { .. } | Action::Release { .. })),
                "uses what is not ours",
            )?;
        }
        (Seen::Present(_), Proof::Open) => {
            law(only(|a| matches!(a, Action::LookBefore { .. })), "acts on what may not be ours")?;
        }
        _ => {
            law(none || !matches!(slot.wanted, Wanted::Undecided(_)), "acts on what is not decided")?;
        }
    }
    if let Seen::Unknown(doubt) = slot.target {
        law(none || told_by_reading(doubt), "acts on what is not known")?;
    }
    if matches!(slot.ready, Ready::Resting | Ready::Rejected | Ready::Contended) {
        // What another hand keeps rewriting may still be withdrawn.
        let contended = slot.ready == Ready::Contended && matches!(slot.wanted, Wanted::No(_));
        let rests = only(|a| matches!(a, Action::Report(_) | Action::Finalizer { .. }));
        law(contended || rests, "does not let it rest")?;
    }
    if slot.telling != Telling::Now {
        let elsewhere = only(|a| !matches!(a, Action::Finalizer { .. } | Action::Report(_)));
        law(elsewhere, "tells a source what it does not hear")?;
    }
    if slot.telling == Telling::Away {
        law(only(|a| !matches!(a, Action::ConfirmGone(_))), "looks at a source that is away")?;
    }
    if slot.ready == Ready::ClusterAway {
        let elsewhere = only(|a| matches!(a, Action::Finalizer { .. } | Action::Report(_)));
        law(elsewhere, "writes to a cluster that is away")?;
    }
    law(plan.verdict != Verdict::Settled || none, "settled, and yet something to do")?;
    law(plan.verdict != Verdict::Acting || !none, "acting without an action")
}
