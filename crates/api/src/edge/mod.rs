//! `edge.kubestellar.io/v2alpha1`: what users place, what the center writes, what syncers report.
//!
//! In a *workload workspace* stand [`EdgePlacement`], the [`SinglePlacementSlice`]s that the center derives
//! from it, [`Customizer`], [`Summarizer`] and [`StatusSummary`]; in a *mailbox* [`SyncerConfig`] and
//! [`EdgeSyncConfig`]; in an *inventory workspace* [`SyncTarget`] and [`Location`].

mod customizer;
mod edge_sync_config;
mod inventory;
mod options;
mod placement;
mod reference;
mod slice;
mod summarizer;
mod summary;
mod syncer_config;

pub use customizer::{Customizer, CustomizerFields, CustomizerStatus, Replacement};
pub use edge_sync_config::{
    Conversion, EdgeSyncConfig, EdgeSyncConfigSpec, EdgeSyncConfigStatus, KindAndName, SyncedResource,
    UpSyncedResource,
};
pub use inventory::{
    AvailableSelectorLabel, GroupVersionResource, Location, LocationSpec, LocationStatus, ResourceState,
    SupportedApiExport, SyncTarget, SyncTargetSpec, SyncTargetStatus, SyncedResourceKind, VirtualWorkspace,
};
pub use options::{DeletePropagation, DeliveryOptions, OwnerSelector, UpsyncOptions};
pub use placement::{
    DownsyncObjectTest, EdgePlacement, EdgePlacementSpec, EdgePlacementStatus, HeldCopy, PlacementConflict,
    UpsyncSet,
};
pub use reference::{AwaitedConfirmation, ObjectReference, ValidationError};
pub use slice::{
    SinglePlacement, SinglePlacementSlice, SinglePlacementSliceFields, SinglePlacementSliceStatus,
};
pub use summarizer::{
    Aggregator, AggregatorType, BrokenRule, BrokenTest, GroupByPart, Grouper, Summarizer, SummarizerSpec,
    SummarizerStatus, SummarySubject,
};
pub use summary::{
    Aggregate, BrokenCopy, CopyCounts, Group, GroupedBy, Grouping, KindSummary, LabelSummary, ObjectSummary,
    StatusSummary, StatusSummarySpec, StatusSummaryStatus,
};
pub use syncer_config::{
    ClusterScopeEntry, DeliveryCounts, NamespaceScope, NamespaceScopeResource, NamespacedObjectsEntry,
    NotCurrentObject, NotCurrentState, ObjectsInNamespace, SyncerConfig, SyncerConfigSpec,
    SyncerConfigStatus, UpsyncEntry,
};
