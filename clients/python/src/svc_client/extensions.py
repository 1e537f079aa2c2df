"""What a service with `--extensions on` has beyond the contract: events and deliveries are read, and sent again.

`svc_client.extension_types` has the types.
"""

from ._async_extensions import AsyncExtensions as AsyncExtensions
from ._sync_extensions import Extensions as Extensions
