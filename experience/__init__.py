"""Lessons and worked examples of earlier conversations, kept in folders and found again by likeness."""

from .examples import Examples
from .experience import Experience
from .hashed_embedder import HashedEmbedder
from .lesson import Found, Lesson
from .pool import ExperiencePool
from .saving import save_experience
from .sentence_embedder import MissingExtra, SentenceEmbedder

__all__ = [
    "Examples",
    "Experience",
    "ExperiencePool",
    "Found",
    "HashedEmbedder",
    "Lesson",
    "MissingExtra",
    "SentenceEmbedder",
    "save_experience",
]
