"""Vectors from texts: the providers, and the verb that adds vectors to files before they are loaded."""

from omnigraph.embeddings.embedder import Embedder, embedder_of
from omnigraph.embeddings.files import EmbedSummary, embed_file, embed_seed
from omnigraph.embeddings.spec import EmbedSpec, TypeSpec

__all__ = ["EmbedSpec", "EmbedSummary", "Embedder", "TypeSpec", "embed_file", "embed_seed", "embedder_of"]
