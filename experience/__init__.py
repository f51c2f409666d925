"""Lessons and worked examples of earlier conversations, kept in folders and found again by likeness."""

from .folder import resolve_folder
from .hashed_embedder import HashedEmbedder
from .lesson import Found, Lesson
from .pool import ExperiencePool
from .sentence_embedder import MissingExtra, SentenceEmbedder

__all__ = [
    "ExperiencePool",
    "Found",
    "HashedEmbedder",
    "Lesson",
    "MissingExtra",
    "SentenceEmbedder",
    "resolve_folder",
]
