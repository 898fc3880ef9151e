"""The session's JVM, for what PySpark has no call for, and files through Hadoop's file systems in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from stele.errors import Invalid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def get_jvm(spark: SparkSession) -> Any:
    """Its packages. Raises `Invalid` for a session of Spark Connect, which has none here."""
    found = getattr(spark, "_jvm", None)
    if found is None:
        raise Invalid(
            "tables of this kind are written from the driver's own process, which a Spark Connect session lacks"
        )
    return found


def get_java_session(spark: SparkSession) -> Any:
    """The session as the JVM knows it."""
    return spark._jsparkSession  # noqa: SLF001 - PySpark has no other way


def require_class(spark: SparkSession, name: str, advice: str) -> None:
    """Raise `Invalid` with the advice when the JVM lacks a class."""
    if not get_jvm(spark).org.apache.spark.util.Utils.classIsLoadable(name):
        raise Invalid(advice)


class HadoopFolder:
    """A folder, which need not exist; paths are below it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._jvm = get_jvm(spark)
        self.path = path.rstrip("/")
        self._files: Any = self._java_path("").getFileSystem(get_java_session(spark).sessionState().newHadoopConf())

    def full_path(self, path: str) -> str:
        """The whole path."""
        return f"{self.path}/{path}" if path else self.path

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return bool(self._files.exists(self._java_path(path)))

    def list_names(self, path: str, *, folders: bool = False) -> list[str]:
        """The names of the files in a folder, or of the folders in it, sorted; none when there is no folder."""
        if not self.exists(path):
            return []
        found = self._files.listStatus(self._java_path(path))
        return sorted(each.getPath().getName() for each in found if bool(each.isDirectory()) == folders)

    def read_text(self, path: str) -> str:
        """A small file's text."""
        stream = self._files.open(self._java_path(path))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Write a small file that is not there yet; it appears whole or not at all."""
        folder, _, name = path.rpartition("/")
        draft = f"{folder}/.{name}.{uuid4()}".lstrip("/")
        stream = self._files.create(self._java_path(draft), False)
        stream.write(bytearray(text.encode()))
        stream.close()
        self.move_file(draft, path)

    def move_file(self, path: str, to: str) -> None:
        """Give a file another path, at which there is nothing yet. Raises `OSError` when that fails."""
        if not self._files.rename(self._java_path(path), self._java_path(to)):
            raise OSError(f"{self.full_path(path)} cannot be renamed to {self.full_path(to)}")

    def delete_path(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it, if it is there."""
        self._files.delete(self._java_path(path), True)

    def _java_path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.full_path(path))
