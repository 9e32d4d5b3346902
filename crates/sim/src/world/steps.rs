//! What users and faults do.

use mailboat_object::key::ClusterId;

use super::{Event, WORKSPACE_ENDS_AFTER, World};
use crate::process::Process;
use crate::roles::edge;
use crate::script::{BOUND, Step, Workspace};
use crate::servers::cluster_of;

impl World<'_> {
    pub(super) fn step(&mut self, step: &Step) {
        self.values += 1;
        let value = self.values;
        let dying = |workspace| self.servers.truth.workspace(workspace).dying;
        match step {
            // Nobody edits what is being deleted.
            Step::Put(workspace, ..)
            | Step::Delete(workspace, ..)
            | Step::Relabel(workspace, ..)
            | Step::Serve(workspace, _)
            | Step::Unserve(workspace, _)
            | Step::DropKind(workspace)
            | Step::DropNamespace(workspace, _)
            | Step::ChangeKind(workspace)
            | Step::DropWorkspace(workspace)
                if dying(*workspace) => {}
            // A view does not say of one workspace that a kind is not served there.
            Step::Serve(Workspace::Bound(_), _) | Step::Unserve(Workspace::Bound(_), _) => {}
            Step::Place(..)
            | Step::Displace(_)
            | Step::Rename(..)
            | Step::Unconfigure(_)
            | Step::Configure(_)
                if dying(Workspace::Workload) => {}
            _ if step.edits_center() && !self.restoring_was_noticed() => {}
            Step::Put(workspace, name, label) => self.servers.put(*workspace, *name, *label, value),
            Step::Delete(workspace, name) => self.servers.delete(*workspace, *name),
            Step::Relabel(workspace, name, label) => self.servers.relabel(*workspace, *name, *label),
            Step::EdgePut(edge, name) => self.servers.edge_put(*edge, name, value),
            Step::EdgeDelete(edge, name) => self.servers.edge_delete(*edge, name),
            Step::EdgeStatus(edge, name, status) => self.servers.edge_status(*edge, name, *status),
            Step::Place(name, label, bits) => {
                let edges: Vec<u8> = (0..self.edges).filter(|edge| bits & (1 << edge) != 0).collect();
                self.servers.place(&format!("p{name}"), &format!("l{label}"), &edges);
            }
            Step::Displace(name) => self.servers.displace(&format!("p{name}")),
            Step::Rename(from, to) => self.servers.rename(&format!("p{from}"), &format!("p{to}")),
            Step::Unconfigure(workspace) => self.servers.unconfigure(*workspace),
            Step::Configure(workspace) => self.servers.configure(*workspace),
            Step::Partition(server) => {
                self.partitioned.insert(usize::from(*server));
            }
            Step::Heal(server) => {
                self.partitioned.remove(&usize::from(*server));
                if self.draw(2) == 0 {
                    self.stall(usize::from(*server));
                }
            }
            Step::Crash(down_for) => self.crash(u64::from(*down_for)),
            Step::CloseStreams(server) => self.cut(usize::from(*server)),
            Step::StallStreams(server) => self.stall(usize::from(*server)),
            Step::Compact(server) => {
                if let Some(machine) = self.servers.machines.get_mut(usize::from(*server)) {
                    machine.compact(machine.version());
                }
            }
            Step::Stale(server, lists) => {
                self.stale.insert(usize::from(*server), *lists);
            }
            Step::Serve(workspace, what) => self.servers.serve(*workspace, *what, true),
            Step::Unserve(workspace, what) => {
                self.servers.serve(*workspace, *what, false);
                self.cut(0);
            }
            Step::DropKind(workspace) => {
                self.servers.drop_kind(*workspace);
                let after = self.draw(2_000);
                self.schedule(after, Event::Unbound(*workspace));
            }
            Step::DropNamespace(workspace, number) => self.drop_namespace(cluster_of(*workspace), *number),
            Step::EdgeDropNamespace(number, namespace) => self.drop_namespace(edge(*number), *namespace),
            Step::ReplaceIdentity => {
                self.servers.replace_identity();
                self.cut(0);
                self.rebind_all();
            }
            Step::LoseUrl => self.slice(false),
            Step::FindUrl => self.slice(true),
            Step::ChangeKind(workspace) => self.servers.change_definition(*workspace, value),
            Step::RedefineKind(workspace) => self.servers.redefine_kind(*workspace),
            Step::DropWorkspace(workspace) => {
                self.servers.begin_drop_workspace(*workspace);
                self.schedule(WORKSPACE_ENDS_AFTER, Event::WorkspaceGone(*workspace));
            }
            Step::Backup => self.servers.back_up(),
            Step::Restore => {
                if self.servers.restore() {
                    self.oracle.restored();
                    self.restored_at = Some(self.servers.truth.number());
                    self.reconnected_at = self.clock();
                    if let Some(process) = &mut self.process {
                        process.noticed_the_past = false;
                        // Who has stood still since he began knows as little of what was before as who begins now.
                        if process.has_read_nothing() {
                            self.oracle.process_began();
                        }
                    }
                    for workspace in Workspace::all() {
                        self.schedule(WORKSPACE_ENDS_AFTER, Event::WorkspaceGone(workspace));
                        self.schedule(WORKSPACE_ENDS_AFTER, Event::EmptyNamespaces(cluster_of(workspace)));
                    }
                    self.cut(0);
                    self.rebind_all();
                }
            }
            Step::Pause(milliseconds) => {
                self.stands_until = self.stands_until.max(self.now + u64::from(*milliseconds));
            }
            Step::Jump(milliseconds) => {
                self.ahead += u64::from(*milliseconds);
                self.rouse();
            }
            Step::Confirm => self.confirm(),
            Step::Claim(accepted) => self.servers.answer_claim(*accepted),
            Step::Noise(percent) => self.noise = u64::from(*percent),
        }
        for server in 0..self.servers.machines.len() {
            self.pump_all(server);
        }
    }

    /// Somebody confirms all that is held, and leaves it at that.
    fn confirm(&mut self) {
        for (change, losers) in self.process.as_ref().map(Process::held).unwrap_or_default() {
            self.report.confirmed += u64::from(self.words.insert(change));
            self.confirmed.extend(losers);
        }
        self.rouse();
    }

    /// Lets the process see to it that something is different now, unless it stands still.
    fn rouse(&mut self) {
        if self.now >= self.stands_until {
            self.drive();
        }
    }

    /// The export's bindings are told its present identity, one by one; within a second on real servers.
    fn rebind_all(&mut self) {
        for number in 0..BOUND {
            let after = self.draw(5_000);
            self.schedule(after, Event::Rebind(number));
        }
    }

    fn drop_namespace(&mut self, cluster: ClusterId, number: u8) {
        if self.servers.drop_namespace(cluster.clone(), number) {
            let after = self.draw(2_000);
            self.schedule(after, Event::EmptyNamespaces(cluster));
        }
    }
}
