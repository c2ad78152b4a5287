"""`hf://owner/name[@revision][/folder]`: a repository of the Hugging Face hub, or of a mirror.

What is listed is one commit, and that commit is read, so what is pushed meanwhile changes nothing.
Every file has its checksum from the hub. The token goes to the endpoint and nowhere else; where
large files lie elsewhere, the hub's own signed addresses lead there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, urlsplit

import httpx2
from msgspec.structs import replace

from mpi_trainer.initializers.model import (
    Checksum,
    FetchError,
    Item,
    Pieces,
    Settings,
    TemporaryFault,
)
from mpi_trainer.initializers.settings import endpoint
from mpi_trainer.initializers.sources import web
from mpi_trainer.initializers.sources.http import Client, origin, reason, trusted

PUBLIC: Final = "https://huggingface.co"
_ADDRESS: Final = re.compile(
    r"hf://([\w.-]{1,96})/([\w.-]{1,96}?)(?:@([^/@?]{1,200}))?(?:/([^?]{1,1024}))?/?"
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SHA1: Final = re.compile(r"[0-9a-f]{40}")


class Hub:
    def __init__(self, settings: Settings) -> None:
        given = settings.given
        found = _ADDRESS.fullmatch(settings.uri)
        if found is None:
            raise FetchError(
                f"{settings.uri} is no repository of the hub",
                "Write hf://owner/name, hf://owner/name@revision or hf://owner/name/folder.",
            )
        if found[1] in ("datasets", "models", "spaces"):
            raise FetchError(
                f"{settings.uri} says which kind of repository it is, as other programs want it",
                "Write hf://owner/name; its place, under dataset or model, says which kind it is.",
            )
        self._repo = f"{found[1]}/{found[2]}"
        self._revision = found[3] or given.get("REVISION", "") or "main"
        self._folder = (found[4] or "").strip("/")
        self._kind = settings.role
        self._endpoint = endpoint(given.get("ENDPOINT") or given.get("HF_ENDPOINT") or PUBLIC)
        self._token = (given.get("ACCESS_TOKEN") or given.get("HF_TOKEN") or "").strip()
        self._bundle = given.get("CA_BUNDLE", "")
        self._client = Client(self._endpoint, self._token, self._bundle)
        self._commit = ""

    def items(self) -> Iterator[Item]:
        from huggingface_hub import errors

        try:
            yield from self._listed()
        except errors.GatedRepoError:
            raise self._refused("asks for terms to be accepted first", _TERMS) from None
        except errors.RevisionNotFoundError:
            raise self._refused(f"has no revision {self._revision}", "Correct it.") from None
        except errors.RepositoryNotFoundError:
            raise self._refused("is not there, or the token may not read it", _TOKEN) from None
        except errors.EntryNotFoundError:
            raise self._refused(f"has no folder {self._folder}", "Correct storageUri.") from None
        except errors.HfHubHTTPError as error:
            raise self._answered(error.response.status_code) from None
        except (OSError, httpx2.HTTPError) as error:
            raise TemporaryFault(f"{self._endpoint}: {reason(error)}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._refused(
                "has a listing that cannot be read", "See whether ENDPOINT is a hub's address."
            ) from None

    def _listed(self) -> Iterator[Item]:
        from huggingface_hub import HfApi, RepoFile, set_client_factory

        set_client_factory(self._http_client)
        api = HfApi(endpoint=self._endpoint, token=self._token or False)
        info = api.repo_info(self._repo, revision=self._revision, repo_type=self._kind)
        self._commit = info.sha or self._revision
        for one in api.list_repo_tree(
            self._repo,
            self._folder or None,
            recursive=True,
            revision=self._commit,
            repo_type=self._kind,
        ):
            if isinstance(one, RepoFile):
                lfs = "" if one.lfs is None else one.lfs.sha256
                yield self._item(one.path, one.size, one.blob_id, lfs)

    def _http_client(self) -> httpx2.Client:
        """Of huggingface_hub, which would follow the links of a listing, token in hand, to
        anywhere and without end."""
        endless = self._refused("has a listing without end", "Name a folder in it.")
        home, asked = origin(urlsplit(self._endpoint)), 0

        def bound(answer: httpx2.Response) -> None:
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise self._refused("packs its listing, unasked", _ELSEWHERE)
            answer.stream = _Bounded(answer.stream, endless)

        def stay_home(request: httpx2.Request) -> None:
            nonlocal asked
            asked += 1
            if origin(urlsplit(str(request.url))) != home:
                raise self._refused("has a listing that leads elsewhere", _ELSEWHERE)
            if asked > _MOST_PAGES:
                raise endless

        return httpx2.Client(
            verify=trusted(self._bundle),
            headers={"Accept-Encoding": "identity"},
            event_hooks={"request": [stay_home], "response": [bound]},
            follow_redirects=True,
            timeout=60,
        )

    def _answered(self, status: int) -> FetchError | TemporaryFault:
        if status in (401, 403):
            return self._refused(f"is refused ({status})", _TOKEN)
        return TemporaryFault(f"{self._endpoint} answers {status}")

    def _item(self, path: str, size: int, blob: str, lfs: str) -> Item:
        if type(size) is not int or size < 0:
            raise ValueError("no size")
        checksum = None
        if lfs and _SHA256.fullmatch(lfs):
            checksum = Checksum("sha256", lfs)
        elif blob and _SHA1.fullmatch(blob):
            checksum = Checksum("git", blob)
        inside = path.removeprefix(f"{self._folder}/") if self._folder else path
        return Item(inside, size, checksum.value if checksum else self._commit, checksum)

    def read(self, item: Item, start: int, end: int | None) -> Pieces:
        if item.size == 0:
            return
        path = f"{self._folder}/{item.path}" if self._folder else item.path
        kind = "" if self._kind == "model" else "datasets/"
        url = f"{self._endpoint}/{kind}{self._repo}/resolve/{self._commit}/{quote(path)}"
        # Which commit it is of, and its checksum, say more than whatever tag the storage has.
        yield from web.read(self._client, url, replace(item, version=""), start, end)

    def close(self) -> None:
        from huggingface_hub import close_session

        close_session()
        self._client.close()

    def _refused(self, why: str, remedy: str) -> FetchError:
        return FetchError(f"{self._kind} {self._repo} of {self._endpoint} {why}", remedy)


_MOST_PAGES: Final = 2000
_LONGEST: Final = 64 << 20
"""bytes of one answer of a listing: all of it is held in memory"""
_ELSEWHERE: Final = "Set ENDPOINT to the address that the hub calls its own."
_TERMS: Final = "Accept them on its page, and give a token of that account as ACCESS_TOKEN."
_TOKEN: Final = "Correct its name, or put a token that may read it into the Secret as ACCESS_TOKEN."


class _Bounded(httpx2.SyncByteStream):
    """The bytes of one answer, up to the most that a listing may have."""

    def __init__(self, answer: object, endless: FetchError) -> None:
        assert isinstance(answer, httpx2.SyncByteStream), "nobody else has read it"
        self._answer = answer
        self._endless = endless

    def __iter__(self) -> Iterator[bytes]:
        came = 0
        for data in self._answer:
            came += len(data)
            if came > _LONGEST:
                raise self._endless
            yield data

    def close(self) -> None:
        self._answer.close()
