//! The part of a request that only tools of assistants send.

use super::response_memory::ToolMemory;

/// The call of a tool, as an extension of the request that it stands for.
#[derive(Clone, Debug)]
pub(crate) struct ToolCall {
    /// The name of the tool.
    pub(crate) name: String,
    /// Whether the response says what the change would do, and nothing is changed.
    pub(crate) is_dry_run: bool,
    /// The memory in which the response is made, and of it the result of the tool.
    pub(crate) memory: ToolMemory,
}
