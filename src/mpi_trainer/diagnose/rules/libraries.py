"""Modules and shared libraries that are missing, or of a version that does not fit."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import EXCEPTION, SPECIFIC, STARTUP, Cause, Detail, Rule, said

CAUSES: Final = (
    Cause(
        "ModuleMissing",
        "A Python module is not installed",
        "The image's Python lacks it, or another Python runs than the one it was installed for.",
        "Install it when the image is built (`pip install NAME`), and check which Python runs: "
        "`odh mpijob exec NAME --worker 0 -- python -c 'import sys; print(sys.path)'`.",
        ("ProgramException",),
    ),
    Cause(
        "ModuleIncompatible",
        "Python modules do not fit each other",
        "A module was built for, or expects, another version of a module it uses.",
        "Pin versions that belong together in the image, and install them in one `pip install`.",
        ("ProgramException",),
    ),
    Cause(
        "SharedLibraryMissing",
        "A shared library is missing",
        "The loader finds no such file: the image lacks the package, or LD_LIBRARY_PATH does not "
        "lead to it.",
        "Install the package that has the library, or set LD_LIBRARY_PATH in `env` of launcher "
        "and workers.",
    ),
    Cause(
        "MpiLibraryMissing",
        "The program finds no MPI library",
        "libmpi is not where the loader looks on the workers; mpirun found its own.",
        "Use an image with the MPI that the program was built for, and set LD_LIBRARY_PATH to its "
        "lib directory in `env` of the workers.",
        ("SharedLibraryMissing",),
    ),
    Cause(
        "SharedLibraryIncompatible",
        "A shared library has another version than the program needs",
        "The program was built on a newer system, or with another compiler or version of the "
        "library.",
        "Build the program in the image that it runs in, or take an image with a newer system.",
        ("SharedLibraryMissing",),
    ),
)

_LIBMPI = r"lib(?:mpi|open-rte|open-pal|pmpi|mpich|mpicxx|mpifort|mpi_\w{1,30})[-\w]{0,30}\.so"

RULES: Final = (
    Rule(
        "MpiLibraryMissing",
        STARTUP,
        "cannot open shared object file",
        rf"{_LIBMPI}[.\d]{{0,20}}: cannot open shared object file",
        (
            "ImportError: libmpi.so.12: cannot open shared object file: No such file or directory",
            "./train: error while loading shared libraries: libmpi.so.40: cannot open shared "
            "object file: No such file or directory",
        ),
    ),
    *said(
        "MpiLibraryMissing",
        STARTUP,
        "cannot load MPI library",
        "Unable to load MPI library",
        "could not load MPI runtime library",
        "Cannot find MPI shared library",
    ),
    Rule(
        "SharedLibraryMissing",
        SPECIFIC,
        "cannot open shared object file",
        # Open MPI lists where it has looked for CUDA, and goes on without.
        r"^(?!\S{0,300}libcuda\.\w{1,8}(?:\.1)?: cannot)",
        unless=("Could not load dynamic library", "dso_loader", "supporting CUDA libraries"),
        examples=(
            "ImportError: libGL.so.1: cannot open shared object file: No such file",
            "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        ),
    ),
    *said("SharedLibraryMissing", SPECIFIC, "error while loading shared libraries"),
    Rule(
        "SharedLibraryIncompatible",
        SPECIFIC,
        "' not found",
        r"version [`'][A-Z]\w{1,40}_[\d.]{1,12}' not found",
        ("/lib/libc.so.6: version `GLIBC_2.34' not found (required by ./train)",),
    ),
    *said("SharedLibraryIncompatible", SPECIFIC, "undefined symbol: ", "symbol lookup error"),
    Rule(
        "SharedLibraryIncompatible",
        SPECIFIC,
        "OMP: Error #15:",
        examples=("OMP: Error #15: Initializing libiomp5.so, but found libomp.so already",),
    ),
    *said("SharedLibraryIncompatible", SPECIFIC, "wrong ELF class", "invalid ELF header"),
    *said("SharedLibraryIncompatible", SPECIFIC, "with link time reference"),
    Rule(
        "ModuleMissing",
        SPECIFIC,
        "No module named",
        r"(?:^ModuleNotFoundError: |^ImportError: |python[\d.]{0,5}: |^\S{0,200}: )"
        r"No module named \S",
        (
            "ModuleNotFoundError: No module named 'torch'",
            "/usr/bin/python3: No module named trainer.main",
        ),
    ),
    *said("ModuleMissing", SPECIFIC, "Error while finding module specification for"),
    *said("ModuleMissing", SPECIFIC, "has not been built: /"),
    Rule(
        "ModuleMissing",
        SPECIFIC,
        "has not been built",
        r"Extension horovod\.\w{1,20} has not been built",
        ("ImportError: Extension horovod.torch has not been built: /usr/lib/x.so not found",),
    ),
    Rule(
        "ModuleMissing",
        EXCEPTION + 1,
        "requires the ",
        r"^ImportError: .{0,120}requires the .{1,80} librar(?:y|ies)",
        ("ImportError: AutoTokenizer requires the tokenizers library but it was not found",),
    ),
    Rule(
        "ModuleIncompatible",
        SPECIFIC,
        "cannot import name '",
        unless=("circular import",),
        examples=("ImportError: cannot import name 'Mapping' from 'collections'",),
    ),
    *said(
        "ModuleIncompatible",
        SPECIFIC,
        "may indicate binary incompatibility",
        "module compiled against API version",
        "numpy.core.multiarray failed to import",
        "compiled using NumPy 1.x cannot be run in",
        "module compiled against ABI version",
        "pkg_resources.VersionConflict",
        "DistributionNotFound",
        "PackageNotFoundError",
        "HorovodVersionMismatchError",
    ),
    Rule(
        "ModuleIncompatible",
        SPECIFIC,
        "has no attribute",
        r"^AttributeError: module '[\w.]{1,120}' has no attribute",
        ("AttributeError: module 'numpy' has no attribute 'bool'",),
    ),
    Rule(
        "ModuleIncompatible",
        EXCEPTION + 1,
        "is required",
        r"^ImportError: .{1,120}is required for a normal functioning of this module",
        ("ImportError: tokenizers>=0.14 is required for a normal functioning of this module",),
    ),
)

DETAILS: Final[tuple[Detail, ...]] = ()
BOILERPLATE: Final[tuple[str, ...]] = ()
NOISE: Final = (
    "Could not load dynamic library",
    "dso_loader",
    "TF-TRT Warning",
    "libibverbs: Warning: ",
)
