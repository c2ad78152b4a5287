"""Keeps modules small: no file of ours over 500 lines, and the median within 150.

python -m tools.sizes
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

LONGEST = 500
MEDIAN = 150


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.sh"],
        capture_output=True,
        text=True,
        check=True,
    )
    files = [Path(name) for name in listed.stdout.splitlines() if Path(name).exists()]
    sizes = {path: len(path.read_text().splitlines()) for path in files}
    long = {path: size for path, size in sizes.items() if size > LONGEST}
    for path, size in sorted(long.items()):
        print(f"{path}: {size} lines; split it, at most {LONGEST}")
    source = [size for path, size in sizes.items() if path.parts[0] == "src" and size]
    median = statistics.median(source)
    if median > MEDIAN:
        print(f"the median module has {median:.0f} lines, at most {MEDIAN}")
    return 1 if long or median > MEDIAN else 0


if __name__ == "__main__":
    sys.exit(main())
