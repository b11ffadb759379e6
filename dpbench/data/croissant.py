"""The description of a data set for machines, in Croissant 1.1 (MLCommons): JSON-LD with schema.org's vocabulary."""

from __future__ import annotations

from dpbench import __version__
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Attribute
from dpbench.files import Json

CONTEXT: Json = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "description": {"@container": "@language"},
    "name": {"@container": "@language"},
    **{
        key: f"cr:{key}"
        for key in (
            *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field"),
            *("fileProperty", "fileObject", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath"),
            *("key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated", "replace"),
            *("samplingRate", "separator", "source", "subField", "transform"),
        )
    },
}
TYPES = {
    "csv": "text/csv",
    "gz": "application/gzip",
    "zip": "application/zip",
    "parquet": "application/vnd.apache.parquet",
}


def croissant(dataset: Dataset) -> Json:
    """The Croissant description of a data set: source, licence, files with checksums, and what is declared of each
    attribute (`variableMeasured`). Files of which no checksum is known are left out.
    """
    facts = dataset.card
    title, notes = str(facts.get("title") or dataset.name), [str(note) for note in facts.get("notes") or ()]
    found = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": dataset.name,
        "description": ". ".join([title, *notes]),
        "citeAs": facts.get("source"),
        "license": facts.get("licence"),
        "url": dataset.sources[0].url if dataset.sources else None,
        "version": __version__,
        "isAccessibleForFree": True,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": source.file,
                "name": source.file,
                "contentUrl": source.url,
                "encodingFormat": TYPES.get(source.file.rsplit(".", 1)[-1], "text/plain"),
                "sha256": source.sha256,
            }
            for source in dataset.sources
            if source.sha256
        ],
        "variableMeasured": [_measured(one) for one in _attributes(dataset)],
    }
    return {key: value for key, value in found.items() if value is not None}


def _attributes(dataset: Dataset) -> tuple[Attribute, ...]:
    declared = dataset.get("attributes") or dataset.get("domain")
    return dataset.full_domain.attributes if declared else ()


def _measured(attribute: Attribute) -> Json:
    """An attribute as a schema.org PropertyValue: its bounds and unit, or its levels."""
    found: Json = {"@type": "sc:PropertyValue", "name": attribute.name}
    if attribute.bounds is None:
        return {**found, "value": list(attribute.levels)}
    lower, upper = attribute.bounds
    return {**found, "minValue": lower, "maxValue": upper, "unitText": attribute.unit}
