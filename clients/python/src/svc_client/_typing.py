"""Names that differ between versions of Python, or between type checkers and msgspec."""

from __future__ import annotations

import datetime as _datetime
import sys
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

if sys.version_info >= (3, 11):
    from typing import NotRequired as NotRequired
else:
    from typing_extensions import NotRequired as NotRequired

if TYPE_CHECKING:
    from datetime import datetime as datetime
    from typing import Literal as Literal
else:
    # A time without an offset is refused.
    datetime = Annotated[_datetime.datetime, Meta(tz=True)]

    class Literal:
        """A text: new values may be added, so that one which this version does not know is no error."""

        __class_getitem__ = classmethod(lambda cls, values: str)
