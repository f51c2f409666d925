"""Models behind a network. Import this where one is made: it brings httpx, which `callboard.runtime` does not load.

HttpEmbedder is imported from its module, since it brings numpy.
"""

from .anthropic_model import AnthropicModel
from .http_chat_model import HttpChatModel, HttpOptions
from .streamed_model import HttpModelStatistics

__all__ = ["AnthropicModel", "HttpChatModel", "HttpModelStatistics", "HttpOptions"]
