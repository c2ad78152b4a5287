"""What widely used programs and libraries of simulation say when they give up."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import (
    ABORTED,
    CRASH,
    EXCEPTION,
    RANK,
    Cause,
    Detail,
    Rule,
    said,
)

CAUSES: Final[tuple[Cause, ...]] = ()

RULES: Final = (
    # --- PETSc; its first lines are of the error, the others of where and how it was built
    Rule(
        "ProgramException",
        EXCEPTION,
        "PETSC ERROR: ",
        r"^PETSC ERROR: (?!-{3}|See |Petsc |Configure |#\d|/|Try |or |Caught |\s)",
        ("PETSC ERROR: Argument out of range", "[1]PETSC ERROR: Object is in wrong state"),
    ),
    Rule(
        "RankSegfault",
        CRASH,
        "PETSC ERROR: Caught signal number 11",
        examples=("[0]PETSC ERROR: Caught signal number 11 SEGV: Segmentation Violation",),
    ),
    Rule(
        "RankArithmeticError",
        CRASH,
        "PETSC ERROR: Caught signal number 8",
        examples=("[0]PETSC ERROR: Caught signal number 8 FPE: Floating Point Exception",),
    ),
    # --- programs that name the rank
    Rule(
        "ProgramReportedError",
        EXCEPTION,
        "ERROR on proc",
        rf"^ERROR on proc {RANK}: ",
        ("ERROR on proc 1: Out of range atoms - cannot compute PPPM (../pppm.cpp:1891)",),
    ),
    Rule(
        "ProgramReportedError",
        EXCEPTION,
        "HPL ERROR from process #",
        rf"^HPL ERROR from process # {RANK}, ",
        ("HPL ERROR from process # 0, on line 419 of function HPL_pdinfo:",),
    ),
    Rule(
        "ProgramReportedError",
        EXCEPTION,
        "amrex::",
        rf"^amrex::(?:Abort|Error)::{RANK}::",
        ("amrex::Abort::1::plotfile missing !!!",),
    ),
    Rule(
        "MpiAbort",
        ABORTED + 1,
        "Exiting: Called CmiAbort",
        rf"^-{{4,30}} Processor {RANK} Exiting: Called CmiAbort",
        ("------------- Processor 1 Exiting: Called CmiAbort ------------",),
    ),
    Rule(
        "ProgramReportedError",
        ABORTED + 1,
        "HDF5-DIAG: Error detected in HDF5",
        rf"^HDF5-DIAG: Error detected in HDF5 \([\d.]{{1,20}}\)(?: MPI-process {RANK})?",
        ("HDF5-DIAG: Error detected in HDF5 (1.10.4) MPI-process 1:",),
    ),
    # --- and others
    *said(
        "ProgramReportedError",
        EXCEPTION,
        "FOAM FATAL ERROR",
        "FOAM FATAL IO ERROR",
        "FATAL CALLED FROM FILE:",
    ),
    Rule(
        "ProgramReportedError",
        EXCEPTION - 1,
        "Fatal error:",
        r"^Fatal error:$",
        ("Fatal error:",),
    ),
    Rule(
        "ProgramReportedError",
        EXCEPTION,
        "Error in routine",
        r"^\s{1,8}Error in routine {1,4}\S{1,80} \(-?\d{1,9}\):",
        ("     Error in routine  read_input (1):",),
    ),
    *said(
        "DataInvalid",
        EXCEPTION + 2,
        "NetCDF: Unknown file format",
        "NetCDF: HDF error",
        "Unable to synchronously open file (file signature",
    ),
)

DETAILS: Final[tuple[Detail, ...]] = ()
BOILERPLATE: Final[tuple[str, ...]] = ()
NOISE: Final[tuple[str, ...]] = ()
