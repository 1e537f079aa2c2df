//! What the command line knows of a resource, for the commands that every resource has.

use clap::Command;
use serde::Serialize;
use serde::de::DeserializeOwned;
use svc_core::input::{Input, ToBody};
use svc_core::lookup::KindInAccount;
use svc_core::operation::{Listing, Operation};
use svc_core::pages::{ListParams, Page};
use svc_core::resources::Resource;
use svc_core::resources::contacts::ContactId;
use svc_core::values::{Id, TenantId};

/// Lists records.
pub(super) type ListOperation<R> =
    Operation<TenantId, Listing<ListParams, <R as ResourceCommands>::ListFilter>, Page<R>>;
/// Creates a record.
pub(super) type CreateOperation<R> =
    Operation<TenantId, <R as ResourceCommands>::Create, <R as ResourceCommands>::Creation>;
/// Changes a record.
pub(super) type UpdateOperation<R> = Operation<(TenantId, Id<R>), <R as ResourceCommands>::Update, R>;

/// What the command line knows of a resource.
pub(crate) trait ResourceCommands: Resource<Filter: ToBody> + DeserializeOwned {
    /// The filters of its list.
    type ListFilter: Input + ToBody + Clone;
    /// The body that creates a record.
    type Create: Input + ToBody + Clone;
    /// The body that changes a record.
    type Update: Input + ToBody + Clone;
    /// What a creation returns: the record, or more.
    type Creation: Serialize + DeserializeOwned + Send + 'static;
    /// The kind of record, whose name is that of the command.
    const KIND: KindInAccount;
    /// Lists records.
    const LIST: ListOperation<Self>;
    /// Creates a record.
    const CREATE: CreateOperation<Self>;
    /// Changes a record.
    const UPDATE: UpdateOperation<Self>;
    /// Options that create a record, as an example.
    const CREATE_EXAMPLE: &'static str;
    /// Options that change a record, as an example.
    const UPDATE_EXAMPLE: &'static str;
    /// The number of records that `list` lists unless told otherwise.
    const DEFAULT_LIMIT: &'static str = "50";
    /// The columns of a list: their headings, and the fields in them, with spaces between several.
    const COLUMNS: &'static [(&'static str, &'static str)];
    /// The fields that `show` shows, in this order, with spaces between. None stand for all.
    const DETAILS: &'static str = "";
    /// The field by which people call the record, after the name of its type.
    const TITLE: &'static str = "id";

    /// Returns the command that creates a record with what only this resource has.
    fn with_own_options(create: Command) -> Command {
        create
    }

    /// Returns the fields that people see otherwise than the API has them, and those that it does not have.
    fn shown(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the contact that lists show by its name, in place of its id.
    fn contact(&self) -> Option<ContactId> {
        None
    }
}
