"""What travels with a job, what stays at home, and what is refused."""

from __future__ import annotations

import io
import os
import tarfile
import time
from pathlib import Path

import pytest

from mpi_trainer.sdk.code.bundle import Bundle, bundle
from mpi_trainer.sdk.code.ignored_files import ignored
from mpi_trainer.sdk.errors import NotShippable


def fill(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(packed: Bundle) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(packed.data)) as archive:
        return archive.getnames()


def test_same_content_has_the_same_name(tmp_path: Path) -> None:
    one = fill(tmp_path / "one", train_dot_py="x", lib__a_dot_py="y")
    other = fill(tmp_path / "other", lib__a_dot_py="y", train_dot_py="x")
    os.utime(other / "train.py", (1, 1))
    assert bundle(one) == bundle(other)
    (other / "train.py").write_text("z")
    assert bundle(one).digest != bundle(other).digest


def test_secrets_and_rubbish_stay_at_home(tmp_path: Path) -> None:
    fill(tmp_path, train_dot_py="x", _dot_env="TOKEN=1", _dot_git__config="x")
    fill(tmp_path / "__pycache__", a="x")
    fill(tmp_path / ".ssh", id_rsa="x")
    assert names(bundle(tmp_path)) == ["train.py"]


SECRETS = """
.env .env.local .env.production prod.env .envrc .bash_history .python_history
.ssh/config id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk deploy/id_ecdsa
server.pem tls.key AuthKey.p8 me.p12 me.pfx trust.jks android.keystore putty.ppk
.gnupg/secring.gpg passwords.kdbx .password-store/x .local/share/keyrings/login.keyring work.ovpn
.aws/credentials .azure/accessTokens.json .config/gcloud/credentials.db .boto .s3cfg .mc/config.json
.config/rclone/rclone.conf rclone.conf application_default_credentials.json .oci/config
service-account.json service-account-prod.json service_account.json client_secret_1.json
credentials.json secrets.yaml secrets.toml token.json
terraform.tfstate terraform.tfstate.backup infra/prod.tfstate prod.tfvars .terraform/x .vault-token
.kube/config kubeconfig kubeconfig.yaml prod.kubeconfig deploy/kubeconfig
.docker/config.json .dockercfg .dockerconfigjson .config/containers/auth.json
.netrc _netrc .pypirc .npmrc .condarc .pip/pip.conf .htpasswd .git-credentials
.config/git/credentials .config/gh/hosts.yml .cargo/credentials.toml .m2/settings.xml
.pgpass .my.cnf .dvc/config.local .streamlit/secrets.toml .databrickscfg
.huggingface/token .cache/huggingface/token .kaggle/kaggle.json kaggle.json .jupyter/jupyter.json
"""
CODE = """
train.py identity.py id_mapping.csv keys.py tokenizer.json token_ids.json environment.yml
.env.example .env.sample conf/config.yaml .config/accelerate.yaml certificates.md secrets.py
data/keyboard.csv kube.py docker/Dockerfile pyproject.toml requirements.txt .gitignore .dockerignore
"""


@pytest.mark.parametrize("below", ["", "project/deep/"])
def test_what_may_hold_a_secret_stays_at_home(tmp_path: Path, below: str) -> None:
    """S-16: a home or a project folder as it is found, at any depth."""
    for name in (*SECRETS.split(), *CODE.split()):
        path = tmp_path / below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert names(bundle(tmp_path)) == sorted(f"{below}{name}" for name in CODE.split())


@pytest.mark.parametrize("name", ["tls.key", "kubeconfig", ".config/gcloud/x", ".env.local"])
def test_a_line_of_ones_own_takes_it_along(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("x")
    folder = "/".join(name.split("/")[:2])
    (tmp_path / ".odhignore").write_text(f"!{folder}\n")
    assert names(bundle(tmp_path)) == [name]


def test_ten_thousand_files_are_judged_in_a_moment() -> None:
    rules = ignored(())
    started = time.process_time()
    for number in range(10_000):
        assert not rules(f"some/project/folder/of/data/part-{number}.parquet", folder=False)
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a" * 40 + "*b", "a" * 255),
        ("x/" + "*a" * 40 + "*b", "x/" + "a" * 250),
        ("**/a" * 12 + "/b", "/".join("a" * 32)),
        ("**/*a" * 8 + "/**/b", "/".join(["a" * 100] * 9)),
    ],
)
def test_a_line_of_many_stars_is_read_in_a_moment(line: str, path: str) -> None:
    """A server reads lines of anybody, and a regular expression holds up all of its threads."""
    began = time.monotonic()
    assert not ignored([line])(path, folder=False)
    assert time.monotonic() - began < 1


def test_letters_in_brackets_that_are_no_range_mean_themselves() -> None:
    assert ignored(["[z-a].py"])("[z-a].py", folder=False)
    assert not ignored(["[z-a].py"])("z.py", folder=False)
    assert not ignored(["src/a[!x]b"])("src/a/b", folder=False)


def test_program_stays_a_program_and_a_link_a_link(tmp_path: Path) -> None:
    fill(tmp_path, run="x", data__a="x")
    (tmp_path / "run").chmod(0o700)
    (tmp_path / "here").symlink_to("data/a")
    with tarfile.open(fileobj=io.BytesIO(bundle(tmp_path).data)) as archive:
        assert archive.getmember("run").mode == 0o755
        assert archive.getmember("here").linkname == "data/a"


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside"])
def test_link_that_leads_out_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(NotShippable, match="link is a link to"):
        bundle(tmp_path)


def test_what_is_too_large_is_named(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(os.urandom(900 * 1024))
    with pytest.raises(NotShippable, match=r"900 KiB compressed.*weights.bin \(900 KiB\)") as found:
        bundle(tmp_path)
    assert ".odhignore" in found.value.hint and "PersistentVolumeClaim" in found.value.hint
    (tmp_path / ".odhignore").write_text("*.bin\n")
    assert bundle(tmp_path).files == 0


def test_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotShippable, match="is not a folder"):
        bundle(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("lines", "path", "folder", "stays"),
    [
        (["data"], "data", True, True),
        (["data"], "a/data", False, True),
        (["/data"], "a/data", False, False),
        (["data/"], "data", False, False),
        (["a/*.csv"], "a/x.csv", False, True),
        (["a/*.csv"], "a/b/x.csv", False, False),
        (["a/**/x"], "a/b/c/x", False, True),
        (["a/**/x"], "a/x", False, True),
        (["**/x"], "x", False, True),
        (["*.bin", "!keep.bin"], "keep.bin", False, False),
        (["*.bin", "!keep.bin"], "other.bin", False, True),
        (["# no", ""], "# no", False, False),
        (["[ab].txt"], "a.txt", False, True),
        (["[!ab].txt"], "a.txt", False, False),
        (["?.txt"], "ab.txt", False, False),
        (["a.c"], "abc", False, False),
        (["!.env"], ".env", False, False),
    ],
)
def test_ignore_file_is_read_as_git_reads_its_own(
    lines: list[str], path: str, folder: bool, stays: bool
) -> None:
    assert ignored(lines)(path, folder=folder) is stays
