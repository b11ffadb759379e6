"""Hydra's repository of config files, which parses the files of the project and of Hydra once in a process."""

from __future__ import annotations

import pickle

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult

from dpbench.resources import conf_dir

HYDRA = "hydra/config"  # where Hydra's own settings stand
_read: dict[tuple[str, str], bytes] = {}


class ReadOnce(ConfigRepository):
    """Parsing is most of what a composition takes; what cannot change is parsed once. A user's own files may change."""

    def load_config(self, config_path: str) -> ConfigResult | None:
        """What the file holds, a copy of the caller's own: Hydra writes to it.

        Hydra's own settings come without its launcher, sweeper and logging, which are for its own command line.
        """
        source = self._find_object_source(config_path, ObjectType.CONFIG)
        if source is None or (source.scheme() == "file" and source.path != str(conf_dir())):
            return super().load_config(config_path)
        key = (source.full_path(), config_path)
        if key not in _read:
            found = super().load_config(config_path)
            if found is not None and config_path == HYDRA:
                found.defaults_list = []
            _read[key] = pickle.dumps(found)
        copied: ConfigResult = pickle.loads(_read[key])
        return copied


def read_files_once() -> None:
    """Have Hydra, which is initialized, compose from such a repository."""
    loader = GlobalHydra.instance().config_loader()
    if isinstance(loader, ConfigLoaderImpl):
        loader.repository = ReadOnce(loader.config_search_path)
