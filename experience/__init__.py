"""Lessons and worked examples of earlier conversations, found again by similarity."""

from .hashed_embedder import HashedEmbedder as HashedEmbedder
from .sentence_embedder import MissingExtra as MissingExtra
from .sentence_embedder import SentenceEmbedder as SentenceEmbedder
