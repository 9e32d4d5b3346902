//! Scripts: what users and faults do, and when, drawn from a seed.

use std::fmt;

use mailboat_machinery::{Random as _, Seeded};

use crate::manners::Manners;

/// Where sources stand: the workload workspace, whose objects placements send to edges, the mailbox, whose objects go to
/// the first edge, or a workspace that is seen through a view and whose objects go there, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Workspace {
    /// Sources and placements of the translator-like routes.
    Workload,
    /// Sources of the edge-syncer-like route.
    Mailbox,
    /// Sources of the publisher-like route: one of several workspaces that bind an export.
    Bound(u8),
}

impl Workspace {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Workload, Self::Mailbox].into_iter().chain((0..BOUND).map(Self::Bound))
    }
}

/// The two kinds in the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum What {
    /// What is delivered.
    Boats,
    /// What is configured.
    Placements,
}

/// One thing that happens to the world. Names, labels and edges are numbers: drawn, printed and shrunk alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A user creates a source or changes its content.
    Put(Workspace, u8, u8),
    /// A user deletes a source.
    Delete(Workspace, u8),
    /// A user gives a source another label.
    Relabel(Workspace, u8, u8),
    /// Somebody at an edge creates an object of their own, or changes whatever has that name.
    EdgePut(u8, String),
    /// Somebody at an edge deletes whatever has that name.
    EdgeDelete(u8, String),
    /// What runs at an edge says how it is.
    EdgeStatus(u8, String, u8),
    /// A user creates or changes a placement: of this label, to these edges (as bits).
    Place(u8, u8, u64),
    /// A user deletes a placement.
    Displace(u8),
    /// A user deletes a placement and creates it under another name at once.
    Rename(u8, u8),
    /// A user deletes what tells a route to carry all that stands in the mailbox, or in the bound workspaces.
    Unconfigure(Workspace),
    /// A user tells it so again.
    Configure(Workspace),
    /// No request reaches this server, and no answer leaves it.
    Partition(u8),
    /// It is reached again; half of its streams stay dead.
    Heal(u8),
    /// The process ends, and starts again so many milliseconds later.
    Crash(u32),
    /// The server closes its streams.
    CloseStreams(u8),
    /// The server's streams fall silent for ever, without being closed.
    StallStreams(u8),
    /// The server forgets its past: 410.
    Compact(u8),
    /// So many of the server's next lists show its past.
    Stale(u8, u8),
    /// A kind is not served in a workspace; its objects stay.
    Unserve(Workspace, What),
    /// It is served again.
    Serve(Workspace, What),
    /// What serves the sources' kind is deleted, be it a definition or a binding, and all sources with it; the
    /// workspace lives.
    DropKind(Workspace),
    /// What defines the kind is changed, as by an upgrade; its objects stay.
    ChangeKind(Workspace),
    /// The kind is defined or bound anew.
    RedefineKind(Workspace),
    /// A user deletes a namespace at the center, and with it all sources in it.
    DropNamespace(Workspace, u8),
    /// Somebody at an edge deletes a namespace, and with it whatever stands in it.
    EdgeDropNamespace(u8, u8),
    /// The identity of the export is replaced: whatever was stored under the old one is not shown any more.
    ReplaceIdentity,
    /// The endpoint slice of the export has no URL.
    LoseUrl,
    /// It has one again.
    FindUrl,
    /// A workspace is deleted: first its objects, by ordinary delete events, later itself.
    DropWorkspace(Workspace),
    /// A backup of the center is taken.
    Backup,
    /// The center is restored from its last backup.
    Restore,
    /// The process stands still for so many milliseconds, as on a machine that is moved or overloaded, and then finds that
    /// the world went on.
    Pause(u32),
    /// The process's clock jumps ahead by so many milliseconds, as when a machine wakes up; the world has not gone on.
    Jump(u32),
    /// Somebody confirms whatever is held back because it is much, and does not take that word back.
    Confirm,
    /// Somebody accepts the claim by which copies at the last edge are seen, or rejects it; they stay.
    Claim(bool),
    /// From now on so many requests in a hundred go wrong.
    Noise(u8),
}

impl Step {
    /// Whether a user edits the center by this.
    pub(crate) fn edits_center(&self) -> bool {
        matches!(
            self,
            Self::Put(..)
                | Self::Delete(..)
                | Self::Relabel(..)
                | Self::Place(..)
                | Self::Displace(_)
                | Self::Rename(..)
                | Self::Unconfigure(_)
                | Self::Configure(_)
                | Self::DropKind(_)
                | Self::DropNamespace(..)
                | Self::ChangeKind(_)
                | Self::RedefineKind(_)
                | Self::ReplaceIdentity
                | Self::DropWorkspace(_)
        )
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A step and when it happens, in milliseconds.
pub type Line = (u64, Step);

/// The size of a world: how many edges, and how long its script is.
#[derive(Clone, Debug)]
pub struct Script {
    /// How many edges there are.
    pub edges: u8,
    /// Whether sources bear a finalizer and wait for their copies, where they are not seen through a view.
    pub waits: bool,
    /// Whether what stands at the last edge is seen by a permission claim.
    pub claims: bool,
    /// Whether of what stands at edges only heads are kept, as the center does.
    pub heads: bool,
    /// How each route delivers and withdraws.
    pub manners: Manners,
    /// What happens, sorted by time.
    pub lines: Vec<Line>,
}

/// So many workspaces bind the export.
pub(crate) const BOUND: u8 = 3;
/// In one of so many seeds sources wait for their copies.
const WAITS_OF: u64 = 4;
/// In one of so many seeds what stands at the last edge is seen by a claim.
const CLAIMS_OF: u64 = 5;
/// In one of so many seeds only heads are kept of what stands at edges.
const HEADS_OF: u64 = 3;
/// Sources have so many names.
const NAMES: u64 = 8;
/// Sources have one of so many labels, and placements select one.
const LABELS: u64 = 3;
/// One of so many seeds has a crowd: many sources of one label, which one placement sends to an edge or two.
const CROWDED_OF: u64 = 3;
/// How many they are.
const CROWD: u8 = 14;
/// A crowd is told something so many times.
const WAVES: u64 = 4;
/// How long after a wave somebody answers what is asked, and how long after that all is put back, in milliseconds at most.
const ANSWERED_WITHIN: u64 = 60_000;
/// Placements have so many names.
const PLACEMENTS: u64 = 3;

impl Script {
    /// The script of a seed.
    pub fn draw(seed: u64, steps: usize) -> Self {
        let mut dice = Dice(Seeded(seed ^ 0x005c_4197));
        // Mostly few clusters, which meet more often; sometimes many.
        let edges = if dice.below(32) == 0 { dice.below(43) + 5 } else { dice.below(4) + 1 };
        let mut lines = Vec::new();
        // Something to lose first: a placement or two, and a few sources.
        for at in 0..6 {
            lines.push((at, dice.source_edit()));
        }
        lines.push((7, dice.placement(edges)));
        lines.push((8, dice.placement(edges)));
        let mut at = 10;
        for _ in 0..steps {
            // Mostly a burst, sometimes long enough for everything to come to rest.
            at += if dice.below(6) == 0 { dice.number(60_000) } else { dice.number(1_500) };
            dice.step(edges, &mut at, &mut lines);
        }
        if seed.is_multiple_of(CROWDED_OF) && edges < 5 {
            // Drawn by itself, so that the others stay as they are.
            Dice(Seeded(seed ^ 0x00c0_3d00)).crowd(edges, at, &mut lines);
        }
        let mut dice = Dice(Seeded(seed ^ 0x00c0_2f16));
        dice.configuration(at, &mut lines);
        dice.jumps(at, &mut lines);
        let waits = seed % WAITS_OF == WAITS_OF - 1;
        let claims = seed % CLAIMS_OF == CLAIMS_OF - 1;
        if claims {
            dice.claims(at, &mut lines);
        }
        lines.sort_by_key(|(at, _)| *at);
        let heads = Seeded(seed ^ 0x0ead_0e4d).next().is_multiple_of(HEADS_OF);
        Self { edges, waits, claims, heads, manners: Manners::draw(seed), lines }
    }
}

struct Dice(Seeded);

impl Dice {
    fn number(&mut self, below: u64) -> u64 {
        self.0.next() % below
    }

    fn below(&mut self, below: u64) -> u8 {
        u8::try_from(self.number(below)).unwrap_or(0)
    }

    fn workspace(&mut self) -> Workspace {
        match self.below(7) {
            0 => Workspace::Mailbox,
            1..3 => Workspace::Bound(self.below(BOUND.into())),
            _ => Workspace::Workload,
        }
    }

    fn what(&mut self) -> What {
        if self.below(3) == 0 { What::Placements } else { What::Boats }
    }

    fn target(&mut self) -> String {
        let prefix = match self.below(8) {
            0 => "mb-",
            1 => "b0-",
            _ => "",
        };
        format!("{prefix}n{}", self.number(NAMES))
    }

    fn placement(&mut self, edges: u8) -> Step {
        let (name, label) = (self.below(PLACEMENTS), self.below(LABELS));
        Step::Place(name, label, self.number(1 << edges))
    }

    fn source_edit(&mut self) -> Step {
        Step::Put(self.workspace(), self.below(NAMES), self.below(LABELS))
    }

    /// Many are placed together, and then all of them go, in one way or another; somebody may confirm that, and all come back.
    fn crowd(&mut self, edges: u8, end: u64, lines: &mut Vec<Line>) {
        let all = |step: fn(u8) -> Step| (0..CROWD).map(step);
        let put = || all(|name| Step::Put(Workspace::Workload, name, 0));
        let bits = 1 << self.number(edges.into()) | 1 << self.number(edges.into());
        let place = Step::Place(0, 0, bits);
        lines.extend(put().chain([place.clone()]).map(|step| (9, step)));
        for _ in 0..=self.number(WAVES) {
            let at = 20_000 + self.number(end.max(1));
            let mut wave = match self.below(6) {
                0 => vec![Step::Displace(0)],
                1 => vec![Step::Place(0, 0, 0)],
                2 => vec![Step::Crash(5_000), Step::Place(0, 1, bits)],
                3 => vec![Step::Crash(5_000), Step::Displace(0)],
                4 => all(|name| Step::Delete(Workspace::Workload, name)).collect(),
                _ => vec![Step::Place(0, 1, bits)],
            };
            lines.extend(wave.drain(..).map(|step| (at, step)));
            let answered = at + self.number(ANSWERED_WITHIN);
            if self.below(4) > 0 {
                lines.push((answered, Step::Confirm));
            }
            let back = answered + self.number(ANSWERED_WITHIN);
            lines.extend(put().chain([place.clone()]).map(|step| (back, step)));
        }
    }

    /// Sometimes all that the mailbox or the bound workspaces hold is not asked for any more, and mostly it is again later.
    fn configuration(&mut self, end: u64, lines: &mut Vec<Line>) {
        for workspace in [Workspace::Mailbox, Workspace::Bound(0)] {
            if self.below(4) == 0 {
                let at = 20_000 + self.number(end.max(1));
                lines.push((at, Step::Unconfigure(workspace)));
                if self.below(4) > 0 {
                    lines.push((at + self.number(90_000), Step::Configure(workspace)));
                }
            }
        }
    }

    /// A claim is rejected and accepted again, some times.
    fn claims(&mut self, end: u64, lines: &mut Vec<Line>) {
        for _ in 0..=self.below(4) {
            let at = 10_000 + self.number(end.max(1));
            lines.push((at, Step::Claim(false)));
            lines.push((at + self.number(90_000), Step::Claim(true)));
        }
    }

    /// In some worlds the process's clock jumps, by seconds, minutes or hours.
    fn jumps(&mut self, end: u64, lines: &mut Vec<Line>) {
        if self.below(4) == 0 {
            for _ in 0..=self.below(3) {
                let by = [9_000, 40_000, 600_000, 10_800_000][usize::from(self.below(4))];
                let by = u32::try_from(self.number(by)).unwrap_or(0);
                lines.push((self.number(end.max(1)), Step::Jump(by)));
            }
        }
    }

    fn step(&mut self, edges: u8, at: &mut u64, lines: &mut Vec<Line>) {
        let now = *at;
        let step = match self.below(100) {
            0..22 => self.source_edit(),
            22..33 => Step::Delete(self.workspace(), self.below(NAMES)),
            33..38 => Step::Relabel(self.workspace(), self.below(NAMES), self.below(LABELS)),
            38..44 => Step::EdgePut(self.below(edges.into()), self.target()),
            44..47 => Step::EdgeDelete(self.below(edges.into()), self.target()),
            47..51 => Step::EdgeStatus(self.below(edges.into()), self.target(), self.below(9)),
            51..59 => self.placement(edges),
            59..62 => Step::Displace(self.below(PLACEMENTS)),
            62..64 => Step::Rename(self.below(PLACEMENTS), self.below(PLACEMENTS)),
            64..69 => {
                let server = self.below(u64::from(edges) + 1);
                lines.push((now + self.number(90_000), Step::Heal(server)));
                Step::Partition(server)
            }
            69..75 => Step::Crash(u32::from(self.below(200)) * 50),
            75..78 => Step::CloseStreams(self.below(u64::from(edges) + 1)),
            78..80 => Step::StallStreams(self.below(u64::from(edges) + 1)),
            80..83 => Step::Compact(self.below(u64::from(edges) + 1)),
            83..86 => Step::Stale(self.below(u64::from(edges) + 1), self.below(4) + 1),
            86..89 => {
                let (workspace, what) = (self.workspace(), self.what());
                lines.push((now + self.number(40_000), Step::Serve(workspace, what)));
                Step::Unserve(workspace, what)
            }
            89..91 => {
                let workspace = self.workspace();
                lines.push((now + self.number(40_000), Step::RedefineKind(workspace)));
                Step::DropKind(workspace)
            }
            91 if self.below(3) == 0 => Step::DropWorkspace(self.workspace()),
            92 if self.below(3) == 0 => Step::ReplaceIdentity,
            93 if self.below(2) == 0 => {
                lines.push((now + self.number(60_000), Step::FindUrl));
                Step::LoseUrl
            }
            91..94 => {
                lines.push((now + self.number(60_000), Step::Restore));
                Step::Backup
            }
            94 => Step::ChangeKind(self.workspace()),
            96 => Step::DropNamespace(self.workspace(), self.below(2)),
            97 => Step::EdgeDropNamespace(self.below(edges.into()), self.below(2)),
            95 => Step::Pause(u32::from(self.below(200)) * 1_000),
            _ => Step::Noise(self.below(30)),
        };
        lines.push((now, step));
    }
}
