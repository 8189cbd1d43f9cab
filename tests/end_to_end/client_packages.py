"""Clients that others wrote: which can be imported here. Of what ./run test installed nothing may be missing in silence."""
import importlib.util
import os
import sys

SKIPPED = 77
FOLDER = "api-packages"  # where ./run test puts what tests/api_requirements.txt names


def are_pinned():
    """Whether the packages are those of ./run test, which leaves the list beside them when all of it was installed."""
    return any(os.path.basename(path.rstrip("/")) == FOLDER and os.path.isfile(os.path.join(path, "requirements.txt"))
               for path in sys.path)


def offered(there, what):
    """`there`, which must be true of the pinned packages."""
    if not there and are_pinned():
        sys.exit(f"{what} is missing, although tests/api_requirements.txt is installed.")
    return there


def have(package):
    return offered(importlib.util.find_spec(package) is not None, f"the Python package {package}")
