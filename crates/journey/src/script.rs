//! Scripts: what users and faults do, and when, drawn from a seed.

use std::fmt;

use mailboat_machinery::{Random as _, Seeded};

use crate::sea::Who;

/// Which kind of cargo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cargo {
    /// Of a kind that users define.
    Boat,
    /// Of a built-in kind.
    ConfigMap,
}

/// Where users keep cargo and configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Site {
    /// The mailbox of an edge.
    Mailbox(u8),
    /// The workload workspace, from which the center places.
    Workload,
    /// The inventory workspace.
    Inventory,
}

/// One thing that happens. Names, labels and edges are numbers: drawn, printed and shrunk alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A user creates cargo with a label, or changes its content.
    Put(Site, Cargo, u8, u8),
    /// A user deletes it.
    Delete(Site, Cargo, u8),
    /// A user gives cargo in the workload workspace another label.
    Relabel(Cargo, u8, u8),
    /// A user creates or changes a placement: of cargo with this label, to Locations with that one.
    Place(u8, u8, u8),
    /// A user asks for the status of what a placement sends to one edge.
    WantStatus(u8),
    /// A user deletes a placement.
    Displace(u8),
    /// A user gives an edge's Location another label.
    Locate(u8, u8),
    /// A user takes an edge out of service: nothing new is to go there.
    Cordon(u8),
    /// A user says that what is there is to leave.
    Evict(u8),
    /// A user writes a selector into a placement that cannot be understood.
    Misplace(u8),
    /// The same in an edge's Location.
    Mislead(u8),
    /// Somebody puts a finalizer on an edge's SyncTarget, and does not take it off again.
    Detain(u8),
    /// A user deletes an edge's SyncTarget.
    Retire(u8),
    /// A user deletes an edge's Location and its SyncTarget at once.
    RetireWhole(u8),
    /// A user deletes an edge's Location, and the edge stays.
    Unlist(u8),
    /// Somebody confirms that mailboxes go whose SyncTargets are gone.
    ConfirmRetired,
    /// Somebody confirms whatever an edge's SyncTarget says that is held back.
    ConfirmTarget(u8),
    /// Somebody confirms whatever is held back for a placement.
    ConfirmPlacement(u8),
    /// What an edge's syncer is told: boats and ConfigMaps, by their numbers as bits.
    Tell(u8, u16, u16),
    /// A further configuration beside it: boats, by their numbers as bits; the ninth bit means all of one namespace.
    TellMore(u8, u16),
    /// The further configuration is deleted.
    TellLess(u8),
    /// Which namespaces an edge's syncer is to carry themselves, by their numbers as bits.
    TellSpaces(u8, u8),
    /// A user lets a placement carry all namespaces themselves, until it is written anew.
    PlaceSpaces(u8),
    /// What an edge's syncer is to bring up, boats and ConfigMaps alike, by their numbers as bits.
    TellUp(u8, u16),
    /// Somebody confirms whatever an edge's syncer holds back.
    Confirm(u8),
    /// Somebody at an edge creates an object of their own, or changes whatever has that name.
    EdgePut(u8, Cargo, u8),
    /// Somebody at an edge deletes whatever has that name.
    EdgeDelete(u8, Cargo, u8),
    /// Somebody at an edge defines the boats there.
    EdgeDefine(u8),
    /// A user keeps the definition of boats that are bound in the workload workspace, as one for edges.
    KeepDefinition,
    /// Whoever else offers the boats deletes their export with its key, and makes it anew: it has another identity.
    ChangeIdentity,
    /// Somebody deletes the binding by which the center sees bound boats in the mailbox of an edge.
    DropClaim(u8),
    /// What runs at an edge makes an object that may be brought up, or changes it.
    UpPut(u8, Cargo, u8),
    /// It deletes such an object.
    UpDelete(u8, Cargo, u8),
    /// What runs at an edge says how it is.
    EdgeStatus(u8, u8, u8),
    /// A user deletes a namespace, and with it all that is in it.
    DropNamespace(Site, u8),
    /// Somebody at an edge deletes a namespace.
    EdgeDropNamespace(u8, u8),
    /// No request reaches this server, and no answer leaves it.
    Partition(u8),
    /// It is reached again; half of its streams stay dead.
    Heal(u8),
    /// The center has a second shard, which nobody reaches.
    AwayShard,
    /// A process ends, and starts again so many milliseconds later.
    Crash(Who, u32),
    /// A process stands still for so many milliseconds.
    Pause(Who, u32),
    /// The server closes its streams.
    CloseStreams(u8),
    /// The server's streams fall silent for ever, without being closed.
    StallStreams(u8),
    /// The server forgets its past: 410.
    Compact(u8),
    /// So many lists of what somebody has read before show the past.
    StaleLists(u8, u8),
    /// The boats are not served; they stay.
    Unserve(Site),
    /// They are served again.
    Serve(Site),
    /// What defines the boats is deleted, and all boats with it: their definition, or the binding to them.
    DropDefinition(Site),
    /// The boats are defined anew.
    Redefine(Site),
    /// The binding to the kinds of the configuration is deleted, and the configuration with it.
    DropBinding(Site),
    /// It is bound again.
    Rebind(Site),
    /// A workspace is deleted, and all that is in it.
    Drop(Site),
    /// A backup of the center's server is taken. From then on others write more to that server than anybody does here.
    Backup,
    /// The center's server is restored from it.
    Restore,
    /// Whatever is asked of a workspace itself, by the center, is answered with an internal error.
    Silence(Site),
    /// It answers again.
    Speak(Site),
    /// Somebody rejects all claims by which the center sees its copies in an edge's mailbox: they leave its view and stay.
    RejectClaims(u8),
    /// The calendar by which processes tell the time is set: so many seconds ahead of the servers', or behind.
    Calendar(i32),
    /// From now on so many requests in a hundred go wrong.
    Noise(u8),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A step and when it happens, in milliseconds.
pub type Line = (u64, Step);

/// What happens in a world.
#[derive(Clone, Debug)]
pub struct Script {
    /// Whether there is a center, which fills the mailboxes; users do so otherwise.
    pub center: bool,
    /// Whether the workload workspace has the boats by a binding to somebody else's export.
    pub bound: bool,
    /// How many edges there are.
    pub edges: u8,
    /// What happens, sorted by time.
    pub lines: Vec<Line>,
}

/// Cargo has so many names.
pub(crate) const NAMES: u64 = 8;
/// Cargo and Locations have one of so many labels, and placements select one of each.
const LABELS: u64 = 2;
/// Placements have so many names.
const PLACEMENTS: u64 = 3;

impl Script {
    /// The script of a seed: one half with a center, the other without. Of those with a center, every fifth is with boats
    /// that are bound.
    pub fn draw(seed: u64, steps: usize) -> Self {
        let mut dice = Dice(Seeded(seed ^ 0x5c41_9700));
        let (center, bound) = (seed % 2 == 1, seed % 10 == 9);
        let edges = dice.below(if center { 3 } else { 2 }) + 1;
        let mut lines = Vec::new();
        // What is bound is known at the edges by other means.
        lines.extend((0..edges).filter(|_| bound).map(|edge| (0, Step::EdgeDefine(edge))));
        // Something to lose first.
        if center {
            lines.extend((0..10).map(|at| (at, dice.put(Site::Workload))));
            lines.extend((0..2).map(|at| (11 + at, dice.place())));
        } else {
            for edge in 0..edges {
                lines.extend((0..10).map(|at| (at, dice.put(Site::Mailbox(edge)))));
                lines.push((11, dice.tell(edge)));
                lines.extend((12..15).map(|at| (at, Step::UpPut(edge, dice.cargo(), dice.below(NAMES)))));
                lines.push((15, Step::TellUp(edge, dice.bits() | dice.bits())));
            }
        }
        let mut at = 2_000;
        for _ in 0..steps {
            // Mostly a burst, sometimes long enough for everything to come to rest.
            at += if dice.below(6) == 0 { dice.number(60_000) } else { dice.number(1_500) };
            dice.step(center, edges, at, &mut lines);
        }
        // Drawn by itself, so that the others stay as they are.
        let mut dice = Dice(Seeded(seed ^ 0x0ca1_e2da));
        dice.calendar(at, &mut lines);
        if center && dice.below(3) == 0 {
            lines.push((dice.number(at), Step::RejectClaims(dice.below(edges.into()))));
        }
        Dice(Seeded(seed ^ 0x005a_ace5)).spaces(center, edges, at, &mut lines);
        lines.sort_by_key(|(at, _)| *at);
        Self { center, bound, edges, lines }
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

    fn bits(&mut self) -> u16 {
        u16::try_from(self.number(1 << 10)).unwrap_or(0)
    }

    fn cargo(&mut self) -> Cargo {
        if self.below(2) == 0 { Cargo::Boat } else { Cargo::ConfigMap }
    }

    fn put(&mut self, site: Site) -> Step {
        Step::Put(site, self.cargo(), self.below(NAMES), self.below(LABELS))
    }

    /// Mostly much is wanted: only then is there something to lose.
    fn tell(&mut self, edge: u8) -> Step {
        let (some, more) = (self.bits() | self.bits(), self.bits() | self.bits());
        Step::Tell(edge, some, more)
    }

    fn place(&mut self) -> Step {
        Step::Place(self.below(PLACEMENTS), self.below(LABELS), self.below(LABELS))
    }

    fn step(&mut self, center: bool, edges: u8, now: u64, lines: &mut Vec<Line>) {
        let edge = self.below(edges.into());
        let server = self.below(u64::from(edges) + 1);
        let site = if center { Site::Workload } else { Site::Mailbox(edge) };
        let step = match self.below(100) {
            0..20 => self.put(site),
            20..30 => Step::Delete(site, self.cargo(), self.below(NAMES)),
            30..46 if center => self.configure_center(edge),
            30..46 => self.configure_syncer(edge),
            46..51 if !center && self.below(2) == 0 => Step::UpPut(edge, self.cargo(), self.below(NAMES)),
            51..54 if !center && self.below(2) == 0 => Step::UpDelete(edge, self.cargo(), self.below(NAMES)),
            46..51 => Step::EdgePut(edge, self.cargo(), self.below(NAMES)),
            51..54 => Step::EdgeDelete(edge, self.cargo(), self.below(NAMES)),
            54..59 => Step::EdgeStatus(edge, self.below(NAMES), self.below(9)),
            59 => Step::DropNamespace(site, self.below(2)),
            60 => Step::EdgeDropNamespace(edge, self.below(2)),
            61..66 => {
                lines.push((now + self.number(90_000), Step::Heal(server)));
                Step::Partition(server)
            }
            66..74 => {
                let who = if center && self.below(2) == 0 { Who::Center } else { Who::Syncer(edge) };
                Step::Crash(who, u32::from(self.below(200)) * 50)
            }
            74..78 => Step::CloseStreams(server),
            78..81 => Step::StallStreams(server),
            81..84 => Step::Compact(server),
            84..87 => {
                lines.push((now + self.number(40_000), Step::Serve(site)));
                Step::Unserve(site)
            }
            87..90 => {
                lines.push((now + self.number(40_000), Step::Redefine(site)));
                Step::DropDefinition(site)
            }
            90..93 => {
                let site = if center && self.below(3) == 0 { Site::Inventory } else { site };
                lines.push((now + self.number(40_000), Step::Rebind(site)));
                Step::DropBinding(site)
            }
            93 if self.below(3) == 0 => Step::Drop(site),
            94 if center && self.below(2) == 0 => match now % 4 {
                0 => Step::Unlist(edge),
                1 => Step::RetireWhole(edge),
                _ => Step::Retire(edge),
            },
            95 => {
                let who = if center && self.below(2) == 0 { Who::Center } else { Who::Syncer(edge) };
                Step::Pause(who, u32::from(self.below(200)) * 1_000)
            }
            96 => Step::StaleLists(server, self.below(3) + 1),
            97 => {
                // What goes while nobody is there to see it.
                let (who, site) = match self.below(2) {
                    0 if center => (Who::Center, Site::Inventory),
                    _ if center => (Who::Center, Site::Workload),
                    _ => (Who::Syncer(edge), site),
                };
                lines.push((now + 200, Step::DropBinding(site)));
                lines.push((now + 200 + self.number(8_000), Step::Rebind(site)));
                Step::Crash(who, 10_000)
            }
            98 => {
                lines.push((now + 5_000 + self.number(90_000), Step::Restore));
                Step::Backup
            }
            _ => Step::Noise(self.below(30)),
        };
        lines.push((now, step));
    }

    /// In some worlds the calendar of the processes is set to another time, by seconds, minutes or days, and mostly back.
    fn calendar(&mut self, end: u64, lines: &mut Vec<Line>) {
        if self.below(4) == 0 {
            let by = [90, 3_600, 1_000_000][usize::from(self.below(3))];
            let by = i32::try_from(self.number(by)).unwrap_or(0);
            let at = self.number(end);
            lines.push((at, Step::Calendar(if self.below(2) == 0 { by } else { -by })));
            if self.below(3) > 0 {
                lines.push((at + self.number(120_000), Step::Calendar(0)));
            }
        }
    }

    /// In half of the worlds namespaces are carried themselves, for a while.
    fn spaces(&mut self, center: bool, edges: u8, end: u64, lines: &mut Vec<Line>) {
        if self.below(2) == 0 {
            for _ in 0..=self.below(4) {
                let step = if center {
                    Step::PlaceSpaces(self.below(PLACEMENTS))
                } else {
                    Step::TellSpaces(self.below(edges.into()), self.below(1 << 2))
                };
                lines.push((self.number(end), step));
            }
        }
    }

    fn configure_syncer(&mut self, edge: u8) -> Step {
        match self.below(20) {
            0..8 => self.tell(edge),
            8..12 => Step::TellMore(edge, self.bits()),
            12..14 => Step::TellLess(edge),
            14..18 => Step::TellUp(edge, self.bits()),
            _ => Step::Confirm(edge),
        }
    }

    fn configure_center(&mut self, edge: u8) -> Step {
        match self.below(16) {
            0..5 => self.place(),
            5..7 => Step::Displace(self.below(PLACEMENTS)),
            7..10 => Step::Relabel(self.cargo(), self.below(NAMES), self.below(LABELS)),
            10..13 => Step::Locate(edge, self.below(LABELS)),
            13..15 => Step::ConfirmPlacement(self.below(PLACEMENTS)),
            _ => Step::Confirm(edge),
        }
    }
}
