"""What the client without async has in place of anyio. Internal."""

from contextlib import nullcontext as fail_after
from threading import Lock
from time import sleep

__all__ = ["Lock", "fail_after", "sleep"]
