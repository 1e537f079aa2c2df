"""Measures how much longer the import of the client takes than that of httpx, and fails if it is more than 150 ms.

    python import_time.py

Each round starts Python anew, once with each of the two. The median of the rounds counts.
"""

import statistics
import subprocess
import sys
import time

ROUNDS, MOST = 15, 150


def measured(modules: str) -> float:
    """Returns how long a program takes that imports these modules and ends, in milliseconds."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
    return (time.perf_counter() - begun) * 1000


def main() -> None:
    """Compares the two."""
    measured("httpx, svc_client")  # Compiles the modules.
    rounds = [(measured("httpx"), measured("httpx, svc_client")) for _ in range(ROUNDS)]
    plain, ours = (statistics.median(it) for it in zip(*rounds, strict=True))
    print(f"import: httpx {plain:.0f} ms, with svc_client {ours:.0f} ms, {ours - plain:.0f} ms more")
    if ours - plain > MOST:
        sys.exit(f"The import takes more than {MOST} ms longer than that of httpx.")


if __name__ == "__main__":
    main()
