"""Lessons and worked examples of earlier conversations, found again by similarity; it holds none yet."""
