"""Models behind a network. Import this where one is made: it brings httpx, which `callboard.runtime` does not load."""

from .http_chat_model import HttpChatModel, HttpModelStatistics, HttpOptions

__all__ = ["HttpChatModel", "HttpModelStatistics", "HttpOptions"]
