"""`s3://bucket/folder`: anything that speaks S3, by obstore.

Endpoint, region, addressing and credentials are given under the public trainer's names or those of
OpenShift AI's connections. Without credentials nothing is signed, and nobody is asked for any: the
cloud's metadata address least of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from mpi_trainer.initializers.model import FetchError, Item, Pieces, Settings, TemporaryFault
from mpi_trainer.initializers.settings import endpoint

_PIECE: Final = 1 << 20
_CREDENTIALS: Final = (
    (("ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID"), "access_key_id"),
    (("SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY"), "secret_access_key"),
    (("SESSION_TOKEN", "AWS_SESSION_TOKEN"), "session_token"),
)
_UNTRUSTED: Final = "error: InvalidCertificate("
"""as obstore says it; no address has spaces, so no name of an object looks like this"""
_EXPIRED: Final = ("ExpiredToken", "TokenRefreshRequired", "InvalidToken", "RequestExpired")
_REFUSED: Final = (
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AuthorizationHeaderMalformed",
)
_LONGEST_FAULT: Final = 16 << 10


class Bucket:
    """One bucket, for reading here and for writing in `outputs`."""

    def __init__(self, settings: Settings) -> None:
        parts = urlsplit(settings.uri)
        self.name, self.prefix = parts.netloc, parts.path.strip("/")
        self.uri = settings.uri
        if not self.name:
            raise FetchError(f"{self.uri} names no bucket", "Write s3://bucket/folder.")
        self.store = _store(self.name, settings.given)

    def fault(self, error: BaseException) -> FetchError | TemporaryFault:
        """What obstore raised, in our words. Its own name the request and the server's answer,
        never the credentials."""
        text = " ".join(str(error)[:_LONGEST_FAULT].split())
        kind, said = type(error).__name__, _code(text)
        for known in self._faults(said):
            if said in known.codes or kind in known.kinds:
                return FetchError(known.message, known.remedy)
        if _UNTRUSTED in text:
            return FetchError(
                f"the certificate of {self.uri}'s server is not trusted",
                "Give the authority's certificates as a PEM file with CA_BUNDLE.",
            )
        return TemporaryFault(f"{self.uri}: {said or text.partition(' Debug source')[0][:300]}")

    def _faults(self, said: str) -> tuple[_Fault, ...]:
        return (
            _Fault(
                _EXPIRED,
                (),
                f"the credentials for {self.uri} have expired",
                "Put new ones into the Secret (SESSION_TOKEN goes with them); what came so far "
                "is kept.",
            ),
            _Fault(
                ("NoSuchBucket",),
                (),
                f"there is no bucket {self.name}",
                "Correct storageUri, or ENDPOINT where it is another server's bucket.",
            ),
            _Fault(
                _REFUSED,
                ("PermissionDeniedError", "UnauthenticatedError"),
                f"the server refuses {self.uri}: {said or 'permission denied'}",
                "See to ACCESS_KEY_ID and SECRET_ACCESS_KEY in the Secret, to REGION, and to what "
                "the key may do: list the bucket and get its objects.",
            ),
            _Fault((), ("PreconditionError",), *_replaced(self.uri)),
            _Fault(
                (),
                ("NotFoundError", "FileNotFoundError"),
                f"an object of {self.uri} is not there: {said or 'not found'}",
                "Correct storageUri; if it was removed meanwhile, upload it again.",
            ),
        )


def _replaced(uri: str) -> tuple[str, str]:
    return (
        f"an object of {uri} was replaced while it was read",
        "Start it again when nobody writes there.",
    )


class _Fault(msgspec.Struct, frozen=True):
    """What S3's codes or obstore's exceptions of these names mean."""

    codes: tuple[str, ...]
    kinds: tuple[str, ...]
    message: str
    remedy: str


class _Object(msgspec.Struct, frozen=True):
    """As it was listed."""

    key: str
    tag: str
    modified: datetime

    def still(self, answer: Any) -> bool:
        """Whether it is the same that is answered; a listing knows parts of a second."""
        tag = str(answer.get("e_tag") or "")
        if self.tag and tag:
            return self.tag.strip('"') == tag.strip('"')
        modified: datetime = answer["last_modified"]
        return modified.replace(microsecond=0) == self.modified.replace(microsecond=0)


class S3:
    def __init__(self, settings: Settings) -> None:
        self._bucket = Bucket(settings)
        self._listed: dict[str, _Object] = {}

    def items(self) -> Iterator[Item]:
        import obstore

        prefix, found = self._bucket.prefix, False
        try:
            for page in obstore.list(self._bucket.store, prefix or None, chunk_size=1000):
                for one in page:
                    key = str(one["path"])
                    path = key.removeprefix(f"{prefix}/") if prefix else key
                    if not (prefix and key == prefix):
                        found = True
                        yield self._item(path, key, one)
            if prefix and not found:
                yield from self._single(prefix)
        except obstore.exceptions.BaseError as error:
            raise self._bucket.fault(error) from None

    def _single(self, key: str) -> Iterator[Item]:
        """Where the address is that of one object."""
        import obstore

        try:
            one: Any = obstore.head(self._bucket.store, key)
        except (obstore.exceptions.NotFoundError, FileNotFoundError):
            return
        yield self._item(key.rpartition("/")[2], key, one)

    def _item(self, path: str, key: str, one: Any) -> Item:
        self._listed[path] = _Object(key, str(one.get("e_tag") or ""), one["last_modified"])
        return Item(path, int(one["size"]), str(one.get("e_tag") or one["last_modified"]))

    def read(self, item: Item, start: int, end: int | None) -> Pieces:
        import obstore

        listed, size = self._listed[item.path], item.size or 0
        last = size if end is None else end
        if start >= last:
            return
        options: Any = {"range": (start, last)}
        if item.version.startswith('"'):
            options["if_match"] = item.version
        came = start
        try:
            answer = obstore.get(self._bucket.store, listed.key, options=options)
            if answer.meta["size"] != size or not listed.still(answer.meta):
                raise FetchError(*_replaced(self._bucket.uri))
            for piece in answer.stream(min_chunk_size=_PIECE):
                data = bytes(piece)
                came += len(data)
                if came > last:
                    raise TemporaryFault(f"{item.path}: the server sent more than was asked for")
                yield data
        except (obstore.exceptions.BaseError, OSError) as error:
            raise self._bucket.fault(error) from None
        if came < last:
            raise TemporaryFault(f"{item.path}: the connection ended early")

    def close(self) -> None:
        pass


def _store(bucket: str, given: Any) -> Any:
    from obstore.store import S3Store

    def first(*names: str) -> str:
        return next((given[name] for name in names if given.get(name)), "")

    address = first("ENDPOINT", "AWS_S3_ENDPOINT", "AWS_ENDPOINT_URL")
    address = endpoint(address) if address else ""
    keys = {field: first(*names) for names, field in _CREDENTIALS}
    config: dict[str, Any] = {field: value for field, value in keys.items() if value}
    if bool(keys["access_key_id"]) != bool(keys["secret_access_key"]):
        raise FetchError(
            "only one of ACCESS_KEY_ID and SECRET_ACCESS_KEY is set",
            "Put both into the Secret, or neither for a public bucket.",
        )
    if not keys["access_key_id"]:
        config["skip_signature"] = True
    if address:
        config["endpoint"] = address
    config["region"] = first("REGION", "AWS_DEFAULT_REGION", "AWS_REGION") or "us-east-1"
    addressing = given.get("ADDRESSING") or ("path" if address else "virtual")
    if addressing not in ("path", "virtual"):
        raise FetchError(f"ADDRESSING is {addressing!r:.20}", "Set it to path or virtual.")
    config["virtual_hosted_style_request"] = addressing == "virtual"
    client: dict[str, Any] = {
        "connect_timeout": "20s",
        "timeout": "30min",
        "read_timeout": "60s",
        "allow_http": address.startswith("http://"),
    }
    bundle = first("CA_BUNDLE", "AWS_CA_BUNDLE")
    if bundle:
        client["root_certificate"] = _certificates(bundle)
    # Tries beyond these few are made where progress is seen.
    retry: Any = {"max_retries": 2}
    try:
        return S3Store(bucket, config=config, client_options=client, retry_config=retry)  # type: ignore[arg-type]
    except Exception as error:
        raise FetchError(
            f"the S3 settings cannot be used: {type(error).__name__}",
            "See to ENDPOINT (https://host[:port]), REGION and CA_BUNDLE.",
        ) from None


def _certificates(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(4 << 20)
    except OSError as error:
        raise FetchError(
            f"CA_BUNDLE {path} cannot be read: {error.strerror}",
            "Mount the file into the initializer.",
        ) from None


def _code(text: str) -> str:
    """The S3 error code of the server's answer."""
    _, _, rest = text.partition("<Code>")
    code = rest.partition("</Code>")[0]
    return code if code.isalnum() and len(code) <= 64 else ""
